"""Say of the findings that are only reported what would answer them: the remedy, its actions, and the line to write.

What it would do is drafted as a plan would draft it, limits and approval included, and thrown away. A plan refuses more
when it is frozen, since it looks at the data then: the number of actions is the most that there would be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from makewhole.compensation.planning.draft import draft_plan
from makewhole.compensation.planning.remedy_of import remedy_of
from makewhole.config.defaults.suggested import Suggestion, suggest
from makewhole.config.remedies import VERDICTS
from makewhole.journal import window_results
from makewhole.model.pipeline import Hop, Pipeline, Remedy
from makewhole.model.text import counted
from makewhole.model.verdict import Finding, HopCounts
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_REASONS_MOST = 3
_DRAFTED_MOST = 20_000
"""Findings of a hop and verdict that are drafted. A plan of more is a person's decision anyway, and is drafted then."""


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """The keys of one verdict on one hop whose remedy is `report`, and what would answer them.

    `drafted` is how many of them were looked at, which is all unless there are very many. `actions` is the most that a
    plan of these alone would do. `refused` counts findings by the reason why they would be left alone;
    `refused_as_a_whole` is the limit that the plan would exceed, if any.
    """

    hop: str
    keys: int
    suggestion: Suggestion
    drafted: int
    actions: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    refused_as_a_whole: str | None = None
    needs_approval: bool = False

    def sentences(self) -> list[str]:
        """Return what is not done and why, what would be done, and how it is switched on."""
        verdict, does, line = self.suggestion.verdict, self.suggestion.does, self.suggestion.line
        nothing = f"{self.keys:,} {verdict} on {self.hop}: nothing is written, because the remedy is `report`"
        if line is None:
            return [f"{nothing}. No remedy is suggested: {does}"]
        waits = "; it would wait for a person" if self.needs_approval and not self.refused_as_a_whole else ""
        among = f" for the first {self.drafted:,} of them" if self.drafted < self.keys else ""
        would = f"`{line}` {does}: {counted(self.actions, 'action')} at most{among}{waits}"
        return [
            nothing,
            *[would] * bool(self.actions or not self.refused),
            *self._refusals(line),
            *([f"Such a plan would be refused as a whole: {self.refused_as_a_whole}"] * bool(self.refused_as_a_whole)),
            f"To switch it on, write `compensation: {{{line}}}` on hop {self.hop}, or add it to what the hop has there",
        ]

    def _refusals(self, line: str) -> list[str]:
        """Return how many findings it would leave alone, by the most frequent reasons."""
        ordered = sorted(self.refused.items(), key=lambda item: (-item[1], item[0]))
        told = [
            f"`{line}` would leave {counted(count, 'key')} alone: {reason}" for reason, count in ordered[:_REASONS_MOST]
        ]
        more = len(ordered) - len(told)
        return [*told, counted(more, "more reason")] if more else told


def read_unanswered(journal: PgConnection, pipeline: Pipeline, window: Window) -> list[Unanswered]:
    """Return what is open in a revision and only reported, by hop and verdict."""
    stages = (window_results.RECONCILED, window_results.VERIFIED)
    results = {hop: one for stage in stages for hop, one in window_results.results(journal, window, stage).items()}
    counts = {hop: result.counts for hop, result in results.items()}
    return unanswered(pipeline, window_results.open_findings(journal, window, VERDICTS, _DRAFTED_MOST), counts)


def unanswered(pipeline: Pipeline, findings: Sequence[Finding], counts: Mapping[str, HopCounts]) -> list[Unanswered]:
    """Return what is only reported, in the order of hops and verdicts. `findings` are open ones, of each hop and
    verdict maybe only the first; `counts` are those of each hop."""
    hops = {hop.name: (number, hop) for number, hop in enumerate(pipeline.hops)}

    def place(finding: Finding) -> tuple[int, int]:
        return hops[finding.hop][0], VERDICTS.index(finding.verdict.value)

    reported = [finding for finding in findings if finding.hop in hops and _is_reported(hops[finding.hop][1], finding)]
    return [
        _answer(pipeline, pipeline.hops[number], list(found), counts)
        for (number, _), found in groupby(sorted(reported, key=place), key=place)
    ]


def _is_reported(hop: Hop, finding: Finding) -> bool:
    return finding.verdict.value in VERDICTS and remedy_of(hop.remedies, finding.verdict) is Remedy.REPORT


def _answer(pipeline: Pipeline, hop: Hop, findings: Sequence[Finding], counts: Mapping[str, HopCounts]) -> Unanswered:
    """Draft the plan that the suggested remedy would make of these findings alone."""
    verdict, counted_keys = findings[0].verdict.value, counts.get(hop.name, HopCounts())
    suggestion = suggest(pipeline, hop, verdict)
    found = Unanswered(
        hop=hop.name,
        keys=max(len(findings), getattr(counted_keys, verdict)),
        suggestion=suggestion,
        drafted=len(findings),
    )
    if suggestion.remedy is None:
        return found
    switched = replace(hop, remedies=replace(hop.remedies, **{verdict: suggestion.remedy}))
    hops = tuple(switched if one.name == hop.name else one for one in pipeline.hops)
    window_keys = max((one.source_keys for one in counts.values()), default=0)
    draft = draft_plan(replace(pipeline, hops=hops), findings, window_keys=window_keys)
    return replace(
        found,
        actions=len(draft.drafts),
        refused=Counter(refusal.reason for refusal in draft.refusals),
        refused_as_a_whole=draft.refused_as_a_whole,
        needs_approval=draft.needs_approval,
    )
