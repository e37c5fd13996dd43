"""Report what would answer the findings that are only reported: the remedy, its actions, and the line to write.

What it would do is drafted as a plan would draft it, limits and approval included, and thrown away. A plan refuses more
when it is frozen, since it looks at the data then: the number of actions is the most that there would be.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from makewhole.compensation.planning.draft import draft_plan
from makewhole.config.hops.remedies import VERDICTS
from makewhole.config.hops.suggested import Suggestion, suggest
from makewhole.journal.findings import window_findings
from makewhole.journal.results import hop_results
from makewhole.model.connection import Connection
from makewhole.model.errors import MakewholeError
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.refusal import Refusal
from makewhole.model.text import counted
from makewhole.model.verdict import Finding
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from makewhole.window.opening.new_rows import unaccounted_if_written

logger = logging.getLogger(__name__)

_REASONS_MOST = 3
_DRAFTED_MOST = 20_000
"""Findings of a hop and verdict that are drafted. A plan of more is a person's decision anyway, and is drafted then."""


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """The keys of one verdict on one hop whose remedy is `report`, and what would answer them.

    `drafted` is how many of them were looked at, which is all unless there are very many. `actions` is the most that a
    plan of these alone would do. `refused` counts findings by why they would be left alone;
    `refused_as_a_whole` is the limit that the plan would exceed, if any. `more_lines`: what else the file has to say
    before a window is opened with the remedy, such as the columns of a new row.
    """

    hop: str
    keys: int
    suggestion: Suggestion
    drafted: int
    actions: int = 0
    refused: Mapping[Refusal, int] = field(default_factory=dict)
    refused_as_a_whole: str | None = None
    needs_approval: bool = False
    more_lines: Sequence[str] = ()

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
            *self.more_lines,
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
        ordered = sorted(self.refused.items(), key=lambda item: (-item[1], str(item[0])))
        sentences = [
            f"`{line}` would leave {counted(count, 'key')} alone: {refusal}"
            for refusal, count in ordered[:_REASONS_MOST]
        ]
        more = len(ordered) - len(sentences)
        return [*sentences, counted(more, "more reason")] if more else sentences


def read_unanswered(
    journal: PgConnection, pipeline: Pipeline, window: Window, connections: Mapping[str, Connection] | None = None
) -> list[Unanswered]:
    """Return what is open in a revision and only reported, by hop and verdict. `connections` of the pipeline, by which
    its tables are asked for the columns of new rows; None: they cannot be asked here."""
    results = hop_results.results(journal, window)
    kinds = unanswered(
        pipeline,
        window_findings.open_findings(journal, window, VERDICTS, _DRAFTED_MOST),
        window_findings.count_open(journal, window),
        window_keys=hop_results.most_window_keys(pipeline, results),
    )
    return [replace(kind, more_lines=_lines_of_new_rows(kind, pipeline, connections)) for kind in kinds]


def _lines_of_new_rows(
    kind: Unanswered, pipeline: Pipeline, connections: Mapping[str, Connection] | None
) -> tuple[str, ...]:
    """Return what the file has to say of the columns of a new row before the remedy writes one."""
    if kind.suggestion.verdict != "missing" or kind.suggestion.remedy is not Remedy.UPSERT:
        return ()
    hop = next(hop for hop in pipeline.hops if hop.name == kind.hop)
    try:
        problems = None if connections is None else unaccounted_if_written(pipeline, hop, connections)
    except MakewholeError as error:
        logger.warning("the columns of %s cannot be read: %s", hop.target, error)
        problems = None
    if problems is None:
        return (
            f"A new row in {hop.target} is written whole: `makewhole check --tables` then names the columns for which "
            "`write` or `leave` of the hop is asked",
        )
    return tuple(f"With it, {problem.found}. {problem.remedy}" for problem in problems)


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
    kinds = []
    for hop, verdict in product(pipeline.hops, VERDICTS):
        place = hop.name, verdict
        if getattr(hop.remedies, verdict) is Remedy.REPORT and open_keys.get(place):
            kind = Unanswered(
                hop=hop.name,
                keys=open_keys[place],
                suggestion=suggest(pipeline, hop, verdict),
                drafted=len(by_place[place]),
            )
            kinds.append(_drafted(kind, pipeline, by_place[place], window_keys))
    return kinds


def _drafted(kind: Unanswered, pipeline: Pipeline, findings: Sequence[Finding], window_keys: int) -> Unanswered:
    """Draft the plan that the suggested remedy would make of these findings alone."""
    if kind.suggestion.remedy is None:
        return kind
    chosen = {kind.suggestion.verdict: kind.suggestion.remedy}
    hops = tuple(
        replace(hop, remedies=replace(hop.remedies, **chosen)) if hop.name == kind.hop else hop for hop in pipeline.hops
    )
    draft = draft_plan(replace(pipeline, hops=hops), findings, window_keys=window_keys)
    return replace(
        kind,
        actions=len(draft.drafts),
        refused=Counter(finding.refusal for finding in draft.refusals),
        refused_as_a_whole=draft.refused_as_a_whole,
        needs_approval=draft.needs_approval,
    )
