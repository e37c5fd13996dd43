"""Look at the stores that a redelivery reached beside the one that it was meant for: none may hold a key twice.

What is found is a finding of its own on the hop into that store. Reconcile cannot see it: it judged the window before
anything was sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import polars as pl

from makewhole.compensation.verification.store_rows import read_rows
from makewhole.compensation.verification.verified_results import DOUBLED_BY
from makewhole.compute.buckets import bucket_name, buckets_of
from makewhole.compute.keys import split_hex
from makewhole.journal import replayed_positions, window_results
from makewhole.journal.window_results import HopResult, JudgedFinding
from makewhole.journal.written_keys import RedeliveredKey, redelivered_hops, redelivered_keys
from makewhole.kafka.offsets import TopicLog
from makewhole.lake.stored_verdicts import FilesByBucket, VerdictFiles, stored_verdicts
from makewhole.model.pipeline import Hop, Pipeline, TopicPoint
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext


@dataclass(frozen=True, kw_only=True)
class ReachedHop:
    """A hop into a table that loads what was sent again for another hop; `keys` by key hash."""

    hop: Hop
    keys: Mapping[str, RedeliveredKey]


def reached_hops(pipeline: Pipeline, sent: Iterable[RedeliveredKey]) -> tuple[ReachedHop, ...]:
    """Return the hops into tables that records reach beside the hop for which each was sent, in file order."""
    hops = {hop.name: hop for hop in pipeline.hops}
    keys: dict[str, dict[str, RedeliveredKey]] = {}
    for one in sent:
        for name in _hops_reached(pipeline, hops[one.hop]) if one.hop in hops else ():
            keys.setdefault(name, {}).setdefault(one.key_hash, one)
    return tuple(ReachedHop(hop=hop, keys=keys[hop.name]) for hop in pipeline.hops if hop.name in keys)


def _hops_reached(pipeline: Pipeline, own: Hop) -> set[str]:
    """Return the hops into tables behind all readers of what a hop redelivers, but for the hop itself, and for others
    that end in the same table."""
    place, found, left = pipeline.points[own.target].place, set[str](), list(pipeline.redelivery_readers(own))
    while left:
        hop = left.pop()
        target = pipeline.points[hop.target]
        if isinstance(target, TopicPoint):
            left += pipeline.hops_from(hop.target)
        elif target.place != place:
            found.add(hop.name)
    return found


class OtherStores:
    """The stores that a window's redeliveries reached beside those that they were meant for."""

    def __init__(
        self,
        context: WindowContext,
        sent: Sequence[RedeliveredKey],
        findings: Iterable[JudgedFinding],
        ends: Mapping[str, Mapping[int, int]],
        slices: Mapping[str, FilesByBucket],
    ) -> None:
        """`ends`: by topic point and partition, the offset behind the last record that was sent again. `slices`: the
        files by bucket of each point in the window's snapshots."""
        self._context, self._ends, self._slices = context, ends, slices
        self._reached = reached_hops(context.pipeline, sent)
        self._judged: set[tuple[str, str]] = set()
        self._sources: dict[str, tuple[str, Mapping[str, Any]]] = {}
        sent_for = {(one.hop, one.key_hash) for one in sent}
        for item in findings:
            place = item.finding.hop, item.finding.key_hash
            self._judged.add(place)
            if place in sent_for:
                self._sources[item.finding.key_hash] = item.finding.hop, _of_source(item.finding)

    def findings(self, results: Mapping[str, HopResult], known: Sequence[JudgedFinding]) -> list[JudgedFinding]:
        """Return a finding for every key that a store holds twice, and the `known` ones of this kind as they are now.

        A key with a finding of its own on the hop is judged by that.
        """
        before = {(item.finding.hop, item.finding.key_hash): item for item in known}
        found = []
        for reached in self._reached:
            name = reached.hop.name
            keys = {key_hash: one for key_hash, one in reached.keys.items() if (name, key_hash) not in self._judged}
            rows = self._rows(reached.hop, keys)
            doubled = {key_hash for key_hash, one in keys.items() if len(rows.get(one.key, ())) > 1}
            matched = self._matched(reached.hop, results.get(name), doubled)
            for key_hash, one in keys.items():
                item = before.get((name, key_hash))
                if key_hash in doubled and item is None:
                    item = self._finding(reached.hop, one, rows[one.key], is_in_source=key_hash in matched)
                if item is not None:
                    found.append(_judged_now(item, reached.hop, one, len(rows.get(one.key, ()))))
        return found

    def is_awaited(self) -> bool:
        """Tell whether a loader that adds rows may still load what was sent: its group has not passed it, or nothing
        says how far it is."""
        adding = [one.hop for one in self._reached if not self._context.pipeline.overwrites(one.hop)]
        return any(not self._has_passed(hop) for hop in adding)

    def _has_passed(self, hop: Hop) -> bool:
        point = self._context.pipeline.points[hop.source]
        ends = self._ends.get(hop.source)
        if hop.consumer_group is None or not ends or not isinstance(point, TopicPoint):
            return False
        with TopicLog(self._context.kafka(point), point.topic) as log:
            committed = log.committed(hop.consumer_group)
        return all((committed.get(partition) or 0) >= end for partition, end in ends.items())

    def _rows(self, hop: Hop, keys: Mapping[str, RedeliveredKey]) -> Mapping[str, list[dict[str, Any]]]:
        return read_rows(self._context, hop.target, sorted(one.key for one in keys.values())) if keys else {}

    def _matched(self, hop: Hop, result: HopResult | None, key_hashes: set[str]) -> set[str]:
        """Return the keys that the window judged as matched on a hop: the others are not of its source."""
        if result is None:
            return set()
        matched = set[str]()
        slices = [self._slices.get(name, {}) for name in (hop.source, hop.target)]
        buckets: dict[str, list[str]] = {}
        number = buckets_of(result.files.get("verdicts_by_bucket") or [bucket_name(0, 1)])
        for key_hash in key_hashes:
            bucket = bucket_name(split_hex(key_hash)[0], number)
            buckets.setdefault(bucket, []).append(key_hash)
        for bucket, wanted in buckets.items():
            files = VerdictFiles.of(hop.name, result.files, slices, bucket)
            found = stored_verdicts(self._context.storage, files, wanted)
            matched.update(found.filter(pl.col("verdict") == Verdict.MATCHED.value)["key_hash"])
        return matched

    def _finding(
        self, hop: Hop, one: RedeliveredKey, rows: Sequence[Mapping[str, Any]], *, is_in_source: bool
    ) -> JudgedFinding:
        of_hop, known = self._sources.get(one.key_hash, ("", {}))
        evidence = {
            DOUBLED_BY: one.plan,
            "in_source": is_in_source,
            "target_copies": len(rows),
            "target": [{"place": row["place"], "time": str(row["time"])} for row in rows],
            **(known if of_hop.startswith(f"{hop.source}→") else {}),
        }
        finding = Finding(
            hop=hop.name,
            key=one.key,
            key_hash=one.key_hash,
            verdict=Verdict.DUPLICATE,
            cause=Cause.REDELIVERED,
            evidence=evidence,
        )
        return JudgedFinding(finding=finding)


def _of_source(finding: Finding) -> Mapping[str, Any]:
    """Return what the evidence says of the key's source."""
    return {
        name: finding.evidence[name] for name in ("source", "source_copies", "row_hash") if name in finding.evidence
    }


def open_other_stores(
    journal: PgConnection, context: WindowContext, findings: Iterable[Sequence[JudgedFinding]]
) -> OtherStores:
    """Read from the journal what the plans of a window sent again, and where; nothing where no other store was reached.
    `findings`: those that reconcile found."""
    slices = {name: one["files"] for name, one in window_results.snapshots(journal, context.window).items()}
    hops = {hop.name: hop for hop in context.pipeline.hops}
    sent_for = [hops[name] for name in redelivered_hops(journal, context.window) if name in hops]
    if not any(_hops_reached(context.pipeline, hop) for hop in sent_for):
        return OtherStores(context, (), (), {}, slices)
    sent = redelivered_keys(journal, context.window)
    return OtherStores(context, sent, chain.from_iterable(findings), _sent_ends(journal, context, sent), slices)


def _sent_ends(
    journal: PgConnection, context: WindowContext, sent: Iterable[RedeliveredKey]
) -> dict[str, dict[int, int]]:
    """Return the offset behind the last record that was sent again, by topic point and partition."""
    ends: dict[str, dict[int, int]] = {}
    for plan, target in sorted({(one.plan, one.target) for one in sent}):
        for topic_id in {part.topic_id for part in context.window.ranges.get(target, ())}:
            written = replayed_positions.of_plan(journal, plan, target, topic_id)
            of_topic = ends.setdefault(target, {})
            for partition, offset in zip(written.partitions, written.offsets, strict=True):
                of_topic[partition] = max(offset + 1, of_topic.get(partition, 0))
    return ends


def put_new(journal: PgConnection, context: WindowContext, doubled: Iterable[JudgedFinding]) -> None:
    """Write the findings that the journal does not have yet."""
    window_results.add_findings(journal, context.window, [item.finding for item in doubled])


def _judged_now(item: JudgedFinding, hop: Hop, one: RedeliveredKey, rows: int) -> JudgedFinding:
    if rows == 1:
        return replace(item, outcome="repaired", reason=None)
    reason = f"{hop.target} holds it {rows} times since plan {one.plan} sent its record to {one.target} again"
    return replace(item, outcome="open", reason=reason if rows else f"{hop.target} does not hold it")
