"""Describe what is published of a window: its files, revision by revision, and the manifest that makes them visible.

A file never changes. A revision of a window adds files with what changed and names those of the revisions before, so
that a reader takes the newest manifest of each window, and in its files the newest row of each position.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.log.record_table import SCHEMA as LOG
from makewhole.native.arrays import Int64s

VERSION = 1
ROWS_OF_A_CHUNK = 10_000
BYTES_OF_A_CHUNK = 64 << 20
"""The most records, and the most bytes of them, of a transaction that sends a published window into a topic; a larger
record has one of its own."""


class RecordChange(StrEnum):
    """State of the record at the position of a row: it is published, or what was published of it is withdrawn."""

    PUBLISH = "publish"
    WITHDRAW = "withdraw"


SCHEMA: pa.Schema = pa.schema(
    [
        ("window", pa.int32()),
        ("revision", pa.int32()),
        ("change", pa.string()),
        ("key", pa.string()),
        *((name, LOG.field(name).type) for name in ("partition", "offset", "timestamp")),
        ("record_key", pa.binary()),
        ("value", pa.binary()),
        ("headers", LOG.field("headers").type),
    ]
)
"""Columns of a published file. `key` is the business key; `value` null: the record deletes the key."""


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """A file of a published window: rows of one partition in the order of offsets, all of one `change`. `chunk_rows`:
    how many of them go into each transaction, one after the other. One that is not `is_sent` withdraws records whose
    keys a later window has published: in a topic that record counts already."""

    path: str
    revision: int
    partition: int
    change: str
    rows: int
    sha256: str
    chunk_rows: tuple[int, ...]
    is_sent: bool = True

    @property
    def chunks(self) -> int:
        """The number of transactions in which it is sent into a topic."""
        return len(self.chunk_rows)

    @classmethod
    def from_json_dict(cls, document: Mapping[str, Any]) -> "PublishedFile":
        """Return the file that a manifest names."""
        return cls(**{**document, "chunk_rows": tuple(document["chunk_rows"])})

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as a manifest names it."""
        return asdict(self)


class ChunkSizes:
    """How many of the rows of a file, which come table by table, go into each transaction."""

    def __init__(self) -> None:
        self._whole = list[int]()
        self._rows = self._bytes = 0

    @property
    def rows(self) -> tuple[int, ...]:
        """The number of rows of each transaction."""
        return (*self._whole, self._rows) if self._rows else tuple(self._whole)

    def add(self, rows: pa.Table) -> None:
        """Add the rows that come next."""
        ends, at = np.cumsum(_bytes_of_rows(rows)), 0
        while at < len(ends):
            before = int(ends[at - 1]) if at else 0
            room = BYTES_OF_A_CHUNK - self._bytes
            fitting = int(np.searchsorted(ends, before + room, side="right")) - at
            taken = min(max(fitting, 0 if self._rows else 1), ROWS_OF_A_CHUNK - self._rows)
            if taken:
                self._rows, self._bytes, at = (
                    self._rows + taken,
                    self._bytes + int(ends[at + taken - 1]) - before,
                    at + taken,
                )
            else:
                self._whole.append(self._rows)
                self._rows = self._bytes = 0


def _bytes_of_rows(rows: pa.Table) -> Int64s:
    """Return the bytes of key, value and headers of each record."""
    headers: Any = rows.column("headers").combine_chunks()
    pairs, counts = pc.list_flatten(headers), _numbers(pc.list_value_length(headers))
    of_pairs = sum(_numbers(pc.binary_length(pc.struct_field(pairs, part))) for part in ("key", "value"))
    ends, until = np.cumsum(counts), np.append(0, np.cumsum(of_pairs))
    own: Int64s = until[ends] - until[ends - counts]
    return own + sum(_numbers(pc.binary_length(rows.column(name))) for name in ("record_key", "value"))


def _numbers(column: Any) -> Int64s:
    numbers: Int64s = pc.fill_null(column, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def sent_files(files: Iterable[PublishedFile], revision: int) -> list[PublishedFile]:
    """Return the files of what changed with a revision, in the order in which they are sent: what is withdrawn goes
    first, as its key may be published again."""
    return in_order(file for file in files if file.revision == revision and file.is_sent)


def in_order(files: Iterable[PublishedFile]) -> list[PublishedFile]:
    """Return files in the order in which they are sent; those of a partition are in that of their offsets already."""
    return sorted(files, key=lambda file: (file.change == RecordChange.PUBLISH, file.partition))


def count_chunks(files: Sequence[PublishedFile]) -> int:
    """Return the number of transactions in which files are sent."""
    return sum(file.chunks for file in files if file.is_sent)
