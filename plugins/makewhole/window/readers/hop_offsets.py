"""Read where what loads the target of a hop stands in its topic.

A sink that keeps its offsets with its rows, in one transaction, knows best: the offsets of its consumer group are a
copy that comes later, or none at all. Where the file names the sink's own progress, its group is not asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from makewhole.kafka.group_offsets import GroupOffsets, OffsetOutOfRange, offsets_in_log, read_group_offsets
from makewhole.kafka.iceberg_sink.control_topic import read_control_log, read_coordinator
from makewhole.kafka.iceberg_sink.standing import SinkSources, SinkStanding, sink_standing
from makewhole.kafka.offsets import CommittedOffset, TopicLog
from makewhole.kinds import tables_of
from makewhole.model.connection import Connection
from makewhole.model.hops import Hop
from makewhole.model.places.sink_progress import OffsetMeaning, SinkProgress
from makewhole.model.points import Point, TablePoint, can_look_up
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.progress import ProgressRows, SinkGroup


class ProgressFault(StrEnum):
    """The reasons why a sink's own progress says nothing of a partition."""

    NO_ROW = "no_row"
    SEVERAL_ROWS = "several_rows"
    NO_VALUE = "no_value"
    NO_OFFSET = "no_offset"


@dataclass(frozen=True, kw_only=True)
class UnknownProgress:
    """A partition of which a sink's own progress says nothing, with what it has of it: the number of `rows`, the least
    and the greatest of their offsets as texts."""

    fault: ProgressFault
    rows: int = 0
    least: str | None = None
    greatest: str | None = None


@dataclass(frozen=True, kw_only=True)
class ReaderOffsets:
    """Where what loads a hop's target stands in its topic. `unknown`: why its own progress says nothing, by partition;
    these have no offset. `sink`: what Iceberg's sink says of itself, where the file names its control topic."""

    offsets: GroupOffsets
    unknown: Mapping[int, UnknownProgress] = field(default_factory=dict)
    sink: SinkStanding | None = None

    @property
    def committed(self) -> Mapping[int, int | None]:
        """The offset that is read next, by partition; None where that is not known."""
        return self.offsets.committed

    @property
    def out_of_range(self) -> Mapping[int, OffsetOutOfRange]:
        """The offsets that the log does not have, by partition."""
        return self.offsets.out_of_range


def read_hop_offsets(log: TopicLog, hop: Hop, target: Point, connection: Connection) -> ReaderOffsets | None:
    """Return where what loads a hop's target stands, in the topic of `log`; None: the file names neither its progress
    nor its group. `connection` is the target's.

    A sink's progress is read before its rows are looked up: those that it wrote together are there.

    Raises:
        TransientError: the brokers, or the database, do not answer.
        PermanentError: one of them refuses.
    """
    group = hop.consumer_group
    if hop.progress is None and (group is None or hop.control_topic is None):
        return None if group is None else ReaderOffsets(offsets=read_group_offsets(log, group))
    assert can_look_up(target), target.name
    if hop.progress is not None:
        return _read_progress(log, hop.progress, target, connection)
    assert group is not None and hop.control_topic is not None
    return _read_sink(log, SinkGroup(name=group, control_topic=hop.control_topic), target, connection)


def standing_name(hop: Hop) -> str:
    """Return the name by which two windows know that they speak of the same reader: a group's, or what a sink's own
    progress is called (`SinkProgress.text`), which has spaces."""
    return hop.consumer_group or "" if hop.progress is None else hop.progress.text


def still_to_come(hop: Hop) -> Refusal:
    """Return why nothing is done about a key whose record what loads the hop's target has not reached."""
    return Refusal(
        RefusalCode.OTHER,
        f"its record still stands in front of {hop.reader}, which would load it a second time when it goes on; mend "
        "the consumer, then run this window again",
    )


def _read_progress(log: TopicLog, progress: SinkProgress, store: TablePoint, connection: Connection) -> ReaderOffsets:
    partitions = log.describe().partitions
    unknown: dict[int, UnknownProgress] = {}

    def read() -> Mapping[int, CommittedOffset | None]:
        rows = tables_of(connection).read_progress(store, progress, log.topic, partitions)
        positions = {partition: next_offset(rows.get(partition), progress.means) for partition in partitions}
        unknown.clear()
        unknown.update({partition: at for partition, at in positions.items() if isinstance(at, UnknownProgress)})
        return {
            partition: None if isinstance(at, UnknownProgress) else CommittedOffset(at)
            for partition, at in positions.items()
        }

    offsets = offsets_in_log(log, read)
    return ReaderOffsets(offsets=offsets, unknown=dict(unknown))


def _read_sink(log: TopicLog, sink: SinkGroup, store: TablePoint, connection: Connection) -> ReaderOffsets:
    """Ask the group, the coordinator, the control topic and the table, in this order (`SinkSources`)."""
    kafka, standing = log.connection, list[SinkStanding]()

    def read() -> Mapping[int, CommittedOffset | None]:
        of_tasks = log.committed_with_epochs(sink.name)
        sources = SinkSources(
            topic=log.topic,
            table_name=store.table,
            group=sink.name,
            group_offsets={at: None if position is None else position.offset for at, position in of_tasks.items()},
            coordinator=read_coordinator(kafka, sink.control_topic, sink.name),
            control=read_control_log(kafka, sink.control_topic, sink.name),
            table=tables_of(connection).sink_commit(store, sink),
        )
        standing[:] = [sink_standing(sources)]
        return {at: _next_of_sink(offset, of_tasks[at]) for at, offset in standing[0].next_offsets.items()}

    offsets = offsets_in_log(log, read)
    return ReaderOffsets(offsets=offsets, sink=standing[0])


def _next_of_sink(offset: int | None, of_tasks: CommittedOffset | None) -> CommittedOffset | None:
    """Return what comes next into the sink's table, with the leader epoch that its tasks committed where it is theirs:
    the events of the control topic have none."""
    if offset is None:
        return None
    return of_tasks if of_tasks is not None and of_tasks.offset == offset else CommittedOffset(offset)


def next_offset(rows: ProgressRows | None, means: OffsetMeaning) -> int | UnknownProgress:
    """Return the offset that a sink reads next in a partition, by the rows of its own progress; or why they do not say
    it.

    Several rows say nothing, whatever they hold: which of them is the sink's is not known. The last offset done may be
    -1: none is.
    """
    if rows is None:
        return UnknownProgress(fault=ProgressFault.NO_ROW)
    if rows.rows == 1 and rows.least is not None:
        offset = _next(Decimal(rows.least), means)
        if offset is not None:
            return offset
    return UnknownProgress(fault=_fault(rows), rows=rows.rows, least=rows.least, greatest=rows.greatest)


def _fault(rows: ProgressRows) -> ProgressFault:
    if rows.rows > 1:
        return ProgressFault.SEVERAL_ROWS
    return ProgressFault.NO_VALUE if rows.least is None else ProgressFault.NO_OFFSET


def _next(value: Decimal, means: OffsetMeaning) -> int | None:
    """Return the offset that is read next; None where the value is no offset."""
    if not value.is_finite() or value != value.to_integral_value():
        return None
    offset = int(value) + (1 if means is OffsetMeaning.LAST else 0)
    return offset if offset >= 0 else None
