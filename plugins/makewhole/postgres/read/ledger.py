"""Read one business key from the ledger as the record that should have been sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg2 import sql

from makewhole.compute.canonical import float_text
from makewhole.model.pipeline import Hop, Semantics, TablePoint
from makewhole.postgres.canonical import canonical_array
from makewhole.postgres.read.expressions import passes_filter
from makewhole.postgres.tables import Table, key_lookup, match_key, statement, survivor_order
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class LedgerRecord:
    """A ledger's row as a record. `timestamp_ms` is from the ledger's time column, None without one.

    `compared`: name, declared type and canonical text of the columns that were asked for. `passes`: the row passes the
    filter of its hop.
    """

    key: bytes
    value: bytes | None
    timestamp_ms: int | None
    compared: tuple[tuple[str, str, str | None], ...] = ()
    passes: bool = True


def ledger_record(
    session: PgConnection,
    table: Table,
    point: TablePoint,
    key: str,
    hop: Hop,
    compare: Mapping[str, str] | None = None,
) -> LedgerRecord | None:
    """Read the key's row now, as a record; None when the ledger no longer has it.

    Of several rows: the first by (time, place) that passes the filter of the hop, or for `upsert` the latest version.
    """
    match, parameters = match_key(table, point, key, is_exact=True)
    query = statement("ledger_rows", match=match, **ledger_columns(table, point, hop, compare or {}))
    with key_lookup(session) as cursor:
        cursor.execute(query, parameters)
        row = cursor.fetchone()
    return None if row is None else ledger_record_of(key, row, compare or {})


def ledger_columns(table: Table, point: TablePoint, hop: Hop, compare: Mapping[str, str]) -> dict[str, sql.Composable]:
    """Return the parts of the statements that read rows `t` of a ledger as records: what is read, and in which order
    the row that counts comes first."""
    is_upsert, passes = hop.semantics is Semantics.UPSERT, passes_filter(hop)
    order = survivor_order(point, is_latest_first=is_upsert)
    return {
        "table": table.identifier,
        "record_key": _bytes_of(table, point.record_key) if point.record_key else sql.SQL("null::bytea"),
        "value": _bytes_of(table, point.payload)
        if point.payload
        else sql.SQL("convert_to(row_to_json(t)::text, 'UTF8')"),
        "moment": _milliseconds(point),
        "compared": canonical_array("t", list(compare.items()), table.base_types),
        "passes": passes,
        "order": order if is_upsert or not hop.where else sql.SQL("{} desc, {}").format(passes, order),
    }


def ledger_record_of(key: str, row: Sequence[Any], compare: Mapping[str, str]) -> LedgerRecord:
    """Return a row that was read as a record of this business key."""
    record_key, value, moment, texts, passes = row
    return LedgerRecord(
        key=bytes(record_key) if record_key is not None else key.encode(),
        value=None if value is None else bytes(value),
        timestamp_ms=None if moment is None else int(moment),
        compared=tuple(
            (name, declared, float_text(float(text)) if declared == "double" and text is not None else text)
            for (name, declared), text in zip(compare.items(), texts, strict=True)
        ),
        passes=passes,
    )


def _bytes_of(table: Table, column: str) -> sql.Composed:
    name = sql.Identifier("t", column)
    if table.columns[column].type == "bytea":
        return sql.SQL("{}").format(name)
    return sql.SQL("convert_to({}::text, 'UTF8')").format(name)


def _milliseconds(point: TablePoint) -> sql.Composable:
    """Return the row's time in milliseconds; a timestamp without zone is read as UTC, as everywhere."""
    if point.time is None:
        return sql.SQL("null::bigint")
    return sql.SQL("floor(extract(epoch from {}) * 1000)::bigint").format(sql.Identifier("t", point.time))
