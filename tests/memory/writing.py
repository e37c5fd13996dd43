"""Write chunks of plans to tables in memory, each as a whole, and forecast what they would do."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from makewhole.model.errors import CorruptionError, LeaseLostError, RefusedError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal
from makewhole.tables.effects import Effect
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import QuarantineRows, RowItem, UpsertRow
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow
from makewhole.tables.row_change import RowChange, upserted
from makewhole.tables.rows import TableRow
from makewhole.tables.writing import Guard
from tests.memory.connection import MemoryConnection
from tests.memory.items import ChunkRows
from tests.memory.rows import Database, StoredReceipt

# What is kept of chunks


def known_receipts(database: Database, plan: ChunkId) -> list[ReceiptRow]:
    """Return the receipts of a plan at its target, in order.

    Raises:
        CorruptionError: they have holes, or were given for a plan of another content.
    """
    receipts = database.receipts.get((plan.plan, plan.target), {})
    is_other = any(receipt.plan_sha256 != plan.plan_sha256 for receipt in receipts.values())
    if is_other or sorted(receipts) != list(range(len(receipts))):
        raise CorruptionError(f"the receipts of plan {plan.plan} at {plan.target} do not fit the plan")
    return [receipts[number].receipt for number in sorted(receipts)]


def fence_off(database: Database, plan: str, target: str, lease_epoch: int) -> None:
    """Refuse runners of a plan with earlier leases from now on.

    Raises:
        LeaseLostError: a runner with a later lease has been here.
    """
    receipts = database.receipts.get((plan, target), {}).values()
    known = [database.fences.get((plan, target), 0), *(kept.receipt.lease_epoch for kept in receipts)]
    if max(known) > lease_epoch:
        raise LeaseLostError(f"plan {plan}: a newer runner has been at {target}; this one stops")
    database.fences[plan, target] = lease_epoch


def receipts_under_fence(database: Database, plan: ChunkId) -> list[ReceiptRow]:
    """Fence off earlier runners, and return the receipts of a plan."""
    fence_off(database, plan.plan, plan.target, plan.lease_epoch)
    return known_receipts(database, plan)


def effects_under_fence(database: Database, plan: str, target: str, lease_epoch: int) -> list[Effect]:
    """Fence off earlier runners, and return the effects of a plan, the latest first.

    Raises:
        RefusedError: a chunk has a receipt, and effects are missing.
    """
    fence_off(database, plan, target, lease_epoch)
    effects = [effect for effect in database.effects if (effect.plan, effect.target) == (plan, target)]
    for number, stored in database.receipts.get((plan, target), {}).items():
        done = len({effect.seq for effect in effects if effect.chunk == number})
        if done != stored.receipt.actions:
            raise RefusedError(f"chunk {number} of plan {plan} at {target} has effects of {done} actions")
    return sorted(effects, key=lambda effect: (effect.chunk, effect.seq, effect.place), reverse=True)


# Chunks


def write_chunk(
    database: Database, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], kept_out: Mapping[int, Refusal]
) -> ReceiptRow:
    """Do the items that are not kept out, and leave the receipt of all; a chunk that has one is left as it is.

    Raises:
        LeaseLostError: a newer runner has been here.
        CorruptionError: chunks before this one have no receipt.
        RefusedError: the table is gone or lost a column that the point names.
    """
    done = receipts_under_fence(database, chunk)
    if chunk.chunk < len(done):
        return done[chunk.chunk]
    if chunk.chunk > len(done):
        raise CorruptionError(f"plan {chunk.plan}: {chunk.target} has {len(done)} receipts, and not {chunk.chunk}")
    rows = ChunkRows(database=database, table=database.table(point), point=point, id=chunk)
    refused = {**kept_out, **_do_each(rows, [item for item in items if item.seq not in kept_out])}
    receipt = ReceiptRow(
        chunk=chunk.chunk, actions=len(items) - len(refused), lease_epoch=chunk.lease_epoch, refused=refused
    )
    of_plan = database.receipts.setdefault((chunk.plan, chunk.target), {})
    of_plan[chunk.chunk] = StoredReceipt(receipt=receipt, plan_sha256=chunk.plan_sha256)
    return receipt


def _do_each(rows: ChunkRows, items: Iterable[RowItem]) -> dict[int, Refusal]:
    """Do items in order; return the refusals by action number."""
    refused: dict[int, Refusal] = {}
    for item in items:
        try:
            rows.do(item)
        except RefusedError as error:
            refused[item.seq] = error.refusal
    return refused


@dataclass(frozen=True, kw_only=True)
class MemoryWriter:
    """Writes chunks (`TableWriter`)."""

    connection: MemoryConnection

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return self.connection.ask(receipts_under_fence, plan)

    def effects(self, plan: str, target: str, lease_epoch: int) -> Iterator[list[Effect]]:
        effects = self.connection.ask(effects_under_fence, plan, target, lease_epoch)
        if effects:
            yield effects

    def write_chunk(self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard) -> ReceiptRow:
        """Do as the protocol says. No table here names erased keys, so what the guard answers depends on no row."""
        kept_out = guard(lambda _: set(), items)
        return self.connection.ask(write_chunk, point, chunk, items, kept_out)

    def kept(self, plan: str, target: str) -> KeptAtTarget | None:
        return None

    def forget(self, plan: str, target: str, lease_epoch: int, *, only_rows_aside: bool) -> None:
        raise RefusedError(f"what plan {plan} did stays in memory")

    def erase(self, target: str, lease_epoch: int, plan: str, actions: ActionsOfKey) -> int:
        raise RefusedError(f"what plan {plan} did stays in memory")


# Forecasts


def forecast_items(
    database: Database, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem]
) -> tuple[dict[int, Refusal], dict[int, RowChange], list[str]]:
    """Return the refusals and the changes of items, each on a copy of the database, and the columns that a row gets
    nothing in unless an item writes them."""
    database.table(point)
    refused: dict[int, Refusal] = {}
    changes: dict[int, RowChange] = {}
    for item in items:
        trial = deepcopy(database)
        rows = ChunkRows(database=trial, table=trial.table(point), point=point, id=chunk)
        before = _rows_before(rows, item)
        refused |= _do_each(rows, [item])
        changes[item.seq] = _change(rows, item, before)
    return refused, changes, list(database.description(database.table(point)).unfilled)


def _rows_before(rows: ChunkRows, item: RowItem) -> list[TableRow]:
    return rows.of_key(item.key, is_exact=isinstance(item, QuarantineRows))


def _change(rows: ChunkRows, item: RowItem, before: Sequence[TableRow]) -> RowChange:
    now = _rows_before(rows, item)
    was, after = (tuple(row.text for row in images) for images in (before, now))
    if isinstance(item, UpsertRow) and now != before:
        text = after[0] if before else json.dumps({name: json.loads(after[0])[name] for name in item.columns})
        return upserted(rows.database.description(rows.table), item, was, text)
    aside = [row.text for row in before if row not in now] if isinstance(item, QuarantineRows) else ()
    return RowChange(before=was, after=after, aside=tuple(aside))


@dataclass(frozen=True, kw_only=True)
class MemoryForecaster:
    """Forecasts chunks (`ChunkForecaster`)."""

    connection: MemoryConnection

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return self.connection.ask(known_receipts, plan)

    def erased(self, point: TablePoint, keys: Sequence[str]) -> set[str]:
        return set()

    def forecast_chunk(
        self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
    ) -> ChunkForecast:
        refused, changes, unfilled = self.connection.ask(forecast_items, point, chunk, items)
        new = [item for item in items if isinstance(item, UpsertRow) and not item.before and item.seq not in refused]
        empty = Counter(name for item in new for name in unfilled if name not in item.columns)
        chosen = {seq: changes[seq] for seq in choose(refused)}
        return ChunkForecast(refused=refused, changes=chosen, left_empty=dict(empty), locks_table=False)
