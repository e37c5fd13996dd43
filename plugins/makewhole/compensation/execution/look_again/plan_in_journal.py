"""Read from the journal what a plan needs to look again: where its topics were last looked at, what it wrote itself."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from makewhole.journal import replayed_positions
from makewhole.model.plan import Plan
from makewhole.model.positions import RecordPositions, SeenLog
from makewhole.sql import PgConnection


@dataclass(frozen=True, kw_only=True)
class PlanInJournal:
    """A plan at one target, as the journal knows it. `transaction` opens one there; `log_ends`: where the logs of the
    targets ended when the plan was first begun, by target and partition."""

    transaction: Callable[[], AbstractContextManager[PgConnection]]
    plan: Plan
    target: str
    log_ends: Mapping[str, Mapping[int, int]]

    def seen(self, point: str) -> SeenLog | None:
        """Return up to where a topic was looked at for the findings of the plan, at least; None: nobody looked at it.

        That is where it ended when the window revision was opened, or when the plan was first begun.
        """
        with self.transaction() as journal:
            seen = replayed_positions.last_seen(journal, self.plan, point)
        if seen is None and point in self.log_ends:
            return SeenLog(topic_id=None, offsets=self.log_ends[point])
        return seen

    def own_positions(self, topic_id: str) -> RecordPositions:
        """Return where the plan wrote to its target."""
        with self.transaction() as journal:
            return replayed_positions.of_plan(journal, self.plan.id, self.target, topic_id)
