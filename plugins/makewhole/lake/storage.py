"""Write and read the files of snapshots below a root: a folder, or a URI (`makewhole.file_system`).

Paths are relative to the root and use `/`. A file is written under a unique name and never changed after; it counts
once a manifest in the journal names it.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import uuid4

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from makewhole.compute.frames import NUMBERED_PLACE, with_place
from makewhole.file_system import (
    arrow_file_system,
    check_name,
    connection_of,
    is_object_store,
    path_below,
)
from makewhole.lake.constant_columns import NO_CONSTANTS, columns_to_read, names_of_columns, with_constants
from makewhole.lake.give_name import give_name, take_place, unfinished_path
from makewhole.lake.marked_rows import marked_rows
from makewhole.lake.parquet_writer import GrowingParquet, PackedParquet
from makewhole.lake.sorted_parquet import SortedParquet, SortedRows
from makewhole.model.errors import ConfigurationError, CorruptionError, Problem
from makewhole.native.arrays import Bools
from makewhole.private_files import make_private

_ROWS_OF_A_BATCH = 16_384
_BYTES_OF_A_BLOCK = 1 << 20
_FEW_ROWS = 100


def _needed(columns: Sequence[str], present: Sequence[str]) -> list[str]:
    """Return the columns of a file that the wanted ones are made of."""
    wanted = {*columns}
    if "place" in wanted and "place" not in present:
        wanted |= {"key_hi", "partition", "offset", *NUMBERED_PLACE}
    return [name for name in present if name in wanted]


@dataclass(frozen=True, kw_only=True, order=True)
class StoredFile:
    """A file of a storage. `modified_at` is None where the file system does not say it."""

    path: str
    size_bytes: int
    modified_at: datetime | None = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Storage below a root. Its files are for its owner alone, unless it `is_shared`: published for everyone."""

    root: str
    is_shared: bool = False

    @classmethod
    def from_environment(cls) -> "Storage":
        """Return the storage that `MAKEWHOLE_STORAGE` names.

        Raises:
            ConfigurationError: it is not set, or has a secret in it.
        """
        root = os.environ.get("MAKEWHOLE_STORAGE")
        if not root:
            raise ConfigurationError(
                [
                    Problem(
                        file="environment",
                        path="MAKEWHOLE_STORAGE",
                        found="is not set",
                        remedy="Set it to a folder or a URI (s3://…, hdfs://…) that every worker reaches",
                    )
                ]
            )
        check_name(root)
        return cls(root=root)

    @property
    def connection_id(self) -> str | None:
        """The id of the connection that has the credentials of an object store; None: the SDK finds them, or there is
        no need of any."""
        return connection_of(self.root)

    def uri(self, path: str) -> str:
        """Return the full name of a path of this storage, for people."""
        return path_below(self.root, path)

    def _locate(self, path: str) -> tuple[fs.FileSystem, str]:
        system, base = arrow_file_system(self.root, is_shared=self.is_shared)
        return system, f"{base.rstrip('/')}/{path}"

    def _to_write(self, path: str) -> tuple[fs.FileSystem, str]:
        """Locate a file that will be written; make its folder, where there are folders, and on this machine the file,
        so that no other user may ever read it."""
        system, full = self._locate(path)
        if isinstance(system, fs.LocalFileSystem) and not self.is_shared:
            make_private(full)
        elif not is_object_store(self.root):
            system.create_dir(full.rsplit("/", 1)[0], recursive=True)
        return system, full

    def write_parquet(self, folder: str, frame: pl.DataFrame) -> str:
        """Write a frame into a new file of the folder; return its path."""
        with self.growing_parquet(folder) as growing:
            growing.append(frame)
        return growing.path

    def parquet_instead(
        self, path: str, never_null: Collection[str] = (), *, is_sorted: bool = False
    ) -> GrowingParquet:
        """Return a new file beside another one, to be put in its place: of the same kind, with the same columns."""
        beside = unfinished_path(path)
        system, full = self._to_write(beside)
        return SortedParquet(beside, system, full) if is_sorted else GrowingParquet(beside, system, full, never_null)

    def row_groups(self, path: str) -> Iterator[pl.DataFrame]:
        """Yield the rows of a file, a row group at a time; of a file without rows its columns.

        Raises:
            CorruptionError: the file does not exist.
        """
        with self._open(path) as file:
            for at in range(file.num_row_groups):
                frame = pl.from_arrow(file.read_row_group(at))
                assert isinstance(frame, pl.DataFrame)
                yield with_constants(frame, file.schema_arrow)
            if not file.num_row_groups:
                frame = pl.from_arrow(file.schema_arrow.empty_table())
                assert isinstance(frame, pl.DataFrame)
                yield with_constants(frame, file.schema_arrow)

    def columns(self, path: str) -> dict[str, bool]:
        """Return the columns of a file, and whether each may be null.

        Raises:
            CorruptionError: the file does not exist.
        """
        with self._open(path) as file:
            nullable = {field.name: field.nullable for field in file.schema_arrow}
            return {name: nullable.get(name, True) for name in names_of_columns(file.schema_arrow)}

    def growing_parquet(
        self, folder: str, never_null: Collection[str] = (), metadata: Mapping[bytes, bytes] = NO_CONSTANTS
    ) -> GrowingParquet:
        """Return a new file of the folder, for frames of one schema. Columns of `never_null` hold no nulls. `metadata`:
        of columns that are in no frame (`metadata_of`)."""
        path = f"{folder}/part-{uuid4().hex[:16]}.parquet"
        system, full = self._to_write(path)
        return GrowingParquet(path, system, full, never_null, metadata)

    def packed_parquet(self, path: str) -> PackedParquet:
        """Return a new file of this path, for rows that people read with their own tools."""
        system, full = self._to_write(path)
        return PackedParquet(path, system, full)

    def sorted_parquet(self, folder: str) -> SortedParquet:
        """Return a new file of the folder, for frames whose rows are in key order."""
        path = f"{folder}/part-{uuid4().hex[:16]}.parquet"
        system, full = self._to_write(path)
        return SortedParquet(path, system, full)

    def sorted_rows(self, path: str) -> SortedRows:
        """Open a file whose rows are in key order.

        Raises:
            CorruptionError: a file that a manifest names does not exist.
        """
        return SortedRows(self._open(path))

    def read_parquet(self, paths: Sequence[str], columns: Sequence[str] | None = None) -> pl.DataFrame | None:
        """Return the rows of these files together; None for no files. A column that some files lack is null there.

        The copies of a topic come with `place` though their files do not hold it.

        Raises:
            CorruptionError: a file that a manifest names does not exist.
        """
        frames = [self._read(path, columns) for path in paths]
        return pl.concat(frames, how="diagonal") if frames else None

    def count_rows(self, paths: Sequence[str]) -> int:
        """Return the number of rows in these files, by their footers alone.

        Raises:
            CorruptionError: a file that a manifest names does not exist.
        """
        return sum(self._number_of_rows(path) for path in paths)

    def _number_of_rows(self, path: str) -> int:
        with self._open(path) as file:
            rows: int = file.metadata.num_rows
            return rows

    def may_be_before(self, paths: Sequence[str], column: str, moment: datetime) -> bool:
        """Return whether these files may have a time before a moment, or a row without one, by their footers alone.
        False is certain.

        Raises:
            CorruptionError: a file that a manifest names does not exist.
        """
        return any(self._may_be_before(path, column, moment) for path in paths)

    def _may_be_before(self, path: str, column: str, moment: datetime) -> bool:
        with self._open(path) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            if column not in file.schema_arrow.names and column in names_of_columns(file.schema_arrow):
                return bool(groups)  # its one value has no statistics
        columns = [group.column(at) for group in groups for at in range(group.num_columns)]
        known = [chunk.statistics for chunk in columns if chunk.path_in_schema == column and chunk.num_values]
        lowest = [stats.min if stats is not None and stats.null_count == 0 else None for stats in known]
        return any(least is None or least < moment for least in lowest)

    def read_rows(self, paths: Sequence[str], wanted: Bools) -> pl.DataFrame | None:
        """Return the wanted ones of the rows that `read_parquet` returns, a mark for each; None for no files.

        Row groups of which no row is wanted are not read, nor the texts of other rows where few are wanted.

        Raises:
            CorruptionError: a file that a manifest names does not exist, or they have other numbers of rows.
        """
        frames, first = list[pl.DataFrame](), 0
        for path in paths:
            with self._open(path) as file:
                marks = wanted[first : first + file.metadata.num_rows]
                first += file.metadata.num_rows
                if len(marks) == file.metadata.num_rows:
                    parts = marked_rows(file, marks, partial(self.read_bytes, path))
                    frames += [with_place(with_constants(part, file.schema_arrow)) for part in parts]
        if first != len(wanted):
            raise CorruptionError(f"{first} rows are in the files of a snapshot, {len(wanted)} were there before")
        if not frames:  # the columns matter all the same
            return None if (whole := self.read_parquet(paths[:1])) is None else whole.clear()
        return pl.concat(frames, how="diagonal")

    def parquet_batches(
        self, paths: Sequence[str], columns: Sequence[str], rows: int = _ROWS_OF_A_BATCH
    ) -> Iterator[pl.DataFrame]:
        """Read columns of these files in their order, at most `rows` rows at a time: no more is in memory at once.

        Raises:
            CorruptionError: a file that a manifest names does not exist.
        """
        for path in paths:
            with self._open(path) as file:
                for batch in file.iter_batches(rows, columns=columns_to_read(file.schema_arrow, columns)):
                    frame = pl.from_arrow(batch)
                    assert isinstance(frame, pl.DataFrame)
                    yield with_constants(frame, file.schema_arrow, columns).select(columns)

    def pieces(self, path: str, rows: Sequence[int]) -> Iterator[pa.Table]:
        """Read a file in pieces of so many rows, one after the other. Where some have few, few are read at once: their
        rows are large.

        Raises:
            CorruptionError: the file does not exist, or has other rows.
        """
        if not rows:
            return
        with self._open(path) as file:
            held, batches = file.schema_arrow.empty_table(), file.iter_batches(max(min(rows[:-1] or rows), _FEW_ROWS))
            for number in rows:
                while held.num_rows < number and (batch := next(batches, None)) is not None:
                    held = pa.concat_tables([held, pa.Table.from_batches([batch])])
                if held.num_rows < number:
                    raise CorruptionError(f"{self.uri(path)} has fewer rows than its manifest says")
                yield held.slice(0, number)
                held = held.slice(number)

    def _open(self, path: str) -> pq.ParquetFile:
        system, full = self._locate(path)
        try:
            return pq.ParquetFile(full, filesystem=system)
        except FileNotFoundError as error:
            raise CorruptionError(
                f"{self.uri(path)} is named by a manifest and is not there; restore it, or run the window again for a "
                "new revision"
            ) from error
        except pa.ArrowInvalid as error:
            raise CorruptionError(
                f"{self.uri(path)} is no whole Parquet file; restore it, or run the window again for a new revision"
            ) from error

    def _read(self, path: str, columns: Sequence[str] | None) -> pl.DataFrame:
        with self._open(path) as file:
            schema, needed = file.schema_arrow, None
            if columns is not None:
                needed = _needed(columns, names_of_columns(schema))
            frame = pl.from_arrow(file.read(None if needed is None else columns_to_read(schema, needed)))
        assert isinstance(frame, pl.DataFrame)
        frame = with_constants(frame, schema, needed)
        if columns is None:
            return with_place(frame)
        if "place" in columns:
            frame = with_place(frame)
        return frame.select(name for name in columns if name in frame.columns)

    def write_bytes(self, path: str, content: bytes) -> str:
        """Write a small file whole; return its full name."""
        system, full = self._to_write(path)
        with system.open_output_stream(full) as stream:
            stream.write(content)
        return self.uri(path)

    def write_once(self, path: str, content: bytes) -> str:
        """Write a small file that is never changed, whole or not at all; harmless when it is there. Return its name.

        Raises:
            CorruptionError: another content is there.
        """
        there = self.read_if_exists(path)
        if there is None and not self._write_new(path, content):
            there = self.read_if_exists(path)
        if there is not None and there != content:
            raise CorruptionError(
                f"{self.uri(path)} is there with another content; it was left as it is, and must not be overwritten. "
                "Find out who wrote it"
            )
        return self.uri(path)

    def _write_new(self, path: str, content: bytes) -> bool:
        """Write a file under another name, and give it its own; return whether it was given. False: another process
        was first. S3 has no such answer: there the later of two that write at once stays."""
        _, full = self._locate(path)
        system, unfinished = self._to_write(unfinished_path(path))
        with system.open_output_stream(unfinished) as stream:
            stream.write(content)
        try:
            give_name(system, unfinished, full)
        except FileExistsError:
            system.delete_file(unfinished)
            return False
        return True

    def read_if_exists(self, path: str) -> bytes | None:
        """Return a small file whole; None when there is none."""
        try:
            return self.read_bytes(path)
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, in order; none for a folder that is not there."""
        system, full = self._locate(folder)
        infos = system.get_file_info(fs.FileSelector(full, allow_not_found=True))
        return sorted(info.base_name for info in infos if info.type == fs.FileType.File)

    def files_below(self, folder: str) -> list[StoredFile]:
        """Return the files in a folder and in the folders inside it, in order; none for a folder that is not there."""
        system, full = self._locate(folder)
        infos = system.get_file_info(fs.FileSelector(full, allow_not_found=True, recursive=True))
        return sorted(
            StoredFile(path=folder + info.path[len(full) :], size_bytes=info.size, modified_at=info.mtime)
            for info in infos
            if info.type == fs.FileType.File
        )

    def remove(self, path: str) -> None:
        """Remove a file; harmless when it is not there."""
        system, full = self._locate(path)
        with suppress(FileNotFoundError):
            system.delete_file(full)

    def put_in_place(self, written: str, path: str) -> None:
        """Give a file the name of another one, which goes: a reader sees all of the old one, or all of the new one."""
        system, full = self._locate(path)
        _, other = self._locate(written)
        take_place(self.root, system, other, full)

    def sha256(self, path: str) -> str:
        """Return the SHA-256 of a file in hex, read from the storage.

        Raises:
            FileNotFoundError: it is not there.
        """
        system, full = self._locate(path)
        digest = hashlib.sha256()
        with system.open_input_stream(full, compression=None) as stream:
            while block := stream.read(_BYTES_OF_A_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def read_bytes(self, path: str) -> bytes:
        """Return a small file whole."""
        system, full = self._locate(path)
        with system.open_input_stream(full) as stream:
            return bytes(stream.read())
