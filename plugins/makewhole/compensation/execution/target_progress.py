"""Track a plan at one target: copy the receipts that are found there to the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.content import PlanContent
from makewhole.compensation.execution.targets import Chunk, DoneChunk, TargetWriter, require_receipts_kept
from makewhole.journal import plan_progress
from makewhole.model.plan import Plan, Receipt


@dataclass(frozen=True, kw_only=True)
class TargetProgress:
    """A plan at one target, in one attempt. `log_ends`: where the target's log ended when the plan was first begun, by
    partition. `is_begun`: before this attempt; `is_done`: every chunk happened, at every target."""

    attempt: Attempt
    content: PlanContent
    target: str
    log_ends: Mapping[int, int]
    is_begun: bool
    is_done: bool

    @property
    def plan(self) -> Plan:
        return self.content.plan

    @property
    def lease_epoch(self) -> int:
        """Epoch of the lease under which the runner works."""
        return self.attempt.epoch

    @property
    def chunks(self) -> int:
        """Number of chunks at the target."""
        return len(self.content.chunks[self.target])

    def chunk(self, number: int) -> Chunk:
        """Return a chunk with the refusals that the journal holds."""
        chunk = self.content.chunk(self.target, number)
        with self.attempt.journal.transaction() as journal:
            refused = plan_progress.refused_actions(journal, self.content.chunk_actions(self.target, number))
        return Chunk(number=number, rows=chunk.rows, columns=chunk.columns, refused=refused)

    def chunks_in_journal(self) -> int:
        """Return the number of chunks of which the journal has receipts."""
        return max(self._recorded_chunks(), default=-1) + 1

    def chunks_refused_whole(self) -> set[int]:
        """Return the chunks of which nothing is ever written."""
        with self.attempt.journal.transaction() as journal:
            return plan_progress.chunks_refused_whole(journal, self.plan.id, self.target)

    def recover(self, writer: TargetWriter) -> int:
        """Ask the target which chunks happened, record their receipts in the journal, and return their number.

        Raises:
            CorruptionError: the target forgot what it had done.
        """
        recorded = self._recorded_chunks()
        done = writer.done()
        expected = self.chunks if self.is_done else max(recorded, default=-1) + 1
        require_receipts_kept(self.target, len(done), expected, self.chunks)
        for item in done:
            if item.chunk not in recorded:
                self.record_receipt(item)
        return len(done)

    def record_receipt(self, done: DoneChunk) -> None:
        """Copy a receipt of the target to the journal."""
        with self.attempt.journal.transaction() as journal:
            actions_of_chunk = self.content.chunk_actions(self.target, done.chunk)
            refused: Mapping[int, str] = {**done.refused, **plan_progress.refused_actions(journal, actions_of_chunk)}
            size = self.content.chunks[self.target][done.chunk].size
            actions = size - len(refused) if done.actions is None else done.actions
            receipt = Receipt(
                plan=self.plan.id, target=self.target, chunk=done.chunk, actions=actions, place=done.place
            )
            plan_progress.follow_receipt(journal, receipt, done.refused)

    def _recorded_chunks(self) -> Sequence[int]:
        """Return the chunks at the target whose receipts the journal has."""
        with self.attempt.journal.transaction() as journal:
            return [one.chunk for one in plan_progress.chunks_of(journal, self.plan.id) if one.target == self.target]
