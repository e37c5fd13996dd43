"""Describe the schemas of a topic's values, and find which one a record names.

Source of the two forms: the wire format of Confluent's serializers, a prefix of the value (a zero byte, and the number
of the schema in four bytes), or a header in its place (a zero byte and the number, or a one and a GUID).
"""

from typing import Any, NamedTuple, Protocol
from uuid import UUID

import numpy as np
import pyarrow.compute as pc

from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.compute.decode.value_format import Headers
from makewhole.compute.keys import KeyProblem
from makewhole.native.arrays import Int32s, Int64s

SCHEMA_HEADER, KEY_SCHEMA_HEADER = "__value_schema_id", "__key_schema_id"
PREFIX_BYTES = 5
_ID_BYTES, _GUID_BYTES = 5, 17
_ONE_SCHEMA = "file"
_kernels: Any = pc  # as Any: the type stubs do not know these functions of lists


class SchemaText(NamedTuple):
    """A schema as it is written, with those that it refers to, by their names."""

    text: str
    references: tuple[tuple[str, "SchemaText"], ...] = ()


class SchemaNames(Protocol):
    """How records name their schemas. `are_named`: each names its own; otherwise all have one. `header`: the one that
    can name it in place of the prefix."""

    @property
    def are_named(self) -> bool: ...

    @property
    def header(self) -> str: ...


class SchemaTexts(SchemaNames, Protocol):
    """The schemas of a topic's values, or of its record keys."""

    def text(self, name: str) -> SchemaText:
        """Return a schema: `ids/7`, `guids/…`, or `file` where all have one.

        Raises:
            KeyProblem: there is none of this name.
            TransientError: what knows it does not answer.
        """
        ...

    def newest(self) -> tuple[SchemaText, bytes]:
        """Return the schema by which a new record is encoded, and what stands before its body.

        Raises:
            KeyProblem: it is not known.
            TransientError: what knows it does not answer.
        """
        ...


class NamedBody(NamedTuple):
    """Which schema a value is of, and where its body begins."""

    schema: str
    start: int


def named_body(value: bytes | None, headers: Headers, schemas: SchemaNames) -> NamedBody:
    """Return the schema that a record names.

    Raises:
        KeyProblem: it names none.
    """
    if value is None:
        raise KeyProblem("value is null (a tombstone)")
    if not schemas.are_named:
        return NamedBody(_ONE_SCHEMA, 0)
    named = [entry["value"] for entry in headers or () if entry["key"] == schemas.header]
    if named:
        return NamedBody(_of_header(named[-1], schemas.header), 0)
    if len(value) < PREFIX_BYTES:
        raise KeyProblem("value is shorter than the prefix that names its schema")
    if value[0] != 0:
        raise KeyProblem("value does not begin with the zero byte before the number of its schema")
    return NamedBody(f"ids/{int.from_bytes(value[1:PREFIX_BYTES], 'big')}", PREFIX_BYTES)


def _of_header(content: bytes | None, header: str) -> str:
    if content is not None and len(content) == _ID_BYTES and content[0] == 0:
        return f"ids/{int.from_bytes(content[1:], 'big')}"
    if content is not None and len(content) == _GUID_BYTES and content[0] == 1:
        return f"guids/{UUID(bytes=content[1:])}"
    raise KeyProblem(f"header {header} names no schema")


class BodiesOfSchema(NamedTuple):
    """The bodies of values that name one schema, by their rows."""

    schema: str
    rows: Int64s
    starts: Int32s
    lengths: Int32s

    def of(self, some: Int64s) -> "BodiesOfSchema":
        """Return some of them."""
        return BodiesOfSchema(self.schema, self.rows[some], self.starts[some], self.lengths[some])

    def from_byte(self, size: int) -> "BodiesOfSchema":
        """Return them without so many bytes at their beginning, which each of them has."""
        return self._replace(starts=self.starts + np.int32(size), lengths=self.lengths - np.int32(size))


def bodies_by_schema(values: ValueColumn, rows: Int64s, schemas: SchemaTexts) -> list[BodiesOfSchema]:
    """Return the bodies of these values by their schema; those that name none by a prefix are left out. `rows`: those
    that no header can name a schema of."""
    starts, lengths = values.blobs.starts[rows], values.blobs.lengths[rows]
    if not schemas.are_named:
        is_there = lengths >= 0
        return [BodiesOfSchema(_ONE_SCHEMA, rows[is_there], starts[is_there], lengths[is_there])]
    content = values.content.bytes
    has_prefix = lengths >= PREFIX_BYTES
    rows, starts, lengths = rows[has_prefix], starts[has_prefix], lengths[has_prefix]
    prefix = content[starts.astype(np.int64)[:, None] + np.arange(PREFIX_BYTES)].astype(np.int64)
    numbers = prefix[:, 1:] @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
    numbers = np.where(prefix[:, 0] == 0, numbers, -1)
    parts = []
    for number in np.unique(numbers[numbers >= 0]).tolist():
        own = numbers == number
        parts.append(
            BodiesOfSchema(f"ids/{number}", rows[own], starts[own] + PREFIX_BYTES, lengths[own] - PREFIX_BYTES)
        )
    return parts


def rows_without_header(batch: Any, schemas: SchemaNames) -> Int64s:
    """Return the rows of records whose schema no header names."""
    rows, headers = np.arange(batch.num_rows), batch.column("headers")
    if not schemas.are_named:
        return rows
    is_named = _kernels.equal(_kernels.struct_field(headers.flatten(), "key"), schemas.header)
    if not is_named.true_count:
        return rows
    with_header = _kernels.list_parent_indices(headers).filter(is_named).to_numpy(zero_copy_only=False)
    return np.setdiff1d(rows, with_header)
