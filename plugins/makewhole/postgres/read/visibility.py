"""Find the keys whose rows were visible at an earlier moment, whatever their timestamps say."""

from collections.abc import Sequence

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import (
    TableShape,
    column_types,
    key_expression,
    surely_visible,
    table_identifier,
)
from makewhole.postgres.read.key_conditions import key_conditions


def current_snapshot(connection: PostgresConnection) -> str:
    """Return the transaction snapshot of now, as PostgreSQL writes it (`pg_snapshot`)."""
    with connect(connection) as session, session.cursor() as cursor:
        cursor.execute("select pg_current_snapshot()::text")
        return str((cursor.fetchone() or ("",))[0])


def keys_not_visible(
    connection: PostgresConnection, shape: TableShape, keys: Sequence[str], snapshot: str
) -> list[str]:
    """Return those of the keys of which no row (as it is now) was certainly visible in `snapshot`."""
    old: set[str] = set()
    with connect(connection) as session, session.cursor() as cursor:
        types = column_types(session, shape)
        for condition in key_conditions(shape, types, keys):
            cursor.execute(
                sql.SQL("select distinct {} from {} t where {} and {}").format(
                    key_expression(shape.point, types),
                    table_identifier(shape.point),
                    condition,
                    surely_visible(snapshot),
                )
            )
            old.update(key for (key,) in cursor.fetchall())
    return [key for key in keys if key not in old]
