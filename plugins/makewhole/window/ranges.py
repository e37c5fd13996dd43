"""Which offsets belong to a new window, and what happened to the log since the last one.

A range starts where the one before it ended. Where that cannot be (the log was truncated, the topic was made again, a
partition is new) it starts where the records begin that no window has read, and an incident says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from makewhole.kafka.lineage import Epochs, divergence, epochs_of, seen_epochs
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.offsets_by_time import first_records
from makewhole.model.errors import TransientError
from makewhole.model.incident import Incident
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.incidents import partition_added, topic_recreated, truncated
from makewhole.window.observe import ObservedTopic

Ranges = tuple[PartitionRange, ...]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """What a window is labelled with; `start` None is the beginning of everything, `now` when it was opened."""

    start: datetime | None
    end: datetime
    now: datetime


@dataclass(frozen=True, kw_only=True)
class CoveredRanges:
    """What earlier windows covered of a topic: ranges by partition, oldest first.

    `read_until`: where reading the last one ended, for partitions that were truncated before it was read.
    """

    ranges: Mapping[int, Sequence[PartitionRange]] = field(default_factory=dict)
    read_until: Mapping[int, int] = field(default_factory=dict)

    @property
    def topic_id(self) -> str | None:
        return next((parts[-1].topic_id for parts in self.ranges.values()), None)


@dataclass(frozen=True, kw_only=True)
class RangeStart:
    """Where a partition's range starts, on which lineage, and what happened there."""

    lo: int
    lineage: int = 0
    incident: Incident | None = None


def freeze_ranges(
    point: TopicPoint, log: TopicLog, now: ObservedTopic, before: CoveredRanges, interval: Interval
) -> tuple[Ranges, list[Incident]]:
    """The ranges of a new window, and the incidents that shaped them.

    Raises:
        TransientError: the brokers do not answer, or do not agree with each other yet.
    """
    starts = {partition: end.offset for partition, end in log.starts().items()}
    begins = _range_starts(point, log, now, before, interval, starts)
    ends = _range_ends(log, now, begins, interval, starts)
    ranges = tuple(
        PartitionRange(
            topic=point.topic,
            topic_id=now.state.topic_id,
            partition=partition,
            lo=begin.lo,
            hi=ends[partition],
            lineage=begin.lineage,
            leader_epochs=_range_epochs(log, now, partition, max(begin.lo, starts[partition]), ends[partition]),
        )
        for partition, begin in sorted(begins.items())
    )
    return ranges, [
        *_topic_incidents(point, now, before, ranges),
        *(one.incident for one in begins.values() if one.incident),
    ]


def _topic_incidents(point: TopicPoint, now: ObservedTopic, before: CoveredRanges, ranges: Ranges) -> list[Incident]:
    if before.topic_id is None:
        return []
    if before.topic_id != now.state.topic_id:
        ends = {partition: parts[-1].hi for partition, parts in sorted(before.ranges.items())}
        return [topic_recreated(point, now.state.topic_id, before.topic_id, ends)]
    return [partition_added(point, part) for part in ranges if part.partition not in before.ranges]


def _range_starts(
    point: TopicPoint,
    log: TopicLog,
    now: ObservedTopic,
    before: CoveredRanges,
    interval: Interval,
    starts: Mapping[int, int],
) -> dict[int, RangeStart]:
    if not before.ranges:
        return _baseline_starts(log, now, interval, starts)
    if before.topic_id != now.state.topic_id:
        return {partition: RangeStart(lo=0) for partition in now.state.partitions}
    gone = sorted(set(before.ranges) - set(now.state.partitions))
    if gone:
        raise TransientError(
            f"the brokers do not know partition {gone[0]} of {point.topic}, which a window has read; their "
            "description of the topic is out of date. Try again"
        )
    return {
        partition: _continued_start(point, log, before, partition) if partition in before.ranges else RangeStart(lo=0)
        for partition in now.state.partitions
    }


def _baseline_starts(
    log: TopicLog, now: ObservedTopic, interval: Interval, starts: Mapping[int, int]
) -> dict[int, RangeStart]:
    """The first window of a topic starts at the log's start, or at the first record of the interval."""
    if interval.start is None:
        return {partition: RangeStart(lo=starts[partition]) for partition in now.stable}
    within = [_unread_range(log, now, partition, starts[partition]) for partition in now.stable]
    found = first_records(log, within, since=interval.start, now=interval.now)
    stable = {partition: end.offset for partition, end in now.stable.items()}
    return {partition: RangeStart(lo=stable[partition] if at is None else at) for partition, at in found.items()}


def _continued_start(point: TopicPoint, log: TopicLog, before: CoveredRanges, partition: int) -> RangeStart:
    """From where the last window ended; from the point of truncation on when that is earlier, as another lineage."""
    parts = before.ranges[partition]
    last, seen = parts[-1], seen_epochs(parts)
    if not seen:
        return RangeStart(lo=last.hi, lineage=last.lineage)
    kept = divergence(lambda epoch: log.end_of_leader_epoch(partition, epoch), seen, parts[0].lo)
    if kept >= seen[-1][1]:
        return RangeStart(lo=last.hi, lineage=last.lineage)
    end = before.read_until.get(partition, last.hi)
    incident = truncated(point, last, seen, kept, end) if end > kept else None  # else nobody had read what is gone
    return RangeStart(lo=kept, lineage=last.lineage + 1, incident=incident)


def _range_ends(
    log: TopicLog, now: ObservedTopic, begins: Mapping[int, RangeStart], interval: Interval, starts: Mapping[int, int]
) -> dict[int, int]:
    """The first record after the interval, or the stable offset when there is none."""
    within = [
        _unread_range(log, now, partition, max(begin.lo, starts[partition]))
        for partition, begin in sorted(begins.items())
    ]
    found = first_records(log, within, since=interval.end, now=interval.now)
    return {
        partition: max(begins[partition].lo, now.stable[partition].offset if at is None else at)
        for partition, at in found.items()
    }


def _unread_range(log: TopicLog, now: ObservedTopic, partition: int, lo: int) -> PartitionRange:
    hi = max(lo, now.stable[partition].offset)
    return PartitionRange(topic=log.topic, topic_id=now.state.topic_id, partition=partition, lo=lo, hi=hi)


def _range_epochs(log: TopicLog, now: ObservedTopic, partition: int, lo: int, hi: int) -> Epochs:
    newest = now.stable[partition].leader_epoch
    if newest < 0:
        return ()
    return epochs_of(lambda epoch: log.end_of_leader_epoch(partition, epoch), newest, lo, hi)
