"""Read datasets of files: views that are held, parts of rows, and the rows of keys."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compute.frames import numbered_places
from makewhole.datasets.files.describe import existing
from makewhole.datasets.files.file_source import FileSource, FilesPart, all_of
from makewhole.datasets.files.listing import DataFile, OffsetsNamed
from makewhole.datasets.files.parquet_rows import NOT_READ, ParquetRows, SpoiltGroup, groups_of, opened
from makewhole.datasets.files.same_files import mark_of, why_not_same
from makewhole.datasets.files.spans import inside, may_hold, of_keys
from makewhole.datasets.nested_columns import all_types
from makewhole.datasets.row_frames import frame_of_rows, is_in_slice, is_inside, is_of_topics, rows_ahead, times_of_rows
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.model.connection import Connection
from makewhole.model.errors import TransientError
from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.reading import ReadBefore, ReadPlan, UnreadableFile
from makewhole.tables.shape import RowsAhead, TableShape, TimeBounds


class FilesReader:
    """A reader of rows as frames (`TableReader`)."""

    def __init__(self, connection: Connection, shape: TableShape, view: str | None) -> None:
        self._connection, self._shape, self._view = connection, shape, view
        self.counted = 0
        self.in_doubt: Sequence[TransactionInDoubt] = ()
        self.unreadable: Sequence[UnreadableFile] = ()

    @cached_property
    def _source(self) -> FileSource:
        return FileSource(self._connection, self._shape.point, self._view)

    def part(self, bounds: TimeBounds | None, part: FilesPart) -> Iterator[pl.DataFrame]:
        """Read the rows of a part of a dataset."""
        source, point, spoilt = self._source, self._shape.point, list[SpoiltGroup]()
        for data, rows in source.rows(part, sorted(self._shape.column_names()), inside(point, bounds), spoilt):
            kept = all_of(len(rows.numbers))
            if bounds is not None and point.time is not None:
                certain = {seen: source.is_certain(data, seen, len(kept)) for seen in bounds.named_views}
                kept = is_inside(times_of_rows(rows.rows, point), certain, bounds).to_numpy()
            yield from self._frames(data, rows.only(kept))
        self.unreadable = _unreadable(spoilt)

    def keys(self, keys: Sequence[str], since: str | None = None) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys; with `since`, of files that were not there then.

        Raises:
            ConfigurationError: there is no file.
            TransientError: the first file came meanwhile.
        """
        source, point, spoilt = self._source, self._shape.point, list[SpoiltGroup]()
        columns = sorted(self._shape.column_names())
        schema = source.schema(columns)
        if schema is None:  # there was a file when the window was opened: an empty folder proves no absence
            existing(self._connection, self._shape)
            if self._view is None:
                raise TransientError(f"the files of {point.table} came while they were listed; read again")
            return
        wanted = WantedKeys.of_texts(point, keys)
        part = source.whole if since is None else source.whole_since(since)
        yield from self._among(part, wanted, spoilt)
        self.in_doubt = (*files_in_doubt(source, point, wanted), *_groups_in_doubt(source, point, wanted, spoilt))
        if self._view is not None:
            self.unreadable = _unreadable(spoilt)

    def keys_in_part(self, keys: pl.DataFrame, part: FilesPart) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys in a part of a dataset."""
        spoilt = list[SpoiltGroup]()
        yield from self._among(part, WantedKeys(self._shape.point, keys), spoilt)
        self.unreadable = _unreadable(spoilt)

    def _among(self, part: FilesPart, wanted: WantedKeys, spoilt: list[SpoiltGroup]) -> Iterator[pl.DataFrame]:
        source, columns = self._source, sorted(self._shape.column_names())
        spans = of_keys(all_types(source.schema(columns) or pa.schema([])), self._shape.point, wanted)
        for data, rows in source.rows(part, columns, spans, spoilt):
            yield from self._frames(data, rows.only(wanted.among(rows.rows)))

    def _frames(self, data: DataFile, rows: ParquetRows) -> Iterator[pl.DataFrame]:
        own = is_of_topics(rows.rows, self._shape.point)
        rows = rows if own is None else rows.only(own.to_numpy())
        if len(rows.numbers):
            self.counted += len(rows.numbers)
            yield frame_of_rows(rows.rows, numbered_places(f"{data.path}:", rows.numbers), self._shape)


def _unreadable(spoilt: Sequence[SpoiltGroup]) -> list[UnreadableFile]:
    """Return the files of what does not decode, each once."""
    return [as_unreadable(data, is_spoilt=True) for data in sorted({group.data for group in spoilt})]


def files_in_doubt(source: FileSource, point: TablePoint, keys: WantedKeys) -> Iterator[TransactionInDoubt]:
    """Yield the files that may hold one of the keys, and do not count yet or cannot be read, as transactions in doubt:
    their rows are there once a marker commits them, or once they are restored."""
    for data in source.listing.uncommitted:
        try:
            held = frozenset(_keys_of_file(source, point, data, keys))
        except NOT_READ:
            yield _in_doubt(data, point)  # its job may be at work: it may hold any key
        else:
            if held:
                yield _in_doubt(data, point, keys=held)
    for data in source.listing.unreadable:
        bounded = keys_within(data, point, keys.texts)
        if bounded is None or bounded or not len(keys):
            yield _in_doubt(data, point, keys=bounded, is_unreadable=True)


def _groups_in_doubt(
    source: FileSource, point: TablePoint, keys: WantedKeys, spoilt: Sequence[SpoiltGroup]
) -> Iterator[TransactionInDoubt]:
    """Yield the files of groups of rows that do not decode, with those of the keys that these may hold by what their
    file says of them. It depends on no other key that is asked for, so that a verdict does not, either."""
    types = all_types(source.schema() or pa.schema([]))
    asked = {key: of_keys(types, point, WantedKeys.of_texts(point, [key])) for key in keys.texts} if spoilt else {}
    for data in sorted({group.data for group in spoilt}):
        groups = [group.group for group in spoilt if group.data == data]
        with opened(source.store, data) as file:
            held = {
                key for key, wanted in asked.items() if any(may_hold(file, at, wanted, data.folders) for at in groups)
            }
        named = keys_within(data, point, held)
        yield _in_doubt(data, point, keys=frozenset(held if named is None else named), is_unreadable=True)


def _keys_of_file(source: FileSource, point: TablePoint, data: DataFile, keys: WantedKeys) -> Iterator[str]:
    for _, rows in source.rows_of(data, point.key):
        texts = key_texts(rows.rows, point)
        yield from texts.filter(keys.among_texts(texts)).to_list()


def _in_doubt(
    data: DataFile, point: TablePoint, *, keys: frozenset[str] | None = None, is_unreadable: bool = False
) -> TransactionInDoubt:
    return TransactionInDoubt(
        gid=data.path,
        owner="",
        prepared=written_at(data),
        tables=(point.table,),
        is_file=True,
        is_unreadable=is_unreadable,
        keys=keys,
    )


def as_unreadable(data: DataFile, *, is_spoilt: bool) -> UnreadableFile:
    """Return a file as one that cannot be read."""
    return UnreadableFile(
        path=data.path, size_bytes=data.file.size_bytes, written=written_at(data), is_spoilt=is_spoilt
    )


def written_at(data: DataFile) -> datetime:
    """Return when a file was written."""
    return datetime.fromtimestamp(data.file.modified_ms / 1000, UTC)


def keys_within(data: DataFile, point: TablePoint, keys: Iterable[str]) -> frozenset[str] | None:
    """Return those of some keys that a file may hold by its name: where rows are known by their positions, and it says
    the offsets from the first to the last. None: nothing bounds what it holds.

    The topic in the name is not asked for: a writer may have given the topic's rows another name.
    """
    named = data.offsets_named
    if named is None or point.dataset is None or not point.key or point.key != point.dataset.position:
        return None
    return frozenset(key for key in keys if _is_named(named, key))


def _is_named(named: OffsetsNamed, key: str) -> bool:
    """Return whether a name says the position of a key; one that is no position may be anywhere."""
    try:
        partition, offset = map(int, json.loads(key))
    except (ValueError, TypeError):
        return True
    return partition == named.partition and named.first <= offset <= named.last


@dataclass(frozen=True, kw_only=True)
class HeldListing:
    """The files of a dataset at one moment, by which others read (`TableView`)."""

    source: FileSource
    shape: TableShape

    has_places = True
    has_time_index = True
    has_key_index = True
    reads_keys_by_parts = True

    @property
    def seen(self) -> str:
        return self.source.seen

    @property
    def size_bytes(self) -> int:
        return sum(data.file.size_bytes for data in self.source.files)

    def plan(self, bounds: TimeBounds | None, parts: int) -> ReadPlan:
        """Return files for each part, so that these are of about one size; few files are divided by their groups."""
        number = max(parts, 1)
        sizes, by_part = [0] * number, [list[tuple[DataFile, tuple[int, ...] | None]]() for _ in range(number)]
        for size, piece in sorted(self._pieces(number), key=lambda sized_piece: -sized_piece[0]):
            at = sizes.index(min(sizes))
            sizes[at] += size
            by_part[at].append(piece)
        return ReadPlan(
            view=self.source.view,
            seen=self.seen,
            parts=tuple(tuple(part) for part in by_part),
            unreadable=tuple(self._unreadable_file(data) for data in self.source.listing.unreadable),
            not_taken=tuple(as_unreadable(data, is_spoilt=False) for data in self._not_taken()),
        )

    def _unreadable_file(self, data: DataFile) -> UnreadableFile:
        unreadable = as_unreadable(data, is_spoilt=data in self.source.left_out)
        return replace(unreadable, is_gone=data in self.source.listing.gone)

    def _not_taken(self) -> list[DataFile]:
        return sorted({*self.source.listing.uncommitted, *self.source.listing.left_over})

    def leave_out(self, files: Sequence[UnreadableFile]) -> None:
        paths = {file.path for file in files}
        self.source.leave_out([data for data in self.source.files if data.path in paths])

    def _pieces(self, parts: int) -> Iterator[tuple[int, tuple[DataFile, tuple[int, ...] | None]]]:
        for data in self.source.files:
            groups = 1 if len(self.source.files) >= parts else groups_of(self.source.store, data)
            if groups <= 1:
                yield data.file.size_bytes, (data, None)
                continue
            for at in range(groups):
                yield data.file.size_bytes // groups, (data, (at,))

    def count_rows(self, slices: Sequence[TimeSlice]) -> dict[int, int]:
        return {cut.window: sum(int(is_in_slice(times, cut).sum()) for _, times in self._times(cut)) for cut in slices}

    def count_rows_and_ahead(self, slices: Sequence[TimeSlice]) -> tuple[dict[int, int], RowsAhead]:
        return self.count_rows(slices), rows_ahead(times for _, times in self._times(None))

    def count_new_rows(self, of: TimeSlice, seen: str) -> int:
        return sum(
            int((is_in_slice(times, of) & ~self.source.is_certain(data, seen, len(times))).sum())
            for data, times in self._times(of)
        )

    def mark(self, bounds: TimeBounds | None) -> Any:
        return mark_of(self.source, self.shape)

    def why_not_same(self, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
        return why_not_same(self.source, self.shape, bounds, before)

    def _times(self, of: TimeSlice | None) -> Iterator[tuple[DataFile, pl.Series]]:
        """Yield the times of rows in microseconds, at least those of a slice. A file whose times do not decode is left
        out from then on."""
        point, spoilt = self.shape.point, list[SpoiltGroup]()
        bounds = None if of is None else TimeBounds(start=of.start, end=of.end)
        topic = () if point.dataset is None or point.dataset.topic is None else (point.dataset.topic,)
        columns = [*(() if point.time is None else (point.time,)), *topic]
        for data, rows in self.source.rows(self.source.whole, columns, inside(point, bounds), spoilt):
            own = is_of_topics(rows.rows, point)
            kept = rows if own is None else rows.only(own.to_numpy())
            yield data, times_of_rows(kept.rows, point)
        if spoilt:
            self.source.leave_out({group.data for group in spoilt})
