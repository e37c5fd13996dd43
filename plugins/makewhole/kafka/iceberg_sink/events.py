"""Decode the events of the control topic by which the tasks of Iceberg's sink and its coordinator talk.

Encoding (`AvroUtil` of iceberg-kafka-connect-events): the two bytes `C2 01`, the length of a schema in two bytes, the
Avro schema as JSON, and a body. A task writes its files, sends `DATA_WRITTEN` with their names and `DATA_COMPLETE` with
where it stands in its topics, and commits its offsets: all three in one transaction. The coordinator then commits all
files that these events name to the table.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from makewhole.compute.decode.avro.reference import AvroReader
from makewhole.compute.decode.avro.schema import SchemaProblem, parse_schema
from makewhole.compute.keys import KeyProblem

_MAGIC = b"\xc2\x01"
_LENGTH = struct.Struct(">H")
_HEADER_BYTES = len(_MAGIC) + _LENGTH.size


class SinkEventKind(IntEnum):
    """The kinds of events that are of interest, with their numbers (`PayloadType`)."""

    DATA_WRITTEN = 1
    DATA_COMPLETE = 2


@dataclass(frozen=True, kw_only=True)
class ControlPosition:
    """A place in the control topic."""

    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class FilesWritten:
    """An event by which a task names data files that it wrote for a table, with the records in each."""

    at: ControlPosition
    commit_id: str
    table: str
    files: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class TaskComplete:
    """An event by which a task says where it stands: the offset that it reads next, by topic and partition.

    Its files are in events before it, in the same partition of the control topic. `commit_id` is of the commit that it
    answers, which need not be the one that takes its files: that of an answer that comes late is over.
    """

    at: ControlPosition
    commit_id: str
    next_offsets: Mapping[tuple[str, int], int]


SinkEvent = FilesWritten | TaskComplete


class UnreadableEvent(ValueError):  # noqa: N818 - what became of a record, not an error of ours
    """The reason why a record of the control topic cannot be decoded."""


def decode_event(value: bytes, at: ControlPosition, group: str) -> SinkEvent | None:
    """Decode a record of the control topic; None: an event of another kind, or of another sink than that of `group`.

    Raises:
        UnreadableEvent: it is none of the events of the sink.
    """
    if not value.startswith(_MAGIC) or len(value) < _HEADER_BYTES:
        raise UnreadableEvent("it does not begin as an event of the sink does")
    [length] = _LENGTH.unpack_from(value, len(_MAGIC))
    try:
        reader = _reader(value[_HEADER_BYTES : _HEADER_BYTES + length])
        event = reader.document(value, _HEADER_BYTES + length)
        return _event(event, at) if event["group_id"] == group else None
    except (SchemaProblem, KeyProblem, KeyError, TypeError, UnicodeDecodeError) as error:
        raise UnreadableEvent(str(error)) from error


@lru_cache(maxsize=64)
def _reader(schema: bytes) -> AvroReader:
    return AvroReader(parse_schema(schema.decode()))


def _event(event: Mapping[str, Any], at: ControlPosition) -> SinkEvent | None:
    payload = event["payload"]
    if event["type"] == SinkEventKind.DATA_COMPLETE:
        return TaskComplete(at=at, commit_id=payload["commit_id"], next_offsets=_next_offsets(payload["assignments"]))
    if event["type"] == SinkEventKind.DATA_WRITTEN:
        table = payload["table_reference"]
        return FilesWritten(
            at=at,
            commit_id=payload["commit_id"],
            table=".".join([*table["namespace"], table["name"]]),
            files={file["file_path"]: file["record_count"] for file in payload["data_files"] or ()},
        )
    return None


def _next_offsets(assignments: Sequence[Mapping[str, Any]] | None) -> Mapping[tuple[str, int], int]:
    """Return where a task stands; a partition of which it has read nothing since the commit before has no offset."""
    return {
        (part["topic"], part["partition"]): part["offset"] for part in assignments or () if part["offset"] is not None
    }
