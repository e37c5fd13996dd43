"""Read original records by position from the archives of windows, or from the brokers where no archive holds them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.compensation.sources.known_keys import read_known_keys
from makewhole.compensation.sources.sources import PayloadFrom, SourceRecord
from makewhole.journal.history.record_windows import archive_path
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.page import LogSource
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.partitioner import KnownKeys
from makewhole.model.errors import CorruptionError, RemovedError
from makewhole.model.window import PartitionRange, Window
from makewhole.window.context import WindowContext

FindWindows = Callable[[str, Collection[tuple[int, int]]], Sequence[Window]]
"""Find the windows before one whose ranges of a topic point hold any of some (partition, offset), newest first."""

FindArchive = Callable[[Window, str], str]
"""Find the path of the archive that a revision of a window has of a topic point."""

_GAP_MOST = 1_000  # offsets; positions closer than this are read together


@dataclass(frozen=True, kw_only=True)
class _RecordSource:
    """The source of a position: the archive in `folder`, or the brokers (None). `is_older`: of a revision before the
    window's newest, or of an earlier window, whose archive may have been removed."""

    part: PartitionRange
    folder: str | None = None
    is_older: bool = False
    point: str = ""


class WindowRecords:
    """The payload source of one window. Records of earlier windows, which keys that were handed over need, come from
    their archives: the same offsets of the log may hold other records now. `find` returns which these are; `judged` are
    the newest windows (newest first).

    What the newest revision of a window could not read any more, an older one may have read: then its archive has it.
    `partitions`: how many a topic has now, by point; of a point that is not there, those of the window count.
    `archive_of` finds the archive that a revision has.
    """

    def __init__(
        self,
        context: WindowContext,
        judged: Iterable[Window] = (),
        partitions: Mapping[str, int] = MappingProxyType({}),
        find: FindWindows = lambda *_: (),
        archive_of: FindArchive = archive_path,
    ) -> None:
        self._context, self._judged, self._partitions, self._find = context, tuple(judged), partitions, find
        self._archives: dict[str, ArchiveLog] = {}
        self._archive_of, self._paths = archive_of, dict[tuple[str, str], str]()
        self._removed: dict[str, str] = {}

    def records(self, point: str, positions: Sequence[tuple[int, int]]) -> Iterator[SourceRecord]:
        """Yield the records at these (partition, offset) as they are read; those that are nowhere any more are left
        out."""
        topic = self._context.pipeline.topic(point)
        with closing(BrokerLog(self._context.kafka(topic))) as broker:
            logs = _Logs(broker, self._archives, self._removed)
            windows = (self._context.window, *self._find(point, self._outside(point, positions)))
            left = {at: self._record_sources(windows, point, *at) for at in sorted(set(positions))}
            while left:
                nexts = {position: next(sources, None) for position, sources in left.items()}
                asked = [(source, position[1]) for position, source in nexts.items() if source is not None]
                seen: set[tuple[int, int]] = set()
                for origin, offsets in _offset_runs(asked):
                    for record in logs.read(origin, offsets):
                        seen.add((record.partition, record.offset))
                        yield record
                left = {at: left[at] for at, source in nexts.items() if source is not None and at not in seen}

    def partition_count(self, point: str) -> int:
        """Return the number of partitions that a topic point has now."""
        frozen = self._context.window.ranges.get(point, ())
        return self._partitions.get(point) or len({part.partition for part in frozen})

    def removed(self, point: str) -> str | None:
        """Return what says that an archive of a topic point was removed, as `records` has met it; None: none was."""
        return self._removed.get(self._context.pipeline.topic(point).name)

    def known_keys(self, point: str) -> KnownKeys | None:
        """Return what `read_known_keys` finds."""
        return read_known_keys(self._context, self._judged, self._context.pipeline.topic(point), self._folder)

    def _folder(self, window: Window, point: str) -> str:
        """Return the full name of the archive that a revision of a window has of a topic."""
        at = (window.prefix, point)
        if at not in self._paths:
            self._paths[at] = self._context.storage.uri(self._archive_of(window, point))
        return self._paths[at]

    def _outside(self, point: str, positions: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return the positions that lie outside of the window."""
        parts = {part.partition: part for part in self._context.window.ranges.get(point, ())}
        return {(at, offset) for at, offset in positions if at not in parts or not _holds(parts[at], offset)}

    def _is_same_log(self, point: str, part: PartitionRange) -> bool:
        """Return whether an offset of an earlier window's range is the same record on the brokers."""
        now = (current for current in self._context.window.ranges.get(point, ()) if current.partition == part.partition)
        return any((current.topic_id, current.lineage) == (part.topic_id, part.lineage) for current in now)

    def _record_sources(
        self, windows: Sequence[Window], point: str, partition: int, offset: int
    ) -> Iterator[_RecordSource]:
        """Yield where a position may be read, the best first; nothing: the topic has no such partition any more, and no
        archive has it. Records of an earlier window may be on the brokers, too, where the log is the same."""
        for window in windows:
            for part in window.ranges.get(point, ()):
                if part.partition == partition and _holds(part, offset):
                    for revision in range(window.revision, 0, -1):
                        folder = self._folder(replace(window, revision=revision), point)
                        is_older = revision < window.revision or window is not self._context.window
                        yield _RecordSource(part=part, folder=folder, is_older=is_older, point=point)
                    if window is not self._context.window and self._is_same_log(point, part):
                        yield _RecordSource(part=part)
                    return
        now = (part for part in self._context.window.ranges[point] if part.partition == partition)
        yield from (_RecordSource(part=part) for part in islice(now, 1))


def _holds(part: PartitionRange, offset: int) -> bool:
    return part.lo <= offset < part.hi


class _Logs:
    """The logs that positions are read from: the brokers, and archives, each of which verifies its files once."""

    def __init__(self, broker: LogSource, archives: dict[str, ArchiveLog], removed: dict[str, str]) -> None:
        self._broker, self._archives, self._removed = broker, archives, removed

    def read(self, origin: _RecordSource, offsets: Sequence[int]) -> Iterator[SourceRecord]:
        """Yield the records at these offsets, ascending, that the source has.

        Raises:
            CorruptionError: the archive of a window's newest revision is gone or damaged.
        """
        wanted = replace(origin.part, lo=offsets[0], hi=offsets[-1] + 1, leader_epochs=())
        if origin.folder is None:
            yield from _read_records(self._broker, wanted, set(offsets), PayloadFrom.BROKER)
            return
        archive = self._archives.setdefault(origin.folder, ArchiveLog(origin.folder))
        records = _read_records(archive, wanted, set(offsets), PayloadFrom.ARCHIVE)
        if not origin.is_older:
            try:
                yield from records
            except RemovedError as error:
                self._removed[origin.point] = str(error)
            return
        whole: list[SourceRecord] = []
        try:
            whole = list(records)
        except RemovedError as error:
            self._removed[origin.point] = str(error)
        except CorruptionError:  # a revision that broke off leaves part of an archive, or none
            pass
        yield from whole


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
    asked = pa.array(sorted(offsets), pa.int64())
    for batch in read_range(source, wanted).batches():
        wanted_rows: Any = pc.is_in(batch.column("offset"), value_set=asked)
        rows = batch.filter(wanted_rows)
        # As numbers: a timestamp behind the year 9999 is no datetime.
        stamps: Any = rows.column("timestamp").cast(pa.int64())
        for row, stamp in zip(rows.drop_columns(["timestamp"]).to_pylist(), stamps.to_pylist(), strict=True):
            yield SourceRecord(
                partition=row["partition"],
                offset=row["offset"],
                key=row["key"],
                value=row["value"],
                headers=tuple((entry["key"], entry["value"]) for entry in row["headers"] or ()),
                timestamp_ms=stamp,
                kept_in=kept_in,
                producer_id=row["producer_id"],
                producer_epoch=row["producer_epoch"],
                sequence=row["sequence"],
            )
