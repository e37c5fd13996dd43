"""Gather what is known of the keys of a point: its slice, its part of the key index, its log, and what could not be
read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from makewhole.compute.buckets import files_of_bucket, shares_keys
from makewhole.compute.frames import REPLAYS
from makewhole.compute.indexed_keys.former_readings import numbered_number
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.judge.undecidable import UnreadRecords
from makewhole.gate.summary import PointEvidence
from makewhole.journal.key_index.runs import IndexedRun
from makewhole.key_index.files import IndexFile
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.hops import Hop, Semantics
from makewhole.model.points import has_log
from makewhole.model.window import Accounting, Window
from makewhole_spark.reconcile.bucket.other_windows import IndexFiles
from makewhole_spark.reconcile.bucket.task import BucketEnd, PointIndex
from makewhole_spark.reconcile.bucket.window_files import FilesOfWindows
from makewhole_spark.reconcile.gather.ledger_files import ledger_files, replaced_ledger_files
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.reconcile.gather.unread_records import UnreadOfPoint, compacted_records, unread_records


@dataclass(frozen=True, kw_only=True)
class PointFacts:
    """Hold what is known of the keys of a point at one end of a hop, by bucket; see `BucketEnd`.
    `is_table_of_versions`: its rows are the versions that stand, and what the index has of them only tells which keys
    to ask them for."""

    files: Mapping[str, Sequence[str]]
    runs: "_PointRuns"
    log: LogHistory
    unread: UnreadOfPoint
    compacted: UnreadRecords
    replays: RowsByBucket
    sequences: str | None
    is_topic: bool
    is_table_of_versions: bool
    before: FilesOfWindows = field(default_factory=FilesOfWindows)
    replaced: FilesOfWindows = field(default_factory=FilesOfWindows)
    after: FilesOfWindows = field(default_factory=FilesOfWindows)

    @classmethod
    def of_source(cls, neighbours: NeighbouringWindows, hop: Hop) -> "PointFacts":
        """Return what is known at the source of a hop."""
        facts = cls._of(neighbours, hop, hop.source, neighbours.replays(hop.source))
        return replace(
            facts,
            before=ledger_files(neighbours, hop),
            replaced=replaced_ledger_files(neighbours, hop),
            after=_later_files(neighbours, hop),
        )

    @classmethod
    def of_sibling(cls, neighbours: NeighbouringWindows, hop: Hop, sibling: Hop) -> "PointFacts":
        """Return what is known at the source of another hop that leads to the same place as a hop."""
        facts = cls._of(neighbours, hop, sibling.source, neighbours.by_bucket(sibling.source, (), REPLAYS))
        return replace(facts, before=ledger_files(neighbours, sibling))

    @classmethod
    def of_target(cls, neighbours: NeighbouringWindows, hop: Hop, truncated: Sequence[Window]) -> "PointFacts":
        """Return what is known at the target of a hop. `truncated`: the windows that it has lost records of."""
        return cls._of(neighbours, hop, hop.target, neighbours.replays(hop.target, *truncated))

    @classmethod
    def _of(cls, neighbours: NeighbouringWindows, hop: Hop, point: str, replays: RowsByBucket) -> "PointFacts":
        is_topic = has_log(neighbours.context.pipeline.points[point])
        other = hop.source if point == hop.target else hop.target
        return cls(
            files=neighbours.manifests[point]["files"],
            runs=_PointRuns.of(neighbours, point),
            log=neighbours.log(point),
            unread=unread_records(neighbours, point, other=other),
            compacted=compacted_records(neighbours, point, other=other),
            replays=replays,
            sequences=neighbours.manifests[point].get("sequences"),
            is_topic=is_topic,
            is_table_of_versions=hop.semantics is Semantics.UPSERT and not is_topic,
        )

    def in_bucket(self, bucket: str, without: frozenset[int] = frozenset()) -> BucketEnd:
        """Return what is known of the keys of a bucket; of the index without the windows of these numbers."""
        return BucketEnd(
            files=files_of_bucket(self.files, bucket),
            before=self.before.in_bucket(bucket),
            replaced=self.replaced.in_bucket(bucket),
            after=self.after.in_bucket(bucket),
            index=self._index(self.runs.files(bucket, without)),
            log=self.log,
            unread=self.unread.in_bucket(bucket),
            compacted=self.compacted,
            replays=self.replays.in_bucket(bucket),
            sequences=self.sequences,
        )

    def _index(self, files: IndexFiles) -> PointIndex:
        if self.is_topic:
            return PointIndex(copies=files)
        return PointIndex(versions=files) if self.is_table_of_versions else PointIndex(rows=files)


def point_evidence(name: str, manifests: Mapping[str, Any]) -> PointEvidence:
    """Return the numbers of a point by the manifests of the window's snapshots."""
    manifest = manifests[name]
    accounting = manifest.get("accounting")
    return PointEvidence(
        point=name,
        has_manifest=True,
        rows_read=manifest["rows"] + (manifest["undecodable"] if "rows_counted" in manifest else 0),
        rows_counted=manifest.get("rows_counted"),
        accounting=None if accounting is None else Accounting(**accounting),
        undecodable=manifest["undecodable"],
        undecodable_because=next(iter(manifest["undecodable_because"]), None),
    )


def runs_before(neighbours: NeighbouringWindows, point: str, bucket: str) -> tuple[IndexFile, ...]:
    """Return the files of the key index for a bucket of a topic, of the windows before this one that read it as it is
    now."""
    return _PointRuns.of(neighbours, point).files(bucket, frozenset()).earlier


def _later_files(neighbours: NeighbouringWindows, hop: Hop) -> FilesOfWindows:
    """Return the source's files of later windows, with every version: a run of the index has at most two per key."""
    if hop.semantics is not Semantics.UPSERT or not neighbours.later:
        return FilesOfWindows()
    neighbours.read_manifests(neighbours.later)
    return neighbours.files_by_bucket(hop.source, neighbours.later)


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
            numbered_by=numbered_number(neighbours.context.pipeline.points[point].version_place),
        )

    def files(self, bucket: str, without: frozenset[int]) -> IndexFiles:
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
