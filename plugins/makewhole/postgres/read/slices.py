"""Count the rows of a table by time slice: what came to a slice, or left it, since it was counted last."""

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg2 import sql

from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.postgres.read.expressions import (
    live_condition,
    regclass_text,
    surely_visible,
    table_identifier,
    time_between,
)
from makewhole.sql import PgConnection, named_rows, record
from makewhole.tables.shape import RowsAhead

_INDEX = """
select exists (
    select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = to_regclass(%s) and a.attname = %s and i.indisvalid and i.indpred is null
)
"""
_SIZE = """
select coalesce(sum(pg_relation_size(part.relid)), 0) + max(pg_relation_size(t.oid))
from pg_class t left join pg_partition_tree(t.oid) part on part.relid <> t.oid
where t.oid = to_regclass(%s)
"""


_IS_AHEAD = "{time} > now() + interval '1 day' and {live}"
_AHEAD = (
    "count(*) filter (where {time} < 'infinity' and {ahead}) as rows, "
    "min({time}) filter (where {time} < 'infinity' and {ahead})::text as oldest, "
    "max({time}) filter (where {time} < 'infinity' and {ahead})::text as newest, "
    "count(*) filter (where {time} = 'infinity' and {ahead}) as infinite"
)


def rows_ahead(session: PgConnection, point: TablePoint) -> RowsAhead:
    """Count the rows of a table whose times no window reaches. An index on the time column finds them."""
    numbers, is_ahead = _ahead(point)
    statement = sql.SQL("select {} from {} t where {}").format(numbers, table_identifier(point), is_ahead)
    with session.cursor() as cursor:
        cursor.execute(statement)
        (row,) = named_rows(cursor)
    return record(RowsAhead, row)


def _ahead(point: TablePoint) -> tuple[sql.Composable, sql.Composable]:
    """Return what is counted of the rows `t` ahead of the clock, and the condition for them."""
    assert point.time is not None
    time = sql.SQL("t.{}").format(sql.Identifier(point.time))
    is_ahead = sql.SQL(_IS_AHEAD).format(time=time, live=live_condition(point))
    return sql.SQL(_AHEAD).format(time=time, ahead=is_ahead), is_ahead


def has_time_index(session: PgConnection, point: TablePoint) -> bool:
    """Return whether an index over all rows begins with the time column."""
    return point.time is not None and has_index(session, point, point.time)


def has_index(session: PgConnection, point: TablePoint, column: str) -> bool:
    """Return whether an index over all rows begins with a column."""
    with session.cursor() as cursor:
        cursor.execute(_INDEX, (regclass_text(point), column))
        ((is_indexed,),) = cursor.fetchall()
    return bool(is_indexed)


def size_bytes(session: PgConnection, point: TablePoint) -> int:
    """Return the size of the table, its partitions together."""
    with session.cursor() as cursor:
        cursor.execute(_SIZE, (regclass_text(point),))
        ((size,),) = cursor.fetchall()
    return int(size or 0)


def count_rows(session: PgConnection, point: TablePoint, slices: Sequence[TimeSlice]) -> dict[int, int]:
    """Return the number of rows of each slice by its window; those without a time are in none.

    With an index on the time column each slice is counted in it alone; without one, all of them in one reading.
    """
    assert point.time is not None
    within = {time_slice.window: time_between(point.time, time_slice.start, time_slice.end) for time_slice in slices}
    if not within:
        return {}
    if not has_time_index(session, point):
        return dict(zip(within, _counted(session, point, within.values()).counts, strict=True))
    return {window: _count(session, point, condition) for window, condition in within.items()}


def count_new_rows(session: PgConnection, point: TablePoint, of: TimeSlice, snapshot: str) -> int:
    """Return the number of rows of a slice that this transaction snapshot may not have seen; changed rows count."""
    assert point.time is not None
    within = time_between(point.time, of.start, of.end)
    return _count(session, point, sql.SQL("{} and not {}").format(within, surely_visible(snapshot)))


def _count(session: PgConnection, point: TablePoint, condition: sql.Composable) -> int:
    statement = sql.SQL("select count(*) from {} t where {}").format(table_identifier(point), condition)
    with session.cursor() as cursor:
        cursor.execute(statement)
        ((count,),) = cursor.fetchall()
    return int(count)


def count_rows_and_ahead(
    session: PgConnection, point: TablePoint, slices: Sequence[TimeSlice]
) -> tuple[dict[int, int], RowsAhead]:
    """Return the number of rows of each slice by its window, and the rows ahead of the clock. Without an index on the
    time column the table is read once for both."""
    if has_time_index(session, point):
        return count_rows(session, point, slices), rows_ahead(session, point)
    assert point.time is not None
    within = {time_slice.window: time_between(point.time, time_slice.start, time_slice.end) for time_slice in slices}
    row = _counted(session, point, within.values(), _ahead(point)[0])
    return dict(zip(within, row.counts, strict=True)), record(RowsAhead, row)


def _counted(
    session: PgConnection, point: TablePoint, conditions: Iterable[sql.Composable], *more: sql.Composable
) -> Any:
    """Return the number of rows under each condition (`counts`), and `more` aggregates, in one reading."""
    filtered = (sql.SQL("count(*) filter (where {})").format(condition) for condition in conditions)
    counts = sql.SQL("array[{}]::bigint[] as counts").format(sql.SQL(", ").join(filtered))
    wanted = sql.SQL(", ").join([counts, *more])
    with session.cursor() as cursor:
        cursor.execute(sql.SQL("select {} from {} t").format(wanted, table_identifier(point)))
        (row,) = named_rows(cursor)
    return row
