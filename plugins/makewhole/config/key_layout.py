"""The types by which a window reads a pipeline: those of the keys of its points, and those of columns."""

from collections.abc import Mapping
from dataclasses import replace

from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType
from makewhole.model.value_types import DECLARED, ValueTypes

KeyLayout = Mapping[str, tuple[KeyType, ...]]
"""Point → the types of its key's parts. A point that is not in it has its keys as texts as they are."""


def with_layout(pipeline: Pipeline, layout: KeyLayout, types: ValueTypes = DECLARED) -> Pipeline:
    """Return the pipeline with keys and values that are read by these types; it stays the same pipeline file."""
    written = pipeline.as_written or pipeline
    points = {name: replace(point, key_layout=tuple(layout.get(name, ()))) for name, point in written.points.items()}
    return replace(
        written,
        points=points,
        hops=tuple(replace(hop, write=types.of_values(hop.write)) for hop in written.hops),
        compare=types.of_values(written.compare),
        filter_types=types.filters,
        as_written=written,
    )
