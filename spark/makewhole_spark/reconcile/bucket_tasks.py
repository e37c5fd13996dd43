"""Make the bucket tasks of a hop, from what the driver asks the journal and Kafka once for all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from makewhole.compute.buckets import files_of_bucket, shares_keys
from makewhole.compute.key_index.former_readings import numbered_number
from makewhole.journal import observations
from makewhole.journal.key_index.runs import IndexedRun
from makewhole.key_index.files import IndexFile
from makewhole.model.pipeline import Hop, Semantics
from makewhole.model.points import TopicPoint
from makewhole.model.window import Window
from makewhole_spark.reconcile.buckets import (
    BucketTask,
    HandedOverFiles,
    IndexFiles,
    LogOfErasures,
    OtherConfiguration,
)
from makewhole_spark.reconcile.compare_changes import former_compare
from makewhole_spark.reconcile.hop_facts.baseline import hop_baseline
from makewhole_spark.reconcile.hop_facts.certified_before import certified_results
from makewhole_spark.reconcile.hop_facts.changed_hops import files_of_former_sources, hop_since, runs_of_former_sources
from makewhole_spark.reconcile.hop_facts.journal_keys import handing_windows, hop_keys
from makewhole_spark.reconcile.hop_facts.late_rows import late_facts, windows_before
from makewhole_spark.reconcile.hop_facts.met_alone import met_alone
from makewhole_spark.reconcile.hop_facts.other_sources import SiblingHops
from makewhole_spark.reconcile.hop_facts.tombstones import logs_of_erasures
from makewhole_spark.reconcile.hop_facts.unread_records import unread_records
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows, TruncatedWindow, truncated_windows
from makewhole_spark.reconcile.window_files import FilesOfWindows


def bucket_tasks(neighbours: NeighbouringWindows, hop: Hop) -> list[BucketTask]:
    """Return one task per bucket that has any key on either side."""
    context, manifests = neighbours.context, neighbours.manifests
    source, target = manifests[hop.source]["files"], manifests[hop.target]["files"]
    settled = _settled(neighbours, hop)
    logs = {point: neighbours.log(point) for point in (hop.source, hop.target)}
    truncated = truncated_windows(neighbours, hop.target)
    baseline = hop_baseline(neighbours, hop)
    committed = neighbours.group_committed(hop)
    group = None if committed is None else {at: offset for at, offset in committed.items() if offset is not None}
    certified = certified_results(neighbours, hop, {context.window.number})
    beside = SiblingHops.of(neighbours, hop)
    joined = {hop.source, hop.target, *(one.source for one, _ in beside.hops)}
    indexes = {point: _PointRuns.of(neighbours, point) for point in joined}
    ledgers = _tables_of_versions(neighbours, hop, joined)
    copies = {name: runs for name, runs in indexes.items() if name not in ledgers}
    reached = {one.window.number for one in truncated}
    late = late_facts(neighbours, hop)
    later = _later_source_files(neighbours, hop)
    compared_before = former_compare(neighbours, hop)
    removed, since = runs_of_former_sources(neighbours, hop), hop_since(neighbours, hop)
    keys = hop_keys(neighbours, hop, truncated, late.already_reported)
    handing = handing_windows(neighbours, hop, keys.handed_over)
    handed_files = _handed_over_files(neighbours, hop, handing)
    seen = _seen_ranges(neighbours, hop, handing)
    otherwise = _target_read_otherwise(neighbours, hop)
    erasures = logs_of_erasures(neighbours, hop, handing)
    alone = met_alone(neighbours, hop)
    ends = {point: hop.source if point == hop.target else hop.target for point in joined}
    unread = {point: unread_records(neighbours, point, other=other) for point, other in ends.items()}
    return [
        BucketTask(
            context=context,
            hop=hop,
            bucket=bucket,
            source_files=files_of_bucket(source, bucket),
            target_files=files_of_bucket(target, bucket),
            source_index=_files(copies, hop.source, bucket) if _is_topic(neighbours, hop.source) else IndexFiles(),
            ledger_index=IndexFiles() if _is_topic(neighbours, hop.source) else _files(copies, hop.source, bucket),
            versions_of_ledgers={name: indexes[name].files(bucket) for name in ledgers},
            target_index=_files(copies, hop.target, bucket, without=reached),
            handed_over_files=tuple(handed_files.get(bucket, ())),
            settled_offsets=settled.get("offsets"),
            settled_snapshot=settled.get("snapshot"),
            group_committed=group,
            keys=keys.in_bucket(bucket),
            seen_ranges=seen,
            truncated_files=tuple(one.files_of(bucket, source=hop.source, neighbours=neighbours) for one in truncated),
            later_source_files=later.in_bucket(bucket),
            target_with_other_configuration=otherwise,
            earlier_source_files=late.source_files.in_bucket(bucket),
            former_compare=compared_before,
            hop_since=since,
            former_sources=files_of_former_sources(removed, bucket, context.window.number),
            source_under_other_filters=late.under_other_filters.in_bucket(bucket),
            source_without_hop=late.without_hop.in_bucket(bucket),
            other_sources=beside.in_bucket(
                bucket,
                {name: _files(copies, name, bucket) for name in indexes},
                {name: one.in_bucket(bucket) for name, one in unread.items()},
            ),
            certified=tuple(certified.get(bucket, ())),
            met_alone=None if alone is None else alone.in_bucket(bucket),
            log_of_erasures=erasures.get(bucket, LogOfErasures()),
            baseline=baseline,
            source_unread=unread[hop.source].in_bucket(bucket),
            target_unread=unread[hop.target].in_bucket(bucket),
            source_log=logs[hop.source],
            target_log=logs[hop.target],
            source_sequences=manifests[hop.source].get("sequences"),
            target_sequences=manifests[hop.target].get("sequences"),
        )
        for bucket in _buckets(neighbours, hop, truncated, keys.judged_in)
    ]


def _tables_of_versions(neighbours: NeighbouringWindows, hop: Hop, points: Iterable[str]) -> list[str]:
    """Return which points of a hop under `upsert` are tables. Their rows are the versions that stand: what the key
    index has of them only says which keys to ask them for."""
    return [name for name in points if hop.semantics is Semantics.UPSERT and not _is_topic(neighbours, name)]


def _is_topic(neighbours: NeighbouringWindows, point: str) -> bool:
    return isinstance(neighbours.context.pipeline.points[point], TopicPoint)


def _buckets(
    neighbours: NeighbouringWindows, hop: Hop, truncated: Sequence[TruncatedWindow], more: set[str]
) -> list[str]:
    """Return the buckets with a key on either side, in `more` (handed over, or followed), or judged anew because a
    truncation took it."""
    found = {*neighbours.manifests[hop.source]["files"], *neighbours.manifests[hop.target]["files"], *more}
    for one in truncated:
        if one.limits_now:
            found.update(one.files_by_bucket(neighbours))
    return neighbours.own_buckets(found)


def _handed_over_files(
    neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window]
) -> dict[str, list[HandedOverFiles]]:
    """Return the source's files, by bucket, of the windows that handed keys over."""
    files: dict[str, list[HandedOverFiles]] = {}
    now = {part.topic_id for part in neighbours.context.window.ranges.get(hop.source, ())}
    for earlier in handing:
        parts = earlier.ranges.get(hop.source, ())
        is_gone = bool(parts) and not now & {part.topic_id for part in parts}
        gone_from = neighbours.log(hop.source).truncated_from(parts)
        read_with_other_configuration = neighbours.read_with_other_configuration(earlier, hop.source)
        by_bucket = neighbours.manifests_of(earlier).get(hop.source, {"files": {}})["files"]
        for bucket in neighbours.own_buckets(by_bucket):
            of_window = HandedOverFiles(
                files=files_of_bucket(by_bucket, bucket),
                read_with_other_configuration=read_with_other_configuration,
                is_gone=is_gone,
                gone_from=gone_from,
            )
            files.setdefault(bucket, []).append(of_window)
    return files


def _target_read_otherwise(neighbours: NeighbouringWindows, hop: Hop) -> tuple[OtherConfiguration, ...]:
    """Return the windows right before this one that read the topic at a hop's end with another configuration, and in
    which records of this window's keys may lie."""
    if not isinstance(neighbours.context.pipeline.points[hop.target], TopicPoint):
        return ()
    topic_ids = {part.topic_id for part in neighbours.context.window.ranges.get(hop.target, ())}
    found = (neighbours.read_with_other_configuration(window, hop.target) for window in windows_before(neighbours))
    return tuple(one for one in found if one is not None and topic_ids & {part.topic_id for part in one.ranges})


def _seen_ranges(
    neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window]
) -> tuple[tuple[int, int, int, datetime], ...]:
    """Return the source's ranges of this window and of those that handed keys over, with the S1 of each. Only versions
    are followed one by one."""
    if hop.semantics is not Semantics.UPSERT or neighbours.group_committed(hop) is None:
        return ()
    return tuple(
        (part.partition, part.lo, part.hi, neighbours.first_opened_at(window))
        for window in (neighbours.context.window, *handing)
        for part in window.ranges.get(hop.source, ())
    )


def _settled(neighbours: NeighbouringWindows, hop: Hop) -> dict[str, Any]:
    """Return the stable offsets and the transaction snapshot that were observed at the source a settle time ago."""
    latest = datetime.now(UTC) - neighbours.context.pipeline.settle
    seen = observations.last(neighbours.journal, neighbours.context.pipeline.name, hop.source, latest)
    if seen is None:
        return {"offsets": {}, "snapshot": "1:1:"}
    return {"offsets": dict(seen.stable_offsets or {}), "snapshot": seen.pg_snapshot}


def _later_source_files(neighbours: NeighbouringWindows, hop: Hop) -> FilesOfWindows:
    """Return the source's files of later windows, with every version: a run of the index has at most two per key."""
    if hop.semantics is not Semantics.UPSERT or not neighbours.later:
        return FilesOfWindows()
    neighbours.read_manifests(neighbours.later)
    return neighbours.files_by_bucket(hop.source, neighbours.later)


def _files(
    runs: Mapping[str, "_PointRuns"], point: str, bucket: str, without: set[int] | frozenset[int] = frozenset()
) -> IndexFiles:
    return runs[point].files(bucket, without) if point in runs else IndexFiles()


@dataclass(frozen=True, kw_only=True)
class _PointRuns:
    """The runs of the key index for a point. `since`: the first window that read the topic as it is in this one; those
    before it read an earlier incarnation. Those before `known_from` are older than the pipeline's `history`."""

    runs: Sequence[IndexedRun]
    number: int
    since: int
    known_from: int
    numbered_by: int

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, point: str) -> "_PointRuns":
        ids = {part.topic_id for part in neighbours.context.window.ranges.get(point, ())}
        read = neighbours.topic_ids(point) if ids else ()
        since = min((number for _, topic_id, number in read if topic_id in ids), default=0)
        return cls(
            runs=neighbours.standing_runs(point),
            number=neighbours.context.window.number,
            since=since,
            known_from=neighbours.indexed_from(point),
            numbered_by=numbered_number(neighbours.context.pipeline.points[point].version),
        )

    def files(self, bucket: str, without: set[int] | frozenset[int] = frozenset()) -> IndexFiles:
        """Return the files of a bucket, each with the windows that count, but for the windows in `without`."""
        left_out = {self.number, *without}
        return IndexFiles(
            earlier=self._those(bucket, lambda at: self.since <= at < self.number and at not in left_out),
            later=self._those(bucket, lambda at: at > self.number and at not in left_out),
            former=self._those(bucket, lambda at: at < self.since and at not in left_out),
        )

    def _those(self, bucket: str, counts: Callable[[int], bool]) -> tuple[IndexFile, ...]:
        held = (
            IndexFile(
                path=path,
                windows=tuple(at for at in run.windows if at >= self.known_from and counts(at)),
                numbered_by=self.numbered_by,
            )
            for run in self.runs
            for name, path in run.files.items()
            if shares_keys(name, bucket)
        )
        return tuple(file for file in held if file.windows)
