"""Read the rows of keys of a dataset of files as it is now, as plans take them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from makewhole.compute.value_types import ColumnKind
from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.column_types import column_kinds, sql_type
from makewhole.datasets.files.describe import description_of
from makewhole.datasets.files.file_source import FileSource, places_of
from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.parquet_rows import ParquetRows
from makewhole.datasets.files.spans import of_keys
from makewhole.datasets.key_rows import DescribedRow, among, in_order, latest_first, rows_by_key
from makewhole.datasets.nested_columns import all_types
from makewhole.datasets.nested_values import row_images, row_texts
from makewhole.datasets.never_there import OpenDataset
from makewhole.datasets.row_frames import times_of_rows, versions_of_rows
from makewhole.datasets.value_texts import compared_texts
from makewhole.datasets.wanted_keys import WantedKeys
from makewhole.model.connection import Connection
from makewhole.model.errors import ActionRefusedError, RefusedError
from makewhole.model.points import KeyType, TablePoint
from makewhole.model.refusal import RefusalCode
from makewhole.tables.description import TableDescription
from makewhole.tables.rows import TableRow, ValuedRow


@dataclass(frozen=True, kw_only=True)
class RowInParquet(DescribedRow):
    """A row of a key: its file and its number there, and its values."""

    data: DataFile
    number: int
    key: str
    values: pa.Table


def rows_of_keys(
    source: FileSource,
    point: TablePoint,
    keys: Iterable[str],
    *,
    is_exact: bool,
    has_images: bool = False,
    files: Collection[DataFile] | None = None,
) -> dict[str, list[RowInParquet]]:
    """Return all rows of keys by time and place, with all columns of their files. `is_exact`: not those of an equal key
    in another spelling. `files`: in which they are looked for; None: in all.

    What plans know a row by does not change when its file is written again: its values, and which of equal ones it is.

    Raises:
        RefusedError: the dataset cannot hold one of the keys.
        TransientError: what `FileSource.rows` raises.
    """
    schema = source.schema()
    if schema is None:
        return {}

    def find(texts: Sequence[str], kinds: Sequence[KeyType]) -> Iterator[tuple[str, RowInParquet]]:
        wanted = of_keys(all_types(schema), point, WantedKeys.of_texts(point, texts))
        for data, rows in source.whole_rows(point, wanted, files):
            for row in _found_rows(source.number, point, kinds, texts, data, rows, has_images=has_images):
                yield row.key, row

    by_key = rows_by_key(schema, point, keys, is_exact=is_exact, find=find)
    return {key: by_place(rows) for key, rows in by_key.items()}


def by_place(rows: Iterable[RowInParquet]) -> list[RowInParquet]:
    """Return rows by time, then by the age of their files and their place there."""
    return in_order(sorted(rows, key=lambda row: (row.data.file.modified_ms, row.data.path, row.number)))


def _found_rows(
    number: int,
    point: TablePoint,
    kinds: Sequence[KeyType],
    texts: Sequence[str],
    data: DataFile,
    rows: ParquetRows,
    *,
    has_images: bool,
) -> Iterator[RowInParquet]:
    """Yield those of some rows of a file that have one of the keys. `number`: that of the dataset."""
    keys, kept = among(rows.rows, point, texts, kinds)
    left = rows.only(kept)
    if not len(left.numbers):
        return
    images = row_images(left.rows) if has_images else [None] * len(left.numbers)
    times, versions = times_of_rows(left.rows, point).to_list(), versions_of_rows(left.rows, point).to_list()
    described = zip(keys, places_of(data, left), row_texts(left.rows), images, strict=True)
    for at, (key, place, text, image) in enumerate(described):
        yield RowInParquet(
            data=data,
            number=int(left.numbers[at]),
            key=key,
            time=times[at],
            version=versions[at],
            row=TableRow(table_oid=number, ctid="", text=text, image=image, place=place),
            values=left.rows.slice(at, 1),
        )


@dataclass(frozen=True, kw_only=True)
class FilesTable(OpenDataset):
    """A dataset of a point (`OpenTable`)."""

    connection: Connection
    point: TablePoint
    description: TableDescription

    def rows_of_key(self, key: str, *, is_exact: bool = True, is_latest_first: bool = False) -> list[TableRow]:
        return [row.row for row in self.valued_rows({}, key, is_exact=is_exact, is_latest_first=is_latest_first)]

    def valued_rows(
        self, compare: Mapping[str, str], key: str, *, is_exact: bool = True, is_latest_first: bool = False
    ) -> list[ValuedRow]:
        rows = rows_of_keys(self._source(compare), self.point, [key], is_exact=is_exact).get(key, [])
        return _valued(latest_first(rows) if is_latest_first else rows, compare)

    def valued_rows_of_many(
        self, compare: Mapping[str, str], keys: Sequence[str], *, is_exact: bool = True
    ) -> Mapping[str, Sequence[ValuedRow]]:
        by_key = rows_of_keys(self._source(compare), self.point, keys, is_exact=is_exact)
        return {key: _valued(rows, compare) for key, rows in by_key.items()}

    def _source(self, compare: Mapping[str, str]) -> FileSource:
        source = FileSource(self.connection, self.point)
        absent = sorted(set(compare) - all_types(source.schema(sorted(compare)) or pa.schema([])).keys())
        if absent:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT, f"{self.point.table} has no column {', '.join(absent)} to compare"
            )
        return source


def _valued(rows: Sequence[RowInParquet], compare: Mapping[str, str]) -> list[ValuedRow]:
    return [
        ValuedRow(row=row.row, place=row.row.place or "", values=compared_texts(row.values, compare)) for row in rows
    ]


@dataclass(frozen=True, kw_only=True)
class FilesSession:
    """A session, of which nothing stays open between two requests (`TableSession`)."""

    connection: Connection

    def open_table(self, point: TablePoint) -> FilesTable:
        schema = FileSource(self.connection, point).schema() or pa.schema([])
        absent = sorted(point.named_columns - all_types(schema).keys())
        if absent:
            raise RefusedError(f"point {point.name}: no file of {point.table} has a column {', '.join(absent)}")
        return FilesTable(connection=self.connection, point=point, description=description_of(schema, point))

    def column_types(self, point: TablePoint) -> Mapping[str, str]:
        return {name: sql_type(kind) for name, kind in self._types(point).items()}

    def column_kinds(self, point: TablePoint) -> Mapping[str, ColumnKind]:
        return column_kinds(self._types(point))

    def may_read(self, point: TablePoint, columns: Sequence[str]) -> bool:
        return True

    def missing_to_write(self, point: TablePoint, acts: Collection[str]) -> Sequence[str]:
        return ()

    def _types(self, point: TablePoint) -> Mapping[str, ColumnType]:
        return all_types(FileSource(self.connection, point).schema() or pa.schema([]))
