"""The key layout of a pipeline: the types by which the keys of its points are read."""

from collections.abc import Mapping
from dataclasses import replace

from makewhole.model.pipeline import KeyType, Pipeline

KeyLayout = Mapping[str, tuple[KeyType, ...]]
"""Point → the types of its key's parts. A point that is not in it has its keys as texts as they are."""


def with_layout(pipeline: Pipeline, layout: KeyLayout) -> Pipeline:
    """Return the pipeline with keys that are read by this layout; it stays the same pipeline file."""
    points = {name: replace(point, key_layout=tuple(layout.get(name, ()))) for name, point in pipeline.points.items()}
    return replace(pipeline, points=points)
