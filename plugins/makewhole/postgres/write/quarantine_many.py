"""Moves the extra rows of many keys aside under the same guards as `move_aside`: one look, one move."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from makewhole.postgres.tables import TableRow
from makewhole.postgres.write.array_parameter import NotTogether, as_items, items_with, lock_rows_of_items
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.quarantine import (
    QuarantineRows,
    difference,
    how_to_restore,
    image_of,
    require_no_cascade,
    source_table,
)

_RowAside = tuple[str, dict[str, Any]]


def move_aside_many(chunk: OpenChunk, items: Sequence[QuarantineRows]) -> dict[int, str]:
    """The refusals by action number.

    Raises:
        NotTogether: the items have to be done one by one; the caller takes back what was written.
        RefusedError: rows of this table cannot be moved.
    """
    _require_apart(items)
    now, refused = _judged(chunk, items)
    extras = [extra for item in items if item.seq not in refused for extra in _extras(item, now[item.seq])]
    if extras and _move(chunk, extras) != len(extras):
        raise NotTogether
    return refused


def refusals(chunk: OpenChunk, items: Sequence[QuarantineRows]) -> dict[int, str]:
    """What the rows, as they are, do not let be moved; each judged as if nothing before it had been. Writes nothing.

    Raises:
        RefusedError: rows of this table cannot be moved.
    """
    return _judged(chunk, items)[1]


def _judged(chunk: OpenChunk, items: Sequence[QuarantineRows]) -> tuple[Mapping[int, list[TableRow]], dict[int, str]]:
    """The rows of each item's key, and the refusals, by action number."""
    require_no_cascade(chunk.table, chunk.cascades)
    now = lock_rows_of_items(chunk, ((item.seq, item.key) for item in items), is_exact=True)
    reasons = {item.seq: difference(now.get(item.seq, []), item) for item in items}
    return now, {seq: reason for seq, reason in reasons.items() if reason is not None}


def _require_apart(items: Sequence[QuarantineRows]) -> None:
    """No row is two items' business: what one does, the other would have to see."""
    rows = [(row.table_oid, row.ctid) for item in items for row in (item.survivor, *item.extras) if row is not None]
    if len(rows) != len(set(rows)):
        raise NotTogether


def _extras(item: QuarantineRows, now: Sequence[TableRow]) -> Iterator[_RowAside]:
    stays = image_of(item.survivor, now)
    for row in item.extras:
        yield item.key, {"seq": item.seq, "stays": stays, "table_oid": row.table_oid, "ctid": row.ctid}


def _move(chunk: OpenChunk, extras: Sequence[_RowAside]) -> int:
    known = {"source_table": source_table(chunk), "how_to_restore": how_to_restore(chunk)}
    ((count,),) = chunk.run(
        "move_rows_to_quarantine",
        {**as_items(chunk, extras), **known},
        items=items_with(chunk, "seq", "stays", "table_oid", "ctid"),
    )
    return int(count)
