"""The types by which a window reads a pipeline: those of the keys of its points, and those of columns."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType, Point, has_log
from makewhole.model.value_types import DECLARED, ValueTypes

KeyLayout = Mapping[str, tuple[KeyType, ...]]
"""Point → the types of its key's parts. A point that is not in it has its keys as texts as they are."""


def with_layout(pipeline: Pipeline, layout: KeyLayout, types: ValueTypes = DECLARED) -> Pipeline:
    """Return the pipeline with keys and values that are read by these types; it stays the same pipeline file."""
    written = pipeline.as_written or pipeline
    return replace(
        written,
        points={name: _read_by(point, layout, types) for name, point in written.points.items()},
        hops=tuple(_hop_read_by(hop, types) for hop in written.hops),
        compare=types.of_values(written.compare),
        filter_types=types.filters,
        as_written=written,
    )


def _hop_read_by(hop: Hop, types: ValueTypes) -> Hop:
    compare = None if hop.compare is None else types.of_values(hop.compare)
    return replace(hop, write=types.of_values(hop.write), compare=compare)


def _read_by(point: Point, layout: KeyLayout, types: ValueTypes) -> Point:
    kinds = tuple(layout.get(point.name, ()))
    if has_log(point):
        return replace(point, key_layout=kinds)
    return replace(point, key_layout=kinds, version_unit=Decimal(types.version_units.get(point.name, 0)))
