"""A dataset of files as a view has it: its files, its columns, and its rows."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.files.file_view import SeenFiles, files_of_view, seen_text, view_text
from makewhole.datasets.files.listing import DataFile, Listing, folder_name, listing_now
from makewhole.datasets.files.parquet_rows import (
    ParquetRows,
    RowGroups,
    SpoiltGroup,
    UnreadableFileError,
    read_rows,
    read_schema,
)
from makewhole.datasets.files.spans import Wanted
from makewhole.datasets.nested_columns import all_types, column_at, top_column, with_parts_of
from makewhole.datasets.value_texts import own_texts
from makewhole.file_stores.open_store import file_store
from makewhole.model.connection import Connection
from makewhole.model.points import TablePoint
from makewhole.native.arrays import Bools
from makewhole.native.numbered_texts import numbered_texts

_FOOTERS_AT_ONCE = 16
_MOST_SCHEMAS, _MOST_ALIKE = 100_000, 1_000
_SCHEMAS: dict[tuple[str, str, DataFile], pa.Schema] = {}
_ALIKE: dict[pa.Schema, pa.Schema] = {}
"""One of the schemas that are alike, as those of most files of a dataset are."""
FilesPart = tuple[tuple[DataFile, RowGroups | None], ...]
"""Some files of a view; of a file all groups of rows, or these."""


class FileSource:
    """The files of a dataset, as a view has them, or as they are now."""

    def __init__(self, connection: Connection, point: TablePoint, view: str | None = None) -> None:
        self.connection = connection
        self.store, self.name = file_store(connection, point.table), point.table
        self._view, self._schemas, self._own = view, dict[DataFile, pa.Schema](), dict[DataFile, pa.Schema]()
        self.left_out = set[DataFile]()
        self.listed_at = datetime.max.replace(tzinfo=UTC)
        self._marker = "" if point.dataset is None else point.dataset.marker

    @cached_property
    def listed(self) -> Listing:
        """The files at one moment, whether they can be read or not."""
        self.listed_at = datetime.now(UTC)
        return listing_now(self.store, self._marker)

    @cached_property
    def listing(self) -> Listing:
        """The files at one moment. A view has those alone that count, and can be read."""
        if self._view is not None:
            return Listing(files=files_of_view(self._view))
        listed = self.listed
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            own = dict(zip(listed.files, pool.map(self._own_schema, listed.files), strict=True))
        self._own = {data: schema for data, schema in own.items() if schema is not None}
        unreadable = [data for data, schema in own.items() if schema is None]
        return replace(listed, files=tuple(self._own), unreadable=tuple(sorted([*unreadable, *listed.gone])))

    def leave_out(self, files: Collection[DataFile]) -> None:
        """Take files whose pages do not decode for such as cannot be read, from now on."""
        left = tuple(data for data in self.listing.files if data not in files)
        gone = (data for data in self.listing.files if data in files)
        self.listing = replace(self.listing, files=left, unreadable=tuple(sorted({*self.listing.unreadable, *gone})))
        self.left_out |= {*files}
        self._schemas.clear()
        self.__dict__.pop("_folder_types", None)

    def _own_schema(self, data: DataFile) -> pa.Schema | None:
        """Return the columns that a file has; None: it is no whole Parquet file."""
        try:
            return self._read_schema(data)
        except UnreadableFileError:
            return None

    def _read_schema(self, data: DataFile) -> pa.Schema:
        """Return the columns that a file has, which a process reads once: each look-up and each chunk asks for those of
        all files. Raises what `read_schema` does."""
        place = self.connection.id, self.store.root, data
        known = _SCHEMAS.get(place)
        if known is None:
            known = read_schema(self.store, data)
            if len(_SCHEMAS) >= _MOST_SCHEMAS:
                _SCHEMAS.clear()
            _SCHEMAS[place] = _ALIKE.setdefault(known, known) if len(_ALIKE) < _MOST_ALIKE else known
        return known

    @property
    def files(self) -> Sequence[DataFile]:
        """The files that count, by path."""
        return self.listing.files

    @property
    def newest_first(self) -> Sequence[DataFile]:
        """The files that count, the last written one first."""
        return sorted(self.files, key=lambda data: (-data.file.modified_ms, data.path))

    @property
    def view(self) -> str:
        """The text by which readers find this listing again."""
        return view_text(self.files)

    @property
    def seen(self) -> str:
        """Identity of the listing, from which its files are known later."""
        return seen_text(self.files)

    def schema_of(self, data: DataFile) -> pa.Schema:
        """Return the columns of a file, those that its folders name among them. Raises what `read_schema` does."""
        if data not in self._schemas:
            own = self._own.get(data) or self._read_schema(data)
            fields = [field for field in own if field.name not in data.folders]
            self._schemas[data] = pa.schema([*fields, *(pa.field(*column) for column in self._folder_types.items())])
        return self._schemas[data]

    def schema(self, wanted: Sequence[str] | None = None) -> pa.Schema | None:
        """Return the columns of all files, each with the type that it has in the newest, and the parts that it has in
        any; with `wanted`, of no more files than it takes to know these. None: there is no file. Raises what
        `read_schema` does."""
        schema: pa.Schema | None = None
        for data in self.newest_first:
            own = self.schema_of(data)
            schema = own if schema is None else _with_columns_of(schema, own)
            if wanted is not None and set(wanted) <= all_types(schema).keys():
                return schema
        return schema

    @property
    def number(self) -> int:
        """A number for the dataset, by where it lies."""
        return int.from_bytes(hashlib.sha256(self.store.root.encode()).digest()[:4]) >> 1

    @property
    def folder_columns(self) -> list[str]:
        """The columns that the names of folders hold."""
        return list(self._folder_types)

    def folder_of(self, row: pa.Table) -> str:
        """Return the folder that a row belongs into by its values; empty: the dataset has no such folders."""
        texts = {name: own_texts(column_at(row, name))[0] for name in self._folder_types}
        return "/".join(folder_name(name, text) for name, text in texts.items())

    @cached_property
    def _folder_types(self) -> dict[str, ColumnType]:
        """The columns that the names of folders hold, each with the one type that all its texts have."""
        texts: dict[str, set[str]] = {}
        for data in self.files:
            for name, text in data.folders.items():
                texts.setdefault(name, set()).update(() if text is None else (text,))
        return {name: _type_of(values) for name, values in texts.items()}

    def rows(
        self,
        part: FilesPart,
        columns: Sequence[str],
        wanted: Wanted = None,
        spoilt: list[SpoiltGroup] | None = None,
    ) -> Iterator[tuple[DataFile, ParquetRows]]:
        """Yield rows of files with the top columns in which these lie; at least those that are wanted. Groups of rows
        that do not decode are added to `spoilt`, and left out.

        Raises:
            UnreadableFileError: a file is no whole Parquet file.
            SpoiltFileError: a group of one does not decode, and there is no list for it.
            TransientError: one is gone, or was written again.
        """
        schema = self.schema(columns)
        if schema is None:
            return
        tops = {top: schema.field(top).type for top in sorted({top_column(schema, name) for name in columns})}
        for data, groups in part:
            for rows in read_rows(self.store, data, tops, wanted, groups, spoilt):
                yield data, rows

    def rows_of(self, data: DataFile, columns: Sequence[str]) -> Iterator[tuple[DataFile, ParquetRows]]:
        """Yield the rows of one file, whether it counts or not. Raises what `rows` does."""
        yield from self.rows(((data, None),), columns)

    def whole_rows(
        self, point: TablePoint, wanted: Wanted = None, files: Collection[DataFile] | None = None
    ) -> Iterator[tuple[DataFile, ParquetRows]]:
        """Yield rows of all files, or of some, with all columns that their files have, and those that the point names.
        Raises what `rows` does."""
        known = self.schema()
        for data in self.files if files is None else sorted(files):
            own = self.schema_of(data)
            named = {top_column(known or own, name) for name in point.named_columns}
            types = {field.name: field.type for field in own}
            types |= {name: (known or own).field(name).type for name in sorted(named - types.keys())}
            for rows in read_rows(self.store, data, types, wanted):
                yield data, rows

    @property
    def whole(self) -> FilesPart:
        """All files that count."""
        return tuple((data, None) for data in self.files)

    def whole_since(self, seen: str) -> FilesPart:
        """Return all files that count now and were not there when `seen` was."""
        return tuple(piece for piece in self.whole if piece[0] not in self._seen_files(seen))

    def is_certain(self, data: DataFile, seen: str, number: int) -> pl.Series:
        """Return for so many rows of a file whether they were there when `seen` was."""
        return pl.Series([data in self._seen_files(seen)]).new_from_index(0, number)

    def _seen_files(self, seen: str) -> SeenFiles:
        known = self.__dict__.setdefault("_known_views", {})
        if seen not in known:
            known[seen] = SeenFiles(seen)
        files: SeenFiles = known[seen]
        return files


def places_of(data: DataFile, rows: ParquetRows) -> pl.Series:
    """Return where rows lie: the file, and the number of each in it."""
    return numbered_texts((f"{data.path}:", ""), [rows.numbers])


def all_of(number: int) -> Bools:
    """Return marks of so many rows, each of which is marked."""
    return np.ones(number, dtype=bool)


def _with_columns_of(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return the columns of a schema, and those of another one that it lacks, or lacks parts of."""
    more = {field.name: field for field in other if field.name not in schema.names}
    own = [
        field.with_type(with_parts_of(field.type, other.field(field.name).type)) if field.name in other.names else field
        for field in schema
    ]
    return pa.schema([*own, *more.values()])


def _type_of(texts: set[str]) -> ColumnType:
    if texts and all(text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= 18 for text in texts):
        is_plain = all(str(int(text)) == text for text in texts)
        return pa.int64() if is_plain else pa.string()
    return pa.date32() if texts and all(map(_is_day, texts)) else pa.string()


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
