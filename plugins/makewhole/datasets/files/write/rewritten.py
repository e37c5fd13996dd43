"""Make the bytes of whole files: new ones, and ones that were there with some rows changed or left out."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.datasets.arrow_types import ColumnType, NestedColumn
from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.parquet_rows import opened, require_unchanged
from makewhole.datasets.nested_columns import all_types
from makewhole.datasets.plain_types import plain_schema, with_schema
from makewhole.file_stores.store import FileStore
from makewhole.model.errors import ActionRefusedError
from makewhole.model.refusal import Refusal, RefusalCode

MARK = b"makewhole"
"""The key in a file's metadata under which the chunks stand that wrote it."""
_INT96 = "INT96"
NOT_WRITTEN_AGAIN = Refusal(
    RefusalCode.UNFIT,
    "the file of the row cannot be written again as it is: its types have several forms in Parquet, and this one "
    "is not written (INT96 moments beside others, and the like). Have its own system rewrite it",
)


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """A file as it will be: rows, by their numbers, that are left out, or have other values in some columns."""

    removed: frozenset[int]
    updated: Mapping[int, Mapping[str, NestedColumn]]


def new_file(source: FileSource, rows: pa.Table, mark: str) -> bytes:
    """Return a file of rows, with the mark of the chunk that writes it. Moments have the form that they have in the
    newest file with some: not every reader takes each."""
    schema = rows.schema.with_metadata({**(rows.schema.metadata or {}), MARK: json.dumps([mark]).encode()})
    settings = _form_of_moments_now(source) if _has_moments(rows.schema, "ns") else {}
    content = io.BytesIO()
    pq.write_table(rows.cast(schema), content, compression="snappy", **settings)
    return content.getvalue()


def _has_moments(schema: pa.Schema, *units: str) -> bool:
    return any(pa.types.is_timestamp(kind) and kind.unit in units for kind in all_types(schema).values())


def _form_of_moments_now(source: FileSource) -> dict[str, Any]:
    for data in source.newest_first:
        if _has_moments(source.schema_of(data), "ms", "us", "ns"):
            with opened(source.store, data) as file:
                return _form_of_moments(file.schema)
    return {}


def _form_of_moments(physical: Any) -> dict[str, Any]:
    """Return the setting by which moments are written in the form that they have in a file."""
    columns: list[Any] = [physical.column(at) for at in range(len(physical))]
    return {"use_deprecated_int96_timestamps": any(column.physical_type == _INT96 for column in columns)}


def rewritten_file(store: FileStore, data: DataFile, change: FileChange, mark: str) -> bytes:
    """Return a file with some rows changed: all others, and all their columns, are what they were.

    Raises:
        RefusedError: the file has types that cannot be written again as they are.
        TransientError: it went, or was written again.
    """
    with opened(store, data) as file:
        own, physical = file.read(), file.schema
        table = with_schema(own, plain_schema(own.schema))
        codec = file.metadata.row_group(0).column(0).compression if file.num_row_groups else "SNAPPY"
        groups = max((file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)), default=1)
        dictionaries = [name for name in table.column_names if _has_dictionary(file, name)]
    require_unchanged(store, data)
    kept = np.ones(len(table), dtype=bool)
    kept[list(change.removed)] = False
    changed = _with_updates(table, change.updated).filter(pa.array(kept))
    metadata = table.schema.metadata or {}
    marks = [*marks_of(metadata), mark]
    marked = with_schema(changed, own.schema).replace_schema_metadata({**metadata, MARK: json.dumps(marks).encode()})
    content = io.BytesIO()
    settings = {**_form_of_moments(physical), "compression": "none" if codec == "UNCOMPRESSED" else codec.lower()}
    pq.write_table(marked, content, row_group_size=max(groups, 1), use_dictionary=cast(Any, dictionaries), **settings)
    _require_same(content.getvalue(), physical, changed, own.schema)
    return content.getvalue()


def _has_dictionary(file: pq.ParquetFile, name: str) -> bool:
    if not file.num_row_groups:
        return False
    group = file.metadata.row_group(0)
    columns: list[Any] = [group.column(at) for at in range(group.num_columns)]
    return any(column.path_in_schema == name and column.has_dictionary_page for column in columns)


def _with_updates(table: pa.Table, updated: Mapping[int, Mapping[str, NestedColumn]]) -> pa.Table:
    """Return the table with other values in some rows."""
    pieces, at = [], 0
    for number in sorted(updated):
        own, new = table.slice(number, 1), updated[number]
        columns = [new.get(name, own.column(name)) for name in table.column_names]
        pieces += [table.slice(at, number - at), pa.Table.from_arrays(columns, schema=table.schema)]
        at = number + 1
    return pa.concat_tables([*pieces, table.slice(at)])


def _require_same(content: bytes, physical: Any, rows: pa.Table, schema: pa.Schema) -> None:
    """Check that what was written has the columns that were there, and reads as the rows that were to be written."""
    with pq.ParquetFile(io.BytesIO(content)) as file:
        written = file.read()
        is_same = file.schema.equals(physical) and written.schema.equals(schema)
        is_same = is_same and all(map(_is_equal, with_schema(written, rows.schema).columns, rows.columns))
    if not is_same:
        raise ActionRefusedError(NOT_WRITTEN_AGAIN)


def _is_equal(column: NestedColumn, other: NestedColumn) -> bool:
    """Return whether two columns are the same. To Arrow NaN is never the same as NaN, to polars it is."""
    if column.equals(other):
        return True
    if not _has_floats(column.type) or column.type != other.type:
        return False
    return cast(pl.Series, pl.from_arrow(column)).equals(cast(pl.Series, pl.from_arrow(other)), null_equal=True)


def _has_floats(kind: ColumnType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_floats(kind.value_type)
    return bool(pa.types.is_floating(kind)) or any(_has_floats(kind.field(at).type) for at in range(kind.num_fields))


def marks_of(metadata: Mapping[bytes, bytes] | None) -> Sequence[str]:
    """Return the chunks that wrote a file, by its metadata."""
    return list(json.loads((metadata or {}).get(MARK, b"[]")))


def is_marked(store: FileStore, path: str, mark: str) -> bool:
    """Return whether a file was written by a chunk."""
    entry = store.find(path)
    if entry is None:
        return False
    with opened(store, DataFile(file=entry)) as file:
        return mark in marks_of(file.schema_arrow.metadata)
