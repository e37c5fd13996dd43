"""Take the snapshots of a window: read every point once, normalise, hash and bucket it where it is read.

A task reads a piece of a point and writes its own Parquet files, one or more per bucket. A snapshot exists when its
manifest is committed to the journal: files of attempts that died are never named by one.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from makewhole.journal import incidents, windows
from makewhole.journal.results import slice_counts, snapshot_manifests
from makewhole.journal.results.snapshot_manifests import VALUES_OF
from makewhole.kafka.offsets import describe_topic
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.incident import Incident
from makewhole.model.pipeline import Hop, Semantics
from makewhole.model.points import (
    Point,
    PointKind,
    TablePoint,
    TopicPoint,
    can_look_up,
    has_log,
    is_by_sequence,
)
from makewhole.model.text import NOT_NUMBERED
from makewhole.model.window import CountedSlice, PartitionRange
from makewhole.sql import PgConnection
from makewhole.tables.reading import ReadPlan, TableView
from makewhole.tables.shape import TimeBounds
from makewhole.window.configuration import judging_sha256, reading_sha256
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import Carrier, carry_released
from makewhole_spark.replayed import require_replayed
from makewhole_spark.snapshot.accounts import PartitionAccount, log_incidents, log_manifest, partition_accounts
from makewhole_spark.snapshot.bucket_count import bucket_count
from makewhole_spark.snapshot.census import own_slice
from makewhole_spark.snapshot.leader_changes import TopicReading, with_doubts
from makewhole_spark.snapshot.read_census import CensusPiece, read_table
from makewhole_spark.snapshot.read_piece import (
    MOST_REASONS,
    PieceRead,
    TablePiece,
    TopicPiece,
    read_piece,
    sum_of_known,
)
from makewhole_spark.snapshot.table_bounds import counted_wholly, previous_window, table_bounds, unreadable_files
from makewhole_spark.snapshot.value_census import StoreCensus, store_census, values_sha256

logger = logging.getLogger(__name__)

_RECORDS_PER_TASK = 2_000_000


def take_snapshots(
    carrier: Carrier, journal: PgConnection, context: WindowContext, parallelism: int, buckets: int | None = None
) -> list[str]:
    """Take and commit every snapshot of the window that is not committed yet; return their points' names. `buckets`
    None: as many as the size of the window asks for.

    Topics first, then ledgers and the stores that are read by their times alone, all at once, then the stores that are
    read by the keys of their upstream: those with versions or without times.
    """
    manifests = dict(snapshot_manifests.snapshots(journal, context.window))
    wanted = [point for point in context.pipeline.ordered_points() if point.name not in manifests]
    if not wanted:
        return []
    require_replayed(journal, context)
    buckets = buckets or bucket_count(journal, context, manifests)
    reading = _Reading(carrier=carrier, journal=journal, context=context, parallelism=parallelism, buckets=buckets)
    # Topics by themselves: while their log is read, no view of a table is held open, which would keep vacuum from it.
    topics = [point for point in wanted if has_log(point)]
    tables = [point for point in wanted if can_look_up(point)]
    by_keys = [point for point in tables if _hops_read_by_keys(context, point)]
    # A row is in its ledger before it is in a store: the view of the ledger is the older one.
    by_times = [point for point in tables if point not in by_keys]
    by_times.sort(key=lambda point: point.kind is PointKind.STORE)
    _commit(reading, reading.topics(topics), manifests)
    for together in (by_times, by_keys):
        _commit(reading, reading.tables(together, manifests), manifests)
    return [point.name for point in wanted]


def _commit(reading: "_Reading", taken: Mapping[str, "TakenSnapshot"], manifests: dict[str, Any]) -> None:
    """Commit snapshots to the journal, and note their manifests."""
    for name, snapshot in taken.items():
        if snapshot_manifests.commit_snapshot(reading.journal, reading.context.window, name, snapshot.manifest):
            incidents.put(reading.journal, reading.context.window, snapshot.incidents)
            if snapshot.counted:
                point = reading.context.pipeline.table(name)
                slice_counts.put(reading.journal, reading.context.window, point, snapshot.counted)
        reading.journal.commit()
        manifests[name] = snapshot.manifest


@dataclass(frozen=True, kw_only=True)
class TakenSnapshot:
    """The manifest of a snapshot that is not committed yet, the incidents of what it was taken of, and the slices of a
    table that were counted."""

    manifest: dict[str, Any]
    incidents: list[Incident] = field(default_factory=list)
    counted: Sequence[CountedSlice] = ()


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """The reading of points by Spark, in at most so many pieces a table, into so many buckets.

    Before Spark works the transaction at the journal is ended: none is held open for as long as that takes.
    """

    carrier: Carrier
    journal: PgConnection
    context: WindowContext
    parallelism: int
    buckets: int

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """The digests of the pipeline's file that each manifest keeps."""
        pipeline = self.context.pipeline
        return {"judging_sha256": judging_sha256(pipeline), "reading_sha256": reading_sha256(pipeline)}

    def topics(self, points: Sequence[TopicPoint]) -> dict[str, TakenSnapshot]:
        """Read topics; none of an incarnation that is gone."""
        ids = {point.name: _topic_id(self.context, point) for point in points}
        pieces = [piece for point in points for piece in _topic_pieces(self, point, ids[point.name])]
        taken_at = datetime.now(UTC)
        answers = self._read_topics(pieces, ids)
        taken: dict[str, TakenSnapshot] = {}
        for point in points:
            reads = [answer for piece, answer in zip(pieces, answers, strict=True) if piece.point.name == point.name]
            accounts = partition_accounts(self.context, point, reads, ids[point.name])
            manifest = _manifest(self, point, taken_at, reads, None)
            taken[point.name] = _taken_topic(self.journal, self.context, point, accounts, manifest)
        return taken

    def tables(
        self, points: Sequence[TablePoint], manifests: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, TakenSnapshot]:
        """Read tables, each under one exported snapshot; `manifests` name the keys by which stores are read."""
        with ExitStack() as stack:
            views = {
                point.name: stack.enter_context(self.context.tables(point).hold_view(self.context.table_shape(point)))
                for point in points
            }
            bounds = {
                point.name: table_bounds(self.journal, self.context, point, views[point.name]) for point in points
            }
            plans = {name: view.plan(bounds[name].bounds, self.parallelism) for name, view in views.items()}
            pieces = [
                piece
                for point in points
                for piece in _table_pieces(self, point, plans[point.name], bounds[point.name].bounds, manifests)
            ]
            known = {
                point.name: store_census(self.journal, views[point.name], self.context, point, manifests)
                for point in points
            }
            looks = [piece for point in points for piece in _census_pieces(self, known[point.name], plans[point.name])]
            taken_at = datetime.now(UTC)
            both: list[TablePiece | CensusPiece] = [*pieces, *looks]
            answers = carry_released(self.carrier, self.journal, both, read_table)
            own = {point.name: self._own_slice(point, views[point.name], pieces, answers) for point in points}
        taken: dict[str, TakenSnapshot] = {}
        for point in points:
            read = [(task, answer) for task, answer in zip(both, answers, strict=True) if task.point.name == point.name]
            manifest = _manifest(self, point, taken_at, [answer for _, answer in read], plans[point.name])
            looked = [(piece.hop.name, answer) for piece, answer in read if isinstance(piece, CensusPiece)]
            plan, census = plans[point.name], bounds[point.name].census
            counted = counted_wholly(replace(census, counted=(*own[point.name], *census.counted)), plan)
            taken[point.name] = TakenSnapshot(
                manifest={**manifest, **bounds[point.name].manifest(), **known[point.name].manifest(looked)},
                incidents=[*counted.incidents, *known[point.name].incidents, *unreadable_files(point, plan)],
                counted=counted.counted,
            )
        return taken

    def _own_slice(
        self, point: TablePoint, view: TableView, pieces: Sequence[TablePiece], answers: Sequence[PieceRead]
    ) -> Sequence[CountedSlice]:
        """Return the window's own slice of a table with the number of its rows, where it has times.

        As they were read; they are counted in the table where that does not tell: rows that are erased in place are not
        read, and count.
        """
        if point.time is None:
            return ()
        own, has_erased = own_slice(self.context.window), point.erased is not None and point.erased.column is not None
        read = [
            answer.rows_in_slice
            for piece, answer in zip(pieces, answers[: len(pieces)], strict=True)
            if piece.point.name == point.name and piece.bounds is not None
        ]
        rows = None if has_erased else sum_of_known(read)
        if rows is None:
            rows = view.count_rows([own])[own.window]
        return [CountedSlice(slice=own, rows=rows, pg_snapshot=view.seen)]

    def _read_topics(self, pieces: list[TopicPiece], ids: Mapping[str, str]) -> list[PieceRead]:
        try:
            return carry_released(self.carrier, self.journal, pieces, read_piece)
        except RefusedError as error:
            for point in {piece.point.name: piece.point for piece in pieces}.values():
                if _topic_id(self.context, point) != ids[point.name]:
                    raise TransientError(
                        f"topic {point.topic} was deleted and made again while it was read; try again"
                    ) from error
            raise


def _topic_id(context: WindowContext, point: TopicPoint) -> str:
    return describe_topic(context.kafka(point), point.topic).topic_id


def _topic_pieces(reading: _Reading, point: TopicPoint, now_id: str) -> Iterator[TopicPiece]:
    """Yield the pieces of a topic; none of a topic recreated since the window was opened: other windows have those."""
    context, buckets = reading.context, reading.buckets
    for whole in context.window.ranges[point.name]:
        if whole.topic_id == now_id:
            for piece in split_range(whole, _RECORDS_PER_TASK):
                yield TopicPiece(context=context, point=point, bucket_count=buckets, range=piece, window_lo=whole.lo)


def _taken_topic(
    journal: PgConnection,
    context: WindowContext,
    point: TopicPoint,
    accounts: Sequence[PartitionAccount],
    manifest: Mapping[str, Any],
) -> TakenSnapshot:
    earlier = previous_window(journal, context)
    before = {} if earlier is None else snapshot_manifests.snapshots(journal, earlier).get(point.name, {})
    taken = {**manifest, **log_manifest(context, point, accounts, before)}
    happened = log_incidents(point, accounts, _epochs_before(journal, context, point))
    reading = TopicReading(context=context, point=point, accounts=accounts, before=before, manifest=taken)
    return TakenSnapshot(manifest=taken, incidents=with_doubts(journal, reading, happened))


def _epochs_before(journal: PgConnection, context: WindowContext, point: TopicPoint) -> dict[int, int]:
    """Return the last leader epoch of each partition, of the same incarnation, when the window before was frozen."""
    ids = {part.topic_id for part in context.window.ranges[point.name]}
    before = windows.ranges(journal, context.pipeline.name, context.window.number - 1).get(point.name, ())
    return {part.partition: part.leader_epochs[-1][0] for part in before if part.topic_id in ids and part.leader_epochs}


def split_range(whole: PartitionRange, most: int) -> Iterator[PartitionRange]:
    """Split a range into pieces of at most `most` offsets; none for an empty range."""
    for lo in range(whole.lo, whole.hi, most):
        yield replace(whole, lo=lo, hi=min(lo + most, whole.hi))


def _table_pieces(
    reading: _Reading,
    point: TablePoint,
    plan: ReadPlan,
    bounds: TimeBounds | None,
    manifests: Mapping[str, Mapping[str, Any]],
) -> Iterator[TablePiece]:
    context, parallelism, count = reading.context, reading.parallelism, reading.buckets
    if bounds is not None or point.kind is PointKind.LEDGER:
        for part in plan.parts:
            yield TablePiece(context=context, point=point, bucket_count=count, view=plan.view, bounds=bounds, part=part)
    for hop in _hops_read_by_keys(context, point):
        files = manifests[hop.source]["files"]
        for at in range(parallelism):
            buckets = tuple(sorted(files))[at::parallelism]
            yield TablePiece(
                context=context,
                point=point,
                bucket_count=count,
                view=plan.view,
                bounds=None,
                keys_of=files,
                buckets=buckets,
            )


def _census_pieces(reading: _Reading, known: StoreCensus, plan: ReadPlan) -> Iterator[CensusPiece]:
    """Yield the pieces in which rows of known keys are looked at: of each hop as many as run at once."""
    for look in known.looks:
        for at in range(min(reading.parallelism, len(look.shares))):
            yield CensusPiece(
                context=reading.context,
                point=known.point,
                hop=look.hop,
                bucket_count=reading.buckets,
                view=plan.view,
                shares=look.shares[at :: reading.parallelism],
            )


def _hops_read_by_keys(context: WindowContext, point: TablePoint) -> list[Hop]:
    """Return the hops whose source's keys a table is read by.

    By its times every row of an event is read once, in one window or another; versions leave their slices.
    """
    return [
        hop
        for hop in context.pipeline.hops
        if hop.target == point.name and (point.time is None or hop.semantics is Semantics.UPSERT)
    ]


def _manifest(
    reading: _Reading, point: Point, taken_at: datetime, reads: list[PieceRead], plan: ReadPlan | None
) -> dict[str, Any]:
    tombstones = _by_bucket(file for read in reads for file in read.tombstone_files)
    manifest: dict[str, Any] = {
        "point": point.name,
        "kind": point.kind.value,
        "taken_at": taken_at.isoformat(),
        "buckets": reading.buckets,
        "files": _by_bucket(file for read in reads for file in read.files),
        **_not_numbered(point, reads),
        **({"tombstones": tombstones} if reading.context.pipeline.has_erasures(point.name) else {}),
        "rows": sum(read.rows for read in reads),
        "undecodable": sum(read.undecodable for read in reads),
        "undecodable_because": _because(reads),
        "undecodable_files": sorted(path for read in reads for path in read.undecodable_files),
        "sha256": {path: digest for read in reads for path, digest in read.sha256},
        **reading.digests,
        VALUES_OF: values_sha256(reading.context.pipeline, point.name),
        "key_layout": [kind.value for kind in point.key_layout],
    }
    if plan is not None:
        manifest["pg_snapshot"] = plan.seen
        manifest["rows_counted"] = sum(read.rows_counted or 0 for read in reads)
    return manifest


def _not_numbered(point: Point, reads: Iterable[PieceRead]) -> dict[str, int]:
    """Return the number of records without the sequence by which a topic's records are known, where there are any."""
    records = sum(read.unnumbered for read in reads) if has_log(point) and is_by_sequence(point.key) else 0
    return {NOT_NUMBERED: records} if records else {}


def _because(reads: Iterable[PieceRead]) -> dict[str, int]:
    """Return how many records or rows were undecodable for each of the most frequent reasons."""
    reasons: Counter[str] = Counter()
    for read in reads:
        reasons.update(dict(read.undecodable_because))
    return dict(reasons.most_common(MOST_REASONS))


def _by_bucket(written: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the paths by bucket, each in the order in which they were written, which is that of the pieces: the names
    of files are drawn, and would put rows into an order of chance."""
    files: dict[str, list[str]] = {}
    for bucket, path in written:
        files.setdefault(bucket, []).append(path)
    return dict(sorted(files.items()))
