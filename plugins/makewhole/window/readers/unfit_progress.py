"""Find hops whose sink keeps no progress in the table and columns that the file names."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from makewhole.config.hops.where import ORDERING, Literal, WhereTerm, parse_where
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection
from makewhole.model.errors import Problem
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import TablePoint, can_look_up
from makewhole.tables.progress import progress_table
from makewhole.tables.tables import Ability, Tables

_NUMBERS = ("smallint", "integer", "bigint", "numeric")
_TEXTS = ("text", "character varying", "character", "bpchar", "name", "citext")
_NUMBER_REMEDY = "Name a column of type bigint, integer, smallint or numeric, or a view that casts it"
_COMPARED = (
    "Compare texts with 'text' in quotes, numbers with numbers, booleans with true or false; by <, <=, > and >= "
    "numbers alone"
)
_TEXT_REMEDY = "Name a column of type text or varchar, or a view that casts it"


def unfit_progress(pipeline: Pipeline, connections: Mapping[str, Connection]) -> list[Problem]:
    """Return every table and column under `progress` that does not exist, cannot be what the file says, or may not be
    read; nothing of tables whose system keeps no progress.

    Raises:
        TransientError: a database does not answer.
    """
    problems: list[Problem] = []
    for hop in pipeline.hops:
        store = pipeline.points[hop.target]
        if hop.progress is None or hop.progress.is_of_files or not can_look_up(store):
            continue
        tables = tables_of(connections[store.connection])
        if Ability.PROGRESS in tables.abilities:
            problems += _problems(hop, hop.progress, store, tables)
    return problems


def _problems(hop: Hop, progress: SinkProgress, store: TablePoint, tables: Tables) -> Iterator[Problem]:
    table = progress_table(progress, store)
    with tables.session(f"reading the columns of {progress.table}") as session:
        types = session.column_types(table)
        is_readable = bool(types) and session.may_read(table, _named(progress))
    if not types:
        found = f"there is no table {progress.table} in the database of {store.name} (connection {store.connection})"
        yield _problem(hop, "table", found, "Correct its name, or take `progress` out of this hop")
        return
    if not is_readable:
        found = f"the user of connection {store.connection} may not read {progress.table}"
        yield _problem(hop, "table", found, f"`grant select on {progress.table}` to it")
    yield from _of_columns(hop, progress, types)


def _named(progress: SinkProgress) -> list[str]:
    """Return the columns that the file names."""
    of_where = [term.column for term in parse_where(progress.where)] if progress.where else []
    return [progress.partition, progress.offset, *([progress.topic] if progress.topic else []), *of_where]


def _of_columns(hop: Hop, progress: SinkProgress, types: Mapping[str, str]) -> Iterator[Problem]:
    for key, name in (("partition", progress.partition), ("offset", progress.offset)):
        if name not in types or _plain(types[name]) not in _NUMBERS:
            yield _of_column(hop, progress, key, name, types, f"which holds no {key}", _NUMBER_REMEDY)
    if progress.topic is not None and (progress.topic not in types or _plain(types[progress.topic]) not in _TEXTS):
        yield _of_column(hop, progress, "topic", progress.topic, types, "which holds no topic's name", _TEXT_REMEDY)
    for term in parse_where(progress.where) if progress.where else ():
        if term.column not in types or not _is_comparable(term, _plain(types[term.column])):
            literals = ", ".join(f"{literal!s:.40}" for literal in term.literals)
            why = f"which is not compared with {literals}" + (" by an order" if term.operator in ORDERING else "")
            remedy = _COMPARED
            yield _of_column(hop, progress, "where", term.column, types, why, remedy)


def _is_comparable(term: WhereTerm, column_type: str) -> bool:
    is_ordering = term.operator in ORDERING
    return all(_is_literal_of(column_type, literal, is_ordering) for literal in term.literals)


def _is_literal_of(column_type: str, literal: Literal, is_ordering: bool) -> bool:
    if isinstance(literal, bool):
        return column_type == "boolean"
    if isinstance(literal, int | Decimal):
        return column_type in _NUMBERS
    return column_type in _TEXTS and not is_ordering


def _of_column(
    hop: Hop, progress: SinkProgress, key: str, name: str, types: Mapping[str, str], why: str, remedy: str
) -> Problem:
    if name not in types:
        known = ", ".join(sorted(types))
        return _problem(hop, key, f"{progress.table} has no column {name}", f"It has: {known}")
    return _problem(hop, key, f"{progress.table}.{name} is of type {types[name]}, {why}", remedy)


def _plain(column_type: str) -> str:
    """Return a type without its modifier: `numeric(20,0)` is a numeric."""
    return column_type.split("(", 1)[0].strip()


def _problem(hop: Hop, key: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"hops {hop.name}.progress.{key}", found=found, remedy=remedy)
