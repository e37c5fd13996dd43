"""Refuse a window whose hops would write rows of which the file does not account for every column."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from makewhole.compute.value_types import ColumnKind, declaration, quoted_type
from makewhole.kinds import OpenTables
from makewhole.model.connection import Connection
from makewhole.model.errors import Problem
from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_on
from makewhole.model.points import TablePoint, can_look_up
from makewhole.tables.new_row import new_row
from makewhole.window.opening.suggested_names import names_for

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def unaccounted_columns(pipeline: Pipeline, connections: Mapping[str, Connection]) -> list[Problem]:
    """Return every column of a table into which a hop writes missing rows of which nothing says what it holds, with the
    lines to write.

    Raises:
        RefusedError: a table does not exist.
        TransientError: a database does not answer.
    """
    writing = [hop for hop in pipeline.hops if Remedy.UPSERT in (hop.remedies.missing, hop.remedies.vanished)]
    correcting = [hop for hop in pipeline.hops if hop.remedies.mismatched is Remedy.UPSERT]
    with OpenTables(connections, "reading the columns of its tables") as tables:
        whole = [problem for hop in correcting for problem in _whole_columns(pipeline, hop, tables)]
    return [*whole, *_unaccounted(pipeline, writing, connections)]


def _whole_columns(pipeline: Pipeline, hop: Hop, tables: OpenTables) -> Iterator[Problem]:
    """Yield the compared columns of which a table knows the parts alone: a row is corrected by these."""
    target = pipeline.points[hop.target]
    if not can_look_up(target):
        return
    known = tables.of(target).description.columns
    for name in compared_on(pipeline, hop):
        if name not in known:
            place = target.column_place(name)
            parts = [column for column in known if column.startswith(f"{place}.")]
            named = ", ".join(
                f"{new}: {column}" for column, new in names_for({part: part for part in parts}, known).items()
            )
            yield _problem(
                hop,
                "compensation.mismatched",
                f"{target.table}.{place} has parts, and 'upsert' writes each part by its name",
                f"Compare its parts, under `columns` of point {target.name}: `{named}`; or report what differs",
            )


def unaccounted_if_written(pipeline: Pipeline, hop: Hop, connections: Mapping[str, Connection]) -> list[Problem]:
    """Return the same of one hop, as if its missing rows were written. Raises as `unaccounted_columns`."""
    return _unaccounted(pipeline, [hop], connections)


def _unaccounted(pipeline: Pipeline, hops: Iterable[Hop], connections: Mapping[str, Connection]) -> list[Problem]:
    problems: list[Problem] = []
    with OpenTables(connections, "reading the columns of its tables") as tables:
        for hop in hops:
            target = pipeline.points[hop.target]
            if can_look_up(target):
                problems += _problems(pipeline, hop, target, tables)
    return problems


def _problems(pipeline: Pipeline, hop: Hop, target: TablePoint, tables: OpenTables) -> Iterator[Problem]:
    source, table = pipeline.points[hop.source], tables.of(target).description
    row = new_row(table, hop, source, target, compared_on(pipeline, hop))
    if row.without_topic is not None:
        yield _without_topic(hop, target, row.without_topic)
    if unaccounted := tuple(name for name in row.unaccounted if name != row.without_topic):
        listed = ", ".join(f"{name} ({table.columns[name].type})" for name in unaccounted)
        yield _problem(
            hop,
            "write",
            f"nothing says what {listed} of a row holds that 'upsert' writes into {target.table}",
            _remedy(target, table.columns, tables.session(target).column_kinds(target), unaccounted),
        )
    for name in (*hop.write, *hop.leave):
        if name not in table.columns:
            known = ", ".join(table.columns)
            yield _problem(hop, _key(hop, name), f"{target.table} has no column {name}", f"It has: {known}")
    for name in hop.write:
        if name in table.columns and table.columns[name].is_generated:
            yield _problem(hop, "write", f"{target.table} computes {name} itself", f"Take {name} out of `write`")
        if can_look_up(source) and name not in tables.of(source).description.columns:
            yield _problem(hop, "write", f"{source.table} has no column {name} to take it from", "Correct its name")
    for name in hop.leave:
        column = table.columns.get(name)
        if column is not None and column.is_required and not column.has_default:
            found = f"{name} of {target.table} takes no null, and has no default"
            yield _problem(hop, "leave", found, f"Write it from the record: `write: {{{name}: TYPE}}`")


def _without_topic(hop: Hop, target: TablePoint, column: str) -> Problem:
    return _problem(
        hop,
        "leave" if column in hop.leave else "compensation.missing",
        f"{column} of a row that 'upsert' writes into {target.table} would have no topic, and the row be none of those "
        f"of {target.name}",
        f"Take the topic out of `position` of point {target.name} if rows of no other topic lie there, or report what "
        "is missing",
    )


def _key(hop: Hop, name: str) -> str:
    return "write" if name in hop.write else "leave"


def _remedy(target: TablePoint, known: Iterable[str], kinds: Mapping[str, ColumnKind], names: tuple[str, ...]) -> str:
    """Return the lines that account for columns; those that the lines of a hop cannot name get names first."""
    new = names_for({name: target.column_place(name) for name in names}, [*known, *target.named_columns])
    lines = _lines({new.get(name, name): kinds[name] for name in names})
    if not new:
        return lines
    listed = ", ".join(f"{name}: {_quoted(target.column_place(called))}" for called, name in new.items())
    return f"Name them first, under `columns` of point {target.name}: `{listed}`. Then {lines[0].lower()}{lines[1:]}"


def _quoted(column: str) -> str:
    """Return the name of a column as a scalar of YAML."""
    return column if _PLAIN.fullmatch(column) else json.dumps(column, ensure_ascii=False)


def _lines(kinds: Mapping[str, ColumnKind]) -> str:
    """Return the lines that account for columns: those of a type that records have, and the others."""
    types = {name: declaration(kind) for name, kind in kinds.items()}
    write = ", ".join(f"{name}: {quoted_type(kind)}" for name, kind in types.items() if kind is not None)
    leave = ", ".join(kinds)
    if not write:
        return f"Write `leave: [{leave}]` on this hop, if they stay empty: no declared type reads such a column"
    return (
        f"Write `write: {{{write}}}` on this hop for those that the record has under the same name, and "
        f"`leave: [{leave}]` for those that stay empty"
    )


def _problem(hop: Hop, key: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"hops {hop.name}.{key}", found=found, remedy=remedy)
