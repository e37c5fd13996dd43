"""Judge the gaps of a window again by reading their keys again from the real systems.

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
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from makewhole.compensation.count_log import CountLog
from makewhole.compensation.planning.to_repair import is_reversed, is_to_repair
from makewhole.compensation.sources.original_records import WindowRecords
from makewhole.compensation.sources.sources import Sources
from makewhole.compensation.verification.committed_since import CopiesByKey, StartOffsets, copies_since
from makewhole.compensation.verification.downstream import stores_behind
from makewhole.compensation.verification.judge_erased import ErasedJudge
from makewhole.compensation.verification.judge_reversals import ReversalJudge
from makewhole.compensation.verification.store_rows import read_rows
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.history.record_windows import archive_of, find_windows_before
from makewhole.journal.retention.removable import FORGOTTEN
from makewhole.lake.local_files import BatchFile
from makewhole.model.hops import Remedy
from makewhole.model.points import can_look_up, has_log
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


JudgedBatches = Iterable[Sequence[JudgedFinding]]
"""Findings with their outcomes, those of a key together; read as often as the stores are."""


@dataclass(frozen=True, kw_only=True)
class GapContext:
    """How gaps are judged, and what the journal knows: the reversals that plans wrote of some keys (by their hashes),
    and the newest judged windows, newest first. `open_judge` is given the sources, and what was written to topics since
    compensation began. `is_awaited` returns whether other readers may still load what was sent."""

    open_judge: Callable[[Sources, Mapping[str, CopiesByKey]], GapJudge]
    past: Callable[[set[str]], PastReversals] = lambda _: NOTHING_REVERSED
    windows: Sequence[Window] = ()
    is_awaited: Callable[[], bool] = lambda: False


def judge_gaps_again(
    context: WindowContext,
    findings: JudgedBatches,
    since: StartOffsets,
    deadline_seconds: float,
    progress: Callable[[int, int], None] | None,
    known: GapContext,
) -> BatchFile[JudgedFinding]:
    """Judge every gap again, batch by batch; other findings are returned as they are. Close what is returned.

    `progress` is called with (settled, all) after each read. Raises TransientError when a system does not answer.
    """
    deadline = time.monotonic() + deadline_seconds
    with ExitStack() as stack:
        records = WindowRecords(context, known.windows, find=find_windows_before(context.window), archive_of=archive_of)
        sources = stack.enter_context(Sources(context.pipeline, records, context.connections))
        written = _written_since(context, findings, since, stack)
        batches = _BatchJudge(context, sources, known, ReversalJudge(context, since), written)
        while True:
            started = time.monotonic()  # a pass that began before the deadline read some stores before it
            judged = batches.judge_all(findings, progress)
            if started >= deadline or not (batches.may_change or known.is_awaited()):
                break
            judged.close()
            time.sleep(_PAUSE_SECONDS)
        with judged:
            return _with_erased(context, judged, since)


def _with_erased(
    context: WindowContext, judged: BatchFile[JudgedFinding], since: StartOffsets
) -> BatchFile[JudgedFinding]:
    judge = ErasedJudge(context, judged, since)
    with ExitStack() as stack:
        outcomes = stack.enter_context(BatchFile[JudgedFinding]())
        for batch in judged:
            gaps, others = _split(context, batch)
            outcomes.add([*judge.with_erased(gaps), *others])
        stack.pop_all()
        return outcomes


def _split(context: WindowContext, batch: Sequence[JudgedFinding]) -> tuple[list[JudgedFinding], list[JudgedFinding]]:
    """Return the findings that are to be repaired, and the others, which stay as they are: those, too, whose keys were
    removed from the journal, since there is nothing to look for."""
    gaps = [item for item in batch if is_to_repair(context.pipeline, item.finding) and not _is_forgotten(item)]
    forgotten = [_as_stored(item) for item in batch if _is_forgotten(item)]
    others = [item for item in batch if not is_to_repair(context.pipeline, item.finding) and not _is_forgotten(item)]
    return gaps, [*others, *forgotten]


def _is_forgotten(item: JudgedFinding) -> bool:
    return item.finding.key == FORGOTTEN


def _as_stored(item: JudgedFinding) -> JudgedFinding:
    """Return a finding with an outcome of its own: that it is accepted is a person's word beside it."""
    return item if item.acceptance is None else replace(item, outcome="open", reason=None)


class _BatchJudge:
    """Judges all findings by one read of the stores. `may_change`: a consumer may still load one that is open."""

    def __init__(
        self,
        context: WindowContext,
        sources: Sources,
        known: GapContext,
        reversals: ReversalJudge,
        written: Mapping[str, CopiesByKey],
    ) -> None:
        self._context, self._sources, self._known = context, sources, known
        self._reversals, self._written = reversals, written
        self.may_change = False

    def judge_all(
        self, findings: JudgedBatches, progress: Callable[[int, int], None] | None
    ) -> BatchFile[JudgedFinding]:
        """Return the findings with their outcomes of now."""
        self.may_change, settled, gaps = False, 0, 0
        seen = CountLog(logger, "%d findings looked at again")
        with ExitStack() as stack:
            outcomes = stack.enter_context(BatchFile[JudgedFinding]())
            for batch in findings:
                to_repair, others = _split(self._context, batch)
                judged = self._judged(to_repair)
                gaps, settled = gaps + len(judged), settled + sum(item.outcome != "open" for item in judged)
                self.may_change = self.may_change or may_change(self._context, judged)
                outcomes.add([*judged, *others])
                seen.add(len(batch))
            if progress is not None:
                progress(settled, gaps)
            stack.pop_all()
            return outcomes

    def _judged(self, gaps: Sequence[JudgedFinding]) -> list[JudgedFinding]:
        """Judge some gaps by what the stores and topics hold now."""
        pipeline = self._context.pipeline
        reversible = [item for item in gaps if is_reversed(pipeline, item.finding)]
        past = self._known.past({item.finding.key_hash for item in reversible})
        taken_back = [self._reversals.judge(item, past) for item in reversible]
        gaps = [item for item in gaps if not is_reversed(pipeline, item.finding)]
        judge = self._known.open_judge(self._sources, self._written)
        judge.load([item.finding for item in gaps])
        stores = _read_stores(self._context, gaps)
        judged = [judge.with_compared_values(judge.judge(item, stores), stores) for item in gaps]
        return [*judged, *taken_back]


def may_change(context: WindowContext, judged: Sequence[JudgedFinding]) -> bool:
    """Return whether a consumer may still load a key that is open: one of its findings had its record sent again."""
    sent = {item.finding.key_hash for item in judged if _is_sent(context, item)}
    return any(item.outcome == "open" and item.finding.key_hash in sent for item in judged)


def _is_sent(context: WindowContext, item: JudgedFinding) -> bool:
    hop = context.pipeline.hop(item.finding.hop)
    if item.acceptance is not None or item.finding.verdict not in (
        Verdict.MISSING,
        Verdict.MISMATCHED,
        Verdict.VANISHED,
    ):
        return False
    return hop.remedies.answer_to(item.finding.verdict) in (Remedy.REDELIVER, Remedy.PRODUCE)


def _read_stores(context: WindowContext, gaps: Iterable[JudgedFinding]) -> dict[str, CopiesByKey]:
    """Read every row of the touched keys in every table downstream of their hops."""
    wanted: dict[str, set[str]] = {}
    for item in gaps:
        hop = context.pipeline.hop(item.finding.hop)
        target = context.pipeline.points[hop.target]
        tables = [target.name] if can_look_up(target) else stores_behind(context.pipeline, target.name)
        for name in tables:
            wanted.setdefault(name, set()).add(item.finding.key)
    return {name: read_rows(context, name, sorted(keys)) for name, keys in wanted.items()}


def _written_since(
    context: WindowContext, findings: JudgedBatches, since: StartOffsets, stack: ExitStack
) -> dict[str, CopiesByKey]:
    """Read the committed records that were appended since compensation began, of each topic once; they are kept until
    the stack is closed."""
    wanted: dict[str, set[str]] = {}
    for batch in findings:
        gaps, _ = _split(context, batch)
        for item in gaps:
            if not is_reversed(context.pipeline, item.finding):
                _add_wanted(context, item.finding, wanted)
    return {name: stack.enter_context(copies_since(context, name, keys, since)) for name, keys in wanted.items()}


def _add_wanted(context: WindowContext, finding: Finding, wanted: dict[str, set[str]]) -> None:
    """Add the key to those of the topic whose new records are asked for: of a missing key the topic that lacked it, of
    an unexpected one the topic that its hop starts from."""
    hop = context.pipeline.hop(finding.hop)
    if has_log(context.pipeline.points[hop.target]):
        keys = wanted.setdefault(hop.target, set())
        if finding.verdict is Verdict.MISSING:
            keys.add(finding.key)
    elif finding.verdict is Verdict.UNEXPECTED and has_log(context.pipeline.points[hop.source]):
        wanted.setdefault(hop.source, set()).add(finding.key)
