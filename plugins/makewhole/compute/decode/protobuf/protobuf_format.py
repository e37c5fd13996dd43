"""Decode record values that are Protobuf: many at once by their type, or one by one, which is the reference."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from makewhole.compute.decode.avro.encode import zigzag
from makewhole.compute.decode.envelopes import is_envelope
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.compute.decode.protobuf.descriptors import (
    DescriptorProblem,
    message_at,
    message_of_set,
    named_message,
)
from makewhole.compute.decode.protobuf.encode import encode_message
from makewhole.compute.decode.protobuf.reference import document_of
from makewhole.compute.decode.protobuf.tables import NoTables, ProtobufLeaf, ProtobufTables, compile_type
from makewhole.compute.decode.raw_columns import RawColumn, rendered, with_keys
from makewhole.compute.decode.same_layout import VERSION
from makewhole.compute.decode.schema_texts import (
    BodiesOfSchema,
    SchemaTexts,
    bodies_by_schema,
    named_body,
    rows_without_header,
)
from makewhole.compute.decode.shapes.found_elements import ElementGroup, FoundElements, decode_elements, is_below
from makewhole.compute.decode.value_format import DecodedParts, Headers, WantedLeaf, with_decimals
from makewhole.compute.keys import KeyProblem
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.native import protobuf_scan
from makewhole.native.arrays import Bools, Int64s

_MOST_SCHEMAS_KEPT = 256
_MOST_INDEXES = 4
_MOST_SECONDS = 62_135_596_800, 253_402_300_800  # before and after 1970, in the years 1 to 9999
_NANOSECONDS, _MICROSECONDS = 10**9, 10**6


class ProtobufFormat:
    """Values that are one Protobuf message each, of the schemas of a topic. `message`: which one of a schema file."""

    has_deletions = False
    needs_key = False

    def __init__(self, schemas: SchemaTexts, message: str = "") -> None:
        self._schemas, self._message = schemas, message

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Decode one value. Raises as `ValueFormat.document`."""
        named = named_body(value, headers, self._schemas)
        body = (value or b"")[named.start :]
        index: tuple[int, ...] = ()
        if self._schemas.are_named:
            index, start = _message_index(body)
            body = body[start:]
        return document_of(self._type(named.schema, index), body)

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Decode one value, every number a Decimal."""
        return with_decimals(self.document(value, headers))

    def encode(self, payload: bytes) -> bytes:
        """Encode by the newest schema. Raises as `ValueFormat.encode`."""
        text, prefix = self._schemas.newest()
        try:
            if self._schemas.are_named:
                kind, index = named_message(text, self._message)
                prefix += _index_prefix(index)
            else:
                kind = message_of_set(text, self._message)
        except DescriptorProblem as problem:
            raise KeyProblem(f"the schema of new records cannot be used: {problem}") from None
        return prefix + encode_message(kind, parse_document(payload))

    def decode_together(self, batch: Any, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the values of each type in one pass."""
        values = ValueColumn.of(batch.column("value"))
        parts = []
        for bodies in bodies_by_schema(values, rows_without_header(batch, self._schemas), self._schemas):
            for index, of_type in self._by_index(values, bodies):
                tables = self._tables(of_type.schema, index, (leaf.path for leaf in wanted.values()))
                if tables is not None:
                    parts.append(_decoded(tables, values, of_type, wanted))
        done = [rows for rows, _ in parts]
        left = np.setdiff1d(np.arange(batch.num_rows), np.concatenate(done) if done else [], assume_unique=True)
        return [(rows, frame) for rows, frame in parts if len(rows)], left

    def find_elements(self, batch: Any, divided_at: Path, places: Collection[Path]) -> FoundElements:
        """Find the elements of the values of each type in one pass. See `DividingFormat.find_elements`."""
        values = ValueColumn.of(batch.column("value"))
        groups = []
        for bodies in bodies_by_schema(values, rows_without_header(batch, self._schemas), self._schemas):
            for index, of_type in self._by_index(values, bodies):
                tables = self._tables(of_type.schema, index, places, divided_at)
                if tables is not None:
                    groups.append(_found(tables, values, of_type, divided_at))
        return FoundElements(records=batch.num_rows, groups=groups)

    def _by_index(
        self, values: ValueColumn, bodies: BodiesOfSchema
    ) -> Iterator[tuple[tuple[int, ...], BodiesOfSchema]]:
        """Yield the bodies of each message of a schema; those with an unusual index are left out."""
        if not self._schemas.are_named:
            yield (), bodies
            return
        first = values.content.bytes[np.minimum(bodies.starts, max(len(values.content.bytes) - 1, 0))]
        if len(first) and not first.any() and bodies.lengths.all():
            yield (0,), bodies.from_byte(1)
            return
        content = np.append(values.content.bytes, np.zeros(_MOST_INDEXES + 1, dtype=np.uint8))
        heads = content[bodies.starts.astype(np.int64)[:, None] + np.arange(_MOST_INDEXES + 1)]
        for count in range(_MOST_INDEXES + 1):
            size = count + 1
            is_usual = (heads[:, 0] == 2 * count) & (bodies.lengths >= size) & (heads[:, 1:size] < 0x80).all(axis=1)
            rows = np.flatnonzero(is_usual)
            for index in np.unique(heads[rows, 1:size], axis=0) if len(rows) else ():
                own = rows[(heads[rows, 1:size] == index).all(axis=1)]
                numbers = tuple(int(number) >> 1 if number % 2 == 0 else -1 for number in index) or (0,)
                yield (
                    numbers,
                    BodiesOfSchema(
                        bodies.schema, bodies.rows[own], bodies.starts[own] + size, bodies.lengths[own] - size
                    ),
                )

    def _type(self, name: str, index: tuple[int, ...]) -> Any:
        text = self._schemas.text(name)
        try:
            return message_at(text, index) if self._schemas.are_named else message_of_set(text, self._message)
        except DescriptorProblem as problem:
            raise KeyProblem(f"schema {name} does not describe the value: {problem}") from None

    def _tables(
        self, name: str, index: tuple[int, ...], places: Iterable[Path], divided_at: Path | None = None
    ) -> ProtobufTables | None:
        try:
            kind = self._type(name, index)
        except KeyProblem:
            return None
        return _tables_of(kind, tuple(dict.fromkeys(places)), divided_at)


def _message_index(body: bytes) -> tuple[tuple[int, ...], int]:
    """Return the numbers that lead to a message of a file, and where they end: a count and so many, in zigzag.

    Raises:
        KeyProblem: there are none, or they are no index in this form.
    """
    count, at = _zigzag(body, 0)
    numbers = []
    for _ in range(count):
        number, at = _zigzag(body, at)
        numbers.append(number)
    if count < 0 or any(number < 0 for number in numbers):
        raise KeyProblem(
            "value has the index of its message in the deprecated form; set `use.deprecated.format` to false at its "
            "producers"
        )
    return tuple(numbers) or (0,), at


def _index_prefix(index: tuple[int, ...]) -> bytes:
    """Encode the numbers that lead to a message: one zero for the first of a file."""
    return b"\x00" if index == (0,) else b"".join(zigzag(number) for number in (len(index), *index))


def _zigzag(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(body) and shift < 35:
        byte = body[at]
        at, number, shift = at + 1, number | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise KeyProblem("value does not say which message of its schema it is")


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def _tables_of(kind: Any, paths: tuple[Path, ...], divided_at: Path | None) -> ProtobufTables | None:
    if is_envelope([field.name for field in kind.fields], (path[0] for path in paths)):
        return None
    try:
        return compile_type(kind, paths, divided_at)
    except NoTables:
        return None


def _decoded(
    tables: ProtobufTables, values: ValueColumn, bodies: BodiesOfSchema, wanted: Mapping[str, WantedLeaf]
) -> tuple[Int64s, pl.DataFrame]:
    """Return the rows that could be decoded, and their columns."""
    if "key" in wanted and tables.leaves[wanted["key"].path] is None:
        return bodies.rows[:0], pl.DataFrame()
    spans = protobuf_scan.Messages(values.content.bytes, bodies.starts, bodies.lengths)
    scanned = protobuf_scan.scan(spans, tables.types, tables.columns)
    leaves = {name: tables.leaves[leaf.path] for name, leaf in wanted.items()}
    rows = np.flatnonzero(_are_usual(scanned, [leaf for leaf in leaves.values() if leaf is not None]))
    columns = []
    for name, leaf in leaves.items():
        declared = wanted[name].declared
        if leaf is None:
            kind = VERSION_NUMBER if declared == VERSION else pl.String
            columns.append(pl.repeat(None, len(rows), dtype=kind, eager=True).alias(name))
        else:
            columns.append(rendered(_raw_column(values, scanned, leaf, rows), name, declared).alias(name))
    return with_keys(bodies.rows[rows], pl.DataFrame(columns))


def _found(tables: ProtobufTables, values: ValueColumn, bodies: BodiesOfSchema, divided_at: Path) -> ElementGroup:
    """Return the elements of messages that could be read."""
    spans = protobuf_scan.Messages(values.content.bytes, bodies.starts, bodies.lengths)
    rows, counts, scanned = protobuf_scan.scan_elements(spans, tables.types, tables.columns)
    elements, records = np.arange(counts.sum()), np.arange(len(rows))

    def rows_of(path: Path) -> Int64s:
        return elements if is_below(path, divided_at) else records

    def column(name: str, leaf: WantedLeaf) -> pl.Series | None:
        own = tables.leaves[leaf.path]
        if own is None:
            return None
        return rendered(_raw_column(values, scanned, own, rows_of(leaf.path)), name, leaf.declared)

    def decode(wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        return decode_elements(column, wanted, divided_at, counts)

    is_usual = np.ones(len(rows), dtype=np.bool_)
    for path, leaf in tables.leaves.items():
        unusual = np.flatnonzero(~_are_usual_moments(scanned, leaf)[: len(rows_of(path))])
        is_usual[np.repeat(records, counts)[unusual] if is_below(path, divided_at) else unusual] = False
    if not is_usual.all():
        return _found(tables, values, bodies.of(rows[is_usual]), divided_at)
    return ElementGroup(rows=bodies.rows[rows], counts=counts, decode=decode)


def _are_usual(scanned: protobuf_scan.ScannedMessages, leaves: list[ProtobufLeaf]) -> Any:
    """Return which messages were read, and have no moment that microseconds do not hold."""
    return np.logical_and.reduce([scanned.matches, *(_are_usual_moments(scanned, leaf) for leaf in leaves)])


def _are_usual_moments(scanned: protobuf_scan.ScannedMessages, leaf: ProtobufLeaf | None) -> Bools:
    """Return of which rows a leaf is no moment that microseconds do not hold."""
    if leaf is None or leaf.nanoseconds is None:
        return np.ones(scanned.numbers.shape[1], dtype=np.bool_)
    seconds, nanoseconds = scanned.numbers[leaf.column], scanned.numbers[leaf.nanoseconds]
    is_near = (seconds >= -_MOST_SECONDS[0]) & (seconds < _MOST_SECONDS[1])
    is_whole = (nanoseconds >= 0) & (nanoseconds < _NANOSECONDS) & (nanoseconds % 1_000 == 0)
    are_usual: Bools = is_near & is_whole
    return are_usual


def _raw_column(
    values: ValueColumn, scanned: protobuf_scan.ScannedMessages, leaf: ProtobufLeaf, rows: Int64s
) -> RawColumn:
    are_all = len(rows) == scanned.numbers.shape[1]
    numbers, starts, lengths = (
        part[leaf.column] if are_all else part[leaf.column][rows]
        for part in (scanned.numbers, scanned.starts, scanned.lengths)
    )
    if leaf.nanoseconds is not None:
        numbers = numbers * _MICROSECONDS + scanned.numbers[leaf.nanoseconds][rows] // 1_000
    return RawColumn(kind=leaf.kind, content=values.content, numbers=numbers, starts=starts, lengths=lengths)
