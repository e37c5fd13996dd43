"""Ask PostgreSQL about how many rows of a table a window has, without reading them."""

from psycopg2 import sql

from makewhole.model.points import TablePoint
from makewhole.postgres.read.expressions import regclass_text, table_identifier, time_condition
from makewhole.sql import PgConnection, PgCursor
from makewhole.tables.shape import TimeBounds

_WAS_ANALYSED = "select relkind <> 'r' or reltuples >= 0 from pg_class where oid = to_regclass(%s)"
_LEAST_SHARE = 64


def estimate_rows(session: PgConnection, point: TablePoint, bounds: TimeBounds | None) -> int:
    """Return the planner's estimate of the rows inside the bounds, and at least a sixty-fourth of the table: of rows
    newer than its statistics the planner knows nothing. All rows where nothing is known of their times, as the table
    was never analysed: what the planner assumes then is half a percent.

    Raises:
        psycopg2.Error: the table or the column does not exist, or may not be read.
    """
    with session.cursor() as cursor:
        cursor.execute(_WAS_ANALYSED, (regclass_text(point),))
        is_known = all(known for (known,) in cursor.fetchall())
        whole = _planned_rows(cursor, point, None)
        if bounds is None or not is_known:
            return whole
        return max(_planned_rows(cursor, point, bounds), whole // _LEAST_SHARE)


def _planned_rows(cursor: PgCursor, point: TablePoint, bounds: TimeBounds | None) -> int:
    rows = sql.SQL("select 1 from {} t where {}").format(table_identifier(point), time_condition(point, bounds))
    cursor.execute(sql.SQL("explain (format json) {}").format(rows))
    ((explained,),) = cursor.fetchall()
    return int(explained[0]["Plan"]["Plan Rows"])
