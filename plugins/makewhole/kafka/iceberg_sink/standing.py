"""Decide how far Iceberg's sink has brought a topic into its table, from the four places in which it says so.

The group of its tasks is past records whose files are in no snapshot yet: it says what was read, and neither that it is
in the table nor that it will be. What becomes of an event of the control topic is decided by two other offsets of it:

- below that of the table's newest snapshot of the sink (its summary): the sink skips it from now on. Its files were
  committed, unless the coordinator never read it;
- below that of the coordinator's group: the coordinator has passed it, and never reads it again. So are all events when
  that group has no offset that the log has: it begins at the end (`latest`);
- otherwise its files are still to come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from makewhole.kafka.iceberg_sink.control_topic import ControlLog, Coordinator
from makewhole.kafka.iceberg_sink.events import ControlPosition, FilesWritten, TaskComplete
from makewhole.tables.progress import SinkCommit

_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class FilesOutside:
    """Data files that the sink wrote and that the table does not have: their number, their records, the first names."""

    files: int = 0
    records: int = 0
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, events: Iterable[FilesWritten], held: frozenset[str]) -> "FilesOutside":
        """Count the files of events that are not among those held."""
        files = {name: records for event in events for name, records in event.files.items() if name not in held}
        return cls(files=len(files), records=sum(files.values()), names=tuple(sorted(files)[:_NAMED]))


@dataclass(frozen=True, kw_only=True)
class SinkStanding:
    """Where the sink stands in a topic, with what each place says of it.

    `next_offsets`: the first offset that may still come into the table, by partition; None: not known. `group_offsets`:
    what the group of the tasks reads next. `to_come` and `passed_over`: files that the table does not have, and that
    the coordinator will still commit, or never will. `control`: the end of each partition of the control topic.
    """

    group: str
    control_topic: str
    next_offsets: Mapping[int, int | None]
    group_offsets: Mapping[int, int | None]
    table: SinkCommit
    coordinator: Coordinator
    control: Mapping[int, int]
    to_come: FilesOutside
    passed_over: FilesOutside
    is_settled: bool = True
    unreadable: int = 0

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as JSON types, without the names of the table's own files."""
        document = asdict(self)
        del document["table"]["files"], document["table"]["since"]
        return document

    def as_evidence(self) -> dict[str, Any]:
        """Return what single findings say of it: by partition of the topic where its group and its table stand, and up
        to where in the control topic the table has it, with the snapshot that says so."""
        return {
            "control_topic": self.control_topic,
            "group_offsets": {str(partition): offset for partition, offset in self.group_offsets.items()},
            "table_offsets": {str(partition): offset for partition, offset in self.next_offsets.items()},
            "snapshot": None if self.table.snapshot_id is None else str(self.table.snapshot_id),
            "commit": self.table.commit_id,
            "control_offsets": {str(at): offset for at, offset in (self.table.offsets or {}).items()},
            "coordinator_offsets": {str(at): offset for at, offset in self.coordinator.committed.items()},
        }


@dataclass(frozen=True, kw_only=True)
class SinkSources:
    """State of a sink, read in this order: the offsets of its tasks' group in the topic, its coordinator's group,
    its control topic, and then its table. What one of them says has its ground in the next."""

    topic: str
    table_name: str
    group: str
    group_offsets: Mapping[int, int | None]
    coordinator: Coordinator
    control: ControlLog
    table: SinkCommit

    def settled_end(self, partition: int) -> int:
        """Return the offset of the control topic below which nothing is committed any more."""
        return max((self.table.offsets or {}).get(partition, 0), self._passed(partition))

    def is_to_come(self, at: ControlPosition) -> bool:
        """Return whether the files of an event may still be committed."""
        return at.offset >= self.settled_end(at.partition)

    def is_done(self, at: ControlPosition) -> bool:
        """Return whether the files of an event are in the table, as far back as it knows, or never will be."""
        return (self.table.since or {}).get(at.partition, 0) <= at.offset < self.settled_end(at.partition)

    def _passed(self, partition: int) -> int:
        committed = self.coordinator.committed.get(partition)
        start, end = self.coordinator.log.get(partition, (0, 0))
        if committed is not None and start <= committed <= self.control.ends.get(partition, 0):
            return committed
        return 0 if self.coordinator.is_live else end


def sink_standing(sources: SinkSources) -> SinkStanding:
    """Return where the sink stands."""
    control = sources.control
    written = [event for event in control.events if isinstance(event, FilesWritten)]
    ours = [event for event in written if event.table == sources.table_name]
    complete = [event for event in control.events if isinstance(event, TaskComplete)]
    return SinkStanding(
        group=sources.group,
        control_topic=control.topic,
        next_offsets={
            partition: _next_offset(sources, complete, partition, committed)
            for partition, committed in sources.group_offsets.items()
        },
        group_offsets=dict(sources.group_offsets),
        table=sources.table,
        coordinator=sources.coordinator,
        control=dict(control.ends),
        to_come=FilesOutside.of((event for event in ours if sources.is_to_come(event.at)), sources.table.files),
        passed_over=FilesOutside.of((event for event in ours if sources.is_done(event.at)), sources.table.files),
        is_settled=control.is_settled,
        unreadable=control.unreadable,
    )


def _next_offset(
    sources: SinkSources, complete: Iterable[TaskComplete], partition: int, committed: int | None
) -> int | None:
    """Return the first offset of a partition that may still come into the table; None: not known.

    Of an event that may still be committed, the records begin where the one before it ended, of the same task: each
    sends to one partition of the control topic. Where another task had the partition before, the least is right.
    """
    if committed is None or sources.control.unreadable:
        return None
    place = sources.topic, partition
    stands = [(event.next_offsets[place], event.at) for event in complete if place in event.next_offsets]
    done = {at.partition: offset for offset, at in stands if not sources.is_to_come(at)}
    if sources.control.is_settled and not any(sources.is_to_come(at) for _, at in stands):
        return committed
    if not done:
        return 0 if sources.control.is_whole else None
    return min(committed, *done.values())
