"""Look at the other hops of the places that a plan wrote to: a repair for one hop must break none of them.

What is found is a finding of its own on that hop. Reconcile cannot see it: it judged the window before the repair.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice

from makewhole.compensation.verification.agreement import EndCopy, broken_verdict
from makewhole.compensation.verification.matched_before import MatchedBefore
from makewhole.compensation.verification.touched_hops import TouchedEnd, TouchedHop, touched_hops
from makewhole.compensation.verification.verified_results import CAUSED_BY, is_found_by_verify
from makewhole.compensation.verification.with_findings import with_findings
from makewhole.journal.findings.stored_findings import BATCH, StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.written_keys import TouchedKey, touched_ends, touched_keys
from makewhole.lake.local_files import BatchFile
from makewhole.model.closing import ClosingContext
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.masks import mask_on

CopiesAt = Callable[[Hop, str, Mapping[str, str]], Mapping[str, Sequence[EndCopy]]]
"""Reads by key hash what an end of a hop (a point) has of some keys (by their hashes)."""

_OF_ROWS = (Remedy.UPSERT, Remedy.QUARANTINE)


@dataclass(frozen=True, kw_only=True)
class KeyAtHop:
    """A key that a plan touched, on another hop of the place. `finding`: what verify found there before. `is_matched`:
    the window judged it as matched there; otherwise the hop did not have it in this window."""

    touched: TouchedKey
    at: TouchedHop
    finding: JudgedFinding | None = None
    is_matched: bool = False


@dataclass(frozen=True, kw_only=True)
class _KeyNow:
    """Hold what is found of a key now (None: nothing), and the hash of the values that the unchanged end has."""

    key: KeyAtHop
    verdict: Verdict | None
    row_hash: int | None


class OtherHops(ClosingContext):
    """The keys that the plans of a window touched, on the hops beside those that were repaired. Close it after use."""

    def __init__(self, pipeline: Pipeline, copies_at: CopiesAt) -> None:
        """`copies_at` reads what the ends of a hop have now."""
        self._pipeline, self._copies_at = pipeline, copies_at
        self._stack = ExitStack()
        self._keys = self._stack.enter_context(BatchFile[KeyAtHop]())

    def close(self) -> None:
        """Delete what was kept of the keys."""
        self._stack.close()

    def add(self, keys: list[KeyAtHop]) -> None:
        """Keep keys that were touched, in a file."""
        self._keys.add(keys)

    def findings(self) -> Iterator[list[JudgedFinding]]:
        """Yield a finding for every key on which a hop does not agree any more, and those that were found before as
        they are now, so many at a time."""
        for batch in self._keys:
            findings = [_finding(self._pipeline, now) for now in self._judged(batch)]
            if standing := [item for item in findings if item is not None]:
                yield standing

    def is_awaited(self) -> bool:
        """Return whether what fills a topic may still send the new version of a row that was changed."""
        for batch in self._keys:
            forwarding = [key for key in batch if _may_forward(self._pipeline, key.at)]
            if any(now.verdict is not None for now in self._judged(forwarding)):
                return True
        return False

    def _judged(self, batch: Iterable[KeyAtHop]) -> Iterator[_KeyNow]:
        by_hop: dict[tuple[str, bool], list[KeyAtHop]] = {}
        for key in batch:
            by_hop.setdefault((key.at.hop.name, key.at.is_source_changed), []).append(key)
        for of_hop in by_hop.values():
            at = of_hop[0].at
            keys = {at_hop.touched.key_hash: at_hop.touched.key for at_hop in of_hop}
            source, target = (self._copies_at(at.hop, name, keys) for name in (at.hop.source, at.hop.target))
            for key in of_hop:
                yield _judged_now(key, *(end.get(key.touched.key_hash, ()) for end in (source, target)))


def _judged_now(key: KeyAtHop, source: Sequence[EndCopy], target: Sequence[EndCopy]) -> _KeyNow:
    changed, other = (source, target) if key.at.is_source_changed else (target, source)
    verdict = broken_verdict(key.at.hop.semantics, source, target, is_source_changed=key.at.is_source_changed)
    # No other remedy takes a row away: one that is not there was deleted by others.
    is_explained = bool(changed) or key.touched.remedy is Remedy.QUARANTINE
    return _KeyNow(key=key, verdict=verdict if is_explained else None, row_hash=other[-1].row_hash if other else None)


def open_other_hops(
    journal: PgConnection, context: WindowContext, copies_at: CopiesAt, results: Mapping[str, HopResult]
) -> OtherHops:
    """Read from the journal which keys the plans of a window touched; nothing where no other hop is at their places.
    `results`: of reconcile, by hop."""
    others = OtherHops(context.pipeline, copies_at)
    hops = {end: touched_hops(context.pipeline, end) for end in touched_ends(journal, context.window)}
    ends = [end for end, at_end in hops.items() if at_end]
    if ends:
        matched = MatchedBefore.of(journal, context)
        touched = chain.from_iterable(touched_keys(journal, context.window, ends))
        findings = chain.from_iterable(StoredFindings(window=context.window).batches(journal))
        of_keys = with_findings(touched, findings)
        keys = (key for of_key, judged in of_keys for key in _keys_at_hops(of_key, judged, hops))
        while batch := list(islice(keys, BATCH)):
            others.add(list(_that_agreed(batch, matched, results)))
    return others


def _keys_at_hops(
    touched: Iterable[TouchedKey],
    findings: Sequence[JudgedFinding],
    hops: Mapping[TouchedEnd, Sequence[TouchedHop]],
) -> Iterator[KeyAtHop]:
    """Yield a key on each hop that has no finding of reconcile about it: such are judged by themselves."""
    judged = {item.finding.hop for item in findings if not is_found_by_verify(item)}
    before = {item.finding.hop: item for item in findings if item.finding.cause is Cause.CHANGED_BY_REPAIR}
    seen = set[str]()
    for key in touched:
        for at in hops[key.hop, key.remedy, key.target]:
            if at.hop.name not in judged | seen:
                seen.add(at.hop.name)
                yield KeyAtHop(touched=key, at=at, finding=before.get(at.hop.name))


def _that_agreed(
    batch: Iterable[KeyAtHop], matched: MatchedBefore, results: Mapping[str, HopResult]
) -> Iterator[KeyAtHop]:
    """Yield the keys on which a repair may have broken their hop: those that were matched there, and those that it did
    not have in this window, where rows themselves were written or moved. What was sent is of the window of its record.
    """
    by_hop: dict[str, list[KeyAtHop]] = {}
    for key in batch:
        by_hop.setdefault(key.at.hop.name, []).append(key)
    for name, of_hop in by_hop.items():
        hashes = {at_hop.touched.key_hash for at_hop in of_hop}
        verdicts = matched.verdicts(of_hop[0].at.hop, results.get(name), hashes)
        for key in of_hop:
            verdict = verdicts.get(key.touched.key_hash)
            if verdict is Verdict.MATCHED or (verdict is None and key.touched.remedy in _OF_ROWS):
                yield replace(key, is_matched=verdict is Verdict.MATCHED)


def _may_forward(pipeline: Pipeline, at: TouchedHop) -> bool:
    is_topic = has_log(pipeline.points[at.hop.target])
    return at.is_source_changed and is_topic and at.hop.semantics is Semantics.UPSERT


def _finding(pipeline: Pipeline, now: _KeyNow) -> JudgedFinding | None:
    key, verdict = now.key, now.verdict
    if verdict is None:
        return None if key.finding is None else replace(key.finding, outcome="repaired", reason=None)
    reason = _reason(pipeline, key, verdict)
    if key.finding is not None:
        return replace(key.finding, outcome="open", reason=reason)
    mask = mask_on(pipeline, key.at.hop)
    evidence = {
        CAUSED_BY: key.touched.plan,
        "repaired_hop": key.touched.hop,
        "in_source": key.is_matched,
        **({} if now.row_hash is None else {"row_hash": str(now.row_hash)}),
    }
    finding = Finding(
        hop=key.at.hop.name,
        key=key.touched.key,
        key_hash=key.touched.key_hash,
        verdict=verdict,
        cause=Cause.CHANGED_BY_REPAIR,
        evidence=evidence if mask is None else mask.evidence(evidence),
    )
    return JudgedFinding(finding=finding, reason=reason)


def _reason(pipeline: Pipeline, key: KeyAtHop, verdict: Verdict) -> str:
    """Return what is wrong and what to do, for a person."""
    at, plan = key.at, key.touched.plan
    what = f"plan {plan} repaired {at.changed} for {key.touched.hop}"
    if verdict is Verdict.UNEXPECTED:
        return f"{what}: its row is gone, and {at.other} still holds the key; {_way_out(pipeline, at, plan)}"
    if verdict is Verdict.MISSING:
        return f"{what}: it does not hold the key any more, which {at.other} has; {_way_out(pipeline, at, plan)}"
    return f"{what}, and it has other values than {at.other} now; {_way_out(pipeline, at, plan)}"


def _way_out(pipeline: Pipeline, at: TouchedHop, plan: str) -> str:
    if at.is_source_changed and has_log(pipeline.points[at.hop.target]):
        return (
            f"have the key sent to {at.hop.target} as {at.hop.source} has it now and run this window again, or accept "
            f"the finding; `makewhole plan undo {plan}` takes the repair back"
        )
    return (
        f"say which of {at.hop.source} and {at.hop.target} is right, correct the other and run this window again; "
        f"`makewhole plan undo {plan}` takes the repair back"
    )
