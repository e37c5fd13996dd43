"""The snapshots of a window: every point read once, normalised, hashed and bucketed where it is read.

A task reads a piece of a point and writes its own Parquet files, one or more per bucket. A snapshot exists when its
manifest is committed to the journal: files of attempts that died are never named by one.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from makewhole.config.context import WindowContext
from makewhole.journal import evidence, windows
from makewhole.journal.database import Journal
from makewhole.model.errors import CorruptionError
from makewhole.model.pipeline import Point, PointKind, TablePoint, TopicPoint
from makewhole.model.window import Accounting, PartitionRange, Window
from makewhole.postgres.export import ExportPart, ExportPlan, exported
from makewhole.postgres.expressions import TimeBounds
from makewhole_spark.carrier import carry
from makewhole_spark.pieces import PieceRead, TablePiece, TopicPiece, point_folder, read_piece

logger = logging.getLogger(__name__)

_RECORDS_PER_TASK = 2_000_000


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
        answers = carry(spark, pieces, read_piece)
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
