"""Track a plan at one target: copy the receipts that are found there to the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.content import PlanContent
from makewhole.compensation.execution.targets import Chunk, DoneChunk, TargetWriter, require_receipts_kept
from makewhole.journal import plan_progress, replayed_positions
from makewhole.journal.actions import ArrowColumn
from makewhole.journal.replayed_positions import PlanInJournal, WrittenChunk
from makewhole.model.plan import Plan, Receipt
from makewhole.model.positions import RecordPositions
from makewhole.model.refusal import Refusal


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
    def in_journal(self) -> PlanInJournal:
        """The plan as the journal knows it."""
        return PlanInJournal(
            transaction=self.attempt.journal.transaction,
            plan=self.plan,
            target=self.target,
            log_ends={self.target: self.log_ends},
            renew=self.attempt.renew,
        )

    @property
    def keys(self) -> ArrowColumn:
        """Business keys of all its actions at the target."""
        return self.content.keys_at(self.target)

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

    def positions(self, number: int, topic_id: str) -> RecordPositions:
        """Return where the records of a chunk stand, if it was committed."""
        with self.attempt.journal.transaction() as journal:
            return replayed_positions.of_chunk(journal, self._written_chunk(number, topic_id))

    def record_positions(self, number: int, topic_id: str, positions: RecordPositions) -> None:
        """Record where the records of a chunk stand, before they are committed.

        Under the lease: the last to note them is the only one that can still commit.

        Raises:
            LeaseLostError: another runner took over.
        """
        if len(positions):
            with self.attempt.leased() as journal:
                replayed_positions.put(journal, self._written_chunk(number, topic_id), positions)

    def _written_chunk(self, number: int, topic_id: str) -> WrittenChunk:
        return WrittenChunk(plan=self.plan.id, target=self.target, chunk=number, topic_id=topic_id)

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
            recorded = plan_progress.refused_actions(journal, self.content.chunk_actions(self.target, done.chunk))
            refused: Mapping[int, Refusal] = {**done.refused, **recorded}
            size = self.content.chunks[self.target][done.chunk].size
            actions = size - len(refused) if done.actions is None else done.actions
            receipt = Receipt(
                plan=self.plan.id, target=self.target, chunk=done.chunk, actions=actions, place=done.place
            )
            plan_progress.follow_receipt(journal, receipt, done.refused)

    def _recorded_chunks(self) -> Sequence[int]:
        """Return the chunks at the target whose receipts the journal has."""
        with self.attempt.journal.transaction() as journal:
            return [done.chunk for done in plan_progress.chunks_of(journal, self.plan.id) if done.target == self.target]
