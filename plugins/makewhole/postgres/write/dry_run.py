"""Forecast what a chunk would do to a table now, by the guards of `apply`, in a transaction that can write nothing.

It takes no lock that anybody waits for, so the forecast is of the moment of its snapshot. What only writing reveals
(constraints, triggers, policies) it does not know.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from psycopg2 import sql

from makewhole.model.connection import PostgresConnection
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.postgres.connect import connect
from makewhole.postgres.table import Table, describe_table, listed, quoted, statement
from makewhole.postgres.write import quarantine, restore_many, upsert_many
from makewhole.postgres.write.apply import locks_table
from makewhole.postgres.write.array_parameter import recordset_of_items
from makewhole.postgres.write.beside_doubt import in_doubt_on, refuse_new_rows
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.halving import Operation, run_with_halving
from makewhole.postgres.write.new_row import values_to_insert
from makewhole.postgres.write.receipts import receipts
from makewhole.postgres.write.restore import images_put_back, row_to_undo
from makewhole.sql import PgConnection, single_value
from makewhole.tables.effects import EffectKind
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow, not_as_expected
from makewhole.tables.receipts import ChunkId, ReceiptRow
from makewhole.tables.row_change import RowChange, upserted
from makewhole.tables.rows import TableRow


@contextmanager
def read_only_session(target: PostgresConnection) -> Iterator[PgConnection]:
    """Open a session in which the server refuses to write, and each transaction sees one moment."""
    with connect(target, "forecasting a plan's writes") as session:
        session.set_session(isolation_level="REPEATABLE READ", readonly=True)
        yield session


def read_receipts(session: PgConnection, chunk: ChunkId) -> list[ReceiptRow]:
    """Return the receipts of the chunk's plan at its target; none where our tables do not exist yet.

    Raises:
        CorruptionError: they do not fit the plan.
    """
    with session:
        with session.cursor() as cursor:
            cursor.execute(statement("has_receipts"))
            ((has_receipts,),) = cursor.fetchall()
        return receipts(session, chunk.plan, chunk.target, chunk.plan_sha256) if has_receipts else []


def forecast_chunk(
    session: PgConnection, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
) -> ChunkForecast:
    """Forecast the chunk's items, each as if nothing before it had been done.

    Raises:
        RefusedError: the table is gone or lost a column that the point names.
        TransientError: by way of `connect`.
    """
    with session:
        table = describe_table(session, point)
        opened = TableChunk(session=session, table=table, point=point, id=chunk, holds_rows=False)
        held = refuse_new_rows(table, point, items, in_doubt_on(session, table))
        refused = {**run_with_halving(opened, items, _FORECAST), **held}
        chosen = set(choose(refused))
        changes = {
            item.seq: _row_change(opened, item, is_refused=item.seq in refused) for item in items if item.seq in chosen
        }
        return ChunkForecast(
            refused=refused,
            changes=changes,
            left_empty=_left_empty(table, [item for item in items if item.seq not in refused]),
            locks_table=locks_table(table, point, items),
        )


def _left_empty(table: Table, items: Iterable[RowItem]) -> dict[str, int]:
    """Count, by column, the rows that would be inserted without a value: neither the record nor the table has one."""
    written = Counter(item.columns for item in items if isinstance(item, UpsertRow) and not item.before)
    counted = Counter[str]()
    for columns, rows in written.items():
        counted.update({name: rows for name in table.unfilled if name not in columns})
    return dict(counted)


def _forecast_many(chunk: TableChunk, items: Sequence[RowItem]) -> dict[int, Refusal]:
    """Forecast items of one kind. Returns the refusals by action number."""
    match items[0]:
        case UpsertRow():
            upserts = cast(Sequence[UpsertRow], items)
            return {**_not_as_expected(chunk, upserts), **upsert_many.refusals(chunk, upserts)}
        case QuarantineRows():
            return quarantine.refusals(chunk, cast(Sequence[QuarantineRows], items))
        case RestoreRow():
            return restore_many.refusals(chunk, cast(Sequence[RestoreRow], items))


def _forecast_one(chunk: TableChunk, item: RowItem) -> Refusal | None:
    return _forecast_many(chunk, [item]).get(item.seq)


def _not_as_expected(chunk: TableChunk, items: Sequence[UpsertRow]) -> dict[int, Refusal]:
    """Return the refusals of rows that would hold something else than is expected. What the table computes itself is
    not known; a value that it cannot read raises, as it would when writing."""
    refused: dict[int, Refusal] = {}
    compared: dict[tuple[tuple[str, str], ...], dict[int, UpsertRow]] = {}
    for item in items:
        compared.setdefault(item.compared, {})[item.seq] = item
    for columns, group in compared.items():
        texts = chunk.compared_texts(columns, row="wanted")
        items_read = recordset_of_items(chunk, "seq", "value")
        for seq, texts_read in chunk.run(
            "values_read", upsert_many.upserts_parameter(group.values()), items=items_read, texts=texts
        ):
            known = [name for name in group[seq].differing(texts_read) if name in chunk.settable]
            if known:
                refused[seq] = not_as_expected(known)
    return refused


_FORECAST = Operation(many=_forecast_many, one=_forecast_one)


def _row_change(chunk: TableChunk, item: RowItem, *, is_refused: bool) -> RowChange:
    """Return what an item would change: nothing when it is refused."""
    rows = chunk.lock_rows(item.key, is_exact=isinstance(item, QuarantineRows))
    before = tuple(row.text for row in rows)
    if is_refused:
        return RowChange(before=before, after=before)
    match item:
        case QuarantineRows():
            gone = set(item.extras)
            aside = tuple(row.text for row in rows if row in gone)
            return RowChange(before=before, after=_texts(row for row in rows if row not in gone), aside=aside)
        case UpsertRow():
            return upserted(chunk.table, item, before, _upserted_row(chunk, item, rows))
        case RestoreRow():
            return RowChange(before=before, after=_rows_after_restore(chunk, item, rows))


def _texts(rows: Iterable[TableRow]) -> tuple[str, ...]:
    return tuple(row.text for row in rows)


def _upserted_row(chunk: TableChunk, item: UpsertRow, rows: Sequence[TableRow]) -> str:
    """Return the row that would be written: over the existing one, or a new one."""
    parameters: dict[str, Any] = dict(item.wanted)
    if not rows:
        names = zip(values_to_insert(chunk.table, item.columns, item.moment), item.columns, strict=True)
        values = listed(sql.SQL("{} as {}").format(value, quoted(name)) for value, name in names)
        return str(single_value(chunk.run("row_as_inserted", parameters, values=values)))
    changed = set(item.columns) & set(chunk.settable)
    values = listed(quoted("wanted" if name in changed else "t", name) for name in chunk.table.writable)
    place = {"ctid": rows[0].ctid, "table_oid": rows[0].table_oid}
    return str(single_value(chunk.run("row_as_updated", parameters | place, values=values)))


def _rows_after_restore(chunk: TableChunk, item: RestoreRow, rows: Sequence[TableRow]) -> tuple[str, ...]:
    """Return the rows that are left when the effect is taken back."""
    written = row_to_undo(chunk, item.effect, rows, images_put_back(chunk, item.effect))
    left = _texts(row for row in rows if row is not written)
    if item.effect.kind is EffectKind.INSERTED:
        return left
    return (*left, _text_of_image(chunk, item.effect.before or ""))


def _text_of_image(chunk: TableChunk, image: str) -> str:
    values = listed(sql.SQL("(was.image).{0} as {0}").format(quoted(name)) for name in chunk.table.writable)
    return str(single_value(chunk.run("row_as_it_was", {"image": image}, values=values)))
