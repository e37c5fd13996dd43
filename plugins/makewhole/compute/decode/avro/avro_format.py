"""Decode record values that are Avro: many at once by their schema, or one by one, which is the reference."""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import polars as pl

from makewhole.compute.decode.avro.encode import encode_body
from makewhole.compute.decode.avro.program import AvroProgram, NoProgram, compile_schema
from makewhole.compute.decode.avro.reference import AvroReader
from makewhole.compute.decode.avro.schema import AvroType, SchemaProblem, parse_schema
from makewhole.compute.decode.envelopes import is_envelope
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.compute.decode.raw_columns import Raw, RawColumn, RawKind, rendered, with_keys
from makewhole.compute.decode.same_layout import VERSION
from makewhole.compute.decode.schema_texts import (
    BodiesOfSchema,
    SchemaText,
    SchemaTexts,
    bodies_by_schema,
    named_body,
    rows_without_header,
)
from makewhole.compute.decode.shapes.found_elements import ElementGroup, FoundElements, decode_elements, is_below
from makewhole.compute.decode.value_format import DecodedParts, Headers, WantedLeaf, with_decimals
from makewhole.compute.keys import KeyProblem
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.native import avro_scan
from makewhole.native.arrays import Int64s

_MOST_SCHEMAS_KEPT = 256
_RAW_OF_LOGICAL = {
    "decimal": Raw.DECIMAL,
    "date": Raw.DAY,
    "uuid": Raw.OTHER_BYTES,
    "time-millis": Raw.OTHER_NUMBER,
    "time-micros": Raw.OTHER_NUMBER,
}
_RAW_OF_KIND = {
    "boolean": Raw.BOOLEAN,
    "int": Raw.INTEGER,
    "long": Raw.INTEGER,
    "float": Raw.OTHER_NUMBER,
    "double": Raw.DOUBLE,
    "bytes": Raw.OTHER_BYTES,
    "fixed": Raw.OTHER_BYTES,
    "string": Raw.TEXT,
    "enum": Raw.OTHER_NUMBER,
}
_UNITS = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}


WHOLE = ""
"""The field of a record key that is no record: no field of a schema is called so."""


class AvroFormat:
    """Values that are one Avro record each, of the schemas of a topic. `of_keys`: they are record keys, and one that is
    no record is a field of the name `WHOLE`."""

    has_deletions = False
    needs_key = False

    def __init__(self, schemas: SchemaTexts, *, of_keys: bool = False) -> None:
        self._schemas, self._parsed = schemas, _parsed_key if of_keys else _parsed

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Decode one value. Raises as `ValueFormat.document`."""
        named = named_body(value, headers, self._schemas)
        reader = _reader(self._parsed(named.schema, self._schemas.text(named.schema)))
        return reader.document(value or b"", named.start)

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Decode one value, every number a Decimal."""
        return with_decimals(self.document(value, headers))

    def encode(self, payload: bytes) -> bytes:
        """Encode by the newest schema. Raises as `ValueFormat.encode`."""
        text, prefix = self._schemas.newest()
        return prefix + encode_body(self._parsed("of new records", text), parse_document(payload))

    def decode_together(self, batch: Any, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the values of each schema in one pass."""
        values = ValueColumn.of(batch.column("value"))
        parts = []
        for bodies in bodies_by_schema(values, rows_without_header(batch, self._schemas), self._schemas):
            program = self._program(bodies.schema, (leaf.path for leaf in wanted.values()))
            if program is not None:
                parts.append(_decoded(program, values, bodies, wanted))
        done = [rows for rows, _ in parts]
        left = np.setdiff1d(np.arange(batch.num_rows), np.concatenate(done) if done else [], assume_unique=True)
        return [(rows, frame) for rows, frame in parts if len(rows)], left

    def find_elements(self, batch: Any, divided_at: Path, places: Collection[Path]) -> FoundElements:
        """Find the elements of the values of each schema in one pass. See `DividingFormat.find_elements`."""
        values = ValueColumn.of(batch.column("value"))
        groups = []
        for bodies in bodies_by_schema(values, rows_without_header(batch, self._schemas), self._schemas):
            program = self._program(bodies.schema, places, divided_at)
            if program is not None:
                groups.append(_found(program, values, bodies, divided_at))
        return FoundElements(records=batch.num_rows, groups=groups)

    def _program(self, name: str, places: Iterable[Path], divided_at: Path | None = None) -> AvroProgram | None:
        """Return the program that scans bodies for what is wanted; None: they are left."""
        try:
            schema = self._parsed(name, self._schemas.text(name))
        except KeyProblem:
            return None
        return _program(schema, tuple(dict.fromkeys(places)), divided_at)


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def _parsed(name: str, text: SchemaText) -> AvroType:
    try:
        return parse_schema(text.text, [reference for _, reference in text.references])
    except SchemaProblem as problem:
        raise KeyProblem(f"schema {name} is no Avro schema: {problem}") from None


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def _parsed_key(name: str, text: SchemaText) -> AvroType:
    """Return the type of a key; where it is no record, a record of it alone: its bytes are the same."""
    kind = _parsed(name, text)
    top = kind.branch_beside_null()
    if top is not None and top.kind == "record":
        return kind
    return AvroType(kind="record", names=(WHOLE,), inner=(kind,))


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def _reader(schema: AvroType) -> AvroReader:
    return AvroReader(schema)


@lru_cache(maxsize=_MOST_SCHEMAS_KEPT)
def _program(schema: AvroType, paths: tuple[Path, ...], divided_at: Path | None) -> AvroProgram | None:
    top = schema.branch_beside_null()
    if top is None or is_envelope(top.names, (path[0] for path in paths)):
        return None
    try:
        return compile_schema(schema, paths, divided_at)
    except NoProgram:
        return None


def _decoded(
    program: AvroProgram, values: ValueColumn, bodies: BodiesOfSchema, wanted: Mapping[str, WantedLeaf]
) -> tuple[Int64s, pl.DataFrame]:
    """Return the rows that could be decoded, and their columns."""
    scanned = avro_scan.scan(
        avro_scan.Bodies(values.content.bytes, bodies.starts, bodies.lengths), program.steps, program.columns
    )
    if "key" in wanted and program.leaves[wanted["key"].path] is None:
        return bodies.rows[:0], pl.DataFrame()
    columns = []
    matching = np.flatnonzero(scanned.matches)
    for name, leaf in wanted.items():
        place = program.leaves[leaf.path]
        if place is None:
            kind = VERSION_NUMBER if leaf.declared == VERSION else pl.String
            columns.append(pl.repeat(None, len(matching), dtype=kind, eager=True).alias(name))
            continue
        raw = _raw_column(values, scanned, place, matching)
        columns.append(rendered(raw, name, leaf.declared).alias(name))
    return with_keys(bodies.rows[matching], pl.DataFrame(columns))


def _found(program: AvroProgram, values: ValueColumn, bodies: BodiesOfSchema, divided_at: Path) -> ElementGroup:
    """Return the elements of bodies that could be read."""
    spans = avro_scan.Bodies(values.content.bytes, bodies.starts, bodies.lengths)
    rows, counts, scanned = avro_scan.scan_elements(spans, program.steps, program.columns)
    elements, records = np.arange(counts.sum()), np.arange(len(rows))

    def column(name: str, leaf: WantedLeaf) -> pl.Series | None:
        place = program.leaves[leaf.path]
        at = elements if is_below(leaf.path, divided_at) else records
        return None if place is None else rendered(_raw_column(values, scanned, place, at), name, leaf.declared)

    def decode(wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        return decode_elements(column, wanted, divided_at, counts)

    return ElementGroup(rows=bodies.rows[rows], counts=counts, decode=decode)


def _raw_column(
    values: ValueColumn, scanned: avro_scan.ScannedBodies, place: tuple[int, AvroType], rows: Int64s
) -> RawColumn:
    column, kind = place
    are_all = len(rows) == scanned.numbers.shape[1]
    numbers, starts, lengths = (
        part[column] if are_all else part[column][rows] for part in (scanned.numbers, scanned.starts, scanned.lengths)
    )
    return RawColumn(kind=raw_kind(kind), content=values.content, numbers=numbers, starts=starts, lengths=lengths)


def raw_kind(kind: AvroType) -> RawKind:
    """Return what a column of a simple type holds."""
    logical = kind.logical or ""
    value = partial(_value_of_raw, kind)
    if "timestamp" in logical:
        return RawKind(raw=Raw.MOMENT, json_value=value, scale=_UNITS[logical.rpartition("-")[2]])
    return RawKind(raw=_RAW_OF_LOGICAL.get(logical) or _RAW_OF_KIND[kind.kind], json_value=value, scale=kind.scale)


def _value_of_raw(kind: AvroType, raw: Any) -> Any:
    """Return the JSON value of a number, or of bytes, as a scan records them."""
    if kind.kind == "string":
        return raw.decode()
    if kind.kind == "boolean":
        return bool(raw)
    if kind.kind in ("float", "double"):
        width = np.uint32 if kind.kind == "float" else np.uint64
        bits = np.array([raw], dtype=np.int64).astype(width)
        return kind.json_value(bits.view(np.float32 if kind.kind == "float" else np.float64)[0])
    return kind.json_value(raw)
