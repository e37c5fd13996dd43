"""Write the chunks of a plan to a table: each is one transaction of rows and receipt."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from makewhole.compensation.execution.look_again.erased_items import keys_brought_back, refuse_erased
from makewhole.compensation.execution.targets import Arrivals, Chunk, DoneChunk, KeptRows, PlanAtTarget
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Remedy
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.tables.items import (
    QuarantineExtra,
    QuarantineRows,
    RestoreExtra,
    RestoreRow,
    RowItem,
    UpsertExtra,
    UpsertRow,
)
from makewhole.tables.receipts import ChunkId
from makewhole.tables.writing import ErasedKeys, TableWriter


class TableTarget:
    """A table as the target of a plan."""

    def __init__(
        self,
        plan: PlanAtTarget,
        point: TablePoint,
        writer: TableWriter,
        arrivals: Arrivals,
        kept_rows: KeptRows | None = None,
    ) -> None:
        """`arrivals` is asked before each chunk, and so are `kept_rows` for the rows that are put aside."""
        self._plan, self._point, self._writer, self._epoch = plan.plan, point, writer, plan.lease_epoch
        self._arrivals, self._kept_rows = arrivals, kept_rows

    def done(self) -> list[DoneChunk]:
        receipts = self._writer.receipts(self._id(0))
        return [self._done(row.chunk, row.actions, row.refused) for row in receipts]

    def prepare(self, chunk: Chunk) -> "_PreparedItems":
        with _without_garbage_collection():
            items = chunk_items(chunk, self._point.key)
            for item in items:
                if isinstance(item, UpsertRow):
                    with suppress(RefusedError):  # raised again when the row is written
                        _ = item.as_json
            return _PreparedItems(self, chunk, items)

    def refusals(self, chunk: Chunk) -> Mapping[int, Refusal]:
        """Return the actions for which the source of their key is not what it was, or whose rows go for a record that
        would not be sent, each with its refusal."""
        kept = {} if self._kept_rows is None else self._kept_rows(self._point.name, chunk.rows)
        return {**kept, **self._arrivals.arrived(chunk.rows)}

    def write(self, chunk: int, items: Sequence[RowItem], refused: Mapping[int, Refusal]) -> DoneChunk:
        """Write the items that are not `refused`, and the receipt of all, in one transaction."""
        with _without_garbage_collection():
            by_tombstones = self._arrivals.erased_by_tombstones(self._point, keys_brought_back(items))
            refuse = partial(_kept_out, self._point, refused, by_tombstones)
            row = self._writer.write_chunk(self._point, self._id(chunk), items, refuse)
        return self._done(row.chunk, row.actions, row.refused)

    def _id(self, chunk: int) -> ChunkId:
        plan, target = self._plan, self._point.name
        return ChunkId(plan=plan.id, plan_sha256=plan.sha256, target=target, chunk=chunk, lease_epoch=self._epoch)

    def _done(self, chunk: int, actions: int, refused: Mapping[int, Refusal]) -> DoneChunk:
        place = f"makewhole.receipt {self._plan.id}/{self._point.name}/{chunk}"
        return DoneChunk(chunk=chunk, place=place, actions=actions, refused=refused)


@dataclass(frozen=True)
class _PreparedItems:
    """The items of a chunk, ready to be written to their table."""

    target: TableTarget
    chunk: Chunk
    items: Sequence[RowItem]

    def refusals(self) -> Mapping[int, Refusal]:
        return self.target.refusals(self.chunk)  # the others are decided row by row, inside the transaction

    def write(
        self,
        refused: Mapping[int, Refusal],
        guard: Callable[[], None],  # noqa: ARG002 - one attempt, no loop
        on_sent: Callable[[], None],
    ) -> DoneChunk:
        on_sent()  # the server does most of the work
        return self.target.write(self.chunk.number, self.items, refused)


def _kept_out(
    point: TablePoint,
    refused: Mapping[int, Refusal],
    by_tombstones: Mapping[str, Refusal],
    erased_of: ErasedKeys,
    items: Sequence[RowItem],
) -> dict[int, Refusal]:
    """Return the items that are not to be written: those that were refused before, and those of erased keys."""
    known = {item.seq: refused[item.seq] for item in items if item.seq in refused}
    return {**refuse_erased(point, erased_of, items, by_tombstones), **known}


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: for tens of thousands of small objects it takes as long as making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_EXTRAS: dict[str, msgspec.json.Decoder[Any]] = {
    Remedy.UPSERT: msgspec.json.Decoder(list[UpsertExtra]),
    Remedy.QUARANTINE: msgspec.json.Decoder(list[QuarantineExtra]),
    Remedy.RESTORE: msgspec.json.Decoder(list[RestoreExtra]),
}


def chunk_items(chunk: Chunk, key_columns: tuple[str, ...]) -> list[RowItem]:
    """Return the items of a chunk, in order; made from its columns, because there may be ten thousand."""
    actions = (chunk.rows.column(name).to_pylist() for name in ("remedy", "seq", "key"))
    payloads = (chunk.columns.column(name).to_pylist() for name in ("value", "extra"))
    items: list[RowItem] = []
    for remedy, rows in groupby(zip(*actions, *payloads, strict=True), key=itemgetter(0)):
        _, seqs, keys, values, texts = zip(*rows, strict=True)
        extras = _EXTRAS[remedy].decode(f"[{','.join(texts)}]")
        items += map(partial(_item, key_columns), seqs, keys, values, extras)
    return items


def _item(
    key_columns: tuple[str, ...],
    seq: int,
    key: str,
    value: bytes | None,
    extra: UpsertExtra | QuarantineExtra | RestoreExtra,
) -> RowItem:
    if isinstance(extra, RestoreExtra):
        return RestoreRow(seq=seq, key=key, effect=extra.effect)
    if isinstance(extra, QuarantineExtra):
        survivor = extra.rows[0] if extra.keeps else None
        return QuarantineRows(seq=seq, key=key, survivor=survivor, extras=extra.rows[extra.keeps :])
    return UpsertRow(
        seq=seq,
        key=key,
        key_columns=key_columns,
        value=(value or b"").decode(),
        columns=extra.columns,
        before=extra.rows,
        expected=extra.expected,
        moment=extra.moment,
        left=extra.left,
        topic=extra.topic,
    )
