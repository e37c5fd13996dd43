"""Whether what was to be taken back was: the journal has a receipt of each reversal, and its topic has the record."""

from dataclasses import replace

from makewhole.compensation.planning.extra_copies import extra_records, extra_rows
from makewhole.compensation.verification.committed_since import StartOffsets, WrittenActions, written_actions_since
from makewhole.journal.evidence import JudgedFinding
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Point, TopicPoint
from makewhole.model.reversal import PastReversals, ReversedCopy
from makewhole.window.context import WindowContext


class ReversalJudge:
    """Judges findings whose extra copies are taken back; each topic of reversals is read once."""

    def __init__(self, context: WindowContext, past: PastReversals, since: StartOffsets) -> None:
        self._context, self._past, self._since = context, past, since
        self._marked: dict[str, WrittenActions] = {}

    def judge(self, item: JudgedFinding) -> JudgedFinding:
        """The finding as `reversed`, or still open (or refused) with the reason."""
        if item.outcome == "refused":
            return item
        hop = next(hop for hop in self._context.pipeline.hops if hop.name == item.finding.hop)
        point = self._context.pipeline.points[hop.target]
        copies = self._past.of(point.place, item.finding.key_hash)
        problem = self._left(item, point, copies) or self._unseen(copies)
        if problem is not None:
            return replace(item, outcome="open", reason=problem)
        places = sorted({f"{copy.target} by plan {copy.plan}" for copy in copies})
        return replace(item, outcome="reversed", reason=f"taken back in {', '.join(places)}")

    def _left(self, item: JudgedFinding, point: Point, copies: tuple[ReversedCopy, ...]) -> str | None:
        """Why not every extra copy has its reversal."""
        finding = item.finding
        try:
            if isinstance(point, TopicPoint):
                left = len(extra_records(finding, point.place, self._past))
            else:
                left = extra_rows(finding) - sum(copy.is_done for copy in copies)
        except RefusedError as error:
            return str(error)
        return f"{left} of its extra copies at {point.name} were not taken back" if left > 0 else None

    def _unseen(self, copies: tuple[ReversedCopy, ...]) -> str | None:
        """Which reversal of this window has a receipt and no record. What Kafka deleted since is taken as it was."""
        for copy in copies:
            if copy.window == self._context.window.number and copy.target in self._context.pipeline.points:
                marked = self._of(copy.target)
                if marked.is_complete and (copy.plan, copy.seq) not in marked.found:
                    return f"no committed reversal by plan {copy.plan} (action {copy.seq}) is in {copy.target}"
        return None

    def _of(self, target: str) -> WrittenActions:
        if target not in self._marked:
            self._marked[target] = written_actions_since(self._context, target, self._since)
        return self._marked[target]
