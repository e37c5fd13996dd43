"""Puts many rows back under the same guards as `restore`: one look, and a statement for each kind of effect."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from makewhole.model.errors import RefusedError
from makewhole.postgres.tables import TableRow
from makewhole.postgres.write.array_parameter import (
    NotTogether,
    as_items,
    items_with,
    lock_rows_of_items,
    require_settled,
)
from makewhole.postgres.write.chunk import OpenChunk
from makewhole.postgres.write.effects import EffectKind
from makewhole.postgres.write.restore import RestoreRow, columns_of_image, require_kept, undone, written_row

Fields = tuple[str, dict[str, Any]]


@dataclass
class _Work:
    """What is to be done, as items of statements."""

    deletes: list[Fields] = field(default_factory=list)
    updates: list[Fields] = field(default_factory=list)
    releases: list[Fields] = field(default_factory=list)
    inserts: list[Fields] = field(default_factory=list)


def restore_many(chunk: OpenChunk, items: Sequence[RestoreRow]) -> dict[int, str]:
    """The refusals by action number. The caller holds the table's lock.

    Raises:
        NotTogether: the items have to be done one by one; the caller takes back what was written.
    """
    now = lock_rows_of_items(chunk, ((item.seq, item.key) for item in items), is_exact=False)
    _require_apart(items, now)
    moved = _moved_beside(chunk, items)
    work, refused = _Work(), dict[int, str]()
    for item in items:
        try:
            _plan(chunk, item, now.get(item.seq, []), moved.get((item.effect.plan, item.effect.seq), ()), work)
        except RefusedError as error:
            refused[item.seq] = str(error)
    _do(chunk, work)
    require_settled(chunk, (item.seq for item in items))
    return refused


def refusals(chunk: OpenChunk, items: Sequence[RestoreRow]) -> dict[int, str]:
    """What the keys, as they are, do not let be taken back; each judged as if nothing before it had been. Writes
    nothing."""
    now = lock_rows_of_items(chunk, ((item.seq, item.key) for item in items), is_exact=False)
    moved = _moved_beside(chunk, items)
    found = dict[int, str]()
    for item in items:
        effect = item.effect
        try:
            written_row(chunk, effect, now.get(item.seq, []), moved.get((effect.plan, effect.seq), ()))
            if effect.kind is EffectKind.MOVED:
                require_kept(chunk, effect)
        except RefusedError as error:
            found[item.seq] = str(error)
    return found


def _require_apart(items: Sequence[RestoreRow], now: Mapping[int, Sequence[TableRow]]) -> None:
    """What one item does, no other has to see; only the rows that one action moved aside come back side by side."""
    actions: dict[str | tuple[int, str], tuple[str, int]] = {}
    for item in items:
        action = (item.effect.plan, item.effect.seq)
        rows = [(row.table_oid, row.ctid) for row in now.get(item.seq, [])]
        touched: list[str | tuple[int, str]] = [item.key, *rows]
        is_shared = any(actions.setdefault(thing, action) != action for thing in touched)
        if is_shared:
            raise NotTogether
    if len(items) != len({(item.effect.plan, item.effect.seq, item.effect.place) for item in items}):
        raise NotTogether


def _moved_beside(chunk: OpenChunk, items: Sequence[RestoreRow]) -> Mapping[tuple[str, int], Collection[str]]:
    """By plan and number of an action the images of what it moved aside."""
    rows = [(item.key, undone(item.effect)) for item in items if item.effect.kind is EffectKind.MOVED]
    if not rows:
        return {}
    found: dict[tuple[str, int], set[str]] = {}
    fields = items_with(chunk, "undone_plan", "undone_seq")
    for plan, seq, image in chunk.run("moved_beside_many", as_items(chunk, rows), items=fields):
        found.setdefault((plan, seq), set()).add(image)
    return found


def _plan(chunk: OpenChunk, item: RestoreRow, now: Sequence[TableRow], moved: Collection[str], work: _Work) -> None:
    """What is to be done for one item.

    Raises:
        RefusedError: nothing is.
    """
    effect, image = item.effect, {"seq": item.seq, "image": item.effect.before}
    row = written_row(chunk, effect, now, moved)
    if row is not None:
        place = {"table_oid": row.table_oid, "ctid": row.ctid}
        if effect.kind is EffectKind.UPDATED:
            work.updates.append((item.key, {**image, **place, "present": row.image}))
        else:
            work.deletes.append((item.key, {"seq": item.seq, **place}))
        return
    if effect.kind is EffectKind.MOVED:
        work.releases.append((item.key, undone(effect)))
    work.inserts.append((item.key, image))


def _do(chunk: OpenChunk, work: _Work) -> None:
    """Kind by kind, which is not the order of the items: where triggers would see that, there is one kind only.

    Raises:
        NotTogether: it cannot be done so.
    """
    kinds = [bool(rows) for rows in (work.deletes, work.updates, work.inserts)]
    if sum(kinds) > 1 and chunk.has_triggers_after:
        raise NotTogether
    columns = columns_of_image(chunk)
    _all(chunk, "delete_rows", work.deletes, "seq", "table_oid", "ctid")
    _all(chunk, "put_rows_back", work.updates, "seq", "table_oid", "ctid", "image", "present", **columns)
    if work.releases:
        fields = items_with(chunk, "undone_plan", "undone_seq", "undone_place")
        released = chunk.run("release_many_from_quarantine", as_items(chunk, work.releases), items=fields)
        if len(released) != len(work.releases):
            raise NotTogether
    _all(chunk, "bring_rows_back", work.inserts, "seq", "image", **columns)


def _all(chunk: OpenChunk, statement: str, rows: Sequence[Fields], *fields: str, **parts: Any) -> None:
    """Do all of them.

    Raises:
        NotTogether: the table does something else with one.
    """
    if not rows:
        return
    ((count,),) = chunk.run(statement, as_items(chunk, rows), items=items_with(chunk, *fields), **parts)
    if count != len(rows):
        raise NotTogether
