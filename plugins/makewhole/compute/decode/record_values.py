"""Decode record values to the key and the compared columns, as canonical text.

The format of the values says how: many at once, as far as it can, and the others one by one, which is the reference.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode.coordinates import KeysAndProblems, coordinate_keys
from makewhole.compute.decode.envelopes import require_fields
from makewhole.compute.decode.filter_columns import excluded_by, name_of_column, with_columns_of_filters
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.read_record import NO_COORDINATES, RECORD_KEY, ReadRecord, is_in_record_key
from makewhole.compute.decode.record_key_columns import record_key_texts
from makewhole.compute.decode.record_keys import TEXT_KEYS, RecordKeyFormat
from makewhole.compute.decode.same_layout import BOOLEAN_KEY, KEY, NUMBER_KEY, TEXT_KEY, VERSION
from makewhole.compute.decode.shapes.elements import Elements
from makewhole.compute.decode.shapes.key_parts import decode_key_parts
from makewhole.compute.decode.value_format import (
    EVENT,
    DecodedParts,
    Deletion,
    Headers,
    ValueFormat,
    WantedLeaf,
    path_of,
)
from makewhole.compute.key_values import canonical_keys, part_text
from makewhole.compute.keys import KeyProblem, key_text
from makewhole.compute.row_filter import TypedTerm
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.model.places.record_paths import path_names, written_path
from makewhole.model.points import COORDINATES, KeyType

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
    the types of the key's parts; empty: texts as they are. `format`: that of the values. `places`: where columns stand
    in a record that are no fields of their own name. `record_key`: the format of Kafka's own key. `elements`: the
    array whose elements are copies of their own; None: each record is one.
    """

    key: tuple[str, ...]
    compare: Mapping[str, str]
    filters: Mapping[str, tuple[TypedTerm, ...]] = field(default_factory=dict)
    version: str | None = None
    keeps_tombstones: bool = False
    tombstones_erase: bool = False
    key_layout: tuple[KeyType, ...] = ()
    format: ValueFormat = field(default=JSON, repr=False)
    record_key: RecordKeyFormat = field(default=TEXT_KEYS, repr=False)
    places: Mapping[str, str] = field(default_factory=dict)
    elements: Elements | None = field(default=None, repr=False)

    def place_of(self, name: str) -> str:
        """Return where the column of a name stands in a record: `$.path.to.field`, `kafka.key` or `header:NAME`."""
        return self.places.get(name, f"${written_path((name,))}")

    @property
    def key_paths(self) -> list[str]:
        return [part.removeprefix("$") for part in self.key if part.startswith("$.")]

    @property
    def coordinates(self) -> list[str]:
        """The columns of the log that the key is made of; empty: it is in the record."""
        return [COORDINATES[part] for part in self.key if part in COORDINATES]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that are compared, or that a filter asks for."""
        return frozenset(self.compare).union(term.column for terms in self.filters.values() for term in terms)

    @property
    def read_places(self) -> tuple[str, ...]:
        """The places in a record of all that is read."""
        return (*self.key, *map(self.place_of, self.columns), self.version or "")

    @property
    def fields(self) -> frozenset[str]:
        """The fields at the top of a value that are read, or lead to one that is."""
        return top_fields(self.read_places)

    @property
    def columns_to_decode(self) -> dict[str, str] | None:
        """The columns to decode where many records are decoded at once, by their names in the frame, with their types;
        None: they cannot be."""
        return with_columns_of_filters(self.compare, self.filters)

    @property
    def key_kinds(self) -> tuple[KeyType, ...]:
        """The types of the key's parts."""
        return self.key_layout or (KeyType.STRING,) * len(self.key)

    @property
    def needs_record_key(self) -> bool:
        """Return whether Kafka's own record key is part of the business key, or a column."""
        return any(map(is_in_record_key, self.read_places))

    @property
    def heeds_deletions(self) -> bool:
        """Return whether the deletion of a key is no bad record."""
        return self.keeps_tombstones or self.tombstones_erase


def top_fields(places: Iterable[str]) -> frozenset[str]:
    """Return the fields at the top of a value that these places name, or lead through."""
    return frozenset(path_names(place)[0] for place in places if place.startswith("$."))


def decode_values(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    """Decode the records of a batch (columns `value`, `headers`, and where the shape needs them `key` and coordinates).

    Returns a frame with one row per record in order: `key` (null where it cannot be had), `problem` (why, else null),
    one text column `c:<name>` per compared column, `version` (see `makewhole.compute.versions`), `excluded_by` (the
    hops whose filter the record fails) and `is_tombstone` (it has no value, or one that deletes its key).
    """
    if batch.num_rows == 0:
        return _frame_of([], shape.compare)
    if not is_columnar(shape):
        return _decode_one_by_one(batch, shape)
    coordinates = coordinate_keys(batch, shape.key) if shape.coordinates else None
    if coordinates is not None and not shape.fields and not shape.format.has_deletions:
        frame = _with_other_columns(coordinates[0].to_frame(), shape, coordinates)
        return frame.with_columns(pl.Series("is_tombstone", pl.from_arrow(batch.column("value").is_null())))
    parts, left = _decode_together(batch, shape)
    decoded = [(rows, _with_other_columns(frame, shape, _of_rows(coordinates, rows))) for rows, frame in parts]
    left = np.sort(left)  # alone they are not brought into order
    if len(left):
        decoded.append((left, _decode_one_by_one(_with_copied_values(batch).take(left), shape)))
    if len(decoded) == 1:
        return decoded[0][1]
    order = np.argsort(np.concatenate([rows for rows, _ in decoded]), kind="stable")
    return pl.concat([frame for _, frame in decoded])[order]


def _with_copied_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy the values, which may come as views: Arrow cannot take from those."""
    at = batch.schema.get_field_index("value")
    return batch.set_column(at, "value", batch.column(at).cast(pa.binary()))


class _Row(NamedTuple):
    """A decoded record, as a row of the frame; `texts` are by column."""

    key: str | None
    problem: str | None
    texts: Mapping[str, str | None]
    version: Decimal | None
    excluded_by: list[str]
    is_tombstone: bool


def _frame_of(rows: Sequence[_Row], columns: Iterable[str]) -> pl.DataFrame:
    texts = [pl.Series(f"c:{name}", [row.texts[name] for row in rows], dtype=pl.String) for name in columns]
    return pl.DataFrame(
        [
            pl.Series("key", [row.key for row in rows], dtype=pl.String),
            pl.Series("problem", [row.problem for row in rows], dtype=pl.String),
            *texts,
            pl.Series("version", [row.version for row in rows], dtype=VERSION_NUMBER),
            pl.Series("excluded_by", [row.excluded_by for row in rows], dtype=pl.List(pl.String)),
            pl.Series("is_tombstone", [row.is_tombstone for row in rows], dtype=pl.Boolean),
        ]
    )


# Many records at once


def is_columnar(shape: ValueShape) -> bool:
    """Return whether usual values of this shape can be decoded many at once."""
    columns = shape.columns_to_decode
    if columns is None:
        return False
    places = [shape.place_of(name_of_column(column)) for column in columns]
    has_plain_key = (
        len(shape.key_paths) == len({*shape.key}) == len(shape.key) and not {*shape.key}.intersection(places)
        if len(shape.key) > 1 or shape.key_paths
        else _has_plain_record_key(shape)
    )
    has_coordinates = bool(shape.coordinates) and set(shape.key_kinds) == {KeyType.BIGINT}
    has_plain_places = all(place.startswith(("$.", EVENT)) for place in (*places, *filter(None, [shape.version])))
    return (has_plain_key or has_coordinates) and has_plain_places


def _has_plain_record_key(shape: ValueShape) -> bool:
    """Return whether the key is in Kafka's key, and the format reads the value without it."""
    reads_value = bool(shape.columns) or shape.version is not None
    return is_in_record_key(shape.key[0]) and reads_value and not shape.format.needs_key


def _decode_together(batch: pa.RecordBatch, shape: ValueShape) -> DecodedParts:
    """Decode many records at once, with keys of the value or of Kafka's own."""
    wanted = _wanted(shape)
    if len(shape.key) > 1 and shape.key_paths:
        del wanted["key"]
        return decode_key_parts(batch, shape.format, wanted, _key_parts(shape))
    if shape.key_paths or shape.coordinates:
        return shape.format.decode_together(batch, wanted)
    key = wanted.pop("key")
    keys = record_key_texts(batch, shape.record_key, key)
    parts, left = shape.format.decode_together(batch, wanted)
    with_keys, lefts = [], [left]
    for rows, frame in parts:
        own = keys.gather(rows)
        has_key = own.is_not_null()
        kept, frame = has_key.to_numpy(), frame.with_columns(own.alias("key"))
        with_keys.append((rows[kept], frame.filter(has_key)))
        lefts.append(rows[~kept])
    return with_keys, np.concatenate(lefts)


def _wanted(shape: ValueShape) -> dict[str, WantedLeaf]:
    """Return the leaves that a shape needs, by their column: of a value, and the key where it is in Kafka's."""
    wanted = {}
    if not shape.coordinates:
        wanted["key"] = _key_parts(shape)[0][0]
    for column, declared in (shape.columns_to_decode or {}).items():
        wanted[column] = WantedLeaf(_names(shape.place_of(name_of_column(column))), declared)
    if shape.version is not None:
        wanted["version"] = WantedLeaf(_names(shape.version), VERSION)
    return wanted


def _key_parts(shape: ValueShape) -> list[tuple[WantedLeaf, KeyType]]:
    parts = zip(shape.key, shape.key_kinds, strict=True)
    return [(WantedLeaf(_names(part), _KEY_LEAVES.get(kind, TEXT_KEY)), kind) for part, kind in parts]


def _names(place: str) -> tuple[str, ...]:
    """Return the path of names of a place in a value, or in a record key."""
    if is_in_record_key(place):
        return path_names(place.removeprefix(RECORD_KEY))
    return path_of(place)


def _of_rows(keys: KeysAndProblems | None, rows: Any) -> KeysAndProblems | None:
    if keys is None or np.array_equal(rows, np.arange(len(keys[0]))):
        return keys
    return keys[0][rows], keys[1][rows]


def _with_other_columns(
    frame: pl.DataFrame, shape: ValueShape, coordinates: KeysAndProblems | None = None
) -> pl.DataFrame:
    """Make the keys canonical, test the filters, and add the columns that are the same for every record. `coordinates`:
    the keys where they are none of the record's contents. Keys of several parts are canonical already."""
    has_version = "version" in frame.columns
    is_joined = coordinates is None and len(shape.key) > 1
    kind = KeyType.STRING if is_joined else shape.key_kinds[0]
    keys, problems = coordinates or canonical_keys(frame["key"], kind)
    # Where nothing of the value is wanted, the frame has no column, and does not know how many records there are.
    others = [column for column in frame.get_columns() if column.name not in ("key", "problem")]
    frame = pl.DataFrame([keys.alias("key"), problems.alias("problem"), *others])
    return frame.select(
        "key",
        "problem",
        *(f"c:{name}" for name in shape.compare),
        pl.col("version") if has_version else pl.lit(None, dtype=VERSION_NUMBER).alias("version"),
        excluded_by(frame, shape.filters),
        pl.lit(False).alias("is_tombstone"),
    )


# Record by record


class _StoredRecord(NamedTuple):
    """A record as it is in the log; what the shape does not need of it is left out."""

    value: bytes | None
    headers: Headers
    record_key: bytes | None
    coordinates: Mapping[str, int]


def _decode_one_by_one(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    places = {name: shape.place_of(name) for name in shape.columns}
    return _frame_of([_decode_record(record, shape, places) for record in _records(batch, shape)], shape.compare)


def _records(batch: pa.RecordBatch, shape: ValueShape) -> Iterator[_StoredRecord]:
    count = batch.num_rows
    keys = batch.column("key").to_pylist() if shape.needs_record_key else [None] * count
    coordinates = batch.select(shape.coordinates).to_pylist() if shape.coordinates else [NO_COORDINATES] * count
    values, headers = batch.column("value").to_pylist(), batch.column("headers").to_pylist()
    yield from map(_StoredRecord, values, headers, keys, coordinates)


def _decode_record(stored: _StoredRecord, shape: ValueShape, places: Mapping[str, str]) -> _Row:
    """Decode one record, with columns from these places. Of one that has no usable key, what could be read until that
    was known."""
    read, held = _ReadValue({}, stored.value is None), dict[str, Any]()
    key, problem = None, None
    try:
        read = _read_value(stored.value, stored.headers, shape)
        record = _read_record(stored, {} if read.is_deletion else read.document, shape)
        held = {name: record.column(place) for name, place in places.items()}
        key = _key_of(_read_record(stored, read.document, shape), shape)
    except KeyProblem as error:
        problem = str(error)
    # A deletion concerns every version of its key: no filter on values excludes it.
    passes_all = read.is_deletion and shape.heeds_deletions
    return _Row(
        key=key,
        problem=problem,
        texts={name: canonical_text(held.get(name), declared) for name, declared in shape.compare.items()},
        version=_read_record(stored, read.document, shape).version(shape.version),
        excluded_by=[] if passes_all else [hop for hop, terms in shape.filters.items() if not _passes_all(held, terms)],
        is_tombstone=read.is_deletion,
    )


def _read_record(stored: _StoredRecord, fields: Mapping[str, Any], shape: ValueShape) -> ReadRecord:
    return ReadRecord(
        fields=fields,
        record_key=stored.record_key,
        headers=stored.headers,
        read_key=shape.record_key.read,
        coordinates=stored.coordinates,
    )


def _key_of(record: ReadRecord, shape: ValueShape) -> str:
    parts = zip(map(record.part, shape.key), shape.key_kinds, strict=True)
    return key_text([part_text(part, kind) for part, kind in parts])


class _ReadValue(NamedTuple):
    """The decoded value of a record; of a deletion the row that was deleted, as far as it is known."""

    document: Mapping[str, Any]
    is_deletion: bool


def _read_value(value: bytes | None, headers: Any, shape: ValueShape) -> _ReadValue:
    fields = shape.fields
    if value is None and shape.heeds_deletions and not shape.key_paths:
        return _ReadValue({}, True)
    if not fields and not shape.format.has_deletions:
        return _ReadValue({}, value is None)
    try:
        document = shape.format.document(value, headers)
    except Deletion as deletion:
        if not shape.heeds_deletions or (shape.key_paths and deletion.row is None):
            raise
        return _ReadValue(deletion.row or {}, True)
    require_fields(document, fields)
    return _ReadValue(document, False)


def _passes_all(held: Mapping[str, Any], terms: Sequence[TypedTerm]) -> bool:
    return all(term.holds(held.get(term.column)) for term in terms)
