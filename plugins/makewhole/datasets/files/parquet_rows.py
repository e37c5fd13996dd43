"""Read the rows of a Parquet file, with the number of each in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from makewhole.datasets.arrow_types import ColumnType
from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.spans import Wanted, may_hold
from makewhole.datasets.plain_types import plain_schema, with_schema
from makewhole.datasets.whole_texts import require_texts
from makewhole.file_stores.broken_parts import not_readable
from makewhole.file_stores.store import FileStore, answering
from makewhole.model.errors import RefusedError, TransientError
from makewhole.native.arrays import ArrowArray, Bools, Int64s

RowGroups = tuple[int, ...]
"""The numbers of groups of rows in a file."""


_BLOCK_BYTES = 8 << 20


class UnreadableFileError(TransientError):
    """A file of a dataset is no whole Parquet file: what it holds is not known."""


class SpoiltFileError(RefusedError):
    """A file of a dataset has pages or texts that do not decode, or pages that are not what their checksums say."""


NOT_READ = (UnreadableFileError, SpoiltFileError)
"""The errors of a file that is there, and of which it is not known what it holds."""


@dataclass(frozen=True, kw_only=True)
class SpoiltGroup:
    """A group of rows of a file with a page that does not decode."""

    data: DataFile
    group: int


@dataclass(frozen=True, kw_only=True)
class ParquetRows:
    """Rows of a file, and the number of each in it from 0 on."""

    rows: pa.Table
    numbers: Int64s

    def only(self, kept: Bools) -> "ParquetRows":
        """Return the rows that are marked."""
        if kept.all():
            return self
        return ParquetRows(rows=self.rows.filter(pa.array(kept)), numbers=self.numbers[kept])


def read_schema(store: FileStore, data: DataFile) -> pa.Schema:
    """Return the columns of a file, with plain types (`plain_types`).

    Raises:
        UnreadableFileError: it is no whole Parquet file.
        TransientError: it is gone, or the system does not answer.
    """
    with opened(store, data) as file:
        return plain_schema(file.schema_arrow)


def groups_of(store: FileStore, data: DataFile) -> int:
    """Return the number of groups of rows of a file. Raises what `read_schema` does."""
    with opened(store, data) as file:
        return file.num_row_groups


def count_rows(store: FileStore, data: DataFile) -> int:
    """Return the number of rows of a file. Raises what `read_schema` does."""
    with opened(store, data) as file:
        return file.metadata.num_rows


def read_rows(
    store: FileStore,
    data: DataFile,
    columns: Mapping[str, ColumnType],
    wanted: Wanted = None,
    groups: RowGroups | None = None,
    spoilt: list[SpoiltGroup] | None = None,
) -> Iterator[ParquetRows]:
    """Yield the rows of a file with these top columns; at least those that are `wanted`. A column that it lacks is
    null, one whose type is another has that. Groups of rows that do not decode are added to `spoilt`, and left out.

    Raises:
        UnreadableFileError: it is no whole Parquet file.
        SpoiltFileError: a group does not decode, and there is no list for it.
        TransientError: it is gone, was written again, or the system does not answer.
    """
    with opened(store, data) as file:
        own = file.schema_arrow
        present = [name for name in columns if name in own.names and name not in data.folders]
        edges = np.cumsum([0, *(file.metadata.row_group(at).num_rows for at in range(file.num_row_groups))])
        for at in range(file.num_row_groups) if groups is None else groups:
            if not may_hold(file, at, wanted, data.folders):
                continue
            table = _group(store, data, file, at, present, spoilt)
            if table is None:
                continue
            number = int(edges[at + 1] - edges[at])
            rows = pa.Table.from_arrays(
                [
                    table.column(name) if name in present else _constant(data, name, kind, number)
                    for name, kind in columns.items()
                ],
                names=list(columns),
            )
            yield ParquetRows(rows=rows, numbers=np.arange(edges[at], edges[at + 1], dtype=np.int64))
    require_unchanged(store, data)


def _group(
    store: FileStore,
    data: DataFile,
    file: pq.ParquetFile,
    at: int,
    columns: list[str],
    spoilt: list[SpoiltGroup] | None,
) -> pa.Table | None:
    """Return a group of rows; None: a page of it does not decode, or a text of it, which `spoilt` says now."""
    try:
        rows = file.read_row_group(at, columns=columns, use_threads=False)
        require_texts(rows)
        return with_schema(rows, plain_schema(rows.schema))
    except RuntimeError:  # of HDFS, where a block cannot be read
        require_bytes(store, data)
        raise
    except (pa.ArrowException, OSError) as error:
        require_bytes(store, data)
        if spoilt is None:
            raise SpoiltFileError(
                f"{store.root}/{data.path} ({data.file.size_bytes} bytes) has pages that do not decode: it is not "
                "known which rows they hold. Restore it, have its writer write it again, or move it out of the "
                "dataset; then run this window again"
            ) from error
        spoilt.append(SpoiltGroup(data=data, group=at))
        return None


def require_bytes(store: FileStore, data: DataFile) -> None:
    """Check that the bytes of a file, as it was listed, can be read: then what does not decode is the file's own fault.

    Raises:
        TransientError: it is gone, was written again, or the system does not answer.
    """
    try:
        _read_bytes(store, data)
    except FileNotFoundError:
        raise TransientError(f"{store.root}/{data.path} went while it was read; read again") from None
    require_unchanged(store, data)


def _read_bytes(store: FileStore, data: DataFile) -> None:
    """Read a file to its end. Raises what `require_bytes` does, and `FileNotFoundError`."""
    try:
        with store.open(data.path) as content:
            while content.read(_BLOCK_BYTES):
                pass
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        with answering(store.root):
            raise not_readable(f"{store.root}/{data.path}", store.broken_part(data.path)) from error


def _constant(data: DataFile, name: str, kind: Any, number: int) -> ArrowArray:
    """Return a column that a file lacks: what the names of its folders say, or nulls."""
    text = data.folders.get(name)
    if text is None:
        return pa.nulls(number, kind)
    return pa.repeat(pa.scalar(text, pa.string()), number).cast(kind)


def require_unchanged(store: FileStore, data: DataFile) -> None:
    """Check that a file is what it was when it was listed.

    Raises:
        TransientError: it is not.
    """
    if store.find(data.path) != data.file:
        raise TransientError(f"{store.root}/{data.path} was written again, or went, while it was read; read again")


@contextmanager
def opened(store: FileStore, data: DataFile) -> Iterator[pq.ParquetFile]:
    try:
        with store.open(data.path) as content, pq.ParquetFile(content, page_checksum_verification=True) as file:
            yield file
    except FileNotFoundError:
        raise TransientError(f"{store.root}/{data.path} went while it was read; read again") from None
    except RuntimeError:  # of HDFS, where a block cannot be read
        require_bytes(store, data)
        raise
    except (pa.ArrowException, OSError) as error:
        require_bytes(store, data)
        raise UnreadableFileError(
            f"{store.root}/{data.path} ({data.file.size_bytes} bytes) is no whole Parquet file: it is not known "
            "which keys it holds. Where its writer is at work, it should write under a name that begins with a dot and "
            "rename; where that died, move the file out of the dataset, or restore it"
        ) from error
