"""Read one business key from the ledger as the record that should have been sent."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg2 import sql

from makewhole.compute.canonical import column_text
from makewhole.model.points import TablePoint
from makewhole.postgres.canonical import canonical_array
from makewhole.postgres.read.expressions import passes_filter
from makewhole.postgres.table import (
    InParameters,
    Table,
    key_lookup,
    listed,
    match_key,
    quoted,
    statement,
    survivor_order,
)
from makewhole.sql import PgConnection, named_rows
from makewhole.tables.rows import LedgerReading, LedgerRecord

_PADDED = "bpchar"
"""PostgreSQL's name of `char(n)` without its length."""


def ledger_record(
    session: PgConnection,
    table: Table,
    point: TablePoint,
    key: str,
    reading: LedgerReading,
) -> LedgerRecord | None:
    """Read the key's row now, as a record; None when the ledger no longer has it."""
    match, parameters = match_key(table, point, key, is_exact=True)
    query = statement("ledger_rows", match=match, **ledger_columns(table, point, reading))
    with key_lookup(session, table, point) as cursor:
        cursor.execute(query, parameters)
        rows = named_rows(cursor, 1)
    return ledger_record_of(point, key, rows[0], reading.columns) if rows else None


def ledger_columns(table: Table, point: TablePoint, reading: LedgerReading) -> dict[str, sql.Composable]:
    """Return the parts of the statements that read rows `t` of a ledger as records: what is read, and in which order
    the row that counts comes first."""
    passes = InParameters(passes_filter(reading.terms, table.base_types))
    order = survivor_order(point, is_latest_first=reading.takes_latest)
    return {
        "table": table.identifier,
        "record_key": _bytes_of(table, point.record_key) if point.record_key else sql.SQL("null::bytea"),
        "value": _bytes_of(table, point.payload) if point.payload else _whole_row(table),
        "moment": _milliseconds(point),
        "compared": canonical_array("t", list(reading.columns.items()), table.base_types),
        "headers": sql.SQL("array[{}]::text[]").format(
            listed(sql.SQL("{}::text").format(quoted("t", name)) for name in point.header_columns)
        ),
        "passes": passes,
        "order": order if reading.takes_latest or not reading.terms else sql.SQL("{} desc, {}").format(passes, order),
    }


def ledger_record_of(point: TablePoint, key: str, row: Any, compare: Mapping[str, str]) -> LedgerRecord:
    """Return a row that was read as a record of this business key. A header without a value is none."""
    own_key = None if row.record_key is None else bytes(row.record_key)
    headers = zip(point.headers, _texts_of(point, row.headers), strict=True)
    return LedgerRecord(
        key=own_key if point.record_key else key.encode(),
        headers=tuple((name, text.encode()) for (name, _), text in headers if text is not None),
        value=None if row.value is None else bytes(row.value),
        timestamp_ms=None if row.moment is None else int(row.moment),
        compared=tuple(
            (name, declared, column_text(text, declared))
            for (name, declared), text in zip(compare.items(), row.compared, strict=True)
        ),
        passes=row.passes,
    )


def _texts_of(point: TablePoint, of_columns: Sequence[str | None]) -> list[str | None]:
    """Return the text of each header of a point, from those of its columns."""
    left = iter(of_columns)
    return [source[1:-1] if source.startswith("'") else next(left) for _, source in point.headers]


def _whole_row(table: Table) -> sql.Composable:
    """Return the row as a JSON object. A `char(n)` is without its padding, as it is compared: a record with it would
    differ from its row."""
    if _PADDED not in table.base_types.values():
        return sql.SQL("convert_to(row_to_json(t)::text, 'UTF8')")
    fields = [
        sql.SQL("{0}::text as {1}" if kind == _PADDED else "{0} as {1}").format(quoted("t", name), quoted(name))
        for name, kind in table.base_types.items()
    ]
    whole = sql.SQL("convert_to((select row_to_json(whole) from (select {}) as whole)::text, 'UTF8')")
    return whole.format(listed(fields))


def _bytes_of(table: Table, column: str) -> sql.Composable:
    name = quoted("t", column)
    if table.columns[column].type == "bytea":
        return name
    return sql.SQL("convert_to({}::text, 'UTF8')").format(name)


def _milliseconds(point: TablePoint) -> sql.Composable:
    """Return the row's time in milliseconds, null of an infinite one; a timestamp without zone is read as UTC, as
    everywhere."""
    if point.time is None:
        return sql.SQL("null::bigint")
    time = quoted("t", point.time)
    return sql.SQL("case when isfinite({0}) then floor(extract(epoch from {0}) * 1000)::bigint end").format(time)
