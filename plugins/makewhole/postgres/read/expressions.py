"""Build the SQL of an export: key, time and compared columns of a table as text in their declared types.

Identifiers come from pipeline files. Each is checked against the catalogue first and then quoted by psycopg2.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from psycopg2 import sql

from makewhole.compute.row_filter import TypedTerm
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.points import TablePoint
from makewhole.postgres.canonical import canonical_expression
from makewhole.postgres.key_columns import key_column_text, kinds_of
from makewhole.postgres.read.filter_expressions import all_hold
from makewhole.postgres.version_columns import version_text
from makewhole.sql import PgConnection
from makewhole.tables.shape import TableShape, TimeBounds

_SNAPSHOT = re.compile(r"\d+:\d+:[\d,]*", re.ASCII)
# Of a domain, the type that it is made of.
_COLUMNS = """
with recursive named as (
    select a.attname, a.attnum, a.atttypid as id, a.atttypmod as modifier
    from pg_attribute a
    where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped
    union all
    select named.attname, named.attnum, t.typbasetype, greatest(t.typtypmod, named.modifier)
    from named join pg_type t on t.oid = named.id and t.typtype = 'd'
)
select named.attname, format_type(named.id, named.modifier)
from named join pg_type t on t.oid = named.id and t.typtype <> 'd'
order by named.attnum
"""
# The full transaction id of a row: its 32 bits of xmin on the epoch of now, never in the future.
ROW_XID = """(case when xmin::text::bigint < 3 then 3 else
    (pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32 << 32) + xmin::text::bigint
    - case when (pg_snapshot_xmax(pg_current_snapshot())::text::bigint >> 32 << 32) + xmin::text::bigint
                > pg_snapshot_xmax(pg_current_snapshot())::text::bigint then 4294967296 else 0 end
    end)::text::xid8"""


def column_types(session: PgConnection, shape: TableShape) -> dict[str, str]:
    """Return the types of the table's columns, by name.

    Raises:
        ConfigurationError: the table or a column that the pipeline file names does not exist.
    """
    point = shape.point
    types = table_columns(session, point)
    if not types:
        raise ConfigurationError([_problem(point, "table", f"table {point.table} does not exist", "Correct its name")])
    unknown = sorted(shape.column_names() - set(types))
    if unknown:
        known = ", ".join(sorted(types))
        raise ConfigurationError(
            [_problem(point, name, f"{point.table} has no column {name}", f"It has: {known}") for name in unknown]
        )
    return types


def table_columns(session: PgConnection, point: TablePoint) -> dict[str, str]:
    """Return the types of all columns of a table, by name; of a domain the type that it is made of. Empty: there is no
    such table."""
    with session.cursor() as cursor:
        cursor.execute(_COLUMNS, (regclass_text(point),))
        return dict(cursor.fetchall())


def _problem(point: TablePoint, path: str, found: str, remedy: str) -> Problem:
    return Problem(file="pipeline file", path=f"points.{point.name}.{path}", found=found, remedy=remedy)


def table_identifier(point: TablePoint) -> sql.Composable:
    """Return the table's name, quoted part by part."""
    return sql.Identifier(*point.table_names)


def regclass_text(point: TablePoint) -> str:
    """Return the table's name for `regclass`, quoted: without quotes it would fold capitals and find another table."""
    return ".".join('"{}"'.format(part.replace('"', '""')) for part in point.table_names)


def key_expression(point: TablePoint, types: Mapping[str, str]) -> sql.Composable:
    """Return the business key as text, see `makewhole.compute.keys.key_text`; `types` are those of the columns.

    Null when one of several is empty, or no value of its type.
    """
    kinds = kinds_of(point.key_layout, len(point.key))
    parts = [
        key_column_text(sql.SQL("t.{}").format(sql.Identifier(name)), types[name], kind)
        for name, kind in zip(point.key, kinds, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    quoted = [sql.SQL("to_json(nullif({}, ''))::text").format(part) for part in parts]
    return sql.SQL("'[' || {} || ']'").format(sql.SQL(" || ',' || ").join(quoted))


def select_list(shape: TableShape, types: Mapping[str, str]) -> sql.Composable:
    """Return the exported columns, in the order in which `makewhole.compute.normalise.table_frame` has them: key,
    place, time, version, the compared ones, the filters that are not passed. `types` are those of the columns."""
    point = shape.point
    columns = [
        key_expression(point, types),
        place(point),
        microseconds(point.time),
        _version(point, types),
        *(_compared(name, declared, types[name]) for name, declared in shape.compare.items()),
        excluded_by(shape.filters, types),
    ]
    return sql.SQL(", ").join(columns)


def _version(point: TablePoint, types: Mapping[str, str]) -> sql.Composable:
    if point.version is None:
        return sql.SQL("null::text")
    return version_text(sql.SQL("t.{}").format(sql.Identifier(point.version)), types[point.version])


def place(point: TablePoint) -> sql.Composable:
    """Return the row's ctid, after the partition's name where it lies in one: every partition numbers its own pages."""
    return sql.SQL(
        "case when t.tableoid = {}::regclass then '' else t.tableoid::regclass::text end || t.ctid::text"
    ).format(sql.Literal(regclass_text(point)))


def microseconds(column: str | None) -> sql.Composable:
    """Return the microseconds since 1970 of a time column; null for an infinite time, or without a column."""
    if column is None:
        return sql.SQL("null::bigint")
    # Of the last years that PostgreSQL knows 64 bits hold no microseconds.
    within = "isfinite(t.{0}) and t.{0} <= '294247-01-10 04:00:54.775807'"
    return sql.SQL(f"case when {within} then (extract(epoch from t.{{0}}) * 1000000)::bigint end").format(
        sql.Identifier(column)
    )


def _compared(name: str, declared: str, column_type: str) -> sql.Composable:
    column = sql.SQL("t.{}").format(sql.Identifier(name))
    return canonical_expression(column, declared, column_type)


def excluded_by(filters: Mapping[str, tuple[TypedTerm, ...]], types: Mapping[str, str]) -> sql.Composable:
    """Return the hops whose filter a row does not pass, joined by commas; empty for none. `types` are those of the
    columns."""
    cases = [
        sql.SQL("case when {} then null else {} end").format(all_hold(terms, types), sql.Literal(hop))
        for hop, terms in filters.items()
        if terms
    ]
    if not cases:
        return sql.SQL("''::text")
    return sql.SQL("concat_ws(',', {})").format(sql.SQL(", ").join(cases))


def passes_filter(terms: tuple[TypedTerm, ...], types: Mapping[str, str]) -> sql.Composable:
    """Return whether a row `t` passes all of these terms; `types` are those of the table's columns."""
    return all_hold(terms, types) if terms else sql.SQL("true")


def time_condition(point: TablePoint, bounds: TimeBounds | None) -> sql.Composable:
    """Return the condition for rows inside the bounds; all rows when there are none or the table has no time column.

    Every part names times, so that an index on the column finds the rows of each.
    """
    if bounds is None or point.time is None:
        return sql.SQL("true")
    parts = [time_between(point.time, bounds.start, bounds.end)]
    if bounds.start is None or bounds.seen_before is None:
        parts.append(without_time(point.time))
    else:
        parts.append(sql.SQL("({} and not {})").format(without_time(point.time), surely_visible(bounds.seen_before)))
    for rows in bounds.earlier:
        within = time_between(point.time, rows.start, rows.end)
        if rows.seen_before is not None:
            within = sql.SQL("({} and not {})").format(within, surely_visible(rows.seen_before))
        parts.append(within)
    return sql.SQL("({})").format(sql.SQL(" or ").join(parts))


def time_between(column: str, start: datetime | None, end: datetime) -> sql.Composable:
    """Return the condition for a time in `[start, end)`; `start` None has no lower bound."""
    name = sql.SQL("t.{}").format(sql.Identifier(column))
    within = sql.SQL("{} < {}").format(name, sql.Literal(end))
    if start is None:
        return within
    return sql.SQL("({} >= {} and {})").format(name, sql.Literal(start), within)


def without_time(column: str) -> sql.Composable:
    """Return the condition for a row without a time, or with one that no window could reach."""
    return sql.SQL("({0} is null or {0} = 'infinity')").format(sql.SQL("t.{}").format(sql.Identifier(column)))


def live_condition(point: TablePoint) -> sql.Composable:
    """Return the condition for rows that were not erased in place: those are no copies of their keys any more."""
    if point.erased is None or point.erased.column is None:
        return sql.SQL("true")
    return sql.SQL("t.{} is null").format(sql.Identifier(point.erased.column))


def surely_visible(snapshot: str) -> sql.Composable:
    """Return the condition that the row was certainly visible in the snapshot; no row was in what was seen of a table
    of another kind.

    Not `pg_visible_in_snapshot`: after a savepoint a row carries the id of a subtransaction, which the snapshot does
    not list, so that function takes it for visible while its transaction was still open. Only what is older than every
    transaction that was open then is certain.
    """
    if not _SNAPSHOT.fullmatch(snapshot):
        return sql.SQL("false")
    return sql.SQL("{} < pg_snapshot_xmin({}::pg_snapshot)").format(sql.SQL(ROW_XID), sql.Literal(snapshot))
