"""Say which columns are compared where: on a hop, and at a point whose hops compare different ones.

A snapshot of a point holds the columns of all its hops. A hop sees the pipeline with its own (`as_compared_on`).
"""

from collections.abc import Mapping
from dataclasses import replace

from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.value_types import compared_at as at_places

ColumnTypes = Mapping[str, str]
"""Column → its declared type. The order is part of it: hashes of rows are made in that order."""


def compared_on(pipeline: Pipeline, hop: Hop) -> ColumnTypes:
    """Return the columns that a hop compares."""
    if hop.compare is not None:
        return hop.compare
    return pipeline.compare if pipeline.compare_of_file is None else pipeline.compare_of_file


def as_compared_on(pipeline: Pipeline, hop: Hop) -> Pipeline:
    """Return the pipeline as a hop sees it: its `compare` is what this hop compares. It stays the same file. The same
    object where no hop has columns of its own."""
    if all(other.compare is None for other in pipeline.hops):
        return pipeline
    of_file = pipeline.compare if pipeline.compare_of_file is None else pipeline.compare_of_file
    return replace(pipeline, compare=compared_on(pipeline, hop), compare_of_file=of_file)


def compared_sets(pipeline: Pipeline, point: str) -> list[ColumnTypes]:
    """Return the different sets of columns that the hops of a point compare, in file order; of a point that no hop
    joins that of the file."""
    sets = {
        tuple(columns.items()): columns
        for hop in pipeline.hops
        for columns in [_at_end(hop, point, compared_on(pipeline, hop))]
        if point in (hop.source, hop.target)
    }
    return [*sets.values()] or [pipeline.compare if pipeline.compare_of_file is None else pipeline.compare_of_file]


def columns_read_at(pipeline: Pipeline, point: str) -> ColumnTypes:
    """Return the columns that a snapshot of a point holds: all that any of its hops compares."""
    first, *others = compared_sets(pipeline, point)
    return (
        {**first, **{name: declared for columns in others for name, declared in columns.items()}} if others else first
    )


def columns_asked_at(pipeline: Pipeline, point: str) -> ColumnTypes:
    """Return the columns that are asked for at a point: those of the hop that sees the pipeline, else all that a
    snapshot holds."""
    if pipeline.compare_of_file is None or _is_grouped(pipeline, point):
        return columns_read_at(pipeline, point)
    return pipeline.compare


def is_all_read(pipeline: Pipeline, point: str) -> bool:
    """Return whether all columns that a snapshot of a point holds are asked for, in their order, so that its hashes
    are of these."""
    if pipeline.compare_of_file is None or _is_grouped(pipeline, point):
        return True
    return [*pipeline.compare.items()] == [*columns_read_at(pipeline, point).items()]


def compared_at(pipeline: Pipeline, point: str) -> dict[str, str]:
    """Return the columns that are asked for at a point with their types, and with the place where it has one under
    another name: values that are read alike have the same."""
    return _at_places(columns_asked_at(pipeline, point), {point: pipeline.column_places.get(point, {})})


def compared_sets_at(pipeline: Pipeline, point: str) -> list[tuple[ColumnTypes, dict[str, str]]]:
    """Return each set of columns that a hop of a point compares and that is not all that its snapshot holds, and the
    same with places as `compared_at` has it."""
    whole, places = [*columns_read_at(pipeline, point).items()], {point: pipeline.column_places.get(point, {})}
    others = [columns for columns in compared_sets(pipeline, point) if [*columns.items()] != whole]
    return [(columns, _at_places(columns, places)) for columns in others]


def compared_in(pipeline: Pipeline, columns: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the columns of the pipeline with their types, and with these places (`Pipeline.column_places`)."""
    return _at_places(pipeline.compare, columns)


def compared_everywhere(pipeline: Pipeline) -> dict[str, str]:
    """Return the same with the places of all points together."""
    return compared_in(pipeline, pipeline.column_places)


def compared_by_hop(pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """Return what `compared_everywhere` says of each hop that compares columns of its own, by its name."""
    own = [hop for hop in pipeline.hops if hop.compare is not None]
    return {hop.name: {**_of_records(hop), **compared_everywhere(as_compared_on(pipeline, hop))} for hop in own}


def all_compared(pipeline: Pipeline) -> dict[str, str]:
    """Return every column that the file compares anywhere. A column has one type in a file."""
    of_hops = {name: kind for hop in pipeline.hops for name, kind in (hop.compare or {}).items()}
    of_file = pipeline.compare if pipeline.compare_of_file is None else pipeline.compare_of_file
    return {**of_file, **of_hops}


def _at_end(hop: Hop, point: str, compared: ColumnTypes) -> ColumnTypes:
    """Return the columns that a hop reads at one of its ends: of records that become one row their own."""
    return compared if hop.group is None or point != hop.source else hop.group.columns_of_records


def _is_grouped(pipeline: Pipeline, point: str) -> bool:
    """Return whether records of a topic become one row: nothing else is read of it."""
    return any(hop.group is not None and hop.source == point for hop in pipeline.hops)


def _of_records(hop: Hop) -> ColumnTypes:
    return {} if hop.group is None else hop.group.columns_of_records


def _at_places(compare: ColumnTypes, columns: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    places: dict[str, list[str]] = {}
    for point, of_point in columns.items():
        for name, place in of_point.items():
            places.setdefault(name, []).append(f"{point}: {place}")
    return {
        name: at_places(declared, places[name]) if name in places else declared for name, declared in compare.items()
    }
