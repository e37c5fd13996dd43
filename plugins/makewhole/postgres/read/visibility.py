"""Find the keys whose rows were visible at an earlier moment, whatever their timestamps say."""

from collections.abc import Sequence
from datetime import datetime

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.points import TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import column_types, key_expression, surely_visible, time_between, without_time
from makewhole.postgres.read.key_conditions import key_conditions
from makewhole.postgres.read.relations import rows_of
from makewhole.sql import single_value
from makewhole.tables.shape import TableShape


def current_snapshot(connection: PostgresConnection) -> str:
    """Return the transaction snapshot of now, as PostgreSQL writes it (`pg_snapshot`)."""
    with connect(connection, "reading its transaction snapshot") as session, session.cursor() as cursor:
        cursor.execute("select pg_current_snapshot()::text")
        return str(single_value(cursor.fetchall()))


def keys_not_visible(
    connection: PostgresConnection,
    shape: TableShape,
    keys: Sequence[str],
    snapshot: str,
    every_before: datetime | None = None,
) -> list[str]:
    """Return those of the keys of which no row (as it is now) was certainly visible in `snapshot`. With `every_before`
    also those with a row that was not and whose time is before that moment, or not known: their latest version may be
    that row."""
    settled: set[str] = set()
    visible = surely_visible(snapshot)
    young = sql.SQL("false") if every_before is None else _is_before(shape.point, every_before)
    with connect(connection, f"looking up {shape.described}") as session, session.cursor() as cursor:
        types = column_types(session, shape)
        for condition in key_conditions(shape, types, keys):
            cursor.execute(
                sql.SQL("select {} from {} where {} group by 1 having bool_or({}) and not bool_or({})").format(
                    key_expression(shape.point, types),
                    rows_of(session, shape.point),
                    condition,
                    visible,
                    sql.SQL("not {} and {}").format(visible, young),
                )
            )
            settled.update(key for (key,) in cursor.fetchall())
    return [key for key in keys if key not in settled]


def _is_before(point: TablePoint, moment: datetime) -> sql.Composable:
    """Return the condition for a time before this moment; a row without one, or of infinite time, may be of any."""
    if point.time is None:
        return sql.SQL("true")
    return sql.SQL("({} or {})").format(time_between(point.time, None, moment), without_time(point.time))
