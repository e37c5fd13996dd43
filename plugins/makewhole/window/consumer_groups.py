"""Record where the consumer group of a hop stands, and build the incidents of one that stands still, or has no offset
that its topic's log has.

Offsets say whether a group moved, never a time. The position that one window saw is kept with its results, so that the
next window can compare.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from makewhole.kafka.group_offsets import GroupOffsets, OffsetOutOfRange
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange

GROUP = "group"
"""The name under which the standing of a hop's group is kept beside its result."""

OF_READERS = (
    IncidentKind.GROUP_UNKNOWN,
    IncidentKind.GROUP_OUT_OF_RANGE,
    IncidentKind.PROGRESS_UNKNOWN,
    IncidentKind.PROGRESS_OUT_OF_RANGE,
    IncidentKind.CONSUMER_STALLED,
)
"""The incidents of consumer groups, and of sinks with a progress of their own, which are found when a window is
judged."""


@dataclass(frozen=True, kw_only=True)
class GroupStanding:
    """The position of a consumer group, or of a sink by its own progress, in a topic when a window was judged.

    `group`: its name, or what the sink's progress is called. `committed`: the offset that it reads next, by partition;
    None where it has committed none that the log has.
    `waiting`: the first offset of a record that it has not reached, by partition; partitions where nothing waits are
    not in it.
    """

    group: str
    topic_id: str
    committed: Mapping[int, int | None]
    waiting: Mapping[int, int]

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_json_dict(cls, document: Mapping[str, Any]) -> "GroupStanding":
        """Read a standing from JSON types, whose keys are texts."""
        by_partition = {
            name: {int(partition): offset for partition, offset in document[name].items()}
            for name in ("committed", "waiting")
        }
        return cls(group=document["group"], topic_id=document["topic_id"], **by_partition)

    def is_of(self, group: str, topic_id: str) -> bool:
        """Return whether it is of this group in this incarnation of the topic."""
        return (self.group, self.topic_id) == (group, topic_id)


@dataclass(frozen=True, kw_only=True)
class Unreached:
    """The records of a window in one partition that the group has not reached: their number, and the first offset."""

    records: int
    first: int

    def __add__(self, other: "Unreached") -> "Unreached":
        return Unreached(records=self.records + other.records, first=min(self.first, other.first))


def with_nothing_between(
    offsets: GroupOffsets, before: GroupStanding | None, ranges: Sequence[PartitionRange]
) -> GroupOffsets:
    """Return where a group stands, counting an offset before the log's beginning as one that the log has where nothing
    between them was for the group to read: markers of transactions, as the window before has seen.

    `before`: where the group stood at the window before, which knows what waited up to its end, where `ranges` begin.
    """
    if before is None:
        return offsets
    begins = {part.partition: part.lo for part in ranges}
    read = {
        partition: beyond.committed
        for partition, beyond in offsets.out_of_range.items()
        if (before.committed.get(partition) or beyond.end + 1) <= beyond.committed < beyond.start
        and beyond.start <= begins.get(partition, 0)
        and partition not in before.waiting
    }
    out_of_range = {partition: beyond for partition, beyond in offsets.out_of_range.items() if partition not in read}
    return replace(offsets, committed={**offsets.committed, **read}, out_of_range=out_of_range)


def with_doubt_where_cut_off(
    offsets: GroupOffsets, before: GroupStanding | None, cut_off: Mapping[int, int]
) -> GroupOffsets:
    """Return where a group stands, known only up to where its log was `cut_off` (partition to offset) since the window
    before, in partitions where it stands where it stood then.

    Such an offset is of the log before, unless the group came as far again: a consumer that is alive goes back where
    the log was cut off, though it commits no leader epochs. It has until the next window; one that starts from the
    offset goes on there, and never reads what is below.
    """
    if before is None:
        return offsets
    doubted = {
        partition: at
        for partition, at in cut_off.items()
        if (committed := offsets.committed.get(partition)) is not None
        and committed > at
        and before.committed.get(partition) == committed
    }
    return replace(offsets, committed={**offsets.committed, **doubted})


def standing_of(
    group: str,
    committed: Mapping[int, int | None],
    unreached: Mapping[int, Unreached],
    ranges: Sequence[PartitionRange],
    before: GroupStanding | None,
    log_starts: Callable[[], Mapping[int, int]],
) -> GroupStanding:
    """Return where a group stands. What waited at the window before waits on, as long as the log has it.

    `log_starts` is asked only when something waited before that this window does not hold.
    """
    topic_id = ranges[0].topic_id if ranges else ""
    waiting = {partition: records.first for partition, records in unreached.items()}
    ends = {part.partition: part.hi for part in ranges}
    known = before.waiting if before is not None and before.is_of(group, topic_id) else {}
    still = {
        partition: first
        for partition, first in known.items()
        if first < ends.get(partition, 0) and first >= (committed.get(partition) or 0)
    }
    starts = log_starts() if still else {}
    for partition, first in still.items():
        if first >= starts.get(partition, 0):
            waiting[partition] = min(first, waiting.get(partition, first))
    return GroupStanding(
        group=group, topic_id=topic_id, committed=dict(sorted(committed.items())), waiting=dict(sorted(waiting.items()))
    )


def group_incidents(
    point: TopicPoint,
    ranges: Sequence[PartitionRange],
    now: GroupStanding,
    before: GroupStanding | None,
    unreached: Mapping[int, Unreached],
    out_of_range: Mapping[int, OffsetOutOfRange],
) -> Iterator[Incident]:
    """Yield an incident for each partition where records wait and the group has no offset that the log has, or has not
    moved."""
    ends = {part.partition: part.hi for part in ranges}
    last = before.committed if before is not None and before.is_of(now.group, now.topic_id) else {}
    for partition, first in now.waiting.items():
        committed, beyond = now.committed.get(partition), out_of_range.get(partition)
        if beyond is None and committed is not None and last.get(partition) != committed:
            continue
        yield Incident(
            kind=_kind(committed, beyond),
            point=point.name,
            topic=point.topic,
            topic_id=now.topic_id,
            partition=partition,
            lo=first,
            hi=max(first, ends.get(partition, first)),
            detail={
                "group": now.group,
                "committed": committed if beyond is None else beyond.committed,
                "records": unreached[partition].records if partition in unreached else 0,
                **({} if beyond is None else {"log": [beyond.start, beyond.end]}),
                **({} if beyond is None or beyond.cut_off is None else {"cut_off": asdict(beyond.cut_off)}),
            },
        )


def _kind(committed: int | None, beyond: OffsetOutOfRange | None) -> IncidentKind:
    if beyond is not None:
        return IncidentKind.GROUP_OUT_OF_RANGE
    return IncidentKind.GROUP_UNKNOWN if committed is None else IncidentKind.CONSUMER_STALLED
