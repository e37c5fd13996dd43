"""What the driver asks once for all and hands to the buckets of a hop: files, limits, what happened to the logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import polars as pl

from makewhole.compute.frames import REPLAYS, empty
from makewhole.compute.keys import split_hex
from makewhole.compute.log_history import LogHistory, Truncation, log_history
from makewhole.journal import evidence, incidents, observations, windows
from makewhole.journal.plans import replayed_keys
from makewhole.journal.reversals import reversal_keys
from makewhole.kafka.offsets import committed
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Hop, Semantics, TopicPoint
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.buckets import BucketTask, CutFiles, IndexFiles

Manifests = Mapping[str, Any]
_Names = dict[str, list[tuple[str, int, int]]]


@dataclass(frozen=True, kw_only=True)
class NeighbouringWindows:
    """The windows around this one, as the journal tells them; each question is asked once."""

    journal: PgConnection
    context: WindowContext
    manifests: Manifests
    _read: dict[int, Manifests] = field(default_factory=dict)

    @cached_property
    def judged(self) -> Sequence[Window]:
        """The newest judged revision of every other window, oldest first."""
        found = windows.newest_judged(self.journal, self.context.pipeline.name)
        return [window for window in reversed(found) if window.number != self.context.window.number]

    @property
    def earlier(self) -> Sequence[Window]:
        return [window for window in self.judged if window.number < self.context.window.number]

    @property
    def later(self) -> Sequence[Window]:
        return [window for window in self.judged if window.number > self.context.window.number]

    @cached_property
    def incidents(self) -> Sequence[tuple[Window, Incident]]:
        """What happened to the topics, with the window that noticed it, oldest first."""
        named = {(window.number, window.revision): window for window in [*self.judged, self.context.window]}
        found = incidents.of_pipeline(self.journal, self.context.pipeline.name)
        return [(named[place], incident) for place, incident in found if place in named]

    def manifests_of(self, window: Window) -> Manifests:
        """The snapshots of another window."""
        if window.number not in self._read:
            self._read[window.number] = evidence.snapshots(self.journal, window)
        return self._read[window.number]

    def log(self, point: str) -> LogHistory:
        """What happened to the log of a point; nothing for a table."""
        accounting = self.manifests[point].get("accounting") or {}
        return log_history(self.context.window, point, self.incidents, expired=accounting.get("expired", 0))

    def covered(self, point: str) -> Sequence[PartitionRange]:
        """Where the ranges of the newest judged window end, or this one's: what comes behind is in no index yet."""
        newest = self.later[-1] if self.later else self.context.window
        return newest.ranges[point]

    def replays(self, point: str, *others: Manifests) -> pl.DataFrame:
        """What compensation wrote to a topic, by the journal: a lineage header alone proves nothing.

        Of the plans that headers in the window (and in the snapshots of others) name, and of those made for it.
        """
        if not isinstance(self.context.pipeline.points[point], TopicPoint):
            return empty(REPLAYS)
        plans = set(evidence.plans_of(self.journal, self.context.window))
        for manifest in (self.manifests[point], *others):
            plans.update(manifest["replay_plans"])
        name = self.context.pipeline.name
        keys = [
            *replayed_keys(self.journal, name, sorted(plans)),
            *reversal_keys(self.journal, name, sorted(plans)),
        ]
        return pl.DataFrame([(plan, *split_hex(key)) for plan, key in keys], schema=REPLAYS, orient="row")


def bucket_tasks(past: NeighbouringWindows, hop: Hop) -> list[BucketTask]:
    """One task per bucket that has any key on either side."""
    context, manifests = past.context, past.manifests
    source, target = manifests[hop.source]["files"], manifests[hop.target]["files"]
    handed = handed_over(past, hop)
    handed_files = _handed_over_files(past, hop) if handed else {}
    settled = _settled(past, hop)
    logs = {point: past.log(point) for point in (hop.source, hop.target)}
    cuts = cut_windows(past, hop.target)
    replays = past.replays(hop.target, *(past.manifests_of(cut.window)[hop.target] for cut in cuts))
    group = _group(context, hop)
    indexes = {point: _Index.of(past, point) for point in (hop.source, hop.target)}
    gone = {cut.window.number for cut in cuts}
    return [
        BucketTask(
            context=context,
            hop=hop,
            bucket=bucket,
            source_files=tuple(source.get(bucket, ())),
            target_files=tuple(target.get(bucket, ())),
            source_index=indexes[hop.source].files(bucket),
            target_index=indexes[hop.target].files(bucket, without=gone),
            handed_over=tuple(handed.get(bucket, ())),
            handed_over_files=tuple(handed_files.get(bucket, ())),
            settled_offsets=settled.get("offsets"),
            settled_snapshot=settled.get("snapshot"),
            group_committed=group,
            replays=replays,
            cut_files=tuple(
                cut.files(bucket, source=hop.source, past=past) for cut in cuts if bucket in cut.buckets(past)
            ),
            later_source_files=_later_source_files(past, hop, bucket),
            source_log=logs[hop.source],
            target_log=logs[hop.target],
            source_sequences=manifests[hop.source].get("sequences"),
            target_sequences=manifests[hop.target].get("sequences"),
        )
        for bucket in _buckets(past, hop, cuts, handed)
    ]


def _buckets(past: NeighbouringWindows, hop: Hop, cuts: "Sequence[CutWindow]", handed: _Names) -> list[str]:
    """Those with a key on either side, handed over, or judged anew because a truncation took it."""
    found = {*past.manifests[hop.source]["files"], *past.manifests[hop.target]["files"], *handed}
    for cut in cuts:
        if cut.limits_now:
            found.update(cut.buckets(past))
    return sorted(found)


def _group(context: WindowContext, hop: Hop) -> dict[int, int] | None:
    point = context.pipeline.points[hop.source]
    if not hop.consumer_group or not isinstance(point, TopicPoint):
        return None
    offsets = committed(context.kafka(point), hop.consumer_group, point.topic)
    return {partition: offset for partition, offset in offsets.items() if offset is not None}


def handed_over(past: NeighbouringWindows, hop: Hop) -> _Names:
    """The keys that the window before left to this one, by bucket."""
    context = past.context
    if not any(window.number == context.window.number - 1 for window in past.earlier):
        return {}
    keys: _Names = {}
    for item in evidence.handovers(past.journal, context.pipeline.name, context.window.number - 1):
        if item.hop == hop.name:
            high, low = split_hex(item.key_hash)
            keys.setdefault(f"{high % context.pipeline.buckets:02d}", []).append((item.key, high, low))
    return keys


def _handed_over_files(past: NeighbouringWindows, hop: Hop) -> dict[str, list[str]]:
    """The source's files of the windows before, back to the first that handed anything over: a key may wait long."""
    files: dict[str, list[str]] = {}
    for earlier in reversed(past.earlier):
        handed = evidence.handovers(past.journal, earlier.pipeline, earlier.number)
        if not any(item.hop == hop.name for item in handed):
            break
        for bucket, paths in past.manifests_of(earlier).get(hop.source, {"files": {}})["files"].items():
            files.setdefault(bucket, []).extend(paths)
    return files


def _settled(past: NeighbouringWindows, hop: Hop) -> dict[str, Any]:
    """What had existed at the source for at least the settle time when this is read."""
    latest = datetime.now(UTC) - past.context.pipeline.settle
    seen = [
        entry
        for entry in observations.of(past.journal, past.context.pipeline.name, hop.source)
        if entry.observed_at <= latest
    ]
    if not seen:
        return {"offsets": {}, "snapshot": "1:1:"}
    return {"offsets": dict(seen[-1].stable_offsets or {}), "snapshot": seen[-1].pg_snapshot}


def _later_source_files(past: NeighbouringWindows, hop: Hop, bucket: str) -> tuple[str, ...]:
    """Every version that the source had after the window: their runs in the index know the first and the last."""
    if hop.semantics is not Semantics.UPSERT or not past.later:
        return ()
    found = (past.manifests_of(window).get(hop.source, {"files": {}})["files"] for window in past.later)
    return tuple(path for files in found for path in files.get(bucket, ()))


@dataclass(frozen=True, kw_only=True)
class _Index:
    """The runs of a point by window. `former`: windows that read an earlier incarnation of the topic."""

    runs: Mapping[int, Mapping[str, str]]
    number: int
    former: frozenset[int]

    @classmethod
    def of(cls, past: NeighbouringWindows, point: str) -> "_Index":
        ids = {part.topic_id for part in past.context.window.ranges.get(point, ())}
        former = {
            window.number
            for window in past.earlier
            if ids and not ids & {part.topic_id for part in window.ranges.get(point, ())}
        }
        runs = evidence.key_runs(past.journal, past.context.window, point)
        return cls(runs=runs, number=past.context.window.number, former=frozenset(former))

    def files(self, bucket: str, without: "set[int] | frozenset[int]" = frozenset()) -> IndexFiles:
        held = [(at, files[bucket]) for at, files in sorted(self.runs.items()) if bucket in files and at not in without]
        return IndexFiles(
            earlier=tuple(path for at, path in held if at < self.number and at not in self.former),
            later=tuple(path for at, path in held if at > self.number),
            former=tuple(path for at, path in held if at in self.former),
        )


@dataclass(frozen=True, kw_only=True)
class CutWindow:
    """An earlier window of which a truncation took records of a point: from `limits` on, by partition."""

    window: Window
    point: str
    limits: Mapping[int, int]
    limits_now: Mapping[int, int]

    def buckets(self, past: NeighbouringWindows) -> Mapping[str, Sequence[str]]:
        """The files of its snapshot of the point, by bucket."""
        files: Mapping[str, Sequence[str]] = past.manifests_of(self.window)[self.point]["files"]
        return files

    def files(self, bucket: str, *, source: str, past: NeighbouringWindows) -> CutFiles:
        """Those of one bucket, and what the source of a hop to the point had then."""
        of_source = past.manifests_of(self.window).get(source, {"files": {}})["files"]
        return CutFiles(
            files=tuple(self.buckets(past)[bucket]),
            limits=self.limits,
            limits_now=self.limits_now,
            source_files=tuple(of_source.get(bucket, ())),
        )


def cut_windows(past: NeighbouringWindows, point: str) -> list[CutWindow]:
    """The earlier windows that truncations of a topic reached, noticed by whichever window."""
    log = past.log(point)
    if not log.truncations:
        return []
    now = LogHistory(truncations=tuple(cut for cut in log.truncations if _is_new(cut, log)))
    found = []
    for window in past.earlier:
        parts = window.ranges.get(point, ())
        limits = log.truncated_from(parts)
        if limits and point in past.manifests_of(window):
            limits_now = now.truncated_from(parts)
            found.append(CutWindow(window=window, point=point, limits=limits, limits_now=limits_now))
    return found


def _is_new(cut: Truncation, log: LogHistory) -> bool:
    return any((one.topic_id, one.partition, one.lo) == (cut.topic_id, cut.partition, cut.lo) for one in log.truncated)
