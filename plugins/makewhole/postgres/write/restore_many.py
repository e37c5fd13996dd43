"""Take back many effects under the guards of `restore`: one read, and one statement for each kind of effect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from makewhole.model.errors import RefusedError
from makewhole.model.refusal import Refusal
from makewhole.postgres.write.array_parameter import (
    CannotRunTogether,
    items_parameter,
    lock_rows_of_items,
    recordset_of_items,
    require_rows_as_written,
)
from makewhole.postgres.write.chunk import TableChunk
from makewhole.postgres.write.restore import (
    columns_of_image,
    moved_parameters,
    require_kept,
    row_to_undo,
    undone_parameters,
)
from makewhole.tables.effects import EffectKind
from makewhole.tables.items import RestoreRow
from makewhole.tables.rows import TableRow

KeyedFields = tuple[str, dict[str, Any]]
"""A business key and the fields of an item, as a statement of many reads them."""


@dataclass
class _Writes:
    """The items of each statement that is to run."""

    deletes: list[KeyedFields] = field(default_factory=list)
    updates: list[KeyedFields] = field(default_factory=list)
    releases: list[KeyedFields] = field(default_factory=list)
    inserts: list[KeyedFields] = field(default_factory=list)


def restore_many(chunk: TableChunk, items: Sequence[RestoreRow]) -> dict[int, Refusal]:
    """Take back many effects, with the table opened by `apply`. Returns the refusals by action number.

    Raises:
        CannotRunTogether: the items have to be done one by one; the caller takes back what was written.
    """
    now = lock_rows_of_items(chunk, ((item.seq, item.key) for item in items), is_exact=False)
    _require_disjoint(items, now)
    back = _images_by_action(chunk, items)
    writes, refused = _Writes(), dict[int, Refusal]()
    for item in items:
        try:
            _collect(chunk, item, now.get(item.seq, []), back.get((item.effect.plan, item.effect.seq), ()), writes)
        except RefusedError as error:
            refused[item.seq] = error.refusal
    _run(chunk, writes)
    require_rows_as_written(chunk, (item.seq for item in items))
    return refused


def refusals(chunk: TableChunk, items: Sequence[RestoreRow]) -> dict[int, Refusal]:
    """Return the refusals by action number, each item judged as if nothing before it had been done. Writes nothing."""
    now = lock_rows_of_items(chunk, ((item.seq, item.key) for item in items), is_exact=False)
    back = _images_by_action(chunk, items)
    refused = dict[int, Refusal]()
    for item in items:
        effect = item.effect
        try:
            row_to_undo(chunk, effect, now.get(item.seq, []), back.get((effect.plan, effect.seq), ()))
            if effect.kind is EffectKind.MOVED:
                require_kept(chunk, effect)
        except RefusedError as error:
            refused[item.seq] = error.refusal
    return refused


def _require_disjoint(items: Sequence[RestoreRow], now: Mapping[int, Sequence[TableRow]]) -> None:
    """Check that no item would have to see what another did; only rows that one action moved aside may share a key."""
    actions: dict[str | tuple[int, str], tuple[str, int]] = {}
    for item in items:
        action = (item.effect.plan, item.effect.seq)
        rows = [(row.table_oid, row.ctid) for row in now.get(item.seq, [])]
        touched: list[str | tuple[int, str]] = [item.key, *rows]
        is_shared = any(actions.setdefault(thing, action) != action for thing in touched)
        if is_shared:
            raise CannotRunTogether
    if len(items) != len({(item.effect.plan, item.effect.seq, item.effect.place) for item in items}):
        raise CannotRunTogether


def _images_by_action(chunk: TableChunk, items: Sequence[RestoreRow]) -> Mapping[tuple[str, int], Sequence[str]]:
    """Return the images of the rows that each action (plan, number) moved aside and that were put back."""
    rows = [(item.key, undone_parameters(item.effect)) for item in items if item.effect.kind is EffectKind.MOVED]
    if not rows:
        return {}
    images: dict[tuple[str, int], list[str]] = {}
    fields = recordset_of_items(chunk, "undone_plan", "undone_seq")
    for row in chunk.run("moved_beside_many", items_parameter(chunk, rows), items=fields):
        images.setdefault((row.plan, row.seq), []).append(row.before)
    return images


def _collect(
    chunk: TableChunk, item: RestoreRow, now: Sequence[TableRow], back: Sequence[str], writes: _Writes
) -> None:
    """Add one item to the statements that take its effect back.

    Raises:
        RefusedError: the effect cannot be taken back.
    """
    effect, image = item.effect, {"seq": item.seq, "image": item.effect.before}
    row = row_to_undo(chunk, effect, now, back)
    if row is not None:
        place = {"table_oid": row.table_oid, "ctid": row.ctid}
        if effect.kind is EffectKind.UPDATED:
            writes.updates.append((item.key, {**image, **place, "present": row.image}))
        else:
            writes.deletes.append((item.key, {"seq": item.seq, **place}))
        return
    if effect.kind is EffectKind.MOVED:
        writes.releases.append((item.key, moved_parameters(effect)))
    writes.inserts.append((item.key, image))


def _run(chunk: TableChunk, writes: _Writes) -> None:
    """Run the statements kind by kind. That is not the order of the items, and triggers see it: they get one kind only.

    Raises:
        CannotRunTogether: there are triggers and several kinds, or the table did something else with a row.
    """
    kinds = [bool(rows) for rows in (writes.deletes, writes.updates, writes.inserts)]
    if sum(kinds) > 1 and chunk.has_triggers_after:
        raise CannotRunTogether
    columns = columns_of_image(chunk)
    _run_on_all(chunk, "delete_rows", writes.deletes, "seq", "table_oid", "ctid")
    _run_on_all(chunk, "put_rows_back", writes.updates, "seq", "table_oid", "ctid", "image", "present", **columns)
    if writes.releases:
        fields = recordset_of_items(chunk, "undone_plan", "undone_seq", "undone_place", "image")
        released = chunk.run("release_many_from_quarantine", items_parameter(chunk, writes.releases), items=fields)
        if len(released) != len(writes.releases):
            raise CannotRunTogether
    _run_on_all(chunk, "bring_rows_back", writes.inserts, "seq", "image", **columns)


def _run_on_all(chunk: TableChunk, statement: str, rows: Sequence[KeyedFields], *fields: str, **parts: Any) -> None:
    """Run a statement on all its items.

    Raises:
        CannotRunTogether: the table did something else with a row.
    """
    if not rows:
        return
    ((count,),) = chunk.run(statement, items_parameter(chunk, rows), items=recordset_of_items(chunk, *fields), **parts)
    if count != len(rows):
        raise CannotRunTogether
