"""Make the bucket tasks of a hop, from what the driver asks the journal and Kafka once for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from makewhole.compute.buckets import files_of_bucket, is_hash_in_bucket
from makewhole.journal import observations
from makewhole.journal.results.snapshot_manifests import KEYS_BY_PARTS
from makewhole.journal.retention.erasures import erasures
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import has_log
from makewhole.model.retention import Erasure
from makewhole.model.window import Window
from makewhole.window.masks import prepare_mask
from makewhole_spark.reconcile.bucket.other_windows import HandedOverFiles, LogOfErasures, OtherConfiguration
from makewhole_spark.reconcile.bucket.task import AbsenceLimits, BucketTask, KnownElsewhere, OtherSource, has_slices
from makewhole_spark.reconcile.gather.baseline import hop_baseline
from makewhole_spark.reconcile.gather.certified_windows import ResultsByBucket, certified_results
from makewhole_spark.reconcile.gather.changed_file import ChangesOfHop, knew_another_filter
from makewhole_spark.reconcile.gather.copier import copier_commits
from makewhole_spark.reconcile.gather.erasures import logs_of_erasures
from makewhole_spark.reconcile.gather.journal_keys import handing_windows, hop_keys
from makewhole_spark.reconcile.gather.ledger_files import windows_before
from makewhole_spark.reconcile.gather.met_alone import MetBefore, met_alone
from makewhole_spark.reconcile.gather.neighbouring_windows import (
    NeighbouringWindows,
    TruncatedWindow,
    truncated_windows,
)
from makewhole_spark.reconcile.gather.point_facts import PointFacts
from makewhole_spark.reconcile.gather.topics_beside import TopicsBeside

_MOST_SEEN = 1 << 20
_NOTHING_SEEN = "1:1:"
"""Bytes of what a view saw: a dataset of files takes ten for each file."""


def bucket_tasks(neighbours: NeighbouringWindows, hop: Hop) -> list[BucketTask]:
    """Return one task per bucket that has any key on either side. The key of masked values is made before the first of
    them runs."""
    prepare_mask(neighbours.context.pipeline, neighbours.context.storage)
    truncated = truncated_windows(neighbours, hop.target)
    reached = frozenset(window.window.number for window in truncated)
    source = PointFacts.of_source(neighbours, hop)
    target = PointFacts.of_target(neighbours, hop, [window.window for window in truncated])
    keys = hop_keys(neighbours, hop)
    handing = handing_windows(neighbours, hop, keys.handed_over)
    limits = _limits(neighbours, hop, handing)
    elsewhere = _Elsewhere.of(neighbours, hop, handing, truncated)
    changes = ChangesOfHop.of(neighbours, hop)
    return [
        BucketTask(
            context=neighbours.context.as_compared_on(hop),
            hop=hop,
            bucket=bucket,
            source=source.in_bucket(bucket),
            target=target.in_bucket(bucket, without=reached),
            keys=keys.in_bucket(bucket),
            limits=limits,
            elsewhere=elsewhere.in_bucket(bucket),
            changes=changes.in_bucket(bucket),
        )
        for bucket in _buckets(neighbours, hop, truncated, keys.judged_in)
    ]


@dataclass(frozen=True, kw_only=True)
class _Elsewhere:
    """Hold what other windows and other hops know of the keys of a hop; see `KnownElsewhere`."""

    neighbours: NeighbouringWindows
    hop: Hop
    handed_over: Mapping[str, Sequence[HandedOverFiles]]
    truncated: Sequence[TruncatedWindow]
    otherwise: tuple[OtherConfiguration, ...]
    siblings: Sequence[tuple[Hop, PointFacts]]
    certified: ResultsByBucket
    met: MetBefore | None
    erasures: Mapping[str, LogOfErasures]
    beside: TopicsBeside | None
    on_request: Sequence[Erasure]

    @classmethod
    def of(
        cls, neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window], truncated: Sequence[TruncatedWindow]
    ) -> "_Elsewhere":
        siblings = [other for other in neighbours.context.pipeline.hops_into(hop.target) if other.name != hop.name]
        known = erasures(neighbours.journal, neighbours.context.pipeline.name)
        return cls(
            neighbours=neighbours,
            hop=hop,
            handed_over=_handed_over_files(neighbours, hop, handing),
            truncated=truncated,
            otherwise=_target_with_other_configuration(neighbours, hop),
            siblings=[(sibling, PointFacts.of_sibling(neighbours, hop, sibling)) for sibling in siblings],
            certified=certified_results(neighbours, hop, {neighbours.context.window.number}),
            met=met_alone(neighbours, hop),
            erasures=logs_of_erasures(neighbours, hop, handing),
            beside=TopicsBeside.of(neighbours, hop),
            on_request=[erasure for erasure in known if erasure.is_of_hop(hop.name)],
        )

    def in_bucket(self, bucket: str) -> KnownElsewhere:
        """Return what is known of the keys of a bucket."""
        source, neighbours = self.hop.source, self.neighbours
        return KnownElsewhere(
            handed_over=tuple(self.handed_over.get(bucket, ())),
            truncated=tuple(window.files_of(bucket, source=source, neighbours=neighbours) for window in self.truncated),
            target_with_other_configuration=self.otherwise,
            other_sources=tuple(OtherSource(hop=hop, end=facts.in_bucket(bucket)) for hop, facts in self.siblings),
            certified=tuple(self.certified.get(bucket, ())),
            met_alone=None if self.met is None else self.met.in_bucket(bucket),
            erasures=self.erasures.get(bucket, LogOfErasures()),
            copied_elsewhere=None if self.beside is None else self.beside.in_bucket(bucket),
            on_request=tuple(erasure for erasure in self.on_request if is_hash_in_bucket(erasure.prefix, bucket)),
        )


def _limits(neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window]) -> AbsenceLimits:
    """Return up to where, and since when, an absence at an end of a hop says something."""
    settled, committed = _settled(neighbours, hop), neighbours.group_committed(hop)
    offsets = neighbours.reader_offsets(hop)
    return AbsenceLimits(
        target_seen=_target_seen(neighbours, hop),
        settled_offsets=settled["offsets"],
        settled_snapshot=settled["snapshot"],
        group_committed=None
        if committed is None
        else {at: offset for at, offset in committed.items() if offset is not None},
        sink=None if offsets is None or offsets.sink is None else offsets.sink.as_evidence(),
        copier=copier_commits(neighbours, hop, handing),
        seen_ranges=_seen_ranges(neighbours, hop, handing),
        baseline=hop_baseline(neighbours, hop),
    )


def _target_seen(neighbours: NeighbouringWindows, hop: Hop) -> str | None:
    """Return what the view saw under which a target was read by the keys of the source, part by part; None: it was
    not, or that is more than each task should carry."""
    manifest = neighbours.manifests[hop.target]
    if not manifest.get(KEYS_BY_PARTS) or has_slices(neighbours.context.pipeline, hop):
        return None
    seen: str | None = manifest.get("pg_snapshot")
    return None if seen is None or len(seen) > _MOST_SEEN else seen


def _buckets(
    neighbours: NeighbouringWindows, hop: Hop, truncated: Sequence[TruncatedWindow], more: set[str]
) -> list[str]:
    """Return the buckets with a key on either side, in `more` (handed over, or followed), or judged again because a
    truncation took it."""
    buckets = {*neighbours.manifests[hop.source]["files"], *neighbours.manifests[hop.target]["files"], *more}
    for window in truncated:
        if window.limits_now:
            buckets.update(window.files_by_bucket(neighbours))
    return neighbours.own_buckets(buckets)


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
        manifest = neighbours.manifests_of(earlier).get(hop.source, {"files": {}})
        read_by = replace(earlier, revision=manifest.get("revision", earlier.revision))
        is_other = knew_another_filter(neighbours, hop, read_by)
        by_bucket = manifest["files"]
        for bucket in neighbours.own_buckets(by_bucket):
            of_window = HandedOverFiles(
                files=files_of_bucket(by_bucket, bucket),
                knew_another_filter=is_other,
                read_with_other_configuration=read_with_other_configuration,
                is_gone=is_gone,
                gone_from=gone_from,
            )
            files.setdefault(bucket, []).append(of_window)
    return files


def _target_with_other_configuration(neighbours: NeighbouringWindows, hop: Hop) -> tuple[OtherConfiguration, ...]:
    """Return the windows right before this one that read the topic at a hop's end with another configuration, and in
    which records of this window's keys may lie."""
    if not has_log(neighbours.context.pipeline.points[hop.target]):
        return ()
    topic_ids = {part.topic_id for part in neighbours.context.window.ranges.get(hop.target, ())}
    reads = (neighbours.read_with_other_configuration(window, hop.target) for window in windows_before(neighbours))
    return tuple(read for read in reads if read is not None and topic_ids & {part.topic_id for part in read.ranges})


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
    latest = observations.moment_now(neighbours.journal) - neighbours.context.pipeline.settle
    seen = observations.last(neighbours.journal, neighbours.context.pipeline.name, hop.source, latest)
    if seen is None:
        return {"offsets": {}, "snapshot": _NOTHING_SEEN}
    is_elsewhere = seen.place != neighbours.context.window.places.get(hop.source) and seen.pg_snapshot is not None
    snapshot = _NOTHING_SEEN if is_elsewhere else seen.pg_snapshot
    return {"offsets": dict(seen.stable_offsets or {}), "snapshot": snapshot}
