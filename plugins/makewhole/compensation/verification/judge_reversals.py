"""Judge findings whose extra copies are taken back: each reversal needs a receipt in the journal and its record."""

from dataclasses import replace

from makewhole.compensation.planning.extra_copies import extra_records, extra_rows
from makewhole.compensation.verification.committed_since import StartOffsets, WrittenActions, written_actions_since
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.model.errors import RefusedError
from makewhole.model.points import Point, has_log
from makewhole.model.reversal import PastReversals, ReversedCopy
from makewhole.window.context import WindowContext


class ReversalJudge:
    """The evidence of a window's reversals; each topic of reversals is read once."""

    def __init__(self, context: WindowContext, since: StartOffsets) -> None:
        self._context, self._since = context, since
        self._written: dict[str, WrittenActions] = {}

    def judge(self, item: JudgedFinding, past: PastReversals) -> JudgedFinding:
        """Return the finding as `reversed`, or as open (or refused) with the reason, by what was taken back before."""
        if item.outcome == "refused":
            return item
        hop = self._context.pipeline.hop(item.finding.hop)
        point = self._context.pipeline.points[hop.target]
        copies = past.of(point.places, item.finding.key_hash)
        problem = self._not_reversed(item, point, past) or self._not_written(copies)
        if problem is not None:
            return replace(item, outcome="open", reason=problem)
        places = sorted({f"{copy.target} by plan {copy.plan}" for copy in copies})
        return replace(item, outcome="reversed", reason=f"taken back in {', '.join(places)}")

    def _not_reversed(self, item: JudgedFinding, point: Point, past: PastReversals) -> str | None:
        """Return the reason when an extra copy has no reversal."""
        finding, copies = item.finding, past.of(point.places, item.finding.key_hash)
        try:
            if has_log(point):
                left = len(extra_records(finding, point, past))
            else:
                left = extra_rows(finding) - sum(copy.is_done for copy in copies)
        except RefusedError as error:
            return str(error)
        return f"{left} of its extra copies at {point.name} were not taken back" if left > 0 else None

    def _not_written(self, copies: tuple[ReversedCopy, ...]) -> str | None:
        """Return the reason when a reversal of this window has a receipt and no record, if Kafka kept all records."""
        for copy in copies:
            if copy.window == self._context.window.number and copy.target in self._context.pipeline.points:
                written = self._written_actions(copy.target)
                if written.is_complete and (copy.plan, copy.seq) not in written.actions:
                    return f"no committed reversal by plan {copy.plan} (action {copy.seq}) is in {copy.target}"
        return None

    def _written_actions(self, target: str) -> WrittenActions:
        if target not in self._written:
            self._written[target] = written_actions_since(self._context, target, self._since)
        return self._written[target]
