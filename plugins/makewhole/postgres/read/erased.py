"""Ask a store which keys were deleted on purpose."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.points import TablePoint
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import column_types, key_expression, table_identifier
from makewhole.postgres.read.key_conditions import key_conditions
from makewhole.sql import PgConnection
from makewhole.tables.shape import TableShape


def erased_keys(connection: PostgresConnection, point: TablePoint, keys: Iterable[str]) -> set[str]:
    """Return those of the keys that were erased from a store; none where no table and no column says so.

    Raises:
        ConfigurationError: the table or the column that `erased` names does not exist.
        TransientError: the server does not answer.
    """
    wanted = sorted(set(keys))
    if point.erased is None or point.erased.topics or not wanted:
        return set()
    with connect(connection, f"asking which keys of {point.table} were erased") as session:
        return erased_in(session, point, wanted)


def erased_in(session: PgConnection, point: TablePoint, keys: Sequence[str]) -> set[str]:
    """Return what `erased_keys` does, in the caller's transaction."""
    if point.erased is None or point.erased.topics or not keys:
        return set()
    shape = TableShape(point=table_of_erased(point), compare={}, filters={})
    types = column_types(session, shape)
    names_key = sql.SQL("true") if point.erased.column is None else _has_value(point.erased.column)
    erased: set[str] = set()
    for condition in key_conditions(shape, types, keys):
        statement = sql.SQL("select distinct {} from {} t where {} and {}").format(
            key_expression(shape.point, types),
            table_identifier(shape.point),
            condition,
            names_key,
        )
        with session.cursor() as cursor:
            cursor.execute(statement)
            erased.update(key for (key,) in cursor.fetchall())
    return erased.intersection(keys)


def table_of_erased(point: TablePoint) -> TablePoint:
    """Return the table that names erased keys, as a point: another one, or the store itself."""
    assert point.erased is not None
    if point.erased.table is None:
        return replace(point, time=None, version=None)
    return TablePoint(
        name=point.name,
        kind=point.kind,
        connection=point.connection,
        table=point.erased.table,
        key=point.erased.key,
        key_layout=point.key_layout,
    )


def _has_value(column: str) -> sql.Composable:
    return sql.SQL("t.{} is not null").format(sql.Identifier(column))
