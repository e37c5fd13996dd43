"""Decode record values to the key and the compared columns, as canonical text.

Three decoders give the same result. Values that share a layout are decoded together; the rest of a batch goes through
Arrow's JSON reader with an explicit schema; parts of it with an unusual value go record by record through Python's. The
first two refuse rather than guess: Arrow's demands that every value is one object of its own, so that one bad record
cannot shift its neighbours.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import canonical_text, decimal_scale
from makewhole.compute.decode.coordinates import KeysAndProblems, coordinate, coordinate_keys
from makewhole.compute.decode.envelopes import may_be_envelopes, require_fields
from makewhole.compute.decode.filter_columns import excluded_by, with_columns_of_filters
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.decode.json_lines import UnusualBatch, are_usable_texts, column_at, read_lines
from makewhole.compute.decode.same_layout import (
    BOOLEAN_KEY,
    KEY,
    NUMBER_KEY,
    TEXT_KEY,
    VERSION,
    WantedLeaf,
    decode_same_layout,
    is_rendered,
)
from makewhole.compute.key_values import canonical_keys, part_text
from makewhole.compute.keys import KeyProblem, key_text
from makewhole.compute.row_filter import TypedTerm
from makewhole.compute.versions import UNREADABLE, version_number
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.model.points import COORDINATES, KeyType
from makewhole.native.arrays import ArrowArray

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int64(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
}


_SCALE_WITHOUT_EXPONENT = 6  # Arrow writes smaller fractions as 1E-7
_FEWEST_HALVED = 128
RECORD_KEY = "kafka.key"
_NO_COORDINATES: Mapping[str, int] = {}
_KEY_LEAVES = {
    KeyType.STRING: KEY,
    KeyType.BIGINT: KEY,
    KeyType.DECIMAL: NUMBER_KEY,
    KeyType.CHAR: KEY,
    KeyType.BOOLEAN: BOOLEAN_KEY,
}


@dataclass(frozen=True, kw_only=True)
class ValueShape:
    """The parts of a record that a point uses: key parts, compared columns with types, the terms of each hop's `where`,
    and the place of the version.

    `keeps_tombstones`: a null value is a version of its key (its deletion), not a bad record, where the key is not part
    of the value. `tombstones_erase`: it says that its key was deleted on purpose, and is no copy of it. `key_layout`:
    the types of the key's parts; empty: texts as they are.
    """

    key: tuple[str, ...]
    compare: Mapping[str, str]
    filters: Mapping[str, tuple[TypedTerm, ...]] = field(default_factory=dict)
    version: str | None = None
    keeps_tombstones: bool = False
    tombstones_erase: bool = False
    key_layout: tuple[KeyType, ...] = ()

    @property
    def key_paths(self) -> list[str]:
        return [part.removeprefix("$.") for part in self.key if part.startswith("$.")]

    @property
    def coordinates(self) -> list[str]:
        """The columns of the log that the key is made of; empty: it is in the record."""
        return [COORDINATES[part] for part in self.key if part in COORDINATES]

    @property
    def fields(self) -> frozenset[str]:
        """The fields at the top of a value that are read, or lead to one that is."""
        version = [self.version.removeprefix("$.")] if self.version is not None and self.version[:2] == "$." else []
        filtered = [term.column for terms in self.filters.values() for term in terms]
        return frozenset(path.split(".")[0] for path in (*self.key_paths, *self.compare, *version, *filtered))

    @property
    def columns(self) -> dict[str, str] | None:
        """The columns to decode where many records are decoded at once, with their types; None: they cannot be."""
        return with_columns_of_filters(self.compare, self.filters)

    @property
    def key_kinds(self) -> tuple[KeyType, ...]:
        """The types of the key's parts."""
        return self.key_layout or (KeyType.STRING,) * len(self.key)

    @property
    def needs_record_key(self) -> bool:
        """Return whether Kafka's own record key is part of the business key."""
        return RECORD_KEY in self.key


def decode_values(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    """Decode the records of a batch (columns `value`, `headers`, and where the shape needs them `key` and coordinates).

    Returns a frame with one row per record in order: `key` (null where it cannot be had), `problem` (why, else null),
    one text column `c:<name>` per compared column, `version` (see `makewhole.compute.versions`) and `excluded_by` (the
    hops whose filter the record fails).
    """
    if batch.num_rows == 0:
        return _assemble([], [], {name: [] for name in shape.compare}, [], [])
    if not _is_columnar(shape):
        return _decode_one_by_one(batch, shape)
    coordinates = coordinate_keys(batch, shape.key) if shape.coordinates else None
    if coordinates is not None and not shape.fields:
        return _with_other_columns(coordinates[0].to_frame(), shape, coordinates)
    parts, left = decode_same_layout(batch.column("value"), _wanted(shape))
    decoded = [(rows, _with_other_columns(frame, shape, _of_rows(coordinates, rows))) for rows, frame in parts]
    if len(left):
        decoded.append((left, _decode_rest(_with_copied_values(batch).take(left), shape)))
    if len(decoded) == 1:
        return decoded[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in decoded]), kind="stable")
    return pl.concat([frame for _, frame in decoded])[order]


def _with_copied_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy the values, which may come as views: Arrow cannot take from those."""
    at = batch.schema.get_field_index("value")
    return batch.set_column(at, "value", batch.column(at).cast(pa.binary()))


def _decode_rest(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    parts = list(_decoded_parts(batch, shape))
    return parts[0] if len(parts) == 1 else pl.concat(parts)


def _decoded_parts(batch: pa.RecordBatch, shape: ValueShape) -> Iterator[pl.DataFrame]:
    """Decode with Arrow, halving a batch that is refused, so that few records go through Python one by one."""
    try:
        yield _decode_with_arrow(batch, shape)
    except (UnusualBatch, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if batch.num_rows <= _FEWEST_HALVED:
            yield _decode_one_by_one(batch, shape)
            return
        half = batch.num_rows // 2
        yield from _decoded_parts(batch.slice(0, half), shape)
        yield from _decoded_parts(batch.slice(half), shape)


def _assemble(
    keys: Sequence[str | None],
    problems: Sequence[str | None],
    columns: Mapping[str, Sequence[str | None]],
    versions: Sequence[Decimal | None],
    excluded: Sequence[list[str]],
) -> pl.DataFrame:
    series = [pl.Series("key", keys, dtype=pl.String), pl.Series("problem", problems, dtype=pl.String)]
    series += [pl.Series(f"c:{name}", texts, dtype=pl.String) for name, texts in columns.items()]
    series.append(pl.Series("version", versions, dtype=VERSION_NUMBER))
    return pl.DataFrame([*series, pl.Series("excluded_by", excluded, dtype=pl.List(pl.String))])


# Many records at once


def _is_columnar(shape: ValueShape) -> bool:
    """Return whether usual values of this shape can be decoded many at once."""
    has_plain_version = shape.version is None or shape.version.startswith("$.")
    columns = shape.columns
    if columns is None or not has_plain_version:
        return False
    has_plain_key = len(shape.key) == 1 and bool(shape.key_paths) and shape.key_paths[0] not in columns
    has_coordinates = bool(shape.coordinates) and set(shape.key_kinds) == {KeyType.BIGINT}
    return (has_plain_key or has_coordinates) and all(
        _arrow_type(declared) is not None for declared in columns.values()
    )


def _arrow_type(declared: str) -> pa.DataType | None:
    """Return the type by which Arrow reads values of a declared type; None: it reads none."""
    scale = decimal_scale(declared)
    if scale is not None:
        return pa.decimal128(38, scale)
    return pa.string() if is_rendered(declared) else _ARROW_TYPES.get(declared)


def _wanted(shape: ValueShape) -> dict[str, WantedLeaf]:
    """Return the leaves of a value that a shape needs, by their column."""
    wanted = {f"c:{name}": WantedLeaf(_names(name), declared) for name, declared in (shape.columns or {}).items()}
    if not shape.coordinates:
        wanted["key"] = WantedLeaf(_names(shape.key_paths[0]), _KEY_LEAVES.get(shape.key_kinds[0], TEXT_KEY))
    if shape.version is not None:
        wanted["version"] = WantedLeaf(_names(shape.version.removeprefix("$.")), VERSION)
    return wanted


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _of_rows(keys: KeysAndProblems | None, rows: Any) -> KeysAndProblems | None:
    return None if keys is None else (keys[0][rows], keys[1][rows])


def _with_other_columns(
    frame: pl.DataFrame, shape: ValueShape, coordinates: KeysAndProblems | None = None
) -> pl.DataFrame:
    """Make the keys canonical, test the filters, and add the columns that are the same for every record. `coordinates`:
    the keys where they are none of the record's contents."""
    has_version = "version" in frame.columns
    keys, problems = coordinates or canonical_keys(frame["key"], shape.key_kinds[0])
    return frame.select(
        keys.alias("key"),
        problems.alias("problem"),
        *(f"c:{name}" for name in shape.compare),
        pl.col("version") if has_version else pl.lit(None, dtype=VERSION_NUMBER).alias("version"),
        excluded_by(frame, shape.filters),
    )


def _decode_with_arrow(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    values, columns = batch.column("value"), shape.columns or {}
    if may_be_envelopes(values, shape.fields):
        raise UnusualBatch
    wanted: dict[str, pa.DataType] = {path: _key_type(values[0].as_py(), path) for path in shape.key_paths}
    for name, declared in columns.items():
        kind = _arrow_type(declared)
        assert kind is not None
        wanted.setdefault(name, kind)
    version = _version_path(shape, wanted)
    table = read_lines(values, wanted)
    frame = []
    for path in shape.key_paths:
        keys = column_at(table, path).cast(pa.string())
        if not are_usable_texts(keys):
            raise UnusualBatch
        frame.append(pl.Series("key", pl.from_arrow(keys)))
    for name, declared in columns.items():
        frame.append(_canonical_column(column_at(table, name), declared).alias(f"c:{name}"))
    if version is not None:
        frame.append(
            pl.Series("version", pl.from_arrow(column_at(table, version)), dtype=pl.Int64).cast(VERSION_NUMBER)
        )
    coordinates = coordinate_keys(batch, shape.key) if shape.coordinates else None
    return _with_other_columns(pl.DataFrame(frame), shape, coordinates)


def _version_path(shape: ValueShape, wanted: dict[str, pa.DataType]) -> str | None:
    """Return the path of the version in the value, and add it to the wanted paths."""
    if shape.version is None:
        return None
    path = shape.version.removeprefix("$.")
    if path == shape.version or wanted.setdefault(path, pa.int64()) != pa.int64():
        raise UnusualBatch
    return path


def _key_type(first: bytes | None, path: str) -> pa.DataType:
    try:
        value = _value_at(json.loads(first or b""), path)
    except (ValueError, RecursionError):
        raise UnusualBatch from None
    return pa.int64() if isinstance(value, int) and not isinstance(value, bool) else pa.string()


def _canonical_column(column: ArrowArray, declared: str) -> pl.Series:
    if is_rendered(declared):
        texts = {text: canonical_text(text, declared) for text in column.unique().to_pylist()}
        return pl.Series([texts[text] for text in column.to_pylist()], dtype=pl.String)
    if (decimal_scale(declared) or 0) > _SCALE_WITHOUT_EXPONENT:
        plain = [None if value is None else format(value, "f") for value in column.to_pylist()]
        return pl.Series(plain, dtype=pl.String)
    return pl.Series(pl.from_arrow(column.cast(pa.string())), dtype=pl.String)


# Record by record


def _decode_one_by_one(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    keys: list[str | None] = []
    problems: list[str | None] = []
    columns: dict[str, list[str | None]] = {name: [] for name in shape.compare}
    versions: list[Decimal | None] = []
    excluded: list[list[str]] = []
    fields = shape.fields
    record_keys = batch.column("key").to_pylist() if shape.needs_record_key else [None] * batch.num_rows
    places = batch.select(shape.coordinates).to_pylist() if shape.coordinates else [_NO_COORDINATES] * batch.num_rows
    values, of_headers = batch.column("value").to_pylist(), batch.column("headers").to_pylist()
    for record_key, value, headers, coordinates in zip(record_keys, values, of_headers, places, strict=True):
        document: Any = {}
        is_tombstone = value is None and (shape.keeps_tombstones or shape.tombstones_erase) and not shape.key_paths
        try:
            document = parse_document(value) if fields and not is_tombstone else {}
            require_fields(document, fields)
            keys.append(
                key_text(
                    [
                        part_text(record_part(part, record_key, document, headers, coordinates), kind)
                        for part, kind in zip(shape.key, shape.key_kinds, strict=True)
                    ]
                )
            )
            problems.append(None)
        except KeyProblem as problem:
            keys.append(None)
            problems.append(str(problem))
        for name, declared in shape.compare.items():
            columns[name].append(canonical_text(_value_at(document, name), declared))
        versions.append(version_of(shape.version, record_key, document, headers))
        # A deletion concerns every version of its key: no filter on values excludes it.
        failed = [hop for hop, terms in shape.filters.items() if not is_tombstone and not _passes_all(document, terms)]
        excluded.append(failed)
    return _assemble(keys, problems, columns, versions, excluded)


def version_of(place: str | None, record_key: bytes | None, document: Any, headers: Any) -> Decimal | None:
    """Return the number of the version in a record (see `makewhole.compute.versions`); None: it has none.

    `headers` are mappings with `key` and `value`.
    """
    name = (place or "").removeprefix("header:")
    if place is None or (name != place and all(entry["key"] != name for entry in headers or ())):
        return None
    try:
        return version_number(record_part(place, record_key, document, headers))
    except KeyProblem:
        return UNREADABLE


def record_part(
    part: str,
    record_key: bytes | None,
    document: Any,
    headers: Any,
    coordinates: Mapping[str, int] = _NO_COORDINATES,
) -> Any:
    """Return what stands at a place of a record: a field of its value, its key or a header, these as texts; or one of
    its coordinates, which are by the columns of the log.

    `headers` are mappings with `key` and `value`.

    Raises:
        KeyProblem: there is no such header, or several, or a text is no UTF-8; its producer numbers no records.
    """
    if part in COORDINATES:
        return coordinate(part, coordinates)
    if part.startswith("$."):
        return _value_at(document, part.removeprefix("$."))
    if part == RECORD_KEY:
        return _text(record_key, "record key")
    name = part.removeprefix("header:")
    values = [entry["value"] for entry in headers or () if entry["key"] == name]
    if len(values) != 1:
        raise KeyProblem(f"header {name} is {'doubled' if values else 'missing'}")
    return _text(values[0], f"header {name}")


def _text(raw: bytes | None, what: str) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        raise KeyProblem(f"{what} is not valid UTF-8") from None


def _value_at(document: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _passes_all(document: Any, terms: Sequence[TypedTerm]) -> bool:
    return all(term.holds(_value_at(document, term.column)) for term in terms)
