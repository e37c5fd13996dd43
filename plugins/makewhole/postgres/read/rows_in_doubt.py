"""Find the keys of a table whose rows a prepared transaction may have changed.

Nothing is written for that. A row that a transaction inserted can be seen by no one until it is committed, so that of a
key without a row no more is known than that a transaction has written to the table. A row that it updated, deleted or
only locked is seen as it was, with the transaction's id as its `xmax`: the id of a savepoint's subtransaction, or of a
group of lockers, stands for it there, too, so that any `xmax` counts.
"""

from collections.abc import Sequence

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.connect import connect
from makewhole.postgres.in_doubt import writers_in_doubt
from makewhole.postgres.read.expressions import column_types, key_expression, live_condition, regclass_text
from makewhole.postgres.read.key_conditions import key_conditions
from makewhole.postgres.read.relations import has_places, rows_of
from makewhole.sql import PgConnection
from makewhole.tables.in_doubt import KeysInDoubt
from makewhole.tables.shape import TableShape


def keys_in_doubt(connection: PostgresConnection, shape: TableShape, keys: Sequence[str]) -> KeysInDoubt:
    """Return those of the keys of which a row may have been changed by a transaction that has not ended; none where no
    transaction in doubt wrote to the table."""
    with connect(connection, f"looking for transactions in doubt on {shape.described}") as session:
        transactions = writers_in_doubt(session, connection, regclass_text(shape.point))
        if not transactions:
            return KeysInDoubt()
        if not has_places(session, shape.point):
            return KeysInDoubt(transactions=transactions, keys=frozenset(keys))
        return KeysInDoubt(transactions=transactions, keys=frozenset(_touched(session, shape, keys)))


def _touched(session: PgConnection, shape: TableShape, keys: Sequence[str]) -> set[str]:
    touched, types = set[str](), column_types(session, shape)
    for condition in key_conditions(shape, types, keys):
        with session.cursor() as cursor:
            cursor.execute(
                sql.SQL("select distinct {} from {} where {} and {} and t.xmax <> '0'::xid").format(
                    key_expression(shape.point, types),
                    rows_of(session, shape.point),
                    condition,
                    live_condition(shape.point),
                )
            )
            touched.update(key for (key,) in cursor.fetchall())
    return touched
