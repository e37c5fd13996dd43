"""Say of the findings that are only reported what would answer them: the remedy, its actions, and the line to write.

What it would do is drafted as a plan would draft it, limits and approval included, and thrown away. A plan refuses more
when it is frozen, since it looks at the data then: the number of actions is the most that there would be.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from makewhole.compensation.planning.draft import draft_plan
from makewhole.config.defaults.suggested import Suggestion, suggest
from makewhole.config.hops.remedies import VERDICTS
from makewhole.journal.findings import window_findings
from makewhole.journal.results import hop_results
from makewhole.model.pipeline import Pipeline, Remedy
from makewhole.model.text import counted
from makewhole.model.verdict import Finding
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
        would = [f"`{line}` {does}{self._extent()}"] if self.actions or not self.refused else []
        return [
            nothing,
            *would,
            *self._refusals(line),
            *([f"Such a plan would be refused as a whole: {self.refused_as_a_whole}"] * bool(self.refused_as_a_whole)),
            f"To switch it on, write `compensation: {{{line}}}` on hop {self.hop}, or add it to what the hop has there",
        ]

    def _extent(self) -> str:
        """Return how much it would do, as far as that was looked at."""
        if not self.drafted:
            return ""
        among = f" for the first {self.drafted:,} of them" if self.drafted < self.keys else ""
        waits = "; it would wait for a person" if self.needs_approval and not self.refused_as_a_whole else ""
        return f": {counted(self.actions, 'action')} at most{among}{waits}"

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
    results = hop_results.results(journal, window)
    return unanswered(
        pipeline,
        window_findings.open_findings(journal, window, VERDICTS, _DRAFTED_MOST),
        window_findings.count_open(journal, window),
        window_keys=max((result.counts.window_keys for result in results.values()), default=0),
    )


def unanswered(
    pipeline: Pipeline, findings: Iterable[Finding], open_keys: Mapping[tuple[str, str], int], *, window_keys: int
) -> list[Unanswered]:
    """Return what is only reported, in the order of hops and verdicts.

    `open_keys` counts what is open by hop and verdict, `findings` has these or the first of them; `window_keys` are the
    distinct keys judged.
    """
    by_place: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_place[finding.hop, finding.verdict.value].append(finding)
    found = []
    for hop, verdict in product(pipeline.hops, VERDICTS):
        place = hop.name, verdict
        if getattr(hop.remedies, verdict) is Remedy.REPORT and open_keys.get(place):
            one = Unanswered(
                hop=hop.name,
                keys=open_keys[place],
                suggestion=suggest(pipeline, hop, verdict),
                drafted=len(by_place[place]),
            )
            found.append(_drafted(one, pipeline, by_place[place], window_keys))
    return found


def _drafted(one: Unanswered, pipeline: Pipeline, findings: Sequence[Finding], window_keys: int) -> Unanswered:
    """Draft the plan that the suggested remedy would make of these findings alone."""
    if one.suggestion.remedy is None:
        return one
    chosen = {one.suggestion.verdict: one.suggestion.remedy}
    hops = tuple(
        replace(hop, remedies=replace(hop.remedies, **chosen)) if hop.name == one.hop else hop for hop in pipeline.hops
    )
    draft = draft_plan(replace(pipeline, hops=hops), findings, window_keys=window_keys)
    return replace(
        one,
        actions=len(draft.drafts),
        refused=Counter(refusal.reason for refusal in draft.refusals),
        refused_as_a_whole=draft.refused_as_a_whole,
        needs_approval=draft.needs_approval,
    )
