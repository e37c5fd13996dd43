"""Take the snapshots of topics: read each once, unless it is shown to be as an earlier revision has read it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from makewhole.journal import windows
from makewhole.journal.results import snapshot_manifests
from makewhole.journal.results.snapshot_manifests import NOT_REUSED
from makewhole.kafka.offsets import describe_topic
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import carry_released
from makewhole_spark.snapshot.accounts import (
    PartitionAccount,
    accounts_again,
    log_incidents,
    log_manifest,
    partition_accounts,
)
from makewhole_spark.snapshot.compacted_keys import compares_keys
from makewhole_spark.snapshot.leader_changes import TopicReading, with_doubts
from makewhole_spark.snapshot.read_piece import PieceRead, TopicPiece, read_piece
from makewhole_spark.snapshot.reading import Reading, TakenSnapshot, manifest_of
from makewhole_spark.snapshot.reuse.decide import SAME_LOG
from makewhole_spark.snapshot.reuse.earlier import EarlierSnapshot
from makewhole_spark.snapshot.table_bounds import previous_window

_RECORDS_PER_TASK = 2_000_000


def read_topics(reading: Reading, points: Sequence[TopicPoint]) -> dict[str, TakenSnapshot]:
    """Read topics; none of an incarnation that is gone, and none that is shown to be as it was read before."""
    context, journal = reading.context, reading.journal
    ids = {point.name: _topic_id(context, point) for point in points}
    earlier = previous_window(journal, context)
    before = {} if earlier is None else snapshot_manifests.snapshots(journal, earlier)
    reused = reading.reuse.topics(points, before)
    taken_at = datetime.now(UTC)
    taken: dict[str, TakenSnapshot] = {}
    for point in (point for point in points if point.name in reused):
        manifest = _as_read_before(reading, point, reused[point.name], taken_at)
        accounts = accounts_again(context, point, manifest, ids[point.name])
        taken[point.name] = _taken_topic(journal, context, point, accounts, before, manifest)
    left = [point for point in points if point.name not in reused]
    compares = {point.name: compares_keys(context, point) for point in left}
    pieces = [
        piece
        for point in left
        for piece in _topic_pieces(reading, point, ids[point.name], compares=compares[point.name])
    ]
    answers = _read(reading, pieces, ids)
    for point in left:
        reads = [answer for piece, answer in zip(pieces, answers, strict=True) if piece.point.name == point.name]
        accounts = partition_accounts(context, point, reads, ids[point.name])
        manifest = manifest_of(reading, point, taken_at, reads, None) | reading.reuse.entry(point.name)
        of_before = before.get(point.name, {})
        manifest |= log_manifest(context, point, accounts, of_before, compares_keys=compares[point.name])
        taken[point.name] = _taken_topic(journal, context, point, accounts, before, manifest)
    return taken


def _as_read_before(
    reading: Reading, point: TopicPoint, snapshot: EarlierSnapshot, taken_at: datetime
) -> dict[str, Any]:
    """Return the manifest of an earlier revision as that of this one."""
    kept = {name: entry for name, entry in snapshot.manifest.items() if name != NOT_REUSED}
    now = {"taken_at": taken_at.isoformat(), **reading.digests}
    return {**kept, **now, **reading.reuse.entry(point.name, SAME_LOG)}


def _read(reading: Reading, pieces: list[TopicPiece], ids: Mapping[str, str]) -> list[PieceRead]:
    try:
        return carry_released(reading.carrier, reading.journal, pieces, read_piece)
    except RefusedError as error:
        for point in {piece.point.name: piece.point for piece in pieces}.values():
            if _topic_id(reading.context, point) != ids[point.name]:
                raise TransientError(
                    f"topic {point.topic} was deleted and made again while it was read; try again"
                ) from error
        raise


def _topic_id(context: WindowContext, point: TopicPoint) -> str:
    return describe_topic(context.kafka(point), point.topic).topic_id


def _topic_pieces(reading: Reading, point: TopicPoint, now_id: str, *, compares: bool) -> Iterator[TopicPiece]:
    """Yield the pieces of a topic; none of a topic recreated since the window was opened: other windows have those."""
    context, buckets = reading.context, reading.buckets
    for whole in context.window.ranges[point.name]:
        if whole.topic_id == now_id:
            for piece in split_range(whole, _RECORDS_PER_TASK):
                yield TopicPiece(
                    context=context,
                    point=point,
                    bucket_count=buckets,
                    range=piece,
                    window_lo=whole.lo,
                    compares_keys=compares,
                )


def _taken_topic(
    journal: PgConnection,
    context: WindowContext,
    point: TopicPoint,
    accounts: Sequence[PartitionAccount],
    before: Mapping[str, Mapping[str, Any]],
    manifest: dict[str, Any],
) -> TakenSnapshot:
    """Return the snapshot of a topic with its incidents; `before` are the manifests of the window before."""
    happened = log_incidents(point, accounts, _epochs_before(journal, context, point))
    of_before = before.get(point.name, {})
    reading = TopicReading(context=context, point=point, accounts=accounts, before=of_before, manifest=manifest)
    return TakenSnapshot(manifest=manifest, incidents=with_doubts(journal, reading, happened))


def _epochs_before(journal: PgConnection, context: WindowContext, point: TopicPoint) -> dict[int, int]:
    """Return the last leader epoch of each partition, of the same incarnation, when the window before was frozen."""
    ids = {part.topic_id for part in context.window.ranges[point.name]}
    before = windows.ranges(journal, context.pipeline.name, context.window.number - 1).get(point.name, ())
    return {part.partition: part.leader_epochs[-1][0] for part in before if part.topic_id in ids and part.leader_epochs}


def split_range(whole: PartitionRange, most: int) -> Iterator[PartitionRange]:
    """Split a range into pieces of at most `most` offsets; none for an empty range."""
    for lo in range(whole.lo, whole.hi, most):
        yield replace(whole, lo=lo, hi=min(lo + most, whole.hi))
