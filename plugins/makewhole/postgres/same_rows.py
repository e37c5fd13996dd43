"""Show that rows of a table are those of an earlier reading, without sending them.

A version of a row that is visible now, and was visible to every transaction that began after an earlier snapshot, was
there then: rows are never changed in place. So the rows now are some of those of then, if none is newer; and all of
them, if they are as many. What that takes for granted is held to a mark: the same data of the same server, which has
not been started and has not crashed since (a restored copy, and a server that lost its last commits, use transaction
ids again), the same tables, files and columns. The server counts the rows; none is sent.
"""

from typing import Any

from psycopg2 import sql

from makewhole.postgres.read.export_parts import ExportPart, part_condition
from makewhole.postgres.read.expressions import live_condition, regclass_text, surely_visible, table_identifier
from makewhole.postgres.read.identities import read_server
from makewhole.sql import PgConnection, statements_of
from makewhole.tables.reading import ReadBefore
from makewhole.tables.shape import TableShape, TimeBounds

_run = statements_of("export")


def mark_of(session: PgConnection, shape: TableShape) -> Any:
    """Return what has to be the same of a table and its server for transaction ids to show which rows are new; None
    where nothing would show it.

    The session has read the table, so that its definition stays while the transaction lasts.
    """
    server = read_server(session)
    if server.data is None or server.is_standby or _hides_rows(session, shape):
        return None
    table, columns = regclass_text(shape.point), sorted(shape.column_names())
    (row,) = _run(session, "mark", table=table, columns=columns)
    if row.is_elsewhere or row.column_of_own_type is not None:
        return None
    return {
        "server": [server.data, server.started, row.statistics, server.database],
        "relations": row.relations,
        "columns": row.columns,
        "labels": row.labels,
        "settings": row.settings,
    }


def why_not_same(session: PgConnection, shape: TableShape, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
    """Return why rows inside the bounds may be others than an earlier reading sent; None: they are the same."""
    rows, newer = _counted(session, shape, bounds, before.seen)
    if newer:
        return f"{newer:,} of its rows may be newer than that reading"
    if rows != before.rows:
        return f"it has {rows:,} rows where {before.rows:,} were read"
    mark = mark_of(session, shape)
    if mark is None or mark != before.mark:
        return "its server was started again or crashed, or its definition or its files changed"
    return None


def _counted(session: PgConnection, shape: TableShape, bounds: TimeBounds | None, seen: str) -> tuple[int, int]:
    """Return the number of rows inside the bounds, and of those that an earlier snapshot may not have seen: most have
    the transaction id of many others, and each id is looked at once."""
    statement = sql.SQL(
        "select coalesce(sum(rows), 0), coalesce(sum(rows) filter (where not {}), 0) from "
        "(select t.xmin as xmin, count(*) as rows from {} t where {} and {} group by t.xmin) ids"
    ).format(
        surely_visible(seen),
        table_identifier(shape.point),
        part_condition(shape, bounds, ExportPart()),
        live_condition(shape.point),
    )
    with session.cursor() as cursor:
        cursor.execute(statement)
        ((rows, newer),) = cursor.fetchall()
    return int(rows), int(newer)


def _hides_rows(session: PgConnection, shape: TableShape) -> bool:
    """Return whether policies choose the rows: by what, nothing shows."""
    ((is_hidden,),) = _run(session, "hides_rows", table=regclass_text(shape.point))
    return bool(is_hidden)
