"""Find where in a topic's records the columns of a ledger's row stand, and whether a record can have all of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.places.record_paths import path_names, written_path
from makewhole.model.points import TablePoint, TopicPoint

FieldPath = tuple[str, ...]
ColumnPath = tuple[str, FieldPath]
"""A column of a ledger, and the path of names to its value in a record."""
RECORD_KEY, _HEADER = "kafka.key", "header:"


def is_placed(source: TablePoint, target: TopicPoint) -> bool:
    """Return whether a ledger's row becomes a record with its columns at their places, not a copy of the row."""
    return source.payload is None and bool(source.columns or target.columns)


def column_paths(pipeline: Pipeline, source: TablePoint, target: TopicPoint) -> list[ColumnPath]:
    """Return where in the value of a record the columns of a row stand that the topic is read for."""
    return list(dict.fromkeys(_paths(_places(pipeline, source, target))))


def other_places(pipeline: Pipeline, target: TopicPoint) -> list[tuple[str, str]]:
    """Return the columns that stand in no value, each with its place: `kafka.key`, or `header:NAME`."""
    named = ((name, target.column_place(name)) for name in _names(pipeline, target))
    return [(name, place) for name, place in named if not place.startswith("$.")]


def _places(pipeline: Pipeline, source: TablePoint, target: TopicPoint) -> Iterator[tuple[str, str]]:
    yield from zip(source.key, target.key, strict=False)
    if source.version is not None and target.version is not None:
        yield source.version, target.version
    for name in _names(pipeline, target):
        yield name, target.column_place(name)


def _names(pipeline: Pipeline, target: TopicPoint) -> dict[str, None]:
    """Return the columns that a topic is read for, in order."""
    return dict.fromkeys([*columns_read_at(pipeline, target.name), *(name for name, _ in target.columns)])


def _paths(places: Iterable[tuple[str, str]]) -> Iterator[ColumnPath]:
    for name, place in places:
        if place.startswith("$."):
            yield name, path_names(place)


def clash(paths: Sequence[ColumnPath]) -> tuple[ColumnPath, ColumnPath] | None:
    """Return two columns of which no record has both: one stands where the other is, or leads to it."""
    for column_path, other in combinations(sorted(paths, key=lambda path: path[1]), 2):
        if column_path[1] == other[1][: len(column_path[1])]:
            return column_path, other
    return None


def cannot_be_built(pipeline: Pipeline, hop: Hop, source: TablePoint, target: TopicPoint) -> str | None:
    """Return why no record can be made of a ledger's row that the topic reads as it; None: one can."""
    if not is_placed(source, target):
        return None
    pair = clash(column_paths(pipeline, source, target))
    if pair is not None:
        (column, at), (other, below) = pair
        return (
            f"a record that `produce` makes of a row of {hop.source} cannot have {column} at ${written_path(at)} and "
            f"{other} at ${written_path(below)}"
        )
    for name, place in other_places(pipeline, target):
        if place == RECORD_KEY:
            is_there = name == source.record_key or (source.record_key is None and source.key == (name,))
        else:
            is_there = (place.removeprefix(_HEADER), name) in source.headers
        if not is_there:
            return f"a record that `produce` makes of a row of {hop.source} would not have {name} at {place}"
    return None
