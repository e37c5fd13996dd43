"""Show that the rows of a dataset are those of an earlier reading: by its files, which are read of those alone that are
new."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from makewhole.datasets.files.file_source import FileSource
from makewhole.datasets.files.listing import DataFile
from makewhole.datasets.files.parquet_rows import NOT_READ
from makewhole.datasets.files.spans import inside
from makewhole.datasets.nested_columns import top_column
from makewhole.datasets.row_frames import is_inside, times_of_rows
from makewhole.file_stores.store import FileStamp
from makewhole.model.points import TablePoint
from makewhole.tables.reading import ReadBefore
from makewhole.tables.shape import TableShape, TimeBounds

_DIGEST_BYTES = 16


def mark_of(source: FileSource, shape: TableShape) -> Any:
    """Return the files of a dataset with what says that each is as it was, and the types that its columns have; None
    where a file was written so shortly before it was listed that another one would look the same."""
    stamps = {data: source.store.stamp(data.file) for data in source.files}
    newest = max((stamp.written_at for stamp in stamps.values()), default=None)
    if newest is not None and newest > source.listed_at - timedelta(seconds=source.store.stamps_differ_after_seconds):
        return None
    digests = sorted(_digest(data, stamp) for data, stamp in stamps.items())
    return {
        "root": source.store.root,
        "columns": _types(source, sorted(shape.column_names())),
        "files": base64.b64encode(b"".join(digests)).decode(),
    }


def _digest(data: DataFile, stamp: FileStamp) -> bytes:
    """Return what names a file with its content: sixteen bytes."""
    text = json.dumps([data.path, data.file.size_bytes, data.file.modified_ms, stamp.text])
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


def _digests(mark: Mapping[str, Any]) -> set[bytes]:
    held = base64.b64decode(mark["files"])
    return {held[at : at + _DIGEST_BYTES] for at in range(0, len(held), _DIGEST_BYTES)}


def why_not_same(source: FileSource, shape: TableShape, bounds: TimeBounds | None, before: ReadBefore) -> str | None:
    """Return why rows inside the bounds may be others than an earlier reading sent; None: they are the same. Files that
    came since are read for their times."""
    mark = mark_of(source, shape)
    if mark is None or before.mark is None:
        return "files of it were written right before they were listed"
    if any(mark[name] != before.mark[name] for name in ("root", "columns")):
        return "it lies elsewhere, or its files have other columns"
    then = _digests(before.mark)
    if then - _digests(mark):
        return "files of it are gone, or were written again"
    added = [data for data in source.files if _digest(data, source.store.stamp(data.file)) not in then]
    if any(_may_be_inside(source, shape.point, bounds, data) for data in added):
        return "files that came since have rows of it"
    return None


def _may_be_inside(source: FileSource, point: TablePoint, bounds: TimeBounds | None, data: DataFile) -> bool:
    """Return whether a file has rows inside the bounds, or cannot be read."""
    if bounds is None or point.time is None:
        return True
    try:
        for times in _times(source, point, bounds, data):
            certain = {seen: source.is_certain(data, seen, len(times)) for seen in bounds.named_views}
            if is_inside(times, certain, bounds).any():
                return True
    except NOT_READ:
        return True
    return False


def _times(source: FileSource, point: TablePoint, bounds: TimeBounds, data: DataFile) -> Iterator[Any]:
    assert point.time is not None
    for _, rows in source.rows(((data, None),), [point.time], inside(point, bounds)):
        yield times_of_rows(rows.rows, point)


def _types(source: FileSource, columns: Sequence[str]) -> Mapping[str, str]:
    """Return the types as which the columns of a point are read, those that the names of folders hold among them."""
    schema = source.schema(columns)
    if schema is None:
        return {}
    names = {*source.folder_columns, *(top_column(schema, name) for name in columns)}
    return {name: str(_field(schema, name)) for name in sorted(names)}


def _field(schema: pa.Schema, name: str) -> Any:
    return schema.field(name) if name in schema.names else None
