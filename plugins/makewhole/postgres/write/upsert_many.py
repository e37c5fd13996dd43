"""Writes many keys at once under the same guards as `upsert`, or says that they cannot be written together.

A few statements, whatever the number of keys: one inserts what is missing, where it is still missing; one replaces what
the plan saw, where it is still there; and only what neither wrote is looked at, to say why. Why a statement fails is
never asked: the caller takes everything back and tries fewer, down to `upsert` itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec
from psycopg2 import sql

from makewhole.postgres.tables import TableRow, listed, quoted
from makewhole.postgres.write.array_parameter import NotTogether, items_with, key_array, match_items, require_settled
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.upsert import APPEARED, CHANGED, ERASED, NEWER, assignments
from makewhole.postgres.write.upsert_row import UpsertRow


@dataclass(frozen=True, kw_only=True)
class _Now:
    """A key as it is: so many rows; of a single one, where it is and how it stands to the record."""

    rows: int
    is_ours: bool
    is_as_planned: bool
    is_older: bool
    is_newer: bool
    table_oid: int
    ctid: str

    @property
    def row(self) -> TableRow:
        return TableRow(table_oid=self.table_oid, ctid=self.ctid, text="")


def upsert_many(chunk: OpenChunk, items: Sequence[UpsertRow]) -> dict[int, str]:
    """The refusals by action number. The caller holds the table's lock.

    Raises:
        NotTogether: the items have to be done one by one; the caller takes back what was written.
    """
    if any(len(item.before) > 1 for item in items):
        raise NotTogether
    written: set[int] = set()
    for columns, alike in _by_columns(item for item in items if not item.before).items():
        written |= _insert(chunk, columns, alike)
    for columns, alike in _by_columns(item for item in items if item.before).items():
        written |= _mend(chunk, columns, alike)
    refused = _rest(chunk, [item for item in items if item.seq not in written])
    require_settled(chunk, (item.seq for item in items))
    return refused


def _insert(chunk: OpenChunk, columns: Sequence[str], items: Sequence[UpsertRow]) -> set[int]:
    """Insert those of which the key is free; which."""
    typed = [quoted(f"typed_{place}") for place in range(len(chunk.point.key))]
    ((count, keys, seqs),) = chunk.run(
        "insert_rows",
        as_upserts(items),
        items=items_with(chunk, "seq", "value"),
        match=match_items(chunk, "t"),
        columns=listed(quoted(name) for name in columns),
        values=listed(quoted("wanted", name) for name in columns),
        key_texts=chunk.key_texts,
        key_columns=listed(
            sql.SQL("{} as {}").format(quoted("t", name), alias)
            for name, alias in zip(chunk.point.key, typed, strict=True)
        ),
        key_names=listed(typed),
        key=key_array(chunk),
    )
    if not count == keys == len(seqs):
        raise NotTogether
    return set(seqs)


def _mend(chunk: OpenChunk, columns: Sequence[str], items: Sequence[UpsertRow]) -> set[int]:
    """Replace those rows that are exactly what the plan saw, and the only ones of their key; which."""
    guard: sql.Composable = sql.SQL("row_to_json(old.*)::text = i.row")
    if chunk.point.version is not None:
        there, record = quoted("old", chunk.point.version), quoted("wanted", chunk.point.version)
        guard = guard + sql.SQL(" and not coalesce({} > {}, false)").format(there, record)
    return _update(chunk, columns, items, guard)


def _update(chunk: OpenChunk, columns: Sequence[str], items: Iterable[UpsertRow], guard: sql.Composable) -> set[int]:
    is_only = "true" if chunk.has_unique_keys else "i.seq not in (select several.seq from several)"
    ((count, seqs),) = chunk.run(
        "update_rows",
        as_upserts(items),
        items=items_with(chunk, "seq", "value", "table_oid", "ctid", "row"),
        match=match_items(chunk, "t"),
        match_old=match_items(chunk, "old"),
        guard=guard,
        is_only=sql.SQL(is_only),
        assignments=assignments(chunk, columns),
        key_texts=chunk.key_texts,
        key=key_array(chunk),
    )
    if count != len(seqs):
        raise NotTogether
    return set(seqs)


def _rest(chunk: OpenChunk, items: Sequence[UpsertRow]) -> dict[int, str]:
    """What was not written: the reason, or else the row that an older version has is replaced."""
    refused: dict[int, str] = {}
    newer: list[UpsertRow] = []
    now = _look(chunk, items) if items else {}
    for item in items:
        reason = _reason(item, now[item.seq])
        if reason is None:
            newer.append(replace(item, before=(now[item.seq].row,)))
        else:
            refused[item.seq] = reason
    for columns, alike in _by_columns(newer).items():
        if len(_update(chunk, columns, alike, sql.SQL("true"))) != len(alike):
            raise NotTogether
    return refused


def refusals(chunk: OpenChunk, items: Sequence[UpsertRow]) -> dict[int, str]:
    """What the keys, as they are, do not let be done; each judged as if nothing before it had been. Writes nothing."""
    now = _look(chunk, items)
    found = {item.seq: _refusal(item, now[item.seq]) for item in items}
    return {seq: reason for seq, reason in found.items() if reason is not None}


def _reason(item: UpsertRow, now: _Now) -> str | None:
    """Why it is refused; None: the one row there is of an older version."""
    if now.is_ours or _is_free(item, now):
        raise NotTogether  # an item before it wrote this key, or nothing stood in its way and yet it was not written
    return _refusal(item, now)


def _is_free(item: UpsertRow, now: _Now) -> bool:
    """Is the key as the plan saw it, and of no newer version?"""
    return now.rows == len(item.before) and (not item.before or (now.is_as_planned and not now.is_newer))


def _refusal(item: UpsertRow, now: _Now) -> str | None:
    if _is_free(item, now):
        return None
    if not item.before:
        return None if now.rows == 1 and now.is_older else APPEARED
    if not now.rows:
        return ERASED
    return NEWER if now.rows == 1 and now.is_as_planned else CHANGED


def _look(chunk: OpenChunk, items: Iterable[UpsertRow]) -> dict[int, _Now]:
    """The keys as they are, by action number."""
    parts: dict[str, sql.Composable] = {
        "is_older": sql.SQL("false"),
        "is_newer": sql.SQL("false"),
        "version": sql.SQL(""),
    }
    if chunk.point.version is not None:
        there, record = quoted("t", chunk.point.version), quoted("wanted", chunk.point.version)
        parts["is_older"] = sql.SQL("coalesce(bool_and({} < {}), false)").format(there, record)
        parts["is_newer"] = sql.SQL("coalesce(bool_or({} > {}), false)").format(there, record)
        parts["version"] = sql.SQL(
            "left join lateral jsonb_populate_record(null::{}, i.value::jsonb) as wanted on t.ctid is not null"
        ).format(chunk.table.identifier)
    found = chunk.run(
        "keys_as_they_are",
        as_upserts(items),
        items=items_with(chunk, "seq", "value", "table_oid", "ctid", "row"),
        match=match_items(chunk, "t"),
        **parts,
    )
    fields = ("rows", "is_ours", "is_as_planned", "is_older", "is_newer", "table_oid", "ctid")
    return {seq: _Now(**dict(zip(fields, rest, strict=True))) for seq, *rest in found}


def as_upserts(items: Iterable[UpsertRow]) -> dict[str, str]:
    """The items as a parameter."""
    return {"items": msgspec.json.encode([item.as_json for item in items]).decode()}


def _by_columns(items: Iterable[UpsertRow]) -> dict[tuple[str, ...], list[UpsertRow]]:
    """The items that write the same columns, together and in order."""
    grouped: dict[tuple[str, ...], list[UpsertRow]] = {}
    for item in items:
        grouped.setdefault(item.columns, []).append(item)
    return grouped
