"""Decode many payloads of one schema at once: as plain JSON, whose leaves get the values of their logical types."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import canonical_text
from makewhole.compute.decode.connect.decimal_texts import decimal_texts
from makewhole.compute.decode.connect.envelope_parser import EnvelopeParser, Opening
from makewhole.compute.decode.connect.logical_types import (
    Convert,
    conversion,
    decimal_scale_of,
    is_plain_struct,
    moment_digits_of,
)
from makewhole.compute.decode.json_values import JsonFormat
from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.compute.decode.same_layout import BOOLEAN_KEY, INTEGER, KEY, NUMBER_KEY, TEXT_KEY, VERSION
from makewhole.compute.decode.shapes.counts import usual_moments
from makewhole.compute.decode.value_format import DecodedParts, WantedLeaf
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.compute.versions import version_number
from makewhole.native.arrays import ArrowArray, Bools, Int64s
from makewhole.native.byte_strings import Blobs

_MOST_SCHEMAS = 4
_RAW_TYPES = {"int8": INTEGER, "int16": INTEGER, "int32": INTEGER, "int64": INTEGER, "bytes": "string"}
_RAW_TYPES["string"] = "string"


class _PayloadFormat(JsonFormat):
    """The payloads of envelopes, or what stands in place of these: one deeper than a value."""

    above = 1


_PAYLOADS = _PayloadFormat()


class PayloadRows(NamedTuple):
    """The payloads of the records with one opening, with their rows."""

    rows: Int64s
    payloads: ArrowArray
    opening: Opening


class _Leaf(NamedTuple):
    """How a wanted leaf is read as plain JSON, and converted; None: it is right as it is."""

    wanted: WantedLeaf
    convert: Convert | None
    unit_digits: int | None = None
    decimal_scale: int | None = None


class _Unusual(Exception):  # noqa: N818 - not an error: the records are decoded one by one
    """A wanted leaf has a type whose values are not decoded many at once."""


def payloads_by_opening(values: ArrowArray, parser: EnvelopeParser) -> tuple[list[PayloadRows], Int64s]:
    """Return the payloads of envelopes by what stands before them, uncopied, and the rows that are left."""
    groups: list[PayloadRows] = []
    column, left = ValueColumn.of(values), np.arange(len(values))
    texts = pl.Series(pl.from_arrow(values))
    for attempt in range(_MOST_SCHEMAS):
        if not len(left):
            break
        opening = parser.opening_of(column[int(left[len(left) * attempt // _MOST_SCHEMAS])])
        if opening is None:
            continue
        begins = _begins(texts.gather(left), opening) & (column.blobs.lengths[left] >= 0)
        rows, left = left[begins], left[~begins]
        before = len(opening.text)
        blobs = Blobs(starts=column.blobs.starts[rows] + before, lengths=column.blobs.lengths[rows] - before - 1)
        groups.append(PayloadRows(rows, blobs.views(column.content), opening))
    return groups, left


def _begins(texts: pl.Series, opening: Opening) -> Bools:
    """Return which values `Opening.begins`."""
    value, frame = pl.col(texts.name), texts.to_frame()
    is_long = value.bin.size() > len(opening.text)
    begins = is_long & value.bin.starts_with(opening.text) & value.bin.ends_with(b"}")
    flags: Bools = frame.select(begins.fill_null(False)).to_series().to_numpy()
    return flags


def decode_payloads(payloads: ArrowArray, schema: Any, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
    """Decode many payloads of one schema, as `ValueFormat.decode_together` does."""
    try:
        leaves = {name: _leaf(schema, leaf) for name, leaf in wanted.items()}
    except _Unusual:
        return [], np.arange(len(payloads))
    batch = pa.record_batch({"value": payloads})
    parts, left = _PAYLOADS.decode_together(batch, {name: leaf.wanted for name, leaf in leaves.items()})
    return [(rows, _converted(frame, leaves, wanted)) for rows, frame in parts], left


def _leaf(schema: Any, wanted: WantedLeaf) -> _Leaf:
    own = _schema_at(schema, wanted.path)
    convert = conversion(own)
    if convert is None:
        return _Leaf(wanted, None)
    raw = _RAW_TYPES.get(str(own.get("type")))
    if raw is None or wanted.declared in (KEY, NUMBER_KEY, TEXT_KEY, BOOLEAN_KEY):
        raise _Unusual
    return _Leaf(WantedLeaf(wanted.path, raw), convert, moment_digits_of(own), decimal_scale_of(own))


def _schema_at(schema: Any, path: tuple[str, ...]) -> Any:
    """Return the schema of a leaf; None where none of its own is known, so that it is right as it is."""
    for name in path:
        if not is_plain_struct(schema):
            if conversion(schema) is not None:
                raise _Unusual
            return None
        own = [field for field in schema["fields"] if field.get("field") == name]
        if len(own) > 1:
            raise _Unusual
        schema = own[0] if own else None
    return schema


def _converted(frame: pl.DataFrame, leaves: Mapping[str, _Leaf], wanted: Mapping[str, WantedLeaf]) -> pl.DataFrame:
    return frame.with_columns(
        _column(frame[name], leaf, wanted[name].declared).alias(name)
        for name, leaf in leaves.items()
        if leaf.convert is not None
    )


def _column(raw: pl.Series, leaf: _Leaf, declared: str) -> pl.Series:
    """Return the canonical texts of a column, or the numbers of versions, from the leaves' own texts."""
    if leaf.unit_digits is not None and declared != VERSION:
        moments = usual_moments(raw, leaf.unit_digits, declared)
        if moments is not None:
            return moments
    if leaf.decimal_scale is not None and declared != VERSION:
        decimals = decimal_texts(raw, leaf.decimal_scale, declared)
        if decimals is not None:
            return decimals
    known = raw.drop_nulls().unique()
    values = [_value(text, leaf) for text in known]
    if declared == VERSION:
        numbers = pl.Series([version_number(value) for value in values], dtype=VERSION_NUMBER)
        return raw.replace_strict(known, numbers, default=None, return_dtype=VERSION_NUMBER)
    texts = pl.Series([canonical_text(value, declared) for value in values], dtype=pl.String)
    return raw.replace_strict(known, texts, default=None, return_dtype=pl.String)


def _value(text: str, leaf: _Leaf) -> Any:
    assert leaf.convert is not None
    return leaf.convert(int(text) if leaf.wanted.declared == INTEGER else text)
