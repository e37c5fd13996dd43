"""Write chunks of plans to Iceberg tables, each as one snapshot, and forecast what they would do."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from makewhole.datasets.chunk_rows import DatasetChunk
from makewhole.datasets.iceberg.write.chunk_commit import ChunkSource
from makewhole.datasets.iceberg.write.fates import settled
from makewhole.datasets.iceberg.write.kept import NAME, Intent, Keeping, KeptOfPlan, KeptTable, effect_rows
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import CorruptionError, LeaseLostError, RefusedError, TransientError
from makewhole.model.points import TablePoint
from makewhole.tables.effects import Effect
from makewhole.tables.forecast import ChooseChanges, ChunkForecast
from makewhole.tables.items import QuarantineRows, RowItem, UpsertRow
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow
from makewhole.tables.row_change import RowChange, upserted
from makewhole.tables.writing import Guard

_MOST_TRIES = 20


def _receipts(kept: KeptOfPlan, plan: ChunkId) -> list[ReceiptRow]:
    """Return the receipts of a plan at its target, in order.

    Raises:
        CorruptionError: they have holes, or were given for a plan of another content.
    """
    done = sorted(kept.intents(Keeping.COMMITTED), key=lambda intent: intent.receipt.chunk)
    is_other = any(intent.plan_sha256 != plan.plan_sha256 for intent in done)
    if is_other or [intent.receipt.chunk for intent in done] != list(range(len(done))):
        raise CorruptionError(f"the receipts of plan {plan.plan} at {plan.target} do not fit the plan")
    return [intent.receipt for intent in done]


class IcebergWriter:
    """Writes chunks (`TableWriter`)."""

    def __init__(self, connection: IcebergConnection) -> None:
        self._connection, self._kept = connection, KeptTable(connection)
        self._kept.make()

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return _receipts(self._fenced(plan.plan, plan.target, plan.lease_epoch), plan)

    def effects(self, plan: str, target: str, lease_epoch: int) -> Iterator[list[Effect]]:
        kept = self._fenced(plan, target, lease_epoch)
        done = kept.intents(Keeping.COMMITTED)
        effects = self._kept.effects(plan, target, [intent.attempt for intent in done])
        for intent in done:
            seqs = {effect.seq for effect in effects if effect.chunk == intent.receipt.chunk}
            if len(seqs) != intent.receipt.actions:
                raise RefusedError(
                    f"chunk {intent.receipt.chunk} of plan {plan} at {target} has effects of {len(seqs)} actions, and "
                    f"did {intent.receipt.actions}: rows of makewhole.effects are gone; restore them and try again"
                )
        for _, some in groupby(reversed(effects), key=lambda effect: effect.chunk):
            yield list(some)

    def write_chunk(self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard) -> ReceiptRow:
        """Do as the protocol says. No table here names erased keys, so what the guard answers depends on no row."""
        kept_out = guard(lambda _: set(), items)
        for _ in range(_MOST_TRIES):
            kept = self._known(chunk.plan, chunk.target, chunk.lease_epoch)
            done = _receipts(kept, chunk)
            if chunk.chunk < len(done):
                return done[chunk.chunk]
            if chunk.chunk > len(done):
                raise CorruptionError(
                    f"plan {chunk.plan}: {chunk.target} has {len(done)} receipts, and not {chunk.chunk}"
                )
            attempt, source = uuid.uuid4().hex, ChunkSource.of_now(self._connection, point)
            rows = source.rows(chunk, items, self._kept, attempt)
            refused = {**kept_out, **rows.do_each([item for item in items if item.seq not in kept_out])}
            receipt = ReceiptRow(
                chunk=chunk.chunk, actions=len(items) - len(refused), lease_epoch=chunk.lease_epoch, refused=refused
            )
            if self._is_committed(kept, chunk, source, rows, attempt, receipt):
                return receipt
        raise TransientError(
            f"{point.table} was changed by other writers {_MOST_TRIES} times while a chunk was made; try again when "
            "they are done"
        )

    def kept(self, plan: str, target: str) -> KeptAtTarget | None:
        return None

    def forget(self, plan: str, target: str, lease_epoch: int, *, only_rows_aside: bool) -> None:
        raise RefusedError(f"{NAME} is only ever added to; what plan {plan} did stays")

    def erase(self, target: str, lease_epoch: int, plan: str, actions: ActionsOfKey) -> int:
        raise RefusedError(f"{NAME} is only ever added to; what plan {plan} did with a key stays")

    def _is_committed(
        self,
        kept: KeptOfPlan,
        chunk: ChunkId,
        source: ChunkSource,
        rows: DatasetChunk,
        attempt: str,
        receipt: ReceiptRow,
    ) -> bool:
        """Keep the intent of a chunk with its effects, and commit it; return whether nothing came before either."""
        base = source.source.view.snapshot
        intent = Intent(
            attempt=attempt,
            table=source.point.table,
            base=base,
            plan_sha256=chunk.plan_sha256,
            receipt=receipt,
        )
        of_plan = {"plan": chunk.plan, "target": chunk.target, "attempt": attempt}
        committed = {**of_plan, "kind": Keeping.COMMITTED.value}
        before = [intent.row(chunk.plan, chunk.target), *effect_rows(attempt, rows.effects, rows.returned)]
        if not rows.effects:
            return self._kept.add(kept, [*before, committed])
        if not self._kept.add(kept, before):
            return False
        if not source.commit(rows, attempt):
            return False
        self._known(chunk.plan, chunk.target, chunk.lease_epoch)
        return True

    # What is kept

    def _fenced(self, plan: str, target: str, lease_epoch: int) -> KeptOfPlan:
        """Refuse runners of a plan with earlier leases from now on; return what is kept of it."""
        for _ in range(_MOST_TRIES):
            kept = self._known(plan, target, lease_epoch)
            fence = {"kind": Keeping.FENCE.value, "plan": plan, "target": target, "lease_epoch": lease_epoch}
            if kept.fence == lease_epoch:
                return kept
            self._kept.add(kept, [fence])
        raise TransientError("makewhole.effects is written by others all the time; try again")

    def _known(self, plan: str, target: str, lease_epoch: int) -> KeptOfPlan:
        """Return what is kept of a plan, once it is known of each chunk whether it was committed.

        Raises:
            LeaseLostError: a runner with a later lease has been here.
            RefusedError: of a chunk it cannot be known.
        """
        for _ in range(_MOST_TRIES):
            kept = self._kept.of_plan(plan, target)
            if kept.fence > lease_epoch:
                raise LeaseLostError(f"plan {plan}: a newer runner has been at {target}; this one stops")
            open_intents = kept.intents()
            if not open_intents:
                return kept
            place = {"plan": plan, "target": target}
            fates = [
                place | {"attempt": intent.attempt, "kind": settled(self._connection, intent).value}
                for intent in open_intents
            ]
            self._kept.add(kept, fates)
        raise TransientError("makewhole.effects is written by others all the time; try again")


@dataclass(frozen=True, kw_only=True)
class IcebergForecaster:
    """Forecasts chunks (`ChunkForecaster`)."""

    connection: IcebergConnection

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        return _receipts(KeptTable(self.connection).of_plan(plan.plan, plan.target), plan)

    def erased(self, point: TablePoint, keys: Sequence[str]) -> set[str]:
        return set()

    def forecast_chunk(
        self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], choose: ChooseChanges
    ) -> ChunkForecast:
        source, kept = ChunkSource.of_now(self.connection, point), KeptTable(self.connection)
        rows = source.rows(chunk, items, kept, "forecast")
        trials = {item.seq: rows.alone() for item in items}
        refused = {seq: refusal for item in items for seq, refusal in trials[item.seq].do_each([item]).items()}
        new = [item for item in items if isinstance(item, UpsertRow) and not item.before and item.seq not in refused]
        empty = Counter(name for item in new for name in rows.description.unfilled if name not in item.columns)
        by_seq = {item.seq: item for item in items}
        changes = {seq: _change(rows, trials[seq], by_seq[seq]) for seq in choose(refused)}
        return ChunkForecast(refused=refused, changes=changes, left_empty=dict(empty), locks_table=False)


def _change(before: DatasetChunk, after: DatasetChunk, item: RowItem) -> RowChange:
    """Return what an item changed, from its rows before and after it."""
    is_exact = isinstance(item, QuarantineRows)
    was, now = ([key_row.row for key_row in rows.of_key(item.key, is_exact=is_exact)] for rows in (before, after))
    texts, left = tuple(row.text for row in was), tuple(row.text for row in now)
    if isinstance(item, UpsertRow) and left != texts:
        return upserted(before.description, item, texts, _upserted_text(before, item, left[0]))
    gone = Counter(texts) - Counter(left)
    return RowChange(before=texts, after=left, aside=tuple(gone.elements()) if is_exact else ())


def _upserted_text(rows: DatasetChunk, item: UpsertRow, text: str) -> str:
    """Return the columns of a row by their names, those of parts behind a dot: of a new one those that are written."""
    flat = dict(_flattened("", json.loads(text), set(rows.description.columns)))
    is_whole = item.before or rows.spelling(item.key) in rows.outside
    return json.dumps(flat if is_whole else {name: flat.get(name) for name in item.columns})


def _flattened(before: str, value: object, names: set[str]) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and before not in names:
        for name, part in value.items():
            yield from _flattened(f"{before}.{name}" if before else name, part, names)
    else:
        yield before, value
