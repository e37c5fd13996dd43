"""Look at the stores that a redelivery reached beside the intended one: none may hold a key twice.

What is found is a finding of its own on the hop into that store. Reconcile cannot see it: it judged the window before
anything was sent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from makewhole.compensation.verification.matched_before import MatchedBefore
from makewhole.compensation.verification.store_rows import read_rows
from makewhole.compensation.verification.verified_results import CAUSED_BY, is_found_by_verify
from makewhole.compensation.verification.with_findings import with_findings
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import BATCH, StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.written_keys import RedeliveredKey, redelivered_ends, redelivered_hops, redelivered_keys
from makewhole.kafka.offsets import TopicLog
from makewhole.lake.local_files import BatchFile
from makewhole.model.closing import ClosingContext
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.signing.mask import MASKED
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole.window.readers.hop_offsets import read_hop_offsets


@dataclass(frozen=True, kw_only=True)
class ReachedHop:
    """A hop into a table that loads what was sent again for another hop; `keys` by key hash."""

    hop: Hop
    keys: Mapping[str, RedeliveredKey]


def reached_hops(pipeline: Pipeline, sent: Iterable[RedeliveredKey]) -> tuple[ReachedHop, ...]:
    """Return the hops into tables that records reach beside the hop for which each was sent, in file order."""
    hops = {hop.name: hop for hop in pipeline.hops}
    keys: dict[str, dict[str, RedeliveredKey]] = {}
    for key in sent:
        for name in _hops_reached(pipeline, hops[key.hop]) if key.hop in hops else ():
            keys.setdefault(name, {}).setdefault(key.key_hash, key)
    return tuple(ReachedHop(hop=hop, keys=keys[hop.name]) for hop in pipeline.hops if hop.name in keys)


def _hops_reached(pipeline: Pipeline, own: Hop) -> set[str]:
    """Return the hops into tables behind all readers of what a hop redelivers, but for the hop itself, and for others
    that end in the same table."""
    place, reached, left = pipeline.place_of(own.target), set[str](), list(pipeline.redelivery_readers(own))
    while left:
        hop = left.pop()
        target = pipeline.points[hop.target]
        if has_log(target):
            left += pipeline.readers_of(hop.target)
        elif pipeline.place_of(hop.target) != place:
            reached.add(hop.name)
    return reached


@dataclass(frozen=True, kw_only=True)
class SentKey:
    """A key of which records were sent again (`sent`), with what the window found of it: what a finding on a hop for
    which one was sent says of its source (the hop and the evidence), the hops with a finding of reconcile (`judged`),
    and those that verify found before, by hop."""

    sent: tuple[RedeliveredKey, ...]
    source: tuple[str, Mapping[str, Any]]
    judged: frozenset[str]
    doubled: Mapping[str, JudgedFinding]


class OtherStores(ClosingContext):
    """The stores that a window's redeliveries reached beside the intended ones. Close it after use."""

    def __init__(
        self,
        context: WindowContext,
        hops: Sequence[Hop] = (),
        ends: Mapping[str, Mapping[int, int]] | None = None,
        matched: MatchedBefore | None = None,
    ) -> None:
        """`hops`: those into stores that were reached. `ends`: by topic point and partition, the offset behind the last
        record that was sent again. `matched`: what the window judged as matched."""
        self._context, self._hops, self._ends = context, hops, ends or {}
        self._matched = matched or MatchedBefore(context)
        self._stack = ExitStack()
        self._sent = self._stack.enter_context(BatchFile[SentKey]())

    def close(self) -> None:
        """Delete what was kept of the keys."""
        self._stack.close()

    def add(self, sent: list[SentKey]) -> None:
        """Keep keys of which records were sent again, in a file."""
        self._sent.add(sent)

    def findings(self, results: Mapping[str, HopResult]) -> Iterator[list[JudgedFinding]]:
        """Yield a finding for every key that a store holds twice, and those that were found before as they are now, so
        many at a time.

        A key with a finding of its own on the hop is judged by that.
        """
        for batch in self._sent:
            if findings := list(self._findings_of(batch, results)):
                yield findings

    def _findings_of(self, batch: Sequence[SentKey], results: Mapping[str, HopResult]) -> Iterator[JudgedFinding]:
        of_hash = {item.sent[0].key_hash: item for item in batch}
        for reached in reached_hops(self._context.pipeline, chain.from_iterable(item.sent for item in batch)):
            name = reached.hop.name
            keys = {key_hash: key for key_hash, key in reached.keys.items() if name not in of_hash[key_hash].judged}
            rows = self._rows(reached.hop, keys)
            doubled = {key_hash for key_hash, key in keys.items() if len(rows.get(key.key, ())) > 1}
            matched = self._matched.among(reached.hop, results.get(name), doubled)
            for key_hash, sent in keys.items():
                item = of_hash[key_hash].doubled.get(name)
                if key_hash in doubled and item is None:
                    source = of_hash[key_hash].source
                    item = _finding(reached.hop, sent, rows[sent.key], source, is_in_source=key_hash in matched)
                if item is not None:
                    yield _judged_now(item, reached.hop, sent, len(rows.get(sent.key, ())))

    def is_awaited(self) -> bool:
        """Return whether a loader that adds rows may still load what was sent: it has not passed it by its progress or
        its group, or nothing says how far it is."""
        adding = [hop for hop in self._hops if not self._context.pipeline.overwrites(hop)]
        return any(not self._has_passed(hop) for hop in adding)

    def _has_passed(self, hop: Hop) -> bool:
        point = self._context.pipeline.points[hop.source]
        ends = self._ends.get(hop.source)
        if hop.reader is None or not ends or not has_log(point):
            return False
        target = self._context.pipeline.points[hop.target]
        with TopicLog(self._context.kafka(point), point.topic) as log:
            offsets = read_hop_offsets(log, hop, target, self._context.connections[target.connection])
        committed = {} if offsets is None else offsets.committed
        return all((committed.get(partition) or 0) >= end for partition, end in ends.items())

    def _rows(self, hop: Hop, keys: Mapping[str, RedeliveredKey]) -> Mapping[str, list[dict[str, Any]]]:
        return read_rows(self._context, hop.target, sorted(key.key for key in keys.values())) if keys else {}


def _finding(
    hop: Hop,
    sent: RedeliveredKey,
    rows: Sequence[Mapping[str, Any]],
    source: tuple[str, Mapping[str, Any]],
    *,
    is_in_source: bool,
) -> JudgedFinding:
    of_hop, known = source
    evidence = {
        CAUSED_BY: sent.plan,
        "in_source": is_in_source,
        "target_copies": len(rows),
        "target": [{"place": row["place"], "time": str(row["time"])} for row in rows],
        **(known if of_hop.startswith(f"{hop.source}→") else {}),
    }
    finding = Finding(
        hop=hop.name,
        key=sent.key,
        key_hash=sent.key_hash,
        verdict=Verdict.DUPLICATE,
        cause=Cause.REDELIVERED,
        evidence=evidence,
    )
    return JudgedFinding(finding=finding)


def _of_source(finding: Finding) -> Mapping[str, Any]:
    """Return what the evidence says of the key's source."""
    return {
        name: finding.evidence[name]
        for name in ("source", "source_copies", "row_hash", MASKED)
        if name in finding.evidence
    }


def open_other_stores(journal: PgConnection, context: WindowContext) -> OtherStores:
    """Read from the journal what the plans of a window sent again, and where; nothing where no other store was
    reached."""
    pipeline = context.pipeline
    hops = {hop.name: hop for hop in pipeline.hops}
    sent_for = [hops[name] for name in redelivered_hops(journal, context.window) if name in hops]
    reached = {name for hop in sent_for for name in _hops_reached(pipeline, hop)}
    if not reached:
        return OtherStores(context)
    ends = _sent_ends(journal, context)
    hops_reached = [hop for hop in pipeline.hops if hop.name in reached]
    others = OtherStores(context, hops_reached, ends, MatchedBefore.of(journal, context))
    sent = chain.from_iterable(redelivered_keys(journal, context.window))
    findings = chain.from_iterable(StoredFindings(window=context.window).batches(journal))
    keys = _sent_keys(sent, findings)
    while batch := list(islice(keys, BATCH)):
        others.add(batch)
    return others


def _sent_keys(sent: Iterable[RedeliveredKey], findings: Iterable[JudgedFinding]) -> Iterator[SentKey]:
    """Yield what was sent with what was found of its keys; both are in the order of their hashes."""
    for of_key, judged in with_findings(sent, findings):
        yield _sent_key(tuple(of_key), judged)


def _sent_key(sent: tuple[RedeliveredKey, ...], findings: Sequence[JudgedFinding]) -> SentKey:
    judged = {item.finding.hop: item.finding for item in findings if not is_found_by_verify(item)}
    source: tuple[str, Mapping[str, Any]] = ("", {})
    for hop in sorted({key.hop for key in sent} & set(judged)):
        source = hop, _of_source(judged[hop])
    doubled = {item.finding.hop: item for item in findings if item.finding.cause is Cause.REDELIVERED}
    return SentKey(sent=sent, source=source, judged=frozenset(judged), doubled=doubled)


def _sent_ends(journal: PgConnection, context: WindowContext) -> dict[str, dict[int, int]]:
    """Return the offset behind the last record that was sent again, by topic point and partition."""
    ends: dict[str, dict[int, int]] = {}
    for target, topic_id, partition, end in redelivered_ends(journal, context.window):
        if topic_id in {part.topic_id for part in context.window.ranges.get(target, ())}:
            ends.setdefault(target, {})[partition] = max(end, ends.get(target, {}).get(partition, 0))
    return ends


def put_new(journal: PgConnection, context: WindowContext, doubled: Iterable[JudgedFinding]) -> None:
    """Write the findings that the journal does not have yet."""
    window_findings.add_findings(journal, context.window, [item.finding for item in doubled])


def _judged_now(item: JudgedFinding, hop: Hop, sent: RedeliveredKey, rows: int) -> JudgedFinding:
    if rows == 1:
        return replace(item, outcome="repaired", reason=None)
    reason = f"{hop.target} holds it {rows} times since plan {sent.plan} sent its record to {sent.target} again"
    return replace(item, outcome="open", reason=reason if rows else f"{hop.target} does not hold it")
