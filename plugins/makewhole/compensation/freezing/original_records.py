"""Read original records by position from the archives of windows, or from the brokers where no archive holds them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from makewhole.compensation.freezing.known_keys import read_known_keys
from makewhole.compensation.freezing.sources import PayloadFrom, SourceRecord
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.page import LogSource
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.partitioner import KnownKeys
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange, Window
from makewhole.window.context import WindowContext

_GAP_MOST = 1_000  # offsets; positions closer than this are read together


@dataclass(frozen=True, kw_only=True)
class _RecordSource:
    """The source of a position: the archive in `folder`, or the brokers (None)."""

    part: PartitionRange
    folder: str | None = None


class WindowRecords:
    """The payload source of one window. Records of earlier windows among those `judged` (newest first), which keys that
    were handed over need, come from their archives: the same offsets of the log may hold other records now.

    `partitions`: how many a topic has now, by point; of a point that is not there, those of the window count.
    """

    def __init__(
        self,
        context: WindowContext,
        judged: Iterable[Window] = (),
        partitions: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._context, self._judged, self._partitions = context, tuple(judged), partitions
        earlier = (window for window in self._judged if window.number < context.window.number)
        self._windows = (context.window, *earlier)

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterator[SourceRecord]:
        """Return the records at these (partition, offset), ordered; those that are nowhere any more are left out."""
        topic = self._topic(point)
        found = ((self._record_source(point, *position), position[1]) for position in sorted(set(positions)))
        sources = ((source, offset) for source, offset in found if source is not None)
        archives: dict[str, ArchiveLog] = {}  # each verifies its files once
        with closing(BrokerLog(self._context.kafka(topic))) as broker:
            for origin, offsets in _offset_runs(sources):
                source: LogSource = broker
                if origin.folder is not None:
                    source = archives.setdefault(origin.folder, ArchiveLog(origin.folder))
                wanted = replace(origin.part, lo=offsets[0], hi=offsets[-1] + 1, leader_epochs=())
                kept_in = PayloadFrom.BROKER if origin.folder is None else PayloadFrom.ARCHIVE
                yield from _read_records(source, wanted, set(offsets), kept_in)

    def partition_count(self, point: str) -> int:
        """Return the number of partitions that a topic point has now."""
        frozen = self._context.window.ranges.get(point, ())
        return self._partitions.get(point) or len({part.partition for part in frozen})

    def known_keys(self, point: str) -> KnownKeys | None:
        """Return what `read_known_keys` finds."""
        return read_known_keys(self._context, self._judged, self._topic(point))

    def _topic(self, point: str) -> TopicPoint:
        topic = self._context.pipeline.points[point]
        assert isinstance(topic, TopicPoint)
        return topic

    def _record_source(self, point: str, partition: int, offset: int) -> _RecordSource | None:
        """Return where to read a position; None: the topic has no such partition any more, and no archive has it."""
        for window in self._windows:
            for part in window.ranges.get(point, ()):
                if part.partition == partition and part.lo <= offset < part.hi:
                    folder = self._context.storage.uri(f"{window.prefix}/{point}/archive")
                    return _RecordSource(part=part, folder=folder)
        now = (part for part in self._context.window.ranges[point] if part.partition == partition)
        return next((_RecordSource(part=part) for part in now), None)


def _offset_runs(positions: Iterable[tuple[_RecordSource, int]]) -> Iterator[tuple[_RecordSource, list[int]]]:
    """Group positions into runs of near offsets of one source."""
    run: list[int] = []
    last: _RecordSource | None = None
    for source, offset in positions:
        if last is not None and (source != last or offset - run[-1] > _GAP_MOST):
            yield last, run
            run = []
        run.append(offset)
        last = source
    if last is not None:
        yield last, run


def _read_records(
    source: LogSource, wanted: PartitionRange, offsets: set[int], kept_in: PayloadFrom
) -> Iterator[SourceRecord]:
    for batch in read_range(source, wanted).batches():
        for row in batch.filter(
            pa.array([value in offsets for value in batch.column("offset").to_pylist()])
        ).to_pylist():
            stamp = row["timestamp"]
            yield SourceRecord(
                partition=row["partition"],
                offset=row["offset"],
                key=row["key"],
                value=row["value"],
                headers=tuple((entry["key"], entry["value"]) for entry in row["headers"] or ()),
                timestamp_ms=None if stamp is None else round(stamp.timestamp() * 1000),
                kept_in=kept_in,
            )
