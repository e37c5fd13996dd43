"""Build the incidents that opening a window finds: changes of a topic since the last window, and open transactions."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from makewhole.compute.indexed_keys.hop_filters import KnownFilters, changed_filters
from makewhole.kafka.lineage import Epochs
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.open_transactions import OpenTransaction, open_transactions
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.opening.observe import ObservedTopic


def truncated(point: TopicPoint, last: PartitionRange, seen: Epochs, kept: int, end: int) -> Incident:
    """Return the incident of offsets `[kept, end)`, read by windows, that are gone or hold other records now."""
    return Incident(
        kind=IncidentKind.TRUNCATED,
        point=point.name,
        topic=point.topic,
        topic_id=last.topic_id,
        partition=last.partition,
        lo=kept,
        hi=end,
        detail={
            "before_it_was_read": False,
            "lineage": last.lineage,
            "seen_epochs": [list(entry) for entry in seen],
        },
    )


def topic_recreated(point: TopicPoint, topic_id: str, old_id: str, old_ends: Mapping[int, int]) -> Incident:
    """Return the incident of a topic that was deleted and made again. `old_ends`: where windows ended in it."""
    ends = {str(partition): end for partition, end in old_ends.items()}
    return Incident(
        kind=IncidentKind.TOPIC_RECREATED,
        point=point.name,
        topic=point.topic,
        topic_id=topic_id,
        detail={"before_it_was_read": False, "old_id": old_id, "old_ends": ends},
    )


def beginning_gone(
    point: TopicPoint,
    topic_id: str,
    starts: Mapping[int, int],
    begins_at: datetime | None,
    stamps: Mapping[int, int],
) -> Incident:
    """Return the incident of a topic whose beginning was deleted before the first window. `starts`: what is left.

    `begins_at` None: the `stamps` of first records (milliseconds by partition) cannot be, so that it is not known.
    """
    return Incident(
        kind=IncidentKind.BEGINNING_GONE,
        point=point.name,
        topic=point.topic,
        topic_id=topic_id,
        detail={
            "starts": {str(partition): offset for partition, offset in sorted(starts.items())},
            "begins_at": None if begins_at is None else begins_at.isoformat(),
            **_stamps(stamps),
        },
    )


def baseline_unknown(
    point: TopicPoint, topic_id: str, hop: str, keys: int, begins_at: datetime, stamps: Mapping[int, int]
) -> Incident:
    """Return the incident of keys that are older than the first record of a log that begins at offset 0, or than the
    first window (`begins_at`) of one whose first `stamps` (milliseconds by partition) cannot be."""
    return Incident(
        kind=IncidentKind.BASELINE_UNKNOWN,
        point=point.name,
        topic=point.topic,
        topic_id=topic_id,
        detail={"hop": hop, "keys": keys, "begins_at": begins_at.isoformat(), **_stamps(stamps)},
    )


def _stamps(stamps: Mapping[int, int]) -> dict[str, dict[str, int]]:
    return {"stamps": {str(partition): stamp for partition, stamp in sorted(stamps.items())}} if stamps else {}


def partition_added(point: TopicPoint, part: PartitionRange) -> Incident:
    """Return the incident of a partition that the last window did not know."""
    return Incident(
        kind=IncidentKind.PARTITIONS_ADDED,
        point=point.name,
        topic=point.topic,
        topic_id=part.topic_id,
        partition=part.partition,
        lo=part.lo,
        hi=part.hi,
    )


def filter_incidents(pipeline: Pipeline, before: KnownFilters) -> list[Incident]:
    """Return an incident for each hop whose filter was another one in the windows before."""
    former, now = changed_filters(pipeline, before), KnownFilters.of(pipeline)
    return [
        Incident(
            kind=IncidentKind.FILTER_CHANGED,
            point=hop.target,
            topic=hop.name,
            topic_id="",
            detail={"hop": hop.name, "before": before.shown(hop.name), "now": now.shown(hop.name)},
        )
        for hop in pipeline.hops
        if hop.name in former
    ]


def transactions_at_window_end(
    point: TopicPoint, log: TopicLog, now: ObservedTopic, ranges: Sequence[PartitionRange]
) -> list[Incident]:
    """Return the open transactions at whose first record the window had to end.

    The coordinators are asked only where the stable offset lags behind the high watermark.
    """
    high = {partition: end.offset for partition, end in log.high_watermarks().items()}
    ended_early = {
        part.partition: part
        for part in ranges
        if part.topic_id == now.state.topic_id
        and part.hi == now.stable[part.partition].offset < high.get(part.partition, 0)
    }
    if not ended_early:
        return []
    return [
        _transaction_incident(point, ended_early[transaction.partition], transaction, high[transaction.partition])
        for transaction in open_transactions(log.connection, log.topic)
        if transaction.partition in ended_early and transaction.first_offset == ended_early[transaction.partition].hi
    ]


def _transaction_incident(point: TopicPoint, part: PartitionRange, transaction: OpenTransaction, high: int) -> Incident:
    return Incident(
        kind=IncidentKind.HANGING_TRANSACTION if transaction.is_hanging else IncidentKind.OPEN_TRANSACTION,
        point=point.name,
        topic=point.topic,
        topic_id=part.topic_id,
        partition=transaction.partition,
        lo=transaction.first_offset,
        hi=max(high, transaction.first_offset),
        detail={
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.producer_epoch,
            "transactional_id": transaction.transactional_id,
            "state": transaction.state,
            "last_timestamp_ms": transaction.last_timestamp_ms,
        },
    )
