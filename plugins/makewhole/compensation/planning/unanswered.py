"""Say of the findings that are only reported what would answer them: the remedy, its actions, and the line to write.

What it would do is drafted as a plan would draft it, limits and approval included, and thrown away. A plan refuses more
when it is frozen, since it looks at the data then: the number of actions is the most that there would be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from makewhole.compensation.planning.draft import draft_plan
from makewhole.compensation.planning.remedy_of import remedy_of
from makewhole.config.defaults.suggested import Suggestion, suggest
from makewhole.config.remedies import VERDICTS
from makewhole.journal import window_results
from makewhole.model.pipeline import Hop, Pipeline, Remedy
from makewhole.model.text import counted
from makewhole.model.verdict import Finding
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_REASONS_MOST = 3


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """The open findings of one verdict on one hop whose remedy is `report`, and what would answer them.

    `actions` is the most that a plan of these alone would do. `refused` counts findings by the reason why they would be
    left alone; `refused_as_a_whole` is the limit that it would exceed, if any.
    """

    hop: str
    keys: int
    suggestion: Suggestion
    actions: int = 0
    refused: Mapping[str, int]
    refused_as_a_whole: str | None = None
    needs_approval: bool = False

    def sentences(self) -> list[str]:
        """Return what is not done and why, what would be done, and how it is switched on."""
        verdict, does, line = self.suggestion.verdict, self.suggestion.does, self.suggestion.line
        nothing = f"{self.keys:,} {verdict} on {self.hop}: nothing is written, because the remedy is `report`"
        if line is None:
            return [f"{nothing}. No remedy is suggested: {does}"]
        waits = "; it would wait for a person" if self.needs_approval and not self.refused_as_a_whole else ""
        would = f"`{line}` {does}: {counted(self.actions, 'action')} at most{waits}"
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
    judged = window_results.findings(journal, window)
    results = window_results.results(journal, window)
    return unanswered(
        pipeline,
        [item.finding for item in judged if item.outcome == "open"],
        window_keys=max((result.counts.source_keys for result in results.values()), default=0),
    )


def unanswered(pipeline: Pipeline, findings: Sequence[Finding], *, window_keys: int) -> list[Unanswered]:
    """Return what is only reported, in the order of hops and verdicts. `window_keys`: distinct keys judged."""
    hops = {hop.name: (number, hop) for number, hop in enumerate(pipeline.hops)}

    def place(finding: Finding) -> tuple[int, int]:
        return hops[finding.hop][0], VERDICTS.index(finding.verdict.value)

    reported = [finding for finding in findings if finding.hop in hops and _is_reported(hops[finding.hop][1], finding)]
    return [
        _answer(pipeline, pipeline.hops[number], list(found), window_keys)
        for (number, _), found in groupby(sorted(reported, key=place), key=place)
    ]


def _is_reported(hop: Hop, finding: Finding) -> bool:
    return finding.verdict.value in VERDICTS and remedy_of(hop.remedies, finding.verdict) is Remedy.REPORT


def _answer(pipeline: Pipeline, hop: Hop, findings: Sequence[Finding], window_keys: int) -> Unanswered:
    """Draft the plan that the suggested remedy would make of these findings alone."""
    verdict = findings[0].verdict.value
    suggestion = suggest(pipeline, hop, verdict)
    if suggestion.remedy is None:
        return Unanswered(hop=hop.name, keys=len(findings), suggestion=suggestion, refused={})
    switched = replace(hop, remedies=replace(hop.remedies, **{verdict: suggestion.remedy}))
    hops = tuple(switched if one.name == hop.name else one for one in pipeline.hops)
    draft = draft_plan(replace(pipeline, hops=hops), findings, window_keys=window_keys)
    return Unanswered(
        hop=hop.name,
        keys=len(findings),
        suggestion=suggestion,
        actions=len(draft.drafts),
        refused=Counter(refusal.reason for refusal in draft.refusals),
        refused_as_a_whole=draft.refused_as_a_whole,
        needs_approval=draft.needs_approval,
    )
