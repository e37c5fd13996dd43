"""Read the windows around the one that is judged from the journal, with what truncations took from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import polars as pl

from makewhole.compute.buckets import buckets_of, names_within
from makewhole.compute.frames import HASHES, REPLAYS, Schema
from makewhole.compute.judge.log_history import LogHistory, TimeSpan, Truncation, log_history
from makewhole.compute.keys import hashes_of_hex
from makewhole.journal import incidents, plans, replayed_positions, windows
from makewhole.journal.history.judged import JudgedWindows, TruncatedLog
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, first_indexed, standing_runs
from makewhole.journal.results import hop_results
from makewhole.journal.results.snapshot_manifests import VALUES_OF, filtered_with, says_what_passes
from makewhole.kafka.offsets import TopicLog
from makewhole.key_index.window_run import replays_in, spans_of
from makewhole.lake.rows_by_bucket import RowsByBucket, spread_rows
from makewhole.model.hops import Hop
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import has_log
from makewhole.model.positions import PositionSpan
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection
from makewhole.window.consumer_groups import GROUP, GroupStanding, with_doubt_where_cut_off, with_nothing_between
from makewhole.window.context import WindowContext
from makewhole.window.readers.hop_offsets import ReaderOffsets, read_hop_offsets, standing_name
from makewhole_spark.reconcile.bucket.other_windows import OtherConfiguration, TruncatedFiles
from makewhole_spark.reconcile.bucket.window_files import FilesOfWindows
from makewhole_spark.snapshot.bucket_count import BUCKETS

Manifests = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class NeighbouringWindows:
    """Reads the other windows of the pipeline from the journal, each once. `manifests` are this window's snapshots."""

    journal: PgConnection
    context: WindowContext
    manifests: Manifests
    _read: dict[int, Manifests] = field(default_factory=dict)
    _indexed_from: dict[str, int] = field(default_factory=dict)
    _first: dict[str, Window] = field(default_factory=dict)
    _runs: dict[str, Sequence[IndexedRun]] = field(default_factory=dict)
    _topic_ids: dict[str, Sequence[tuple[str, str, int]]] = field(default_factory=dict)
    _committed: dict[str, ReaderOffsets] = field(default_factory=dict)
    _replays: dict[tuple[str, frozenset[int]], RowsByBucket] = field(default_factory=dict)

    @property
    def windows(self) -> JudgedWindows:
        """The compared windows of the pipeline, as the journal has them."""
        return JudgedWindows(journal=self.journal, pipeline=self.context.pipeline.name)

    @cached_property
    def buckets(self) -> int:
        """Number of buckets in which the window is judged: the least that any of its snapshots has, so that each bucket
        is made of whole files."""
        names = (name for manifest in self.manifests.values() for name in manifest["files"])
        noted = (int(manifest[BUCKETS]) for manifest in self.manifests.values())
        return min(buckets_of(names), *noted)

    def own_buckets(self, names: Iterable[str]) -> list[str]:
        """Return this window's buckets that share keys with buckets of any windows, sorted."""
        return sorted({own for name in names for own in names_within(name, self.buckets)})

    def by_bucket(self, folder: str, frames: Iterable[pl.DataFrame], schema: Schema) -> RowsByBucket:
        """Spread rows about keys over the buckets in which the window is judged; many of them lie in a folder of it."""
        storage, prefix = self.context.storage, self.context.window.prefix
        return spread_rows(storage, f"{prefix}/{folder}", frames, schema, self.buckets)

    @cached_property
    def recent(self) -> Sequence[Window]:
        """The judged windows before this one whose rows and records may be of keys of it: as far back as `late` and the
        time that a key may wait reach, and the one right before it. Oldest first."""
        window, pipeline = self.context.window, self.context.pipeline
        from_when = None if window.start is None else window.start - pipeline.late - pipeline.pending_max_age
        reached = self.windows.ending_after(from_when, window.number)
        before = None if reached else self.windows.before(window.number)
        return reached if before is None else [before]

    @property
    def right_before(self) -> Window | None:
        """The newest judged window before this one."""
        return self.recent[-1] if self.recent else None

    def backwards(self) -> Iterator[Window]:
        """Yield the judged windows before this one, the newest first; those beyond the recent ones are asked for one by
        one."""
        yield from reversed(self.recent)
        last = self.recent[0] if self.recent else None
        while last is not None and (last := self.windows.before(last.number)) is not None:
            yield last

    @cached_property
    def later(self) -> Sequence[Window]:
        """The judged windows after this one, oldest first: it is judged again."""
        return self.windows.after(self.context.window.number)

    @cached_property
    def first(self) -> Window:
        """The first judged window of the pipeline, or this one."""
        return self._first_of(self.windows.first())

    def first_reading(self, point: str) -> Window:
        """Return the first judged window that read a topic, or this one."""
        if point not in self._first:
            self._first[point] = self._first_of(self.windows.first_reading(point))
        return self._first[point]

    def _first_of(self, window: Window | None) -> Window:
        ours = self.context.window
        return ours if window is None or window.number >= ours.number else window

    @cached_property
    def incidents(self) -> Sequence[tuple[Window, Incident]]:
        """Incidents of this window, and those by which logs lost records, with the window that noticed them, oldest
        first."""
        return incidents.of_log(self.journal, self.context.window)

    def manifests_of(self, window: Window) -> Manifests:
        """Return the snapshots of another window by point: of its revisions those that could read most of it."""
        self.read_manifests([window])
        return self._read[window.number]

    def read_manifests(self, of: Iterable[Window]) -> None:
        """Read the snapshots of windows with one question, as far as they were not asked for yet."""
        self._read.update(self.windows.fullest_manifests({window.number for window in of} - set(self._read)))

    def standing_runs(self, point: str) -> Sequence[IndexedRun]:
        """Return the runs of the key index for a point; none for one that has no index."""
        if point not in self.context.pipeline.indexed_points():
            return ()
        if point not in self._runs:
            topic = IndexedTopic(pipeline=self.context.pipeline.name, point=point)
            self._runs[point] = standing_runs(self.journal, topic, besides=self.context.window.number)
        return self._runs[point]

    def topic_ids(self, point: str) -> Sequence[tuple[str, str, int]]:
        """Return (point, topic id, number of the first window that read it) of a topic, the oldest first."""
        if point not in self._topic_ids:
            self._topic_ids[point] = self.windows.topic_ids([point])
        return self._topic_ids[point]

    def indexed_from(self, point: str) -> int:
        """Return the number of the first window whose keys of a point are known: of a topic as far back as `history`
        says, and as the index has them."""
        if point not in self._indexed_from:
            self._indexed_from[point] = self._find_first_indexed(point)
        return self._indexed_from[point]

    def _find_first_indexed(self, point: str) -> int:
        context, history = self.context, self.context.pipeline.history
        topic = IndexedTopic(pipeline=context.pipeline.name, point=point)
        first = first_indexed(self.journal, topic)
        is_topic = has_log(context.pipeline.points[point])
        if history is None or context.window.start is None or not is_topic:
            return first
        return max(first, self.windows.number_ending_after(context.window.start - history) or context.window.number)

    def history_begins(self, point: str) -> datetime | None:
        """Return the moment from which on the keys of a topic are known; None: since its first window. It may lie
        behind a window that is judged again."""
        if not has_log(self.context.pipeline.points[point]):
            return None
        number = self.indexed_from(point)
        return None if number <= self.first_reading(point).number else self.windows.start_of(number)

    def read_with_other_configuration(self, window: Window, point: str) -> OtherConfiguration | None:
        """Return where the records of another window are, if it read a point with another configuration than this, or
        by other types of its columns."""
        manifest, own = self.manifests_of(window).get(point), self.manifests[point]
        if manifest is None or _read_by(manifest) == _read_by(own):
            return None
        filtered = [hop.name for hop in self.context.pipeline.hops_from(point) if hop.where is not None]
        return OtherConfiguration(
            archive=manifest.get("archive", ""),
            ranges=tuple(window.ranges.get(point, ())),
            has_same_values=manifest.get(VALUES_OF) == own.get(VALUES_OF),
            other_filters=frozenset(hop for hop in filtered if not says_what_passes(manifest, own, hop)),
        )

    def files_by_bucket(self, point: str, of: Iterable[Window], *more: Mapping[str, Any]) -> FilesOfWindows:
        """Return the files of a point in other windows, and those that more manifests name."""
        manifests = (self.manifests_of(window).get(point, {"files": {}}) for window in of)
        return FilesOfWindows.of([*more, *manifests], self.manifests[point])

    def log(self, point: str) -> LogHistory:
        """Return the history of a point's log; an empty one for a table."""
        accounting = self.manifests[point].get("accounting") or {}
        log = log_history(self.context.window, point, self.incidents, expired=accounting.get("expired", 0))
        log = replace(log, is_whole=log.is_whole and self._is_read_from_beginning(point))
        begins = self.history_begins(point)
        if begins is None:
            return log
        # What a key index has dropped is as little known as what a log has. A key of the last dropped window may have
        # its row, or its record, as much later as keys may be late.
        pipeline = self.context.pipeline
        dropped = TimeSpan(end=begins + pipeline.late + pipeline.pending_max_age)
        return replace(log, dropped=(dropped,))

    def _is_read_from_beginning(self, point: str) -> bool:
        """Return whether the windows have read a topic from its first offsets on, and it was never made again; no
        window is opened before the one before it was compared. It is asked where all records of a key are needed
        (`group`)."""
        if not any(hop.group is not None and hop.source == point for hop in self.context.pipeline.hops):
            return True
        return len(self.topic_ids(point)) <= 1 and all(part.lo == 0 for part in self.first_ranges(point))

    @cached_property
    def _newest(self) -> Window:
        newest = self.windows.newest()
        return self.context.window if newest is None or newest.number <= self.context.window.number else newest

    def covered(self, point: str) -> Sequence[PartitionRange]:
        """Return the ranges of the newest judged window, or of this one: no index has records behind their ends."""
        return self._newest.ranges[point]

    def first_ranges(self, point: str) -> Sequence[PartitionRange]:
        """Return the ranges of the first window that read a topic, which may be this one."""
        return self.first_reading(point).ranges[point]

    def group_committed(self, hop: Hop) -> Mapping[int, int | None] | None:
        """Return the offsets that what loads a hop's target reads next, asked once; None: the file names neither its
        own progress nor its group.

        None for a partition: it has none there, or an offset that the log does not have.
        """
        offsets = self.reader_offsets(hop)
        return None if offsets is None else offsets.committed

    def reader_offsets(self, hop: Hop) -> ReaderOffsets | None:
        """Return where what loads a hop's target stands, asked once; None: the file names nothing that says it.

        It is asked before the buckets are judged: rows that were written up to there are found when a key is looked up.
        """
        point = self.context.pipeline.points[hop.source]
        if hop.reader is None or not has_log(point):
            return None
        if hop.name not in self._committed:
            target = self.context.pipeline.points[hop.target]
            with TopicLog(self.context.kafka(point), point.topic) as log:
                reader_offsets = read_hop_offsets(log, hop, target, self.context.connections[target.connection])
            assert reader_offsets is not None
            ranges = self.context.window.ranges.get(hop.source, ())
            before = self.standings_before.get(hop.name)
            is_same = before is not None and bool(ranges) and before.is_of(standing_name(hop), ranges[0].topic_id)
            before = before if is_same else None
            offsets = with_nothing_between(reader_offsets.offsets, before, ranges)
            offsets = with_doubt_where_cut_off(offsets, before, self._cut_off(hop.source))
            self._committed[hop.name] = replace(reader_offsets, offsets=offsets)
        return self._committed[hop.name]

    def _cut_off(self, point: str) -> Mapping[int, int]:
        """Return from which offset on this window found a topic cut off, by partition."""
        own = self.context.window.number
        cuts = sorted(
            (incident.lo, incident.partition)
            for window, incident in self.incidents
            if (window.number, incident.point, incident.kind) == (own, point, IncidentKind.TRUNCATED)
            and incident.lo is not None
            and incident.partition is not None
        )
        return {partition: lo for lo, partition in reversed(cuts)}

    @cached_property
    def standings_before(self) -> Mapping[str, GroupStanding]:
        """Where the consumer groups stood when the window before was judged, by hop."""
        last = self.right_before
        if last is None or last.number != self.context.window.number - 1:
            return {}
        return {
            hop: GroupStanding.from_json_dict(result.files[GROUP])
            for hop, result in hop_results.results(self.journal, last).items()
            if GROUP in result.files
        }

    def first_opened_at(self, window: Window) -> datetime:
        """Return when a window was first opened: all of its records existed then."""
        if window.revision == 1:
            return window.opened_at
        return windows.load(self.journal, window.pipeline, window.number, 1).opened_at

    def replays(self, point: str, *more: Window) -> RowsByBucket:
        """Return the records that compensation wrote to a topic (`REPLAYS`) in this window's ranges and in those of
        `more` windows, by the journal: a lineage header alone proves nothing."""
        asked = point, frozenset(window.number for window in more)
        if asked not in self._replays:
            self._replays[asked] = self._find_replays(point, more)
        return self._replays[asked]

    def _find_replays(self, point: str, more: Sequence[Window]) -> RowsByBucket:
        if not has_log(self.context.pipeline.points[point]):
            return self.by_bucket(point, (), REPLAYS)
        spans = [span for window in (self.context.window, *more) for span in spans_of(window, point)]
        return self._replays_in(point, spans)

    def keys_written_for_window(self, point: str) -> RowsByBucket:
        """Return the keys (`HASHES`) of which the plans made for this window wrote records to a topic."""
        topic_ids = {part.topic_id for part in self.context.window.ranges.get(point, ())}
        made = plans.ids_of_window(self.journal, self.context.window)
        written = replayed_positions.keys_written(self.journal, made, topic_ids)
        return self.by_bucket(f"{point}/written", map(hashes, written), HASHES)

    def replays_behind(self, point: str, topic_id: str, ends: Mapping[int, int]) -> RowsByBucket:
        """Return the records that compensation wrote to a topic behind these offsets (by partition), and to partitions
        that came later."""
        spans = [
            PositionSpan(topic_id=topic_id, first=partition, last=partition, lo=end, hi=None)
            for partition, end in ends.items()
        ]
        spans.append(PositionSpan(topic_id=topic_id, first=max(ends, default=-1) + 1, last=None, lo=0, hi=None))
        return self._replays_in(point, spans)

    def _replays_in(self, point: str, spans: Sequence[PositionSpan]) -> RowsByBucket:
        return self.by_bucket(f"{point}/replays", replays_in(self.journal, spans), REPLAYS)


def _read_by(manifest: Mapping[str, Any]) -> Sequence[Any]:
    """Return by what the rows of a snapshot were made: the file, and the types of its columns, which tables decide."""
    return *filtered_with(manifest), manifest.get(VALUES_OF)


def hashes(key_hashes: Sequence[tuple[str | None]]) -> pl.DataFrame:
    """Return rows of a key hash each as `HASHES`; those without one are left out."""
    rows = pl.DataFrame(key_hashes, schema={"key_hash": pl.String}, orient="row").drop_nulls()
    return rows.select(*hashes_of_hex())


@dataclass(frozen=True, kw_only=True)
class TruncatedWindow:
    """An earlier window that truncations took records of a point from: from `limits` on, by partition.

    `limits_now` are those of the truncations that this window noticed.
    """

    window: Window
    point: str
    limits: Mapping[int, int]
    limits_now: Mapping[int, int]

    def files_by_bucket(self, neighbours: NeighbouringWindows) -> Mapping[str, Sequence[str]]:
        """Return the files of its snapshot of the point, by bucket."""
        files: Mapping[str, Sequence[str]] = neighbours.manifests_of(self.window)[self.point]["files"]
        return files

    def files_of(self, bucket: str, *, source: str, neighbours: NeighbouringWindows) -> TruncatedFiles:
        """Return those that have keys of one bucket, with the files of the source of a hop to the point."""
        return TruncatedFiles(
            files=neighbours.files_by_bucket(self.point, [self.window]).in_bucket(bucket),
            limits=self.limits,
            limits_now=self.limits_now,
            source_files=neighbours.files_by_bucket(source, [self.window]).in_bucket(bucket),
        )


def truncated_windows(neighbours: NeighbouringWindows, point: str) -> list[TruncatedWindow]:
    """Return the earlier windows that truncations of a topic took records from, whichever window noticed them."""
    log = neighbours.log(point)
    if not log.truncations:
        return []
    now = LogHistory(truncations=tuple(cut for cut in log.truncations if _is_new(cut, log)))
    truncated = [
        TruncatedLog(topic_id=cut.topic_id, partition=cut.partition, lineage=cut.lineage, lo=cut.lo)
        for cut in log.truncations
    ]
    reached = neighbours.windows.reached_by(point, truncated, neighbours.context.window.number)
    neighbours.read_manifests(reached)
    affected = []
    for window in reached:
        parts = window.ranges.get(point, ())
        limits = log.truncated_from(parts)
        if limits and point in neighbours.manifests_of(window):
            limits_now = now.truncated_from(parts)
            affected.append(TruncatedWindow(window=window, point=point, limits=limits, limits_now=limits_now))
    return affected


def _is_new(truncation: Truncation, log: LogHistory) -> bool:
    """Return whether this window noticed the truncation."""
    place = (truncation.topic_id, truncation.partition, truncation.lo)
    return any((incident.topic_id, incident.partition, incident.lo) == place for incident in log.truncated)
