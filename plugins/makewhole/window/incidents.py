"""Incidents that opening a window finds: what happened to a topic since the last one, and what holds this one back."""

from collections.abc import Mapping, Sequence

from makewhole.kafka.lineage import Epochs
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.open_transactions import OpenTransaction, open_transactions
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.observe import ObservedTopic


def truncated(point: TopicPoint, last: PartitionRange, seen: Epochs, kept: int, end: int) -> Incident:
    """Offsets `[kept, end)` that windows had read are gone, or hold other records now."""
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
    """The topic was deleted and made again; `old_ends` is how far windows had read the old one."""
    ends = {str(partition): end for partition, end in old_ends.items()}
    return Incident(
        kind=IncidentKind.TOPIC_RECREATED,
        point=point.name,
        topic=point.topic,
        topic_id=topic_id,
        detail={"before_it_was_read": False, "old_id": old_id, "old_ends": ends},
    )


def partition_added(point: TopicPoint, part: PartitionRange) -> Incident:
    """A partition that the last window did not know."""
    return Incident(
        kind=IncidentKind.PARTITIONS_ADDED,
        point=point.name,
        topic=point.topic,
        topic_id=part.topic_id,
        partition=part.partition,
        lo=part.lo,
        hi=part.hi,
    )


def blocking_transactions(
    point: TopicPoint, log: TopicLog, now: ObservedTopic, ranges: Sequence[PartitionRange]
) -> list[Incident]:
    """The open transactions at whose first record the window had to end; asked only where the stable offset lags."""
    high = {partition: end.offset for partition, end in log.high_watermarks().items()}
    held = {
        part.partition: part
        for part in ranges
        if part.topic_id == now.state.topic_id
        and part.hi == now.stable[part.partition].offset < high.get(part.partition, 0)
    }
    if not held:
        return []
    return [
        _transaction_incident(point, held[one.partition], one, high[one.partition])
        for one in open_transactions(log.connection, log.topic)
        if one.partition in held and one.first_offset == held[one.partition].hi
    ]


def _transaction_incident(point: TopicPoint, part: PartitionRange, one: OpenTransaction, high: int) -> Incident:
    return Incident(
        kind=IncidentKind.HANGING_TRANSACTION if one.is_hanging else IncidentKind.OPEN_TRANSACTION,
        point=point.name,
        topic=point.topic,
        topic_id=part.topic_id,
        partition=one.partition,
        lo=one.first_offset,
        hi=max(high, one.first_offset),
        detail={
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "transactional_id": one.transactional_id,
            "state": one.state,
            "last_timestamp_ms": one.last_timestamp_ms,
        },
    )
