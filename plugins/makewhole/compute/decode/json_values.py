"""Decode record values that are JSON: one as a document, or many at once by their layout or with Arrow's reader.

Three decoders give the same result. Values that share a layout are decoded together; the rest of a batch goes through
Arrow's JSON reader with an explicit schema; parts of it with an unusual value go record by record through Python's. The
first two refuse rather than guess: Arrow's demands that every value is one object of its own, so that one bad record
cannot shift its neighbours.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import COUNT, FILTERED, FLOATING, decimal_scale, float_texts, plain_texts
from makewhole.compute.decode.envelopes import may_be_envelopes
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.json_lines import UnusualBatch, are_usable_texts, column_at, read_lines
from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.compute.decode.same_layout import INTEGER, VERSION, decode_same_layout, is_rendered, rendered_texts
from makewhole.compute.decode.value_format import DecodedParts, Headers, WantedLeaf
from makewhole.compute.keys import KeyProblem
from makewhole.compute.versions import LEAST_INTEGER
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.config.template import exact_json
from makewhole.native.arrays import ArrowArray, Int64s

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int64(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    COUNT: pa.int64(),
    INTEGER: pa.int64(),
    FILTERED: pa.decimal128(38, 6),
    **dict.fromkeys(FLOATING, pa.float64()),
}
_SCALE_WITHOUT_EXPONENT = 6  # Arrow writes smaller fractions as 1E-7
_FEWEST_HALVED = 128


class JsonFormat:
    """Values that are one JSON object each. `above`: how deep these stand in others, as nothing is read that is nested
    too deep in all."""

    above = 0
    has_deletions = False
    needs_key = False

    def __repr__(self) -> str:
        return "json"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:  # noqa: ARG002 - says nothing here
        """Parse one value. Raises as `parse_document`."""
        document: Mapping[str, Any] = parse_document(value)
        return document

    def template_value(self, value: bytes | None, headers: Headers) -> Any:  # noqa: ARG002
        """Parse any JSON."""
        try:
            return exact_json.loads(value or b"")
        except ValueError:  # not chained: the cause quotes the data
            raise KeyProblem("value is not JSON") from None

    def encode(self, payload: bytes) -> bytes:
        """Return a payload, which is JSON already, as it is."""
        return payload

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the values that share a layout, then the others with Arrow."""
        if any(name.startswith(("c:", "f:")) and _arrow_type(leaf.declared) is None for name, leaf in wanted.items()):
            return [], np.arange(batch.num_rows)
        values = batch.column("value")
        parts, left = decode_same_layout(values, wanted, self.above)
        refused = [np.empty(0, dtype=np.int64)]
        if len(left):
            for rows, frame in _read_parts(values.cast(pa.binary()).take(left), left, wanted, self.above):
                if frame is None:
                    refused.append(rows)
                else:
                    parts.append((rows, frame))
        return parts, np.concatenate(refused)


def _read_parts(
    values: ArrowArray, rows: Int64s, wanted: Mapping[str, WantedLeaf], above: int
) -> Iterator[tuple[Int64s, pl.DataFrame | None]]:
    """Read with Arrow, halving what is refused, so that few records go through Python one by one (None)."""
    try:
        yield rows, _read_with_arrow(values, wanted, above)
    except (UnusualBatch, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(rows) <= _FEWEST_HALVED:
            yield rows, None
            return
        half = len(rows) // 2
        yield from _read_parts(values.slice(0, half), rows[:half], wanted, above)
        yield from _read_parts(values.slice(half), rows[half:], wanted, above)


def _arrow_type(declared: str) -> pa.DataType | None:
    """Return the type by which Arrow reads values of a declared type; None: it reads none."""
    scale = decimal_scale(declared)
    if scale is not None:
        return pa.decimal128(38, scale)
    return pa.string() if is_rendered(declared) else _ARROW_TYPES.get(declared)


def _read_with_arrow(values: ArrowArray, wanted: Mapping[str, WantedLeaf], above: int = 0) -> pl.DataFrame:
    if may_be_envelopes(values, {leaf.path[0] for leaf in wanted.values()}):
        raise UnusualBatch
    key, types = wanted.get("key"), dict[Path, pa.DataType]()
    if key is not None:
        types[key.path] = _key_type(values[0].as_py(), key.path)
    for leaf in sorted(wanted.values(), key=_is_filtered):
        kind = pa.int64() if leaf.declared == VERSION else _arrow_type(leaf.declared)
        held = kind if kind is None else types.setdefault(leaf.path, kind)
        if held != kind and not (_is_filtered(leaf) and _is_exact(held)):
            raise UnusualBatch
    table = read_lines(values, types, above)
    frame = [] if key is None else [_usable_keys(column_at(table, key.path))]
    for name, leaf in wanted.items():
        if name != "key":
            frame.append(_typed(column_at(table, leaf.path), leaf.declared).alias(name))
    return pl.DataFrame(frame)


def _is_filtered(leaf: WantedLeaf) -> bool:
    """Return whether a leaf is a number that a filter asks for, which any exact type says."""
    return leaf.declared == FILTERED


def _is_exact(kind: Any) -> bool:
    """Return whether a type of Arrow holds numbers as they are."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _usable_keys(column: ArrowArray) -> pl.Series:
    keys = column.cast(pa.string())
    if not are_usable_texts(keys):
        raise UnusualBatch
    return pl.Series("key", pl.from_arrow(keys))


def _key_type(first: bytes | None, path: tuple[str, ...]) -> pa.DataType:
    try:
        value = json.loads(first or b"")
    except (ValueError, RecursionError):
        raise UnusualBatch from None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return pa.int64() if isinstance(value, int) and not isinstance(value, bool) else pa.string()


def _typed(column: ArrowArray, declared: str) -> pl.Series:
    if declared == VERSION:
        numbers = pl.Series(pl.from_arrow(column), dtype=pl.Int64)
        if (numbers == LEAST_INTEGER).any():  # no version
            raise UnusualBatch
        return numbers.cast(VERSION_NUMBER)
    texts = _canonical_column(column, declared)
    return plain_texts(texts) if declared == FILTERED else texts


def _canonical_column(column: ArrowArray, declared: str) -> pl.Series:
    if is_rendered(declared):
        placed = ValueColumn.of(column.cast(pa.binary()))
        return rendered_texts(pl.Series(pl.from_arrow(column)), placed.blobs, placed.content, declared)
    if pa.types.is_decimal(column.type) and column.type.scale > _SCALE_WITHOUT_EXPONENT:
        plain = [None if value is None else format(value, "f") for value in column.to_pylist()]
        return pl.Series(plain, dtype=pl.String)
    if pa.types.is_floating(column.type):
        numbers = pl.Series(pl.from_arrow(column), dtype=pl.Float64)
        rendered = float_texts(numbers, declared)
        if rendered is None or not numbers.is_finite().fill_null(True).all():  # Arrow reads NaN, which is no JSON
            raise UnusualBatch
        return rendered
    return pl.Series(pl.from_arrow(column.cast(pa.string())), dtype=pl.String)


JSON = JsonFormat()
