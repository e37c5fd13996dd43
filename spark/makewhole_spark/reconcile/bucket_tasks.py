"""Make the bucket tasks of a hop, from what the driver asks the journal and Kafka once for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from makewhole.compute.keys import split_hex
from makewhole.journal import observations, window_results
from makewhole.kafka.offsets import committed
from makewhole.model.pipeline import Hop, Semantics, TopicPoint
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.buckets import BucketTask, IndexFiles
from makewhole_spark.reconcile.hop_baseline import hop_baseline
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows, TruncatedWindow, truncated_windows

_KeysByBucket = dict[str, list[tuple[str, int, int]]]


def bucket_tasks(neighbours: NeighbouringWindows, hop: Hop) -> list[BucketTask]:
    """Return one task per bucket that has any key on either side."""
    context, manifests = neighbours.context, neighbours.manifests
    source, target = manifests[hop.source]["files"], manifests[hop.target]["files"]
    handed = handed_over_keys(neighbours, hop)
    handed_files = _handed_over_files(neighbours, hop) if handed else {}
    settled = _settled(neighbours, hop)
    logs = {point: neighbours.log(point) for point in (hop.source, hop.target)}
    truncated = truncated_windows(neighbours, hop.target)
    baseline = hop_baseline(neighbours, hop)
    replays = neighbours.replays(hop.target, *(one.window for one in truncated))
    source_replays = neighbours.replays(hop.source)
    written = neighbours.keys_written_for_window(hop.source)
    group = _group_committed(context, hop)
    indexes = {point: _PointRuns.of(neighbours, point) for point in (hop.source, hop.target)}
    reached = {one.window.number for one in truncated}
    return [
        BucketTask(
            context=context,
            hop=hop,
            bucket=bucket,
            source_files=tuple(source.get(bucket, ())),
            target_files=tuple(target.get(bucket, ())),
            source_index=indexes[hop.source].files(bucket),
            target_index=indexes[hop.target].files(bucket, without=reached),
            handed_over=tuple(handed.get(bucket, ())),
            handed_over_files=tuple(handed_files.get(bucket, ())),
            settled_offsets=settled.get("offsets"),
            settled_snapshot=settled.get("snapshot"),
            group_committed=group,
            replays=replays,
            source_replays=source_replays,
            written=written,
            truncated_files=tuple(
                one.files_of(bucket, source=hop.source, neighbours=neighbours)
                for one in truncated
                if bucket in one.files_by_bucket(neighbours)
            ),
            later_source_files=_later_source_files(neighbours, hop, bucket),
            baseline=baseline,
            source_log=logs[hop.source],
            target_log=logs[hop.target],
            source_sequences=manifests[hop.source].get("sequences"),
            target_sequences=manifests[hop.target].get("sequences"),
        )
        for bucket in _buckets(neighbours, hop, truncated, handed)
    ]


def _buckets(
    neighbours: NeighbouringWindows, hop: Hop, truncated: Sequence[TruncatedWindow], handed: _KeysByBucket
) -> list[str]:
    """Return the buckets with a key on either side, handed over, or judged anew because a truncation took it."""
    found = {*neighbours.manifests[hop.source]["files"], *neighbours.manifests[hop.target]["files"], *handed}
    for one in truncated:
        if one.limits_now:
            found.update(one.files_by_bucket(neighbours))
    return sorted(found)


def _group_committed(context: WindowContext, hop: Hop) -> dict[int, int] | None:
    point = context.pipeline.points[hop.source]
    if not hop.consumer_group or not isinstance(point, TopicPoint):
        return None
    offsets = committed(context.kafka(point), hop.consumer_group, point.topic)
    return {partition: offset for partition, offset in offsets.items() if offset is not None}


def handed_over_keys(neighbours: NeighbouringWindows, hop: Hop) -> _KeysByBucket:
    """Return the keys that the window before handed over to this one, by bucket."""
    context = neighbours.context
    if not any(window.number == context.window.number - 1 for window in neighbours.earlier):
        return {}
    keys: _KeysByBucket = {}
    for item in window_results.handovers(neighbours.journal, context.pipeline.name, context.window.number - 1):
        if item.hop == hop.name:
            high, low = split_hex(item.key_hash)
            keys.setdefault(f"{high % context.pipeline.buckets:02d}", []).append((item.key, high, low))
    return keys


def _handed_over_files(neighbours: NeighbouringWindows, hop: Hop) -> dict[str, list[str]]:
    """Return the source's files, by bucket, of the windows before this one back to the last that handed nothing over.

    A key may be handed over several times.
    """
    files: dict[str, list[str]] = {}
    for earlier in reversed(neighbours.earlier):
        handed = window_results.handovers(neighbours.journal, earlier.pipeline, earlier.number)
        if not any(item.hop == hop.name for item in handed):
            break
        for bucket, paths in neighbours.manifests_of(earlier).get(hop.source, {"files": {}})["files"].items():
            files.setdefault(bucket, []).extend(paths)
    return files


def _settled(neighbours: NeighbouringWindows, hop: Hop) -> dict[str, Any]:
    """Return the stable offsets and the transaction snapshot that were observed at the source a settle time ago."""
    latest = datetime.now(UTC) - neighbours.context.pipeline.settle
    seen = [
        entry
        for entry in observations.of(neighbours.journal, neighbours.context.pipeline.name, hop.source)
        if entry.observed_at <= latest
    ]
    if not seen:
        return {"offsets": {}, "snapshot": "1:1:"}
    return {"offsets": dict(seen[-1].stable_offsets or {}), "snapshot": seen[-1].pg_snapshot}


def _later_source_files(neighbours: NeighbouringWindows, hop: Hop, bucket: str) -> tuple[str, ...]:
    """Return the source's files of later windows, with every version: a run of the index has at most two per key."""
    if hop.semantics is not Semantics.UPSERT or not neighbours.later:
        return ()
    found = (neighbours.manifests_of(window).get(hop.source, {"files": {}})["files"] for window in neighbours.later)
    return tuple(path for files in found for path in files.get(bucket, ()))


@dataclass(frozen=True, kw_only=True)
class _PointRuns:
    """The runs of the key index for a point, by window. `former`: windows that read an earlier incarnation."""

    runs: Mapping[int, Mapping[str, str]]
    number: int
    former: frozenset[int]

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, point: str) -> "_PointRuns":
        ids = {part.topic_id for part in neighbours.context.window.ranges.get(point, ())}
        former = {
            window.number
            for window in neighbours.earlier
            if ids and not ids & {part.topic_id for part in window.ranges.get(point, ())}
        }
        runs = window_results.key_runs(neighbours.journal, neighbours.context.window, point)
        return cls(runs=runs, number=neighbours.context.window.number, former=frozenset(former))

    def files(self, bucket: str, without: set[int] | frozenset[int] = frozenset()) -> IndexFiles:
        """Return the runs of a bucket, but for those of the windows in `without`."""
        held = [(at, files[bucket]) for at, files in sorted(self.runs.items()) if bucket in files and at not in without]
        return IndexFiles(
            earlier=tuple(path for at, path in held if at < self.number and at not in self.former),
            later=tuple(path for at, path in held if at > self.number),
            former=tuple(path for at, path in held if at in self.former),
        )
