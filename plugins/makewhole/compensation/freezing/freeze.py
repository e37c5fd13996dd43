"""Freeze the actions of findings: fetch what they write, then commit plan, actions and payloads to the journal.

Findings, drafts and payloads are never all in memory: a million of them are planned batch by batch.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from makewhole.compensation.count_log import CountLog
from makewhole.compensation.freezing.batches.action_file import SHOWN
from makewhole.compensation.freezing.batches.draft_file import DraftFile
from makewhole.compensation.freezing.batches.ordered_items import ItemsInOrder
from makewhole.compensation.freezing.chunks import PlannedPayload
from makewhole.compensation.freezing.fetch import Fetcher, add_originals
from makewhole.compensation.freezing.write_plan import PlanFiles, PlanFrame, put_files, put_refused
from makewhole.compensation.planning.action_draft import ActionDraft, RefusedFinding
from makewhole.compensation.planning.disputed import OpenElsewhere
from makewhole.compensation.planning.draft import draft_batch, over_limits
from makewhole.compensation.planning.redelivery import Readers, read_readers
from makewhole.compensation.planning.to_repair import is_reversed, keys_to_reverse
from makewhole.compensation.sources.sources import PayloadSource, Sources, TombstoneSource
from makewhole.journal import acceptances, plan_progress, written_keys
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.retention.erasures import erasures
from makewhole.journal.written_keys import reversals_of
from makewhole.lake.record_file import WantedPositions
from makewhole.model.actions import Action
from makewhole.model.connection import Connection
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import Plan
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.retention import Erasure, erased_among
from makewhole.model.reversal import PastReversals
from makewhole.model.verdict import REPAIRABLE, Finding, Verdict
from makewhole.model.window import Window
from makewhole.sql import PgConnection

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FreezeRequest:
    """A window and its findings to plan for: those of the journal, or some that are given. `window_keys`: distinct keys
    that were judged, for the share's limit. `left_out`: number of findings that a plan needs, and that the journal
    did not take: with any there is no plan. `look_at` is given every finding once, some at a time, as they are read."""

    pipeline: Pipeline
    window: Window
    findings: StoredFindings | Sequence[Finding]
    window_keys: int
    left_out: int = 0
    look_at: Callable[[Sequence[Finding]], None] = lambda _: None

    def batches(self, journal: PgConnection) -> Iterator[Sequence[JudgedFinding]]:
        """Yield the findings, those of a key together; those that are accepted as such."""
        if isinstance(self.findings, StoredFindings):
            yield from self.findings.batches(journal)
        elif self.findings:
            yield [JudgedFinding(finding=finding) for finding in self.findings]

    def kinds(self, journal: PgConnection) -> set[tuple[str, Verdict]]:
        """Return the hops of the findings, each with its verdicts."""
        if isinstance(self.findings, StoredFindings):
            return self.findings.kinds(journal)
        return {(finding.hop, finding.verdict) for finding in self.findings}


@dataclass(frozen=True, kw_only=True)
class FreezeSources:
    """The sources and the storage of payloads. `storage`: root path or URI; `connections` by id; `tombstones`
    where stores name erased keys by them."""

    storage: str
    records: PayloadSource
    connections: Mapping[str, Connection]
    tombstones: TombstoneSource | None = None


@dataclass(frozen=True, kw_only=True)
class FreezeResult:
    """The plan; None: nothing can be done. `actions` are the first of it, `refusals` the first of this call: all are in
    the journal, and in the findings."""

    plan: Plan | None
    actions: tuple[Action, ...] = ()
    refusals: tuple[RefusedFinding, ...] = ()


class RefusedFindings:
    """The refusals of one freeze: each is written to its finding; the first are kept."""

    def __init__(self, journal: PgConnection, window: Window) -> None:
        self._journal, self._window = journal, window
        self.first: list[RefusedFinding] = []

    def add(self, refusals: Sequence[RefusedFinding]) -> None:
        """Write these to their findings, in the caller's transaction."""
        self.first += refusals[: SHOWN - len(self.first)]
        window = (self._window.pipeline, self._window.number, self._window.revision)
        refused = [(finding.hop, finding.key_hash, finding.refusal) for finding in refusals]
        plan_progress.refuse_findings(self._journal, window, refused)


def freeze_findings(journal: PgConnection, request: FreezeRequest, sources: FreezeSources) -> FreezeResult:
    """Draft, fetch and freeze the plan of a window, in the caller's transaction."""
    with ExitStack() as stack:
        freeze = _Freeze(journal, request, sources, stack)
        plan, actions = freeze.run()
        return FreezeResult(plan=plan, actions=actions, refusals=tuple(freeze.refused.first))


class _Freeze:
    """One freeze, from the findings to the plan."""

    def __init__(self, journal: PgConnection, request: FreezeRequest, sources: FreezeSources, stack: ExitStack) -> None:
        self._journal, self._request, self._sources, self._stack = journal, request, sources, stack
        self._frame = PlanFrame(window=request.window, storage=sources.storage, limits=request.pipeline.limits)
        self._drafts, self._originals = stack.enter_context(DraftFile()), WantedPositions()
        self._readers: Readers | None = None
        self.refused = RefusedFindings(journal, request.window)

    def run(self) -> tuple[Plan | None, tuple[Action, ...]]:
        if self._request.left_out:
            return put_refused(self._journal, self._frame, (), _left_out_reason(self._request.left_out))
        over = self._draft()
        if over is not None:
            return self._refuse_plan(over)
        with PlanFiles(self._request.pipeline.limits, self._fetched()) as files:
            if not len(files.actions):
                return None, ()
            over = self._over_limits(len(files.actions), files.actions.keys)
            if over is not None:  # the number of rows to reverse is known only after they are read
                return self._refuse_plan(over)
            needs_approval = len(files.actions) > self._request.pipeline.approval.above_actions
            plan = put_files(self._journal, self._frame, files, needs_approval=needs_approval)
            return plan, tuple(files.actions.first)

    def _draft(self) -> str | None:
        """Draft all findings; return the limit that their actions exceed, if any."""
        actions = keys = 0
        read = CountLog(logger, "%d findings read for the plan")
        on_request = erasures(self._journal, self._request.window.pipeline)
        for judged in self._request.batches(self._journal):
            findings = [item.finding for item in judged]
            self._request.look_at(findings)
            standing, written = refuse_written(self._journal, self._request.window, findings)
            self.refused.add(written)
            past = self._past({*keys_to_reverse(self._request.pipeline, standing)})
            accepted = {(item.finding.hop, item.finding.key_hash) for item in judged if item.acceptance is not None}
            elsewhere = open_elsewhere(self._journal, self._request.window, standing)
            erased = _erased(on_request, standing)
            batch = draft_batch(
                self._request.pipeline,
                standing,
                past,
                self._known_readers(),
                elsewhere,
                accepted=accepted,
                erased=erased,
            )
            self.refused.add(batch.refusals)
            self._drafts.add(batch.drafts)
            add_originals(self._request.pipeline, (draft for _, draft in batch.drafts), self._originals)
            actions, keys = actions + batch.actions, keys + batch.keys
            read.add(len(findings))
        return self._over_limits(actions, keys)

    def _fetched(self) -> Iterator[PlannedPayload]:
        """Yield the actions that can be done, in order, each with what it writes."""
        opened = self._stack.enter_context(
            Sources(self._request.pipeline, self._sources.records, self._sources.connections, self._sources.tombstones)
        )
        opened.load(self._originals.by_point())
        fetcher = Fetcher(self._request.window, opened)
        fetched = CountLog(logger, f"%d of {len(self._drafts)} actions have what they write")
        with ItemsInOrder() as ordered:
            for drafts in self._drafts.slices():
                items, refusals = fetcher.fetch(drafts, self._past(self._reversed_keys(drafts)))
                self.refused.add(refusals)
                fetched.add(len(drafts))
                yield from ordered.add(items, more_may_go_first=any(draft.aside for draft in drafts))
            yield from ordered.rest()

    def _reversed_keys(self, drafts: Sequence[ActionDraft]) -> set[str]:
        return {draft.finding.key_hash for draft in drafts if is_reversed(self._request.pipeline, draft.finding)}

    def _past(self, key_hashes: set[str]) -> PastReversals:
        return reversals_of(self._journal, self._request.pipeline, self._request.window.number, key_hashes)

    def _known_readers(self) -> Readers:
        if self._readers is None:
            kinds = self._request.kinds(self._journal)
            self._readers = read_readers(self._request.pipeline, self._sources.connections, kinds)
        return self._readers

    def _over_limits(self, actions: int, keys: int) -> str | None:
        limits = self._request.pipeline.limits
        return over_limits(limits, actions=actions, keys=keys, window_keys=self._request.window_keys)

    def _refuse_plan(self, over: str) -> tuple[Plan, tuple[Action, ...]]:
        return put_refused(self._journal, self._frame, (draft.action for draft in self._drafts), over)


def _left_out_reason(left_out: int) -> str:
    return (
        f"{left_out:,} findings that a plan needs are in the files of the results alone, because the journal "
        "keeps no more of a window: a plan would be of a part. Find out what broke, let the loader load again or "
        "restore the store, then run this window again: a plan is made of what is left"
    )


def open_elsewhere(journal: PgConnection, window: Window, findings: Sequence[Finding]) -> OpenElsewhere:
    """Return what is open in other windows of the keys that may be repaired, as far as it disputes a value, and what a
    person has accepted there."""
    hashes = sorted({finding.key_hash for finding in findings if finding.verdict in REPAIRABLE})
    return OpenElsewhere(
        findings=window_findings.open_disputes(journal, window, hashes),
        accepted=acceptances.accepted_elsewhere(journal, window, hashes),
        ranges=window.ranges,
    )


def _erased(on_request: Sequence[Erasure], findings: Sequence[Finding]) -> dict[tuple[str, str], str]:
    """Return what says that keys were erased on request, by hop and key hash."""
    by_hop: dict[str, list[str]] = {}
    for finding in findings if on_request else ():
        by_hop.setdefault(finding.hop, []).append(finding.key_hash)
    return {
        (hop, key_hash): said
        for hop, hashes in by_hop.items()
        for key_hash, said in erased_among((entry for entry in on_request if entry.is_of_hop(hop)), hashes).items()
    }


def refuse_written(
    journal: PgConnection, window: Window, findings: Sequence[Finding]
) -> tuple[list[Finding], list[RefusedFinding]]:
    """Return the findings that still stand, and a refusal for each whose key was written after it was judged."""
    gaps = [(finding.hop, finding.key_hash) for finding in findings if finding.verdict in REPAIRABLE]
    written = written_keys.keys_written_since(journal, (window.pipeline, window.number, window.revision), gaps)
    refusals = [
        RefusedFinding(hop=hop, key_hash=key_hash, refusal=_written_since(plan_id, is_proven=is_proven))
        for (hop, key_hash), (plan_id, is_proven) in written.items()
    ]
    return [finding for finding in findings if (finding.hop, finding.key_hash) not in written], refusals


def _written_since(plan_id: str, *, is_proven: bool) -> Refusal:
    verb = "wrote" if is_proven else "may have written"
    return Refusal(RefusalCode.STALE, f"plan {plan_id} {verb} this key after it was judged; run the window again")
