"""Count the rows of a table by time slice: what came to a slice, or left it, since it was counted last."""

from collections.abc import Sequence
from dataclasses import dataclass

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
from makewhole.sql import PgConnection

_TIME_INDEX = """
select exists (
    select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = to_regclass(%s) and a.attname = %s and i.indisvalid and i.indpred is null
)
"""
_PAGES = """
select (coalesce(sum(pg_relation_size(part.relid)), 0) + max(pg_relation_size(t.oid)))
    / current_setting('block_size')::int
from pg_class t left join pg_partition_tree(t.oid) part on part.relid <> t.oid
where t.oid = to_regclass(%s)
"""


_AHEAD = """
select count(*) filter (where {time} < 'infinity'), min({time}) filter (where {time} < 'infinity')::text,
    max({time}) filter (where {time} < 'infinity')::text, count(*) filter (where {time} = 'infinity')
from {table} t where {time} > now() + interval '1 day' and {live}
"""


@dataclass(frozen=True, kw_only=True)
class RowsAhead:
    """The rows of a table with times more than a day after the database's clock: their number, the first and the last
    of their times as PostgreSQL writes them (None without rows), and the number of rows with the time `infinity`."""

    rows: int
    oldest: str | None
    newest: str | None
    infinite: int


def rows_ahead(session: PgConnection, point: TablePoint) -> RowsAhead:
    """Count the rows of a table whose times no window reaches. An index on the time column finds them."""
    assert point.time is not None
    parts = {
        "time": sql.SQL("t.{}").format(sql.Identifier(point.time)),
        "table": table_identifier(point),
        "live": live_condition(point),
    }
    with session.cursor() as cursor:
        cursor.execute(sql.SQL(_AHEAD).format(**parts))
        ((rows, oldest, newest, infinite),) = cursor.fetchall()
    return RowsAhead(rows=int(rows), oldest=oldest, newest=newest, infinite=int(infinite))


def has_time_index(session: PgConnection, point: TablePoint) -> bool:
    """Tell whether an index over all rows begins with the time column."""
    with session.cursor() as cursor:
        cursor.execute(_TIME_INDEX, (regclass_text(point), point.time))
        ((found,),) = cursor.fetchall()
    return bool(found)


def pages(session: PgConnection, point: TablePoint) -> int:
    """Return the size of the table in pages, its partitions together."""
    with session.cursor() as cursor:
        cursor.execute(_PAGES, (regclass_text(point),))
        ((count,),) = cursor.fetchall()
    return int(count)


def count_rows(session: PgConnection, point: TablePoint, slices: Sequence[TimeSlice]) -> dict[int, int]:
    """Return the number of rows of each slice by its window; those without a time are in none.

    With an index on the time column each slice is counted in it alone; without one, all of them in one reading.
    """
    assert point.time is not None
    within = {one.window: time_between(point.time, one.start, one.end) for one in slices}
    if not within:
        return {}
    if not has_time_index(session, point):
        return dict(zip(within, _counts(session, point, list(within.values())), strict=True))
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


def _counts(session: PgConnection, point: TablePoint, conditions: Sequence[sql.Composable]) -> list[int]:
    filtered = [sql.SQL("count(*) filter (where {})").format(condition) for condition in conditions]
    statement = sql.SQL("select {} from {} t").format(sql.SQL(", ").join(filtered), table_identifier(point))
    with session.cursor() as cursor:
        cursor.execute(statement)
        (row,) = cursor.fetchall()
    return [int(count) for count in row]
