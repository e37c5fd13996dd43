"""Decode record values to the key and the compared columns, as canonical text.

The format of the values says how: many at once, as far as it can, and the others one by one, which is the reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode.envelopes import require_fields
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.same_layout import BOOLEAN_KEY, KEY, NUMBER_KEY, TEXT_KEY, VERSION
from makewhole.compute.decode.value_format import ValueFormat, WantedLeaf
from makewhole.compute.key_values import canonical_keys, part_text
from makewhole.compute.keys import KeyProblem, key_text
from makewhole.compute.row_filter import TypedTerm
from makewhole.compute.versions import UNREADABLE, version_number
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.model.points import KeyType

RECORD_KEY = "kafka.key"
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
    in a record that are no fields of their own name.
    """

    key: tuple[str, ...]
    compare: Mapping[str, str]
    filters: Mapping[str, tuple[TypedTerm, ...]] = field(default_factory=dict)
    version: str | None = None
    keeps_tombstones: bool = False
    tombstones_erase: bool = False
    key_layout: tuple[KeyType, ...] = ()
    format: ValueFormat = JSON
    places: Mapping[str, str] = field(default_factory=dict)

    def place_of(self, name: str) -> str:
        """Return where the column of a name stands in a record: `$.path.to.field`, `kafka.key` or `header:NAME`."""
        return self.places.get(name, f"$.{name}")

    @property
    def key_paths(self) -> list[str]:
        return [part.removeprefix("$.") for part in self.key if part.startswith("$.")]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that are compared, or that a filter asks for."""
        return frozenset(self.compare).union(term.column for terms in self.filters.values() for term in terms)

    @property
    def fields(self) -> frozenset[str]:
        """The fields at the top of a value that are read, or lead to one that is."""
        places = (*self.key, *map(self.place_of, self.columns), self.version or "")
        return frozenset(place.split(".")[1] for place in places if place.startswith("$."))

    @property
    def key_kinds(self) -> tuple[KeyType, ...]:
        """The types of the key's parts."""
        return self.key_layout or (KeyType.STRING,) * len(self.key)

    @property
    def needs_record_key(self) -> bool:
        """Return whether Kafka's own record key is part of the business key, or a column."""
        return RECORD_KEY in (*self.key, *map(self.place_of, self.columns))


def decode_values(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    """Decode the records of a batch (columns `value`, `headers`, and `key` where the shape needs it).

    Returns a frame with one row per record in order: `key` (null where it cannot be had), `problem` (why, else null),
    one text column `c:<name>` per compared column, `version` (see `makewhole.compute.versions`) and `excluded_by` (the
    hops whose filter the record fails).
    """
    if batch.num_rows == 0:
        return _assemble([], [], {name: [] for name in shape.compare}, [], [])
    if not _is_columnar(shape):
        return _decode_one_by_one(batch, shape)
    parts, left = shape.format.decode_together(batch, _wanted(shape))
    decoded = [(rows, _with_constant_columns(frame, shape)) for rows, frame in parts]
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
    places = [shape.place_of(name) for name in shape.compare]
    has_plain_key = len(shape.key) == 1 and bool(shape.key_paths) and shape.key[0] not in places
    has_plain_places = all(place.startswith("$.") for place in (*places, *filter(None, [shape.version])))
    has_filters = any(shape.filters.values())
    return has_plain_key and has_plain_places and not has_filters


def _wanted(shape: ValueShape) -> dict[str, WantedLeaf]:
    """Return the leaves of a value that a shape needs, by their column."""
    wanted = {"key": WantedLeaf(_names(shape.key_paths[0]), _KEY_LEAVES.get(shape.key_kinds[0], TEXT_KEY))}
    for name, declared in shape.compare.items():
        wanted[f"c:{name}"] = WantedLeaf(_names(shape.place_of(name).removeprefix("$.")), declared)
    if shape.version is not None:
        wanted["version"] = WantedLeaf(_names(shape.version.removeprefix("$.")), VERSION)
    return wanted


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _with_constant_columns(frame: pl.DataFrame, shape: ValueShape) -> pl.DataFrame:
    """Make the keys canonical, and add the columns that are the same for every record without a problem."""
    has_version = "version" in frame.columns
    keys, problems = canonical_keys(frame["key"], shape.key_kinds[0])
    return frame.select(
        keys.alias("key"),
        problems.alias("problem"),
        *(f"c:{name}" for name in shape.compare),
        pl.col("version") if has_version else pl.lit(None, dtype=VERSION_NUMBER).alias("version"),
        pl.lit([], dtype=pl.List(pl.String)).alias("excluded_by"),
    )


# Record by record


def _decode_one_by_one(batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    keys: list[str | None] = []
    problems: list[str | None] = []
    columns: dict[str, list[str | None]] = {name: [] for name in shape.compare}
    versions: list[Decimal | None] = []
    excluded: list[list[str]] = []
    fields, places = shape.fields, {name: shape.place_of(name) for name in shape.columns}
    record_keys = batch.column("key").to_pylist() if shape.needs_record_key else [None] * batch.num_rows
    records = zip(record_keys, batch.column("value").to_pylist(), batch.column("headers").to_pylist(), strict=True)
    for record_key, value, headers in records:
        document: Any = {}
        held: Mapping[str, Any] = {}
        is_tombstone = value is None and (shape.keeps_tombstones or shape.tombstones_erase) and not shape.key_paths
        try:
            document = shape.format.document(value, headers) if fields and not is_tombstone else {}
            held = {name: _column_value(place, record_key, document, headers) for name, place in places.items()}
            require_fields(document, fields)
            keys.append(
                key_text(
                    [
                        part_text(record_part(part, record_key, document, headers), kind)
                        for part, kind in zip(shape.key, shape.key_kinds, strict=True)
                    ]
                )
            )
            problems.append(None)
        except KeyProblem as problem:
            keys.append(None)
            problems.append(str(problem))
        for name, declared in shape.compare.items():
            columns[name].append(canonical_text(held.get(name), declared))
        versions.append(version_of(shape.version, record_key, document, headers))
        # A deletion concerns every version of its key: no filter on values excludes it.
        failed = [hop for hop, terms in shape.filters.items() if not is_tombstone and not _passes_all(held, terms)]
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


def record_part(part: str, record_key: bytes | None, document: Any, headers: Any) -> Any:
    """Return what stands at a place of a record: a field of its value, its key or a header, these as texts.

    `headers` are mappings with `key` and `value`.

    Raises:
        KeyProblem: there is no such header, or several, or a text is no UTF-8.
    """
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


def _column_value(place: str, record_key: bytes | None, document: Any, headers: Any) -> Any:
    """Return what stands at the place of a column; null where the record does not have it.

    Raises:
        KeyProblem: there are several such headers, or a text is no UTF-8.
    """
    name = place.removeprefix("header:")
    if name != place and all(entry["key"] != name for entry in headers or ()):
        return None
    return record_part(place, record_key, document, headers)


def _passes_all(held: Mapping[str, Any], terms: Sequence[TypedTerm]) -> bool:
    return all(term.holds(held.get(term.column)) for term in terms)
