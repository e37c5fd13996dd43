"""Original records by position, from the archives of the windows, or from the brokers where an archive has none."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from makewhole.compensation.fetch import SourceRecord
from makewhole.config.context import WindowContext
from makewhole.kafka.archive import ArchiveLog
from makewhole.kafka.broker import BrokerLog
from makewhole.kafka.log import read_range
from makewhole.kafka.page import LogSource
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange

_TOGETHER = 1_000  # positions closer than this are read in one go


class WindowRecords:
    """The payload source of one window. What lies outside its ranges (a key handed over) is read from the brokers."""

    def __init__(self, context: WindowContext) -> None:
        self._context = context

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterator[SourceRecord]:
        """The records at these (partition, offset), ordered; those that are nowhere any more are left out."""
        topic = self._context.pipeline.points[point]
        assert isinstance(topic, TopicPoint)
        folder = self._context.storage.uri(f"{self._context.window.prefix}/{point}/archive")
        ranges = {part.partition: part for part in self._context.window.ranges[point]}
        with closing(BrokerLog(self._context.kafka(topic))) as broker:
            for partition, offsets in _grouped(positions):
                whole = ranges[partition]
                inside = whole.lo <= offsets[0] and offsets[-1] < whole.hi
                source: LogSource = ArchiveLog(folder) if inside else broker
                wanted = PartitionRange(
                    topic=whole.topic,
                    topic_id=whole.topic_id,
                    partition=partition,
                    lo=offsets[0],
                    hi=offsets[-1] + 1,
                )
                yield from _pick(source, wanted, set(offsets))


def _grouped(positions: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Runs of near offsets per partition."""
    run: list[int] = []
    last: tuple[int, int] | None = None
    for partition, offset in sorted(set(positions)):
        if last is not None and (partition != last[0] or offset - last[1] > _TOGETHER):
            yield last[0], run
            run = []
        run.append(offset)
        last = (partition, offset)
    if last is not None:
        yield last[0], run


def _pick(source: LogSource, wanted: PartitionRange, offsets: set[int]) -> Iterator[SourceRecord]:
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
            )
