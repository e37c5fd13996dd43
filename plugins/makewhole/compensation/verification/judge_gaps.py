"""Judge the gaps of a window anew by reading their keys again from the real systems.

A finding is *repaired* when every store downstream holds its key once, with the source's value, and the topic holds a
committed copy. A duplicate in a topic cannot be taken out of a log: it is *contained* when every store downstream that
takes the key holds it once all the same. An unexpected row that the source has by now is not unexpected any more. Where
copies are taken back by an event, the finding is *reversed* when there is a committed reversal for each of them.
A missing key
that the stores name as deleted on purpose is *erased*. Whatever cannot be proven stays *open*. Consumers need time to
load what was redelivered, so the stores are read again until the deadline.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from makewhole.compensation.freezing.original_records import WindowRecords
from makewhole.compensation.freezing.sources import Sources
from makewhole.compensation.planning.remedy_of import is_reversed, is_to_repair, remedy_of
from makewhole.compensation.verification.committed_since import CopiesByKey, StartOffsets, copies_since
from makewhole.compensation.verification.downstream import stores_behind
from makewhole.compensation.verification.judge_erased import with_erased
from makewhole.compensation.verification.judge_reversals import ReversalJudge
from makewhole.compensation.verification.store_rows import read_rows
from makewhole.journal.history.record_windows import find_windows_before
from makewhole.journal.window_results import JudgedFinding
from makewhole.model.pipeline import Remedy, TablePoint, TopicPoint
from makewhole.model.reversal import NOTHING_REVERSED, PastReversals
from makewhole.model.verdict import Finding, Verdict
from makewhole.model.window import Window
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)
_PAUSE_SECONDS = 1.0


class GapJudge(Protocol):
    """Judges one finding at a time by the rows of the stores downstream. It is given all findings first."""

    def load(self, findings: Sequence[Finding]) -> None:
        """Read what the evidence of the findings does not say."""

    def judge(self, item: JudgedFinding, stores: Mapping[str, CopiesByKey]) -> JudgedFinding:
        """Return the finding with its outcome."""

    def with_compared_values(self, item: JudgedFinding, stores: Mapping[str, CopiesByKey]) -> JudgedFinding:
        """Return a finding that stays open with what the two sides hold."""


@dataclass(frozen=True, kw_only=True)
class GapContext:
    """How gaps are judged, and what the journal knows: the reversals of earlier plans, and the newest judged windows,
    newest first. `open_judge` is given the sources, and what was written to topics since compensation began.
    `is_awaited` tells whether other readers may still load what was sent."""

    open_judge: Callable[[Sources, Mapping[str, CopiesByKey]], GapJudge]
    past: PastReversals = NOTHING_REVERSED
    windows: Sequence[Window] = ()
    is_awaited: Callable[[], bool] = lambda: False


def judge_gaps_anew(
    context: WindowContext,
    findings: Sequence[JudgedFinding],
    since: StartOffsets,
    deadline_seconds: float,
    progress: Callable[[int, int], None] | None,
    known: GapContext,
) -> list[JudgedFinding]:
    """Judge every gap anew; other findings are returned as they are.

    `progress` is called with (settled, all) after each read. Raises TransientError when a system does not answer.
    """
    gaps = [item for item in findings if is_to_repair(context.pipeline, item.finding)]
    deadline = time.monotonic() + deadline_seconds
    reversals = ReversalJudge(context, known.past, since)
    taken_back = [reversals.judge(item) for item in gaps if is_reversed(context.pipeline, item.finding)]
    gaps = [item for item in gaps if not is_reversed(context.pipeline, item.finding)]
    written = _written_since(context, gaps, since)
    records = WindowRecords(context, known.windows, find=find_windows_before(context.window))
    with Sources(context.pipeline, records, context.connections) as sources:
        judge = known.open_judge(sources, written)
        judge.load([item.finding for item in gaps])
        while True:
            stores = _read_stores(context, gaps)
            judged = [*(judge.judge(item, stores) for item in gaps), *taken_back]
            settled = sum(item.outcome != "open" for item in judged)
            if progress is not None:
                progress(settled, len(judged))
            if time.monotonic() >= deadline or not (may_change(context, judged) or known.is_awaited()):
                break
            time.sleep(_PAUSE_SECONDS)
        judged = with_erased(context, [judge.with_compared_values(item, stores) for item in judged], since)
    others = [item for item in findings if not is_to_repair(context.pipeline, item.finding)]
    return [*judged, *others]


def may_change(context: WindowContext, judged: Sequence[JudgedFinding]) -> bool:
    """Tell whether a consumer may still load a key that is open: one of its findings had its record sent again."""
    sent = {item.finding.key_hash for item in judged if _is_sent(context, item)}
    return any(item.outcome == "open" and item.finding.key_hash in sent for item in judged)


def _is_sent(context: WindowContext, item: JudgedFinding) -> bool:
    hop = context.pipeline.hop(item.finding.hop)
    if item.finding.verdict not in (Verdict.MISSING, Verdict.MISMATCHED, Verdict.VANISHED):
        return False
    return remedy_of(hop.remedies, item.finding.verdict) in (Remedy.REDELIVER, Remedy.PRODUCE)


def _read_stores(context: WindowContext, gaps: Iterable[JudgedFinding]) -> dict[str, CopiesByKey]:
    """Read every row of the touched keys in every table downstream of their hops."""
    wanted: dict[str, set[str]] = {}
    for item in gaps:
        hop = context.pipeline.hop(item.finding.hop)
        target = context.pipeline.points[hop.target]
        tables = [target.name] if isinstance(target, TablePoint) else stores_behind(context.pipeline, target.name)
        for name in tables:
            wanted.setdefault(name, set()).add(item.finding.key)
    return {name: read_rows(context, name, sorted(keys)) for name, keys in wanted.items()}


def _written_since(
    context: WindowContext, gaps: Sequence[JudgedFinding], since: StartOffsets
) -> dict[str, CopiesByKey]:
    """Read the committed records that were appended since compensation began: of missing keys to the topic that lacked
    them, of unexpected ones to the topic that their hop starts from."""
    wanted: dict[str, set[str]] = {}
    for item in gaps:
        hop = context.pipeline.hop(item.finding.hop)
        if isinstance(context.pipeline.points[hop.target], TopicPoint):
            keys = wanted.setdefault(hop.target, set())
            if item.finding.verdict is Verdict.MISSING:
                keys.add(item.finding.key)
        elif item.finding.verdict is Verdict.UNEXPECTED and isinstance(context.pipeline.points[hop.source], TopicPoint):
            wanted.setdefault(hop.source, set()).add(item.finding.key)
    return {name: copies_since(context, name, keys, since) for name, keys in wanted.items()}
