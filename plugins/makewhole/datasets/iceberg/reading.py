"""Read Iceberg tables: views that are held, parts of rows, and the rows of keys."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from pyiceberg.expressions import BooleanExpression
from pyiceberg.manifest import FileFormat, ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from makewhole.compute.frames import numbered_places
from makewhole.datasets.iceberg.catalog import translated
from makewhole.datasets.iceberg.data_files import ListedFile, listed_files
from makewhole.datasets.iceberg.describe import arrow_schema, existing, table_of
from makewhole.datasets.iceberg.held_view import SnapshotView, view_now
from makewhole.datasets.iceberg.left_out.certain_files import CertainFiles, files_by_commits
from makewhole.datasets.iceberg.left_out.gone_files import first_gone, gone_path, refused_list, require_kept
from makewhole.datasets.iceberg.left_out.keys_within import KeysWithin, in_doubt
from makewhole.datasets.iceberg.predicates import inside, of_keys
from makewhole.datasets.iceberg.read_file import FileReader, FileRows, SpoiltRows
from makewhole.datasets.iceberg.warehouse import broken_part
from makewhole.datasets.nested_columns import top_column
from makewhole.datasets.row_frames import frame_of_rows, is_in_slice, is_inside, is_of_topics, rows_ahead, times_of_rows
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.file_stores.broken_parts import not_readable
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import MakewholeError, RefusedError
from makewhole.model.points import TablePoint
from makewhole.model.window import TimeSlice
from makewhole.native.numbered_texts import numbered_texts
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.reading import ReadBefore, ReadPlan, UnreadableFile
from makewhole.tables.shape import RowsAhead, TableShape, TimeBounds

FilesOfPart = tuple[ListedFile, ...]
"""Some data files of a snapshot."""


class Snapshotted:
    """A table as a view has it: the files of its snapshot, and their rows."""

    def __init__(self, table: Table, name: str, view: SnapshotView | None = None) -> None:
        self.table, self.name, self.view = table, name, view or view_now(table)
        self.snapshot = self.view.snapshot_in(self.table, name)
        self.gone, self.left_out = dict[str, ManifestFile](), dict[str, UnreadableFile]()
        self.schema = self.view.schema_in(self.table)
        self.files_read = FileReader(table=self.table, schema=self.schema)

    @classmethod
    def of(cls, connection: IcebergConnection, point: TablePoint, view: SnapshotView | None = None) -> "Snapshotted":
        """Return the table of a point; `view` None: as it is now. Raises what `table_of` does."""
        return cls(table_of(connection, point), point.table, view)

    def files(self, where: BooleanExpression | None = None) -> list[ListedFile]:
        """Return the data files that may have rows for which `where` holds."""
        is_of_now = self.view.schema == self.table.metadata.current_schema_id
        gone = list[ManifestFile]()
        with translated(self.name):
            try:
                files = listed_files(
                    *(self.table, self.snapshot, self.name, where if is_of_now else None),
                    without=self.view.without,
                    gone=gone,
                )
            except FileNotFoundError as error:
                self.require_kept()
                raise refused_list(error, self.name, self.view.snapshot) from error
        if gone:
            self.require_kept()
            self.gone |= {manifest.manifest_path: manifest for manifest in gone}
            self.leave_out(map(self._unreadable_list, gone))
        return [listed for listed in files if listed.paths.isdisjoint(self.view.without)]

    @property
    def may_have_deletes(self) -> bool:
        """Whether files of deletes may apply to data files; False is certain."""
        with translated(self.name):
            try:
                listed = [] if self.snapshot is None else self.snapshot.manifests(self.table.io)
            except FileNotFoundError:
                return True
        return any(manifest.content is ManifestContent.DELETES for manifest in listed)

    def require_kept(self) -> None:
        """Check that what a snapshot lists was removed from under it. Raises what the function of that name does."""
        require_kept(self.table, self.name, [] if self.view.snapshot is None else [self.view.snapshot])

    def files_since(self, seen: str, where: BooleanExpression) -> list[ListedFile]:
        """Return the data files that may have rows for which `where` holds and that were not there when `seen` was, or
        with other deletes; all of them, where that is not known."""
        before = SnapshotView.known(seen)
        if before is None or (before.uuid, before.schema) != (self.view.uuid, self.view.schema):
            return self.files(where)
        old = None if before.snapshot is None else self.table.snapshot_by_id(before.snapshot)
        if old is None:
            return self.files(where)
        if before.snapshot == self.view.snapshot and not before.without:
            return []
        known = {_identity(listed) for listed in self._files_then(before, old, where) or ()}
        return [listed for listed in self.files(where) if _identity(listed) not in known]

    def _files_then(
        self, before: SnapshotView, old: Snapshot, where: BooleanExpression | None = None
    ) -> list[ListedFile] | None:
        """Return the data files that an earlier view had, as far as their lists are still there; None: none is."""
        with translated(self.name):
            try:
                files = listed_files(self.table, old, self.name, where, without=before.without, gone=[])
            except FileNotFoundError:
                return None
        return [listed for listed in files if listed.paths.isdisjoint(before.without)]

    def leave_out(self, files: Iterable[UnreadableFile]) -> None:
        """Take files for such as cannot be read, from now on."""
        self.left_out |= {file.path: file for file in files}
        self.view = replace(self.view, without=tuple(sorted({*self.view.without, *self.left_out})))

    def unreadable(self, rows: SpoiltRows) -> UnreadableFile:
        """Return a file as one that cannot be read; it was written when the snapshot that brought it was made."""
        sizes = {file.file_path: file.file_size_in_bytes for file in (rows.listed.file, *rows.listed.deletes)}
        return self._unreadable(rows.path, sizes.get(rows.path, 0), rows.listed.added_in, is_gone=rows.gone is not None)

    def _unreadable_list(self, manifest: ManifestFile) -> UnreadableFile:
        added_in = manifest.added_snapshot_id
        return self._unreadable(manifest.manifest_path, manifest.manifest_length, added_in, is_gone=True)

    def _unreadable(self, path: str, size_bytes: int, added_in: int | None, *, is_gone: bool) -> UnreadableFile:
        brought = None if added_in is None else self.table.snapshot_by_id(added_in)
        return UnreadableFile(
            path=path,
            size_bytes=size_bytes,
            written=datetime.fromtimestamp((0 if brought is None else brought.timestamp_ms) / 1000, UTC),
            is_spoilt=not is_gone,
            is_gone=is_gone,
            commit=None if added_in is None else str(added_in),
        )

    def rows(
        self,
        files: Sequence[ListedFile],
        columns: Sequence[str],
        where: BooleanExpression | None = None,
        spoilt: list[SpoiltRows] | None = None,
    ) -> Iterator[tuple[ListedFile, FileRows]]:
        """Yield the rows of files with the top columns in which these lie. What does not decode or is gone is added to
        `spoilt`, and left out.

        Raises:
            RefusedError: a file does not decode or is gone, and there is no list for it.
            TransientError: one is gone as its snapshot was expired.
        """
        if self.gone and spoilt is None:
            raise self._refused(min(self.gone), is_gone=True)
        schema = arrow_schema(self.schema)
        tops = sorted({top_column(schema, name) for name in columns})
        noted = list[SpoiltRows]() if spoilt is None else spoilt
        for listed in files:
            with translated(self.name, listed.file.file_path):
                try:
                    for rows in self.files_read.read(listed, tops, where, noted):
                        yield listed, rows
                except FileNotFoundError as error:
                    self.require_kept()
                    noted.append(SpoiltRows(listed=listed, gone=gone_path(error, listed.file.file_path)))
                except RuntimeError as error:  # of HDFS, where a block cannot be read
                    parts = {path: broken_part(self.table.io, path) for path in sorted(listed.paths)}
                    path = next((path for path, part in parts.items() if part), listed.file.file_path)
                    raise not_readable(f"{path} of {self.name}", parts[path]) from error
            if noted and spoilt is None:
                raise self._refused(noted[0].path, is_gone=noted[0].gone is not None)

    def _refused(self, path: str, *, is_gone: bool) -> RefusedError:
        why = f"is gone, and snapshot {self.view.snapshot} lists it" if is_gone else "does not decode"
        return RefusedError(
            f"{path} of {self.name} {why}: it is not known which rows it holds. "
            "Restore it, or take it out of the table and load its rows again; then run this window again"
        )

    def places(self, listed: ListedFile, rows: FileRows) -> pl.Series:
        """Return where rows lie."""
        return numbered_texts(listed.around_number(self.table.location()), [rows.numbers])

    def certain_files(self, seen: str) -> CertainFiles:
        """Return the files whose rows were there, and could be read, when `seen` was. Of a snapshot whose lists are
        gone they are known by their commits alone; by what was seen of a table of another kind there are none."""
        before = SnapshotView.known(seen)
        if before is None or before.uuid != self.view.uuid or before.snapshot is None:
            return CertainFiles()
        old = self.table.snapshot_by_id(before.snapshot)
        known = None if old is None else self._files_then(before, old)
        return CertainFiles(files_by_commits(before, self.files(), self.view.without) if known is None else known)


def _identity(listed: ListedFile) -> tuple[str, int, int, tuple[str, ...]]:
    """Return what has to be the same for a data file to have the same rows."""
    return listed.file.file_path, listed.sequence, listed.listing, tuple(delete.file_path for delete in listed.deletes)


class IcebergReader:
    """A reader of rows as frames (`TableReader`)."""

    def __init__(self, connection: IcebergConnection, shape: TableShape, view: str | None) -> None:
        self._connection, self._shape = connection, shape
        self._view = None if view is None else SnapshotView.of_text(view)
        self.counted = 0
        self.in_doubt: Sequence[TransactionInDoubt] = ()
        self.unreadable: Sequence[UnreadableFile] = ()

    @cached_property
    def _source(self) -> Snapshotted:
        if self._view is None:
            existing(self._connection, self._shape)
        return Snapshotted.of(self._connection, self._shape.point, self._view)

    def part(self, bounds: TimeBounds | None, part: FilesOfPart) -> Iterator[pl.DataFrame]:
        """Read the rows of a part of the table."""
        source, point, spoilt = self._source, self._shape.point, list[SpoiltRows]()
        where = inside(source.schema, point, bounds)
        certain = {} if bounds is None else {seen: source.certain_files(seen) for seen in bounds.named_views}
        for listed, rows in source.rows(part, sorted(self._shape.column_names()), where, spoilt):
            kept = np.ones(len(rows.numbers), dtype=bool)
            if bounds is not None and point.time is not None:
                is_certain = {
                    seen: pl.Series([listed in files]).new_from_index(0, len(kept)) for seen, files in certain.items()
                }
                kept = is_inside(times_of_rows(rows.rows, point), is_certain, bounds).to_numpy()
            yield from self._frames(source, listed, rows.only(kept))
        self.unreadable = _unreadable(source, spoilt)

    def keys(self, keys: Sequence[str], since: str | None = None) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys; with `since`, of files that came after that view, or with other deletes."""
        if not keys:
            return
        source, spoilt = self._source, list[SpoiltRows]()
        wanted = WantedKeys.of_texts(self._shape.point, keys)
        where = of_keys(source.schema, self._shape.point, wanted)
        files = source.files(where) if since is None else source.files_since(since, where)
        yield from self._among(files, wanted, where, spoilt)
        if spoilt or source.gone:
            unreadable = {file.path: file for file in _unreadable(source, spoilt)}
            within = KeysWithin(source.table, source.schema, self._shape.point, keys)
            with translated(source.name):
                held = in_doubt(self._shape.point, within, source.files_read, unreadable, spoilt, source.gone)
                self.in_doubt = tuple(held)
        if self._view is not None:
            self.unreadable = _unreadable(source, spoilt)

    def keys_in_part(self, keys: pl.DataFrame, part: FilesOfPart) -> Iterator[pl.DataFrame]:
        """Read the rows of these keys in a part of the table."""
        source, spoilt = self._source, list[SpoiltRows]()
        wanted = WantedKeys(self._shape.point, keys)
        where = of_keys(source.schema, self._shape.point, wanted)
        may_hold = {(listed.file.file_path, listed.listing) for listed in source.files(where)}
        files = [listed for listed in part if (listed.file.file_path, listed.listing) in may_hold]
        yield from self._among(files, wanted, where, spoilt)
        self.unreadable = _unreadable(source, spoilt)

    def _among(
        self, files: Sequence[ListedFile], wanted: WantedKeys, where: BooleanExpression, spoilt: list[SpoiltRows]
    ) -> Iterator[pl.DataFrame]:
        columns = sorted(self._shape.column_names())
        for listed, rows in self._source.rows(files, columns, where, spoilt):
            yield from self._frames(self._source, listed, rows.only(wanted.among(rows.rows)))

    def _frames(self, source: Snapshotted, listed: ListedFile, rows: FileRows) -> Iterator[pl.DataFrame]:
        own = is_of_topics(rows.rows, self._shape.point)
        rows = rows if own is None else rows.only(own.to_numpy())
        if not len(rows.numbers):
            return
        self.counted += len(rows.numbers)
        before, after = listed.around_number(source.table.location())
        yield frame_of_rows(rows.rows, numbered_places(before, rows.numbers, after), self._shape)


def _unreadable(source: Snapshotted, spoilt: Sequence[SpoiltRows]) -> list[UnreadableFile]:
    """Return the files that were found to be gone or not to decode, each once."""
    by_path = {file.path: file for file in (*source.left_out.values(), *map(source.unreadable, spoilt))}
    return [by_path[path] for path in sorted(by_path)]


@dataclass(frozen=True, kw_only=True)
class HeldSnapshot:
    """A snapshot of a table, by which others read (`TableView`)."""

    source: Snapshotted
    shape: TableShape

    has_places = True
    has_time_index = True
    has_key_index = True
    reads_keys_by_parts = True

    @property
    def seen(self) -> str:
        return self.source.view.text

    @property
    def size_bytes(self) -> int:
        return sum(listed.file.file_size_in_bytes for listed in self.source.files())

    def plan(self, bounds: TimeBounds | None, parts: int) -> ReadPlan:
        """Return files for each part, so that these are of about one size; of a file that is larger its groups of
        rows."""
        files = self.source.files(inside(self.source.schema, self.shape.point, bounds))
        sizes, by_part = [0] * max(parts, 1), [list[ListedFile]() for _ in range(max(parts, 1))]
        share = sum(listed.file.file_size_in_bytes for listed in files) / max(parts, 1)
        pieces = [piece for listed in files for piece in self._pieces(listed, share)]
        for size, listed in sorted(pieces, key=lambda piece: -piece[0]):
            at = sizes.index(min(sizes))
            sizes[at] += size
            by_part[at].append(listed)
        return ReadPlan(
            view=self.seen,
            seen=self.seen,
            parts=tuple(tuple(part) for part in by_part),
            unreadable=tuple(sorted(self.source.left_out.values(), key=lambda file: file.path)),
        )

    def leave_out(self, files: Sequence[UnreadableFile]) -> None:
        self.source.leave_out(files)

    def _pieces(self, listed: ListedFile, share: float) -> list[tuple[int, ListedFile]]:
        """Return a file, or its groups of rows, with their sizes in bytes."""
        size = listed.file.file_size_in_bytes
        if size <= share or listed.file.file_format is not FileFormat.PARQUET:
            return [(size, listed)]
        try:
            with translated(self.source.name, listed.file.file_path):
                groups = self.source.files_read.group_sizes(listed)
        except MakewholeError:
            return [(size, listed)]  # what reads it finds out what it is
        of_values = max(sum(groups), 1)
        return [(size * own // of_values, replace(listed, groups=(at,))) for at, own in enumerate(groups)]

    def count_rows(self, slices: Sequence[TimeSlice]) -> dict[int, int]:
        return {cut.window: sum(int(is_in_slice(times, cut).sum()) for _, times in self._times(cut)) for cut in slices}

    def count_rows_and_ahead(self, slices: Sequence[TimeSlice]) -> tuple[dict[int, int], RowsAhead]:
        ahead = TimeSlice(window=0, start=datetime.now(UTC), end=datetime.max.replace(tzinfo=UTC))
        return self.count_rows(slices), rows_ahead(times for _, times in self._times(ahead))

    def count_new_rows(self, of: TimeSlice, seen: str) -> int:
        certain = self.source.certain_files(seen)
        return sum(int(is_in_slice(times, of).sum()) for listed, times in self._times(of) if listed not in certain)

    def mark(self, bounds: TimeBounds | None) -> Any:
        """Return the files that may have rows inside the bounds, with the deletes that apply to them, and the schema:
        what is written once is never changed in place."""
        listed = self.source.files(inside(self.source.schema, self.shape.point, bounds))
        files = [
            [file.file.file_path, file.file.file_size_in_bytes, file.listing, file.added_in, file.sequence]
            + [delete.file_path for delete in file.deletes]
            for file in listed
        ]
        digest = hashlib.sha256(json.dumps(files).encode()).hexdigest()
        view, mapping = self.source.view, self.source.table.properties.get("schema.name-mapping.default")
        return {
            "table": view.uuid,
            "location": self.source.table.location(),
            "schema": [view.schema, mapping],
            "files": digest,
        }

    def why_not_same(self, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
        """Return why not: rows that came, went or changed came with other files, or with other deletes, unless a file
        was removed from under the table."""
        if self.mark(bounds) != before.mark:
            return "other files or deletes than then have rows of it, or it has another schema"
        listed = self.source.files(inside(self.source.schema, self.shape.point, bounds))
        with translated(self.source.name):
            gone = first_gone(self.source.table.io, sorted({path for file in listed for path in file.paths}))
        return None if gone is None else f"{gone} is gone"

    def _times(self, of: TimeSlice) -> Iterator[tuple[ListedFile, pl.Series]]:
        """Yield the times of rows in microseconds, at least those of a slice. A file whose times do not decode is left
        out from then on."""
        point, spoilt = self.shape.point, list[SpoiltRows]()
        where = inside(self.source.schema, point, TimeBounds(start=of.start, end=of.end))
        topic = () if point.dataset is None or point.dataset.topic is None else (point.dataset.topic,)
        columns = [*(() if point.time is None else (point.time,)), *topic]
        for listed, rows in self.source.rows(self.source.files(where), columns, where, spoilt):
            own = is_of_topics(rows.rows, point)
            kept = rows if own is None else rows.only(own.to_numpy())
            yield listed, times_of_rows(kept.rows, point)
        if spoilt:
            self.source.leave_out(_unreadable(self.source, spoilt))
