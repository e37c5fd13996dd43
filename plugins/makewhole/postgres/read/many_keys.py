"""Read the rows of many business keys together, as `ValuedTable.rows` and `ledger_record` do of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg2 import sql

from makewhole.model.points import TablePoint
from makewhole.postgres.read.ledger import ledger_columns, ledger_record_of
from makewhole.postgres.read.valued_rows import ValuedTable
from makewhole.postgres.table import Table, key_lookup, listed, match_parts, quoted, statement, values_of_parts
from makewhole.sql import PgConnection, named_rows
from makewhole.tables.keys import key_components, key_fields
from makewhole.tables.rows import LedgerReading, LedgerRecord, ValuedRow


def rows_of_many_keys(store: ValuedTable, keys: Sequence[str], *, is_exact: bool) -> dict[str, list[ValuedRow]]:
    """Return the rows of each key that has any, by (time column, ctid).

    Raises:
        RefusedError: the table lacks a compared column, or one of the keys is none that its columns can hold; ask for
            them one by one then.
    """
    rows_by_key: dict[str, list[ValuedRow]] = {}
    for row in _of_many_keys(
        store.session, store.table, store.point, keys, "rows_of_many_keys", store.parts(), is_exact=is_exact
    ):
        rows_by_key.setdefault(keys[row.number - 1], []).append(store.row(row))
    return rows_by_key


def ledger_records(
    session: PgConnection,
    table: Table,
    point: TablePoint,
    keys: Sequence[str],
    reading: LedgerReading,
) -> dict[str, LedgerRecord]:
    """Read the row of each key that the ledger has now, as `ledger_record` does of one.

    Raises:
        RefusedError: one of the keys is none that the table's columns can hold; ask for them one by one then.
    """
    parts = ledger_columns(table, point, reading)
    rows = _of_many_keys(session, table, point, keys, "ledger_rows_of_many_keys", parts, is_exact=True)
    counting = ((keys[row.number - 1], row) for row in rows)
    return {key: ledger_record_of(point, key, row, reading.columns) for key, row in counting}


def _of_many_keys(
    session: PgConnection,
    table: Table,
    point: TablePoint,
    keys: Sequence[str],
    name: str,
    parts: Mapping[str, sql.Composable],
    *,
    is_exact: bool,
) -> list[Any]:
    """Return what a statement gives for these keys, each row with the number of its key."""
    fields = key_fields(point.key)
    components = zip(*(key_components(key, point.key) for key in keys), strict=True)
    wanted = [quoted("wanted", field) for field in fields]
    query = statement(
        name,
        values=listed([sql.SQL("count({})").format(value) for value in values_of_parts(table, point, wanted)]),
        arrays=listed([sql.SQL("{}::text[]").format(sql.Placeholder(field)) for field in fields]),
        fields=listed([sql.Identifier(field) for field in fields]),
        match=match_parts(table, point, wanted, is_exact=is_exact),
        **parts,
    )
    with key_lookup(session, table, point) as cursor:
        cursor.execute(query, {field: list(texts) for field, texts in zip(fields, components, strict=True)})
        return named_rows(cursor)
