"""Write chunks of plans to datasets of files: decided, then applied file by file, then receipted."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOENT

from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.open_dataset import rows_of_keys
from makewhole.datasets.files.write.chunk_rows import FileChunk, holdable, load_rows
from makewhole.datasets.files.write.commit_files import is_commit, not_written
from makewhole.datasets.files.write.items import do
from makewhole.datasets.files.write.kept_beside import DecidedChunk, FileStep, PlanFolder
from makewhole.datasets.files.write.look_again import steps_in_vain
from makewhole.datasets.files.write.rewritten import is_marked
from makewhole.datasets.files.write.staging import Staging
from makewhole.file_stores.store import FileStore
from makewhole.model.connection import Connection
from makewhole.model.errors import CorruptionError, RefusedError, TransientError
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect
from makewhole.tables.items import RowItem
from makewhole.tables.receipts import ActionsOfKey, ChunkId, KeptAtTarget, ReceiptRow
from makewhole.tables.writing import Guard

_OTHERS_WROTE = Refusal(RefusalCode.STALE, "the file of the row was written again, or removed, while the plan ran")
_OTHER_ROWS = Refusal(
    RefusalCode.STALE,
    "its key, or one that would be written into the same file, got other rows after a runner had decided this and was "
    "ended; run the window again",
)


def mark_of(plan: ChunkId, chunk: int) -> str:
    """Return what the files of a chunk of a plan say of it."""
    return f"{plan.plan} {plan.target} {chunk}"


@dataclass(frozen=True, kw_only=True)
class FilesWriter:
    """Writes chunks (`TableWriter`)."""

    connection: Connection
    point: TablePoint

    def receipts(self, plan: ChunkId) -> list[ReceiptRow]:
        count, kept = self._count_done(plan), self._kept(plan.plan, plan.target)
        done = kept.receipts(plan)
        kept.leave_none_open(plan.lease_epoch)
        kept.remove_staged(count)
        return done

    def _count_done(self, plan: ChunkId) -> int:
        """Count the receipts, once what a runner before has decided is carried out."""
        kept = self._kept(plan.plan, plan.target)
        kept.fence_off(plan.lease_epoch)
        count = kept.count_receipts()
        decision = kept.open_decision(plan, count)
        if decision is None:
            return count
        self._carry_out_of_another(kept, plan, decision)
        return count + 1

    def _carry_out_of_another(self, kept: PlanFolder, plan: ChunkId, decision: DecidedChunk) -> None:
        """Carry out what a runner had decided that died, but for what the rows of its keys do not bear any more: they
        may be others by now, perhaps long after the plan was ended. What was staged for that is removed first, so that
        a runner which stood still just before it was put in place cannot do it any more."""
        kept.require_lease(plan.lease_epoch)
        mark = mark_of(plan, decision.chunk)
        in_place = {step.path: _is_in_place(kept.store, step, mark) for step in decision.steps}
        in_vain = {step.path for step in decision.steps if not in_place[step.path] and _is_unstaged(kept.store, step)}
        if not all(in_place.values()):
            for step in steps_in_vain(FileSource(self.connection, self.point), self.point, decision, in_place):
                in_vain.add(step.path)
                if step.staged is not None:
                    kept.store.remove(step.staged)
        _carry_out(kept, plan, decision, in_vain)

    def effects(self, plan: str, target: str, lease_epoch: int) -> Iterator[list[Effect]]:
        kept = self._kept(plan, target)
        kept.fence_off(lease_epoch)
        yield from kept.effects()

    def write_chunk(self, point: TablePoint, chunk: ChunkId, items: Sequence[RowItem], guard: Guard) -> ReceiptRow:
        """Do as the protocol says. No dataset names erased keys, so what the guard answers depends on no row."""
        done, kept = self._count_done(chunk), self._kept(chunk.plan, chunk.target)
        if chunk.chunk < done:
            return kept.receipt(chunk, chunk.chunk)
        if chunk.chunk > done:
            raise CorruptionError(f"plan {chunk.plan}: {chunk.target} has {done} receipts, and not {chunk.chunk}")
        kept_out = guard(lambda _: set(), items)
        decision = _decide(FileSource(self.connection, point), point, chunk, kept, items, kept_out)
        if not kept.decide(decision):
            raise TransientError(f"chunk {chunk.chunk} of plan {chunk.plan} was decided before; try again")
        return _carry_out(kept, chunk, decision)

    def kept(self, plan: str, target: str) -> KeptAtTarget | None:
        return self._kept(plan, target).amount()

    def forget(self, plan: str, target: str, lease_epoch: int, *, only_rows_aside: bool) -> None:
        """Do as the protocol says. Rows that were moved aside are in the decisions: both go together."""
        kept = self._kept(plan, target)
        kept.fence_off(lease_epoch)
        if not only_rows_aside:
            kept.forget()

    def erase(self, target: str, lease_epoch: int, plan: str, actions: ActionsOfKey) -> int:
        kept = self._kept(plan, target)
        kept.fence_off(lease_epoch)
        return kept.erase(actions)

    def _kept(self, plan: str, target: str) -> PlanFolder:
        return PlanFolder(store=FileSource(self.connection, self.point).store, plan=plan, target=target)


def _decide(
    source: FileSource,
    point: TablePoint,
    chunk: ChunkId,
    kept: PlanFolder,
    items: Sequence[RowItem],
    kept_out: Mapping[int, Refusal],
) -> DecidedChunk:
    """Return what a chunk does; the files that it puts into the dataset are staged.

    Raises:
        TransientError: files were added or went while it was decided.
    """
    out = dict(kept_out)
    while True:
        left = [item for item in items if item.seq not in out]
        rows = load_rows(source, point, chunk, kept, [item.key for item in left])
        seen = rows.seen(left)
        refused = {**out, **do_each(rows, left)}
        unwritten = not_written(rows)
        staging = Staging(rows=rows, kept=kept, mark=mark_of(chunk, chunk.chunk))
        steps = () if unwritten else tuple(staging.steps())
        unwritten |= staging.refused
        if not unwritten:
            break
        staging.discard()
        out |= dict(sorted(unwritten.items()))
    _require_same_rows(rows, [item.key for item in items])
    return DecidedChunk(
        plan_sha256=chunk.plan_sha256,
        chunk=chunk.chunk,
        lease_epoch=chunk.lease_epoch,
        actions=len(items),
        refused=refused,
        effects=tuple(rows.effects),
        steps=steps,
        back=tuple(rows.back),
        seen=seen,
    )


def _require_same_rows(rows: FileChunk, keys: Iterable[str]) -> None:
    """Require that the files which came or went since rows were looked up have none of these keys: those of other keys
    may come and go all the time.

    Raises:
        TransientError: one has, or columns changed.
    """
    source, point = rows.source, rows.point
    now = FileSource(source.connection, point)
    if now.listed == source.listed:
        return
    came, went = set(now.files) - set(source.files), set(source.files) - set(now.files)
    schema = now.schema()
    is_other = schema is None or schema != rows.schema or bool(went & rows.files)
    if is_other or rows_of_keys(now, point, holdable(rows.schema, point, keys), is_exact=False, files=came):
        raise TransientError(
            f"files of {point.table} with rows of its keys came or went while a chunk was decided, or brought other "
            "columns; try again"
        )


def do_each(rows: FileChunk, items: Sequence[RowItem]) -> dict[int, Refusal]:
    """Do items in order; return the refusals by action number."""
    refused: dict[int, Refusal] = {}
    for item in items:
        try:
            do(rows, item)
        except RefusedError as error:
            refused[item.seq] = error.refusal
    return refused


def _carry_out(
    kept: PlanFolder, chunk: ChunkId, decision: DecidedChunk, in_vain: Collection[str] = frozenset()
) -> ReceiptRow:
    """Put the files of a decision into the dataset, but for those `in_vain`, and give the receipt. What was done before
    is not done again.

    Raises:
        LeaseLostError: a runner with a later lease has been here.
    """
    kept.require_lease(chunk.lease_epoch)
    mark = mark_of(chunk, decision.chunk)
    try:
        undone = {
            step.path: _OTHER_ROWS if step.path in in_vain else _OTHERS_WROTE
            for step in decision.steps
            if not _is_put(kept.store, step, mark, is_in_vain=step.path in in_vain)
        }
    except FileNotFoundError as error:
        kept.require_lease(chunk.lease_epoch)
        raise TransientError(f"{error.filename or 'a file'} of {kept.store.root} went while it was written") from error
    return kept.give_receipt(decision, undone)


def _is_put(store: FileStore, step: FileStep, mark: str, *, is_in_vain: bool) -> bool:
    """Put a file into the dataset, unless that is in vain; return whether it is there."""
    return _is_in_place(store, step, mark) if is_in_vain else _put(store, step, mark)


def _is_unstaged(store: FileStore, step: FileStep) -> bool:
    """Return whether what a step would put in place is not there any more."""
    return step.staged is not None and store.find(step.staged) is None


def _is_in_place(store: FileStore, step: FileStep, mark: str) -> bool:
    """Return whether a step is done: its file lies there, or is gone, where it takes one away."""
    now = store.find(step.path)
    return now is None if step.staged is None else now is not None and _is_own(store, step.path, step.staged, mark)


def _put(store: FileStore, step: FileStep, mark: str) -> bool:
    """Put a file into the dataset; return whether it is there. False: what is there is not what the chunk saw. A staged
    file is moved, and so is put there once: a runner that stood still before it finds it gone, and whatever came to
    its place since stays.

    Raises:
        FileNotFoundError: another runner has put it there, and it is not there any more.
    """
    now = store.find(step.path)
    if step.staged is None:
        if now == step.before:
            store.remove(step.path)
        return now is None or now == step.before
    if now is not None and _is_own(store, step.path, step.staged, mark):
        return True
    if now != step.before:
        return False
    if store.move(step.staged, step.path, is_new=step.before is None):
        return True
    is_there = store.find(step.path) is not None and _is_own(store, step.path, step.staged, mark)
    if not is_there and store.find(step.staged) is None:
        raise FileNotFoundError(ENOENT, "moved by another runner", step.staged)
    return is_there


def _is_own(store: FileStore, path: str, staged: str, mark: str) -> bool:
    """Return whether what lies at a path is what the chunk puts there, or has put there and staged no longer."""
    if not is_commit(path):
        return is_marked(store, path, mark)
    if store.find(staged) is None:
        return True
    with store.open(path) as file, store.open(staged) as own:
        return file.read() == own.read()
