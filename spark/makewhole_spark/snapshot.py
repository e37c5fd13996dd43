"""The snapshots of a window: every point read once, normalised, hashed and bucketed where it is read.

A task reads a piece of a point and writes its own Parquet files, one or more per bucket. A snapshot exists when its
manifest is committed to the journal: files of attempts that died are never named by one.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from makewhole.compute.frames import UNDECODABLE
from makewhole.compute.keys import bucket_of
from makewhole.compute.normalise import table_frame, topic_frame
from makewhole.config.context import WindowContext
from makewhole.journal import evidence, windows
from makewhole.journal.database import Journal
from makewhole.kafka.archive import SegmentWriter
from makewhole.kafka.broker import BrokerLog
from makewhole.kafka.damaged import Undecodable
from makewhole.kafka.log import read_range
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Point, PointKind, TablePoint, TopicPoint
from makewhole.model.window import Accounting, PartitionRange, Window
from makewhole.postgres.export import ExportPart, ExportPlan, TableReader, exported
from makewhole.postgres.expressions import TimeBounds
from makewhole_spark.carrier import carry

logger = logging.getLogger(__name__)

_RECORDS_PER_TASK = 2_000_000
_ROWS_PER_FLUSH = 1_000_000


@dataclass(frozen=True, kw_only=True)
class TopicPiece:
    """Offsets of one partition, for one task."""

    context: WindowContext
    point: TopicPoint
    range: PartitionRange
    window_lo: int


@dataclass(frozen=True, kw_only=True)
class TablePiece:
    """Pages of a table inside an exported snapshot; with `keys_of`, the rows of that point's keys in some buckets."""

    context: WindowContext
    point: TablePoint
    plan: ExportPlan
    bounds: TimeBounds | None
    part: ExportPart
    keys_of: Mapping[str, list[str]] | None = None
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PieceRead:
    """What one task wrote: `files` as (bucket, path), and the numbers of the read."""

    files: tuple[tuple[str, str], ...]
    rows: int
    rows_counted: int | None = None
    undecodable_files: tuple[str, ...] = ()
    undecodable: int = 0
    accounting: Accounting | None = None
    partition: int | None = None
    leader_epochs: tuple[tuple[int, int, int], ...] = ()
    replay_plans: tuple[str, ...] = ()


@dataclass
class BucketWriter:
    """Collects frames and writes them by bucket, so that no shuffle is ever needed."""

    context: WindowContext
    folder: str
    held: list[pl.DataFrame] = field(default_factory=list)
    held_rows: int = 0
    rows: int = 0
    files: list[tuple[str, str]] = field(default_factory=list)
    bad: list[pl.DataFrame] = field(default_factory=list)
    replay_plans: set[str] = field(default_factory=set)

    def add(self, frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
        """Take the good and the undecodable rows of one batch."""
        good, bad = frames
        if len(bad):
            self.bad.append(bad)
        if "replay_plan" in good.columns:
            self.replay_plans.update(good["replay_plan"].drop_nulls().unique())
        self.held.append(good)
        self.held_rows += len(good)
        if self.held_rows >= _ROWS_PER_FLUSH:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        if not self.held_rows:
            return
        frame = pl.concat(self.held).with_columns(bucket_of(self.context.pipeline.buckets))
        for (bucket,), part in frame.partition_by("bucket", as_dict=True, include_key=False).items():
            name = f"{bucket:02d}"
            path = self.context.storage.write_parquet(f"{self.folder}/keys/bucket={name}", part)
            self.files.append((name, path))
        self.rows += self.held_rows
        self.held, self.held_rows = [], 0

    def finish(self, **numbers: Any) -> PieceRead:
        """Write the rest and say what there is."""
        self.flush()
        paths: tuple[str, ...] = ()
        bad = pl.concat(self.bad) if self.bad else pl.DataFrame(schema=UNDECODABLE)
        if len(bad):
            paths = (self.context.storage.write_parquet(f"{self.folder}/undecodable", bad),)
        return PieceRead(
            files=tuple(self.files),
            rows=self.rows,
            undecodable=len(bad),
            undecodable_files=paths,
            replay_plans=tuple(sorted(self.replay_plans)),
            **numbers,
        )


def point_folder(context: WindowContext, point: Point) -> str:
    """Where the snapshot of a point is, below the storage root."""
    return f"{context.window.prefix}/{point.name}"


def read_topic_piece(piece: TopicPiece) -> PieceRead:
    """Read, decode, hash, bucket and archive the offsets of one task.

    Raises:
        TransientError: the read came up short.
    """
    context, writer = piece.context, BucketWriter(piece.context, point_folder(piece.context, piece.point))
    shape = context.value_shape(piece.point)
    archive = context.storage.uri(f"{writer.folder}/archive")
    segment = SegmentWriter(archive, piece.range, window_lo=piece.window_lo)
    with closing(BrokerLog(context.kafka(piece.point))) as broker:
        reader = read_range(broker, piece.range, include_aborted=True, on_fetched=segment.write)
        try:
            for batch in reader.batches():
                writer.add(topic_frame(batch, shape))
        except BaseException:
            segment.discard()
            raise
    segment.finish(reader.expired, reader.aborted)
    without_key = sum(len(frame) for frame in writer.bad)
    writer.bad.append(_unreadable(piece.range.partition, reader.undecodable))
    return writer.finish(
        accounting=reader.accounting + Accounting(span=0, data=-without_key, undecodable=without_key),
        partition=piece.range.partition,
        leader_epochs=tuple(tuple(entry) for entry in reader.leader_epochs),
    )


def _unreadable(partition: int, found: list[Undecodable]) -> pl.DataFrame:
    rows = [(f"{partition}:{item.offset}", item.reason) for item in found]
    return pl.DataFrame(rows, schema=UNDECODABLE, orient="row")


def read_table_piece(piece: TablePiece) -> PieceRead:
    """Export, hash and bucket the rows of one task.

    Raises:
        TransientError: the read came up short.
    """
    context, writer = piece.context, BucketWriter(piece.context, point_folder(piece.context, piece.point))
    shape, connection = context.table_shape(piece.point), context.postgres(piece.point)
    reader = TableReader(connection, shape, piece.plan.snapshot)
    frames = reader.part(piece.bounds, piece.part) if piece.keys_of is None else reader.keys(_keys(piece))
    for frame in frames:
        writer.add(table_frame(frame, dict(context.pipeline.compare)))
    return writer.finish(rows_counted=reader.counted)


def _keys(piece: TablePiece) -> list[str]:
    """The distinct keys of the upstream's snapshot in this task's buckets."""
    assert piece.keys_of is not None
    paths = [path for bucket in piece.buckets for path in piece.keys_of.get(bucket, [])]
    frame = piece.context.storage.read_parquet(paths, ["key"])
    return [] if frame is None else frame["key"].unique().sort().to_list()


def _read(piece: TopicPiece | TablePiece) -> PieceRead:
    return read_topic_piece(piece) if isinstance(piece, TopicPiece) else read_table_piece(piece)


def take_snapshots(spark: SparkSession, journal: Journal, context: WindowContext, parallelism: int) -> list[str]:
    """Take and commit every snapshot of the window that is not committed yet; returns their points' names.

    Topics and ledgers first, in one go; stores after, since they are also read by the keys of their upstream.
    """
    there = evidence.snapshots(journal, context.window)
    wanted = [point for point in context.pipeline.ordered_points() if point.name not in there]
    early = [point for point in wanted if point.kind is not PointKind.STORE]
    late = [point for point in wanted if point.kind is PointKind.STORE]
    manifests = dict(there)
    for points in (early, late):
        made = _snapshot(spark, journal, context, points, manifests, parallelism)
        for name, manifest in made.items():
            evidence.commit_snapshot(journal, context.window, name, manifest)
            journal.commit()
        manifests |= made
    return [point.name for point in wanted]


def _snapshot(
    spark: SparkSession,
    journal: Journal,
    context: WindowContext,
    points: Iterable[Point],
    manifests: Mapping[str, Mapping[str, Any]],
    parallelism: int,
) -> dict[str, dict[str, Any]]:
    with ExitStack() as stack:
        pieces: list[TopicPiece | TablePiece] = []
        plans: dict[str, ExportPlan] = {}
        for point in points:
            if isinstance(point, TopicPoint):
                pieces += _topic_pieces(context, point)
                continue
            bounds = time_bounds(journal, context, point)
            plan = stack.enter_context(
                exported(context.postgres(point), context.table_shape(point), bounds, parallelism)
            )
            plans[point.name] = plan
            pieces += _table_pieces(context, point, plan, bounds, manifests, parallelism)
        taken_at = datetime.now(UTC)
        answers = carry(spark, pieces, _read)
    return {
        point.name: _manifest(
            context,
            point,
            taken_at,
            [answer for piece, answer in zip(pieces, answers, strict=True) if piece.point.name == point.name],
            plans.get(point.name),
        )
        for point in points
    }


def _topic_pieces(context: WindowContext, point: TopicPoint) -> Iterator[TopicPiece]:
    for whole in context.window.ranges[point.name]:
        for piece in split_range(whole, _RECORDS_PER_TASK):
            yield TopicPiece(context=context, point=point, range=piece, window_lo=whole.lo)


def split_range(whole: PartitionRange, most: int) -> Iterator[PartitionRange]:
    """Cut a range into pieces of at most `most` offsets; nothing for an empty one."""
    for lo in range(whole.lo, whole.hi, most):
        yield PartitionRange(
            topic=whole.topic,
            topic_id=whole.topic_id,
            partition=whole.partition,
            lo=lo,
            hi=min(lo + most, whole.hi),
        )


def time_bounds(journal: Journal, context: WindowContext, point: TablePoint) -> TimeBounds | None:
    """Which rows a table gives to this window; None for a store without a time column, which is read by keys alone."""
    if point.time is None:
        return None
    before = _snapshot_before(journal, context, point) if point.kind is PointKind.LEDGER else None
    return TimeBounds(start=context.window.start, end=context.window.end, seen_before=before)


def _snapshot_before(journal: Journal, context: WindowContext, point: TablePoint) -> str | None:
    """The transaction snapshot under which the window before read this ledger."""
    earlier = previous_window(journal, context)
    manifest = evidence.snapshots(journal, earlier).get(point.name) if earlier else None
    return None if manifest is None else manifest["pg_snapshot"]


def previous_window(journal: Journal, context: WindowContext) -> Window | None:
    """The newest judged revision of the window before this one; None when there is none."""
    number, judged = context.window.number - 1, windows.newest_judged(journal, context.pipeline.name)
    return next((window for window in judged if window.number == number), None)


def _table_pieces(
    context: WindowContext,
    point: TablePoint,
    plan: ExportPlan,
    bounds: TimeBounds | None,
    manifests: Mapping[str, Mapping[str, Any]],
    parallelism: int,
) -> Iterator[TablePiece]:
    if bounds is not None or point.kind is PointKind.LEDGER:
        for part in plan.parts:
            yield TablePiece(context=context, point=point, plan=plan, bounds=bounds, part=part)
    for hop in context.pipeline.hops:
        if hop.target == point.name:
            files = manifests[hop.source]["files"]
            for at in range(parallelism):
                buckets = tuple(sorted(files))[at::parallelism]
                yield TablePiece(
                    context=context,
                    point=point,
                    plan=plan,
                    bounds=None,
                    part=ExportPart(),
                    keys_of=files,
                    buckets=buckets,
                )


def _manifest(
    context: WindowContext, point: Point, taken_at: datetime, reads: list[PieceRead], plan: ExportPlan | None
) -> dict[str, Any]:
    files: dict[str, list[str]] = {}
    for read in reads:
        for bucket, path in read.files:
            files.setdefault(bucket, []).append(path)
    manifest: dict[str, Any] = {
        "point": point.name,
        "kind": point.kind.value,
        "taken_at": taken_at.isoformat(),
        "files": {bucket: sorted(paths) for bucket, paths in sorted(files.items())},
        "rows": sum(read.rows for read in reads),
        "undecodable": sum(read.undecodable for read in reads),
        "undecodable_files": sorted(path for read in reads for path in read.undecodable_files),
    }
    if plan is not None:
        manifest["pg_snapshot"] = plan.pg_snapshot
        manifest["rows_counted"] = sum(read.rows_counted or 0 for read in reads)
    if isinstance(point, TopicPoint):
        manifest |= _log_manifest(context, point, reads)
    return manifest


def _log_manifest(context: WindowContext, point: TopicPoint, reads: list[PieceRead]) -> dict[str, Any]:
    ranges = context.window.ranges[point.name]
    total = Accounting(span=0)
    for read in reads:
        assert read.accounting is not None
        total = total + read.accounting
    span = sum(part.span for part in ranges)
    if not total.is_complete or total.span != span:
        raise CorruptionError(
            f"{context.window.label}: topic {point.topic} has {span} offsets in its ranges and {total.accounted} are "
            "accounted for; nothing was kept. Run the window again"
        )
    return {
        "ranges": [asdict(part) for part in ranges],
        "accounting": asdict(total),
        "archive": f"{point_folder(context, point)}/archive",
        "leader_epochs": _leader_epochs(reads),
        "replay_plans": sorted({plan for read in reads for plan in read.replay_plans}),
    }


def _leader_epochs(reads: list[PieceRead]) -> dict[str, list[list[int]]]:
    """Per partition, `[epoch, first offset, end offset]` as read, in offset order."""
    found: dict[str, list[list[int]]] = {}
    for read in reads:
        found.setdefault(str(read.partition), []).extend(list(entry) for entry in read.leader_epochs)
    return {partition: sorted(entries, key=lambda entry: entry[1]) for partition, entries in sorted(found.items())}
