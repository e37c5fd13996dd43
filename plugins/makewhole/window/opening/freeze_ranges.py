"""Freeze the offset ranges of a new window, and find what happened to the log since the last one.

A range starts where the one before it ended. Where that cannot be (the log was truncated, the topic was made again, a
partition is new) it starts where the records begin that no window has read, and an incident says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from makewhole.kafka.lineage import Epochs, answer_all, ask_divergence, ask_epochs, seen_epochs
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.offsets_by_time import first_record_stamps, first_records, plausible_time
from makewhole.model.errors import TransientError
from makewhole.model.incident import Incident
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.incidents import beginning_gone, partition_added, topic_recreated, truncated
from makewhole.window.opening.observe import ObservedTopic

Ranges = tuple[PartitionRange, ...]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The times that a window is labelled with. `start` None: the beginning of the logs; `now`: when it was opened."""

    start: datetime | None
    end: datetime
    now: datetime


@dataclass(frozen=True, kw_only=True)
class CoveredRanges:
    """The ranges that earlier windows covered of a topic, by partition, oldest first.

    `read_until`: where reading the last one ended, for partitions that were truncated before it was read.
    """

    ranges: Mapping[int, Sequence[PartitionRange]] = field(default_factory=dict)
    read_until: Mapping[int, int] = field(default_factory=dict)

    @property
    def topic_id(self) -> str | None:
        return next((parts[-1].topic_id for parts in self.ranges.values()), None)


@dataclass(frozen=True, kw_only=True)
class RangeStart:
    """The first offset of a partition's range, its lineage, and the incident that moved it, if any."""

    lo: int
    lineage: int = 0
    incident: Incident | None = None


def freeze_ranges(
    point: TopicPoint, log: TopicLog, now: ObservedTopic, covered: CoveredRanges, interval: Interval
) -> tuple[Ranges, list[Incident]]:
    """Return the ranges of a new window, and the incidents that shaped them.

    Raises:
        TransientError: the brokers do not answer, or do not agree with each other yet.
    """
    log_starts = {partition: end.offset for partition, end in log.starts().items()}
    range_starts = _range_starts(point, log, now, covered, interval, log_starts)
    ends = _range_ends(log, now, range_starts, interval, log_starts)
    los = {partition: max(start.lo, log_starts[partition]) for partition, start in range_starts.items()}
    epochs = _range_epochs(log, now, los, ends)
    ranges = tuple(
        PartitionRange(
            topic=point.topic,
            topic_id=now.state.topic_id,
            partition=partition,
            lo=start.lo,
            hi=ends[partition],
            lineage=start.lineage,
            leader_epochs=epochs.get(partition, ()),
        )
        for partition, start in sorted(range_starts.items())
    )
    is_first = not covered.ranges
    gone = [part for part in ranges if is_first and part.lo == log_starts[part.partition] > 0]
    return ranges, [
        *(_beginning_incidents(point, log, now, gone, interval)),
        *_topic_incidents(point, now, covered, ranges),
        *(start.incident for start in range_starts.values() if start.incident),
    ]


def _beginning_incidents(
    point: TopicPoint, log: TopicLog, now: ObservedTopic, gone: Sequence[PartitionRange], interval: Interval
) -> list[Incident]:
    """Return the incident of a topic of which records were deleted before the first window: from when on it has all.

    A partition without any record left has all from now on. A stamp that cannot be says nothing, and then it is not
    known.
    """
    if not gone:
        return []
    within = [_unread_range(log, now, part.partition, part.lo) for part in gone]
    stamps = first_record_stamps(log, within)
    times = [interval.now if stamp is None else plausible_time(stamp, interval.now) for stamp in stamps.values()]
    known = [moment for moment in times if moment is not None]
    odd = {at: ms for at, ms in stamps.items() if ms is not None and plausible_time(ms, interval.now) is None}
    starts = {part.partition: part.lo for part in gone}
    return [beginning_gone(point, now.state.topic_id, starts, None if odd else max(known), odd)]


def _topic_incidents(point: TopicPoint, now: ObservedTopic, covered: CoveredRanges, ranges: Ranges) -> list[Incident]:
    """Return the incidents of a topic that was made again, or that has more partitions."""
    if covered.topic_id is None:
        return []
    if covered.topic_id != now.state.topic_id:
        ends = {partition: parts[-1].hi for partition, parts in sorted(covered.ranges.items())}
        return [topic_recreated(point, now.state.topic_id, covered.topic_id, ends)]
    return [partition_added(point, part) for part in ranges if part.partition not in covered.ranges]


def _range_starts(
    point: TopicPoint,
    log: TopicLog,
    now: ObservedTopic,
    covered: CoveredRanges,
    interval: Interval,
    log_starts: Mapping[int, int],
) -> dict[int, RangeStart]:
    if not covered.ranges:
        return _baseline_starts(log, now, interval, log_starts)
    if covered.topic_id != now.state.topic_id:
        return {partition: RangeStart(lo=0) for partition in now.state.partitions}
    gone = sorted(set(covered.ranges) - set(now.state.partitions))
    if gone:
        raise TransientError(
            f"the brokers do not know partition {gone[0]} of {point.topic}, which a window has read; their "
            "description of the topic is out of date. Try again"
        )
    seen = {partition: seen_epochs(parts) for partition, parts in covered.ranges.items()}
    questions = {
        partition: ask_divergence(epochs, covered.ranges[partition][0].lo)
        for partition, epochs in seen.items()
        if epochs
    }
    kept = answer_all(log.ends_of_leader_epochs, questions)
    return {
        partition: _continued_start(point, covered, partition, seen[partition], kept.get(partition))
        if partition in covered.ranges
        else RangeStart(lo=0)
        for partition in now.state.partitions
    }


def _baseline_starts(
    log: TopicLog, now: ObservedTopic, interval: Interval, log_starts: Mapping[int, int]
) -> dict[int, RangeStart]:
    """Return the starts of a topic's first window: the log's start, or the first record of the interval."""
    if interval.start is None:
        return {partition: RangeStart(lo=log_starts[partition]) for partition in now.stable}
    within = [_unread_range(log, now, partition, log_starts[partition]) for partition in now.stable]
    first = first_records(log, within, since=interval.start, now=interval.now)
    stable = {partition: end.offset for partition, end in now.stable.items()}
    return {partition: RangeStart(lo=stable[partition] if at is None else at) for partition, at in first.items()}


def _continued_start(
    point: TopicPoint, covered: CoveredRanges, partition: int, seen: Epochs, kept: int | None
) -> RangeStart:
    """Start where the last window ended; where the log was truncated before that, there, as a new lineage. `kept`: up
    to where the log is the one that was seen; None: it had no epochs."""
    last = covered.ranges[partition][-1]
    if kept is None or kept >= seen[-1][1]:
        return RangeStart(lo=last.hi, lineage=last.lineage)
    end = covered.read_until.get(partition, last.hi)
    incident = truncated(point, last, seen, kept, end) if end > kept else None  # None: no window had read what is gone
    return RangeStart(lo=kept, lineage=last.lineage + 1, incident=incident)


def _range_ends(
    log: TopicLog,
    now: ObservedTopic,
    range_starts: Mapping[int, RangeStart],
    interval: Interval,
    log_starts: Mapping[int, int],
) -> dict[int, int]:
    """Return the ends by partition: the first record after the interval, or the stable offset when there is none."""
    within = [
        _unread_range(log, now, partition, max(start.lo, log_starts[partition]))
        for partition, start in sorted(range_starts.items())
    ]
    first = first_records(log, within, since=interval.end, now=interval.now)
    return {
        partition: max(range_starts[partition].lo, now.stable[partition].offset if at is None else at)
        for partition, at in first.items()
    }


def _unread_range(log: TopicLog, now: ObservedTopic, partition: int, lo: int) -> PartitionRange:
    hi = max(lo, now.stable[partition].offset)
    return PartitionRange(topic=log.topic, topic_id=now.state.topic_id, partition=partition, lo=lo, hi=hi)


def _range_epochs(
    log: TopicLog, now: ObservedTopic, los: Mapping[int, int], ends: Mapping[int, int]
) -> dict[int, Epochs]:
    """Return the leader epochs of the ranges by partition, but for those whose broker names none."""
    newest = {partition: now.stable[partition].leader_epoch for partition in los}
    questions = {
        partition: ask_epochs(epoch, los[partition], ends[partition])
        for partition, epoch in newest.items()
        if epoch >= 0
    }
    return answer_all(log.ends_of_leader_epochs, questions)
