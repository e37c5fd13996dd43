"""What is remembered of a plan at one target: by the journal, and by the plan itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from makewhole.compensation.execution.attempt import Attempt
from makewhole.compensation.execution.content import PlanContent
from makewhole.compensation.execution.targets import Chunk
from makewhole.journal import plans
from makewhole.model.plan import Plan


@dataclass(frozen=True, kw_only=True)
class TargetProgress:
    """`log_ends`: where the target's log ended when the plan was first begun, by partition. `is_begun` before this
    attempt; `is_done`: every chunk happened, at every target."""

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
    def chunks(self) -> int:
        """How many the target has."""
        return len(self.content.chunks[self.target])

    def chunk(self, number: int) -> Chunk:
        """One of them, with what the journal says is refused of it."""
        chunk = self.content.chunk(self.target, number)
        with self.attempt.journal.transaction() as journal:
            refused = plans.refused_actions(journal, self.content.place(self.target, number))
        return Chunk(number=number, rows=chunk.rows, columns=chunk.columns, decided=refused)

    def chunks_seen(self) -> int:
        """How many the journal has receipts of."""
        return max(self.attempt.chunks_seen(self.target), default=-1) + 1

    def chunks_refused_whole(self) -> set[int]:
        """Those of which nothing is ever written."""
        with self.attempt.journal.transaction() as journal:
            return plans.chunks_refused_whole(journal, self.plan.id, self.target)
