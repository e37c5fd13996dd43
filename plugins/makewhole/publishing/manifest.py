"""Describe what is published of a window: its files, revision by revision, and the manifest that makes them visible.

A file never changes. A revision of a window adds files with what changed and names those of the revisions before, so
that a reader takes the newest manifest of each window, and in its files the newest row of each position.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from makewhole.kafka.log.record_table import SCHEMA as LOG

VERSION = 1
ROWS_OF_A_CHUNK = 10_000
"""The most records of a transaction that sends a published window into a topic."""


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
    """A file of a published window: rows of one partition in the order of offsets, all of one `change`. One that is not
    `sent` withdraws records whose keys a later window has published: in a topic that record counts already."""

    path: str
    revision: int
    partition: int
    change: str
    rows: int
    sha256: str
    is_sent: bool = True

    @property
    def chunks(self) -> int:
        """The number of transactions in which it is sent into a topic."""
        return -(-self.rows // ROWS_OF_A_CHUNK)

    @classmethod
    def from_json_dict(cls, document: Mapping[str, Any]) -> "PublishedFile":
        """Return the file that a manifest names."""
        return cls(**document)

    def to_json_dict(self) -> dict[str, Any]:
        """Return it as a manifest names it."""
        return asdict(self)


def files_of(manifest: Mapping[str, Any]) -> list[PublishedFile]:
    """Return the files that a manifest names, those of the revisions before included."""
    return [PublishedFile.from_json_dict(file) for file in manifest["files"]]


def own_files(manifest: Mapping[str, Any]) -> list[PublishedFile]:
    """Return the files of what changed with this revision, in the order in which they are sent: what is withdrawn goes
    first, as its key may be published again."""
    return in_order(file for file in files_of(manifest) if file.revision == manifest["revision"] and file.is_sent)


def in_order(files: Iterable[PublishedFile]) -> list[PublishedFile]:
    """Return files in the order in which they are sent; those of a partition are in that of their offsets already."""
    return sorted(files, key=lambda file: (file.change == RecordChange.PUBLISH, file.partition))


def count_chunks(files: Sequence[PublishedFile]) -> int:
    """Return the number of transactions in which files are sent."""
    return sum(file.chunks for file in files if file.is_sent)
