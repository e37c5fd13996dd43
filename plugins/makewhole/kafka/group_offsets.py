"""Read where a consumer group, or another reader, stands in a topic, held against where the topic's log begins and
ends."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from makewhole.kafka.offsets import TopicLog

_LOOKS = 3
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class OffsetOutOfRange:
    """An offset that a group has committed and that its partition's log, `[start, end]`, does not have."""

    committed: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class GroupOffsets:
    """The offset that a group, or another reader, reads next, by partition; None where it has committed nothing, or
    what the log does not have: `out_of_range` has those."""

    committed: Mapping[int, int | None]
    out_of_range: Mapping[int, OffsetOutOfRange]


def read_group_offsets(log: TopicLog, group: str) -> GroupOffsets:
    """Return where a group stands in a topic, as `offsets_in_log` holds it against the log.

    Raises:
        TransientError: the brokers do not answer.
    """
    return offsets_in_log(log, lambda: log.committed(group))


def offsets_in_log(log: TopicLog, read: Callable[[], Mapping[int, int | None]]) -> GroupOffsets:
    """Return where a reader stands in a topic; `read` returns the offset that it reads next, by partition, as far as it
    has one.

    A new leader may know a lower high watermark for a moment, so that an offset is out of range when it was seen to be
    several times.

    Raises:
        TransientError: the brokers do not answer.
    """
    offsets = _look(log, read)
    for _ in range(_LOOKS - 1):
        if not offsets.out_of_range:
            break
        time.sleep(_PAUSE_SECONDS)
        offsets = _look(log, read)
    return offsets


def _look(log: TopicLog, read: Callable[[], Mapping[int, int | None]]) -> GroupOffsets:
    committed = read()  # before the ends, which only move on
    starts, ends = log.starts(), log.high_watermarks()
    of_log = {partition: (start.offset, ends[partition].offset) for partition, start in starts.items()}
    out_of_range = offsets_out_of_range({at: offset for at, offset in committed.items() if offset is not None}, of_log)
    usable = {partition: None if partition in out_of_range else offset for partition, offset in committed.items()}
    return GroupOffsets(committed=usable, out_of_range=out_of_range)


def offsets_out_of_range(
    committed: Mapping[int, int], of_log: Mapping[int, tuple[int, int]]
) -> dict[int, OffsetOutOfRange]:
    """Return the committed offsets that logs (start and end by partition) do not have."""
    return {
        partition: OffsetOutOfRange(committed=offset, start=of_log[partition][0], end=of_log[partition][1])
        for partition, offset in committed.items()
        if partition in of_log and not of_log[partition][0] <= offset <= of_log[partition][1]
    }
