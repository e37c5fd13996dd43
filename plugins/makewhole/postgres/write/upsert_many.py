"""Write many keys into a store at once under the guards of `upsert`, or raise that they cannot be written together.

A few statements do it, whatever the number of keys: one inserts the keys that are still missing, one replaces the rows
that are still as the plan saw them, and only the keys that neither wrote are read, for the reason. Why a statement
fails is not examined: the caller takes everything back and tries fewer, down to `upsert` itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from psycopg2 import sql

from makewhole.model.refusal import Refusal
from makewhole.postgres.table import key_values, listed, quoted
from makewhole.postgres.write.array_parameter import (
    CannotRunTogether,
    item_key_array,
    match_item_keys,
    recordset_of_items,
    require_rows_as_written,
)
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.new_row import values_to_insert
from makewhole.postgres.write.upsert import assignments
from makewhole.sql import record
from makewhole.tables.guards import APPEARED, CHANGED, ERASED, NEWER, not_accounted_for
from makewhole.tables.items import UpsertRow


@dataclass(frozen=True, kw_only=True)
class _KeyState:
    """The rows of a key in the table: their number, whether the only one is that of the plan, and whether a row's
    version is above the record's. `is_ours`: a row was written by this transaction."""

    rows: int
    is_ours: bool
    is_as_planned: bool
    is_newer: bool


def upsert_many(chunk: TableChunk, items: Sequence[UpsertRow]) -> dict[int, Refusal]:
    """Insert or replace many keys, with the table opened by `apply`. Returns the refusals by action number.

    A key that another session inserts meanwhile is an error of the unique index, where no lock keeps them out.

    Raises:
        CannotRunTogether: the items have to be done one by one; the caller takes back what was written.
    """
    if any(len(item.before) > 1 for item in items):
        raise CannotRunTogether
    written: set[int] = set()
    new = (item for item in items if not item.before and not_accounted_for(chunk.table, item) is None)
    for columns, group in _by_columns(new).items():
        written |= _insert(chunk, columns, group)
    for columns, group in _by_columns(item for item in items if item.before).items():
        written |= _replace(chunk, columns, group)
    refused = _refuse(chunk, [item for item in items if item.seq not in written])
    require_rows_as_written(chunk, (item.seq for item in items))
    return refused


def _insert(chunk: TableChunk, columns: "_Columns", items: Sequence[UpsertRow]) -> set[int]:
    """Insert the items whose key is free. Returns their action numbers."""
    typed = [quoted(f"typed_{place}") for place in range(len(chunk.point.key))]
    ((count, keys, seqs),) = chunk.run(
        "insert_rows",
        upserts_parameter(items),
        items=recordset_of_items(chunk, "seq", "value", *columns.expected_field),
        match=match_item_keys(chunk, "t"),
        columns=listed(quoted(name) for name in columns.written),
        values=listed(values_to_insert(chunk.table, columns.written, columns.moment)),
        key_texts=chunk.key_texts,
        texts=chunk.compared_texts(columns.compared),
        as_expected=columns.is_as_expected(quoted("n", "texts")),
        key_columns=listed(
            sql.SQL("{} as {}").format(column, alias)
            for column, alias in zip(key_values(chunk.table, chunk.point), typed, strict=True)
        ),
        key_names=listed(typed),
        key=item_key_array(chunk),
    )
    if not count == keys == len(seqs):
        raise CannotRunTogether
    return set(seqs)


def _replace(chunk: TableChunk, columns: "_Columns", items: Sequence[UpsertRow]) -> set[int]:
    """Update the rows that are as the plan saw them and the only ones of their key. Returns their action numbers.

    They are locked first: what is compared is then what is replaced, whoever else writes.
    """
    if not chunk.is_table_locked:
        items_held = recordset_of_items(chunk, "seq")
        chunk.run("hold_rows", upserts_parameter(items), items=items_held, match=match_item_keys(chunk, "t"))
    guard: sql.Composable = sql.SQL("row_to_json(old.*)::text = i.row")
    if chunk.point.version is not None:
        existing, wanted = quoted("old", chunk.point.version), quoted("wanted", chunk.point.version)
        guard = guard + sql.SQL(" and not coalesce({} > {}, false)").format(existing, wanted)
    is_only = "true" if chunk.has_unique_keys else "i.seq not in (select several.seq from several)"
    ((count, seqs),) = chunk.run(
        "update_rows",
        upserts_parameter(items),
        items=recordset_of_items(chunk, "seq", "value", "table_oid", "ctid", "row", *columns.expected_field),
        match=match_item_keys(chunk, "t"),
        match_old=match_item_keys(chunk, "old"),
        guard=guard,
        is_only=sql.SQL(is_only),
        assignments=assignments(chunk, columns.written),
        as_expected=columns.is_as_expected(chunk.compared_texts(columns.compared)),
        key_texts=chunk.key_texts,
        key=item_key_array(chunk),
    )
    if count != len(seqs):
        raise CannotRunTogether
    return set(seqs)


def _refuse(chunk: TableChunk, items: Sequence[UpsertRow]) -> dict[int, Refusal]:
    """Return why these items were not written, by action number."""
    now = _key_states(chunk, items) if items else {}
    answers = {item.seq: _refusal(chunk, item, now[item.seq]) for item in items}
    if any(now[item.seq].is_ours or answers[item.seq] is None for item in items):
        # An earlier item wrote this key, or nothing prevented the write and yet it did not happen.
        raise CannotRunTogether
    return {seq: refusal for seq, refusal in answers.items() if refusal is not None}


def refusals(chunk: TableChunk, items: Sequence[UpsertRow]) -> dict[int, Refusal]:
    """Return the refusals by action number, each item judged as if nothing before it had been done. Writes nothing."""
    now = _key_states(chunk, items)
    answers = {item.seq: _refusal(chunk, item, now[item.seq]) for item in items}
    return {seq: refusal for seq, refusal in answers.items() if refusal is not None}


def _is_writable(item: UpsertRow, now: _KeyState) -> bool:
    """Return whether the key is as the plan saw it, and of no newer version."""
    return now.rows == len(item.before) and (not item.before or (now.is_as_planned and not now.is_newer))


def _refusal(chunk: TableChunk, item: UpsertRow, now: _KeyState) -> Refusal | None:
    if _is_writable(item, now):
        return not_accounted_for(chunk.table, item)
    if not item.before:
        return APPEARED
    if not now.rows:
        return ERASED
    return NEWER if now.rows == 1 and now.is_as_planned else CHANGED


def _key_states(chunk: TableChunk, items: Iterable[UpsertRow]) -> dict[int, _KeyState]:
    """Return the states of the items' keys, by action number."""
    parts: dict[str, sql.Composable] = {
        "is_newer": sql.SQL("false"),
        "version": sql.SQL(""),
        "existing": sql.SQL("null::text"),
    }
    if chunk.point.version is not None:
        parts["existing"] = quoted("t", chunk.point.version)
        existing, wanted = quoted("h", "version"), quoted("wanted", chunk.point.version)
        parts["is_newer"] = sql.SQL("coalesce(bool_or({} > {}), false)").format(existing, wanted)
        parts["version"] = sql.SQL(
            "left join lateral jsonb_populate_record(null::{}, i.value::jsonb) as wanted on h.place is not null"
        ).format(chunk.table.identifier)
    states = chunk.run(
        "keys_as_they_are",
        upserts_parameter(items),
        items=recordset_of_items(chunk, "seq", "value", "table_oid", "ctid", "row"),
        match=match_item_keys(chunk, "t"),
        hold=chunk.lock_clause,
        **parts,
    )
    return {row.seq: record(_KeyState, row) for row in states}


def upserts_parameter(items: Iterable[UpsertRow]) -> dict[str, str]:
    """Return the parameter `items` of a statement of many."""
    return {"items": msgspec.json.encode([item.as_json for item in items]).decode()}


@dataclass(frozen=True)
class _Columns:
    """The columns that a statement writes, the one of them that gets its moment, and those that it is held to, with
    their declared types."""

    written: tuple[str, ...]
    moment: str | None
    compared: tuple[tuple[str, str], ...]

    @property
    def expected_field(self) -> tuple[str, ...]:
        """Name of the field of what is expected, where there is one."""
        return ("expected",) if self.compared else ()

    def is_as_expected(self, texts: sql.Composable) -> sql.Composable:
        """Return the condition that a row with these texts holds what item `i` means."""
        return sql.SQL("coalesce({} = i.expected, false)").format(texts) if self.compared else sql.SQL("true")


def _by_columns(items: Iterable[UpsertRow]) -> dict[_Columns, list[UpsertRow]]:
    """Group the items by the columns that they write and are held to, in order."""
    grouped: dict[_Columns, list[UpsertRow]] = {}
    for item in items:
        grouped.setdefault(_Columns(item.columns, item.moment, item.compared), []).append(item)
    return grouped
