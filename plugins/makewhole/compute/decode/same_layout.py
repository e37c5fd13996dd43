"""Decode JSON values that share a layout: their wanted leaf values, as canonical text.

The text of such a leaf is its canonical text, or nearly; values that need more work are left to the other decoders.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import (
    COUNT,
    FILTERED,
    FLOATING,
    canonical_text,
    decimal_scale,
    float_texts,
    moment_digits,
)
from makewhole.compute.decode.envelopes import is_envelope
from makewhole.compute.decode.json_layout import JsonLayout, NoLayout, learn_layout
from makewhole.compute.decode.leaf_columns import LeafColumn, LeafRule, MatchingRows, ValueColumn, match_layout
from makewhole.compute.decode.value_format import DecodedParts, WantedLeaf
from makewhole.compute.versions import SCALE, versions_of_texts
from makewhole.compute.versions import VERSION as VERSION_NUMBER
from makewhole.native.arrays import Int64s
from makewhole.native.byte_strings import Blobs, Content
from makewhole.native.json_scan import BOOLEAN, NULL, NUMBER, TEXT
from makewhole.native.moments import read_moments

_MOST_LAYOUTS = 4
_MOST_FRACTION_DIGITS = 30
_BY_VALUE = ("int", "bigint", COUNT, FILTERED)
_NUMBERS = (*_BY_VALUE, *FLOATING)
_RENDERED_TYPES = ("date", "char", "uuid", "inet", "time", "macaddr")
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
KEY, NUMBER_KEY, TEXT_KEY, BOOLEAN_KEY = "a key", "a number as key", "a text as key", "a boolean as key"
VERSION = "a version"
INTEGER = "an integer that is no text"
_KEYS: Mapping[str, LeafRule] = {
    KEY: LeafRule(TEXT | NUMBER, least_bytes=1),
    NUMBER_KEY: LeafRule(TEXT | NUMBER, least_bytes=1, fraction_digits=_MOST_FRACTION_DIGITS),
    TEXT_KEY: LeafRule(TEXT, least_bytes=1),
    BOOLEAN_KEY: LeafRule(TEXT | BOOLEAN, least_bytes=1),
}
"""Rules of leaves whose own text is a key, or can be made one as a text can."""


def decode_same_layout(column: Any, wanted: Mapping[str, WantedLeaf], above: int = 0) -> DecodedParts:
    """Decode a binary column layout by layout: (rows with a frame of the wanted columns, rows that are left).

    The columns are texts, a version is its number; null where the leaf is null or absent. A key never is null.
    `above`: how deep the values stand in others.
    """
    values, parts = ValueColumn.of(column), []
    left = np.arange(len(column))
    for attempt in range(_MOST_LAYOUTS):
        if not len(left):
            break
        try:
            layout = learn_layout(values[left[len(left) * attempt // _MOST_LAYOUTS]], above)
            matching = _match_wanted(layout, values, left, wanted)
        except NoLayout:
            continue
        if len(matching.rows):
            parts.append((matching.rows, _frame(layout, matching, wanted)))
            left = np.setdiff1d(left, matching.rows, assume_unique=True)
    return parts, left


def _match_wanted(
    layout: JsonLayout, values: ValueColumn, rows: Int64s, wanted: Mapping[str, WantedLeaf]
) -> MatchingRows:
    """Find the rows that match the layout and whose wanted leaves can be rendered.

    Raises:
        NoLayout: the wanted leaves of no value of this layout can be rendered.
    """
    if is_envelope(layout.names, (path[0] for path, _ in wanted.values())):
        raise NoLayout
    rules: dict[int, LeafRule] = {}
    for path, declared in wanted.values():
        if path in layout.branches or (declared in _KEYS and path not in layout.leaf_numbers):
            raise NoLayout
        if path in layout.leaf_numbers:
            leaf, rule = layout.leaf_numbers[path], _rule(declared)
            if layout.leaves[leaf].is_text and declared == INTEGER:
                raise NoLayout
            if layout.leaves[leaf].is_text and not rule.kinds & TEXT:
                rule = _quoted(rule)
            rules[leaf] = rules[leaf].combined(rule) if leaf in rules else rule
    return match_layout(layout, values, rows, rules)


def _rule(declared: str) -> LeafRule:
    """Return the rule of leaves whose own text can be rendered as the declared type."""
    if declared in _KEYS:
        return _KEYS[declared]
    if declared == "string" or is_rendered(declared):
        return LeafRule(TEXT | NULL)
    if declared == VERSION:
        return LeafRule(TEXT | NUMBER | NULL, fraction_digits=SCALE)
    if declared == INTEGER:
        return LeafRule(NUMBER | NULL)
    if declared in _NUMBERS:
        return LeafRule(NUMBER | NULL, fraction_digits=_MOST_FRACTION_DIGITS)
    if declared == "boolean":
        return LeafRule(BOOLEAN | NULL)
    scale = decimal_scale(declared)
    return LeafRule(NULL) if scale is None else LeafRule(NUMBER | NULL, fraction_digits=scale)


def _quoted(rule: LeafRule) -> LeafRule:
    """Return the rule of strings whose text is what the rule asks for; a quoted `null` is a text like any other.

    Raises:
        NoLayout: it asks for `null` alone.
    """
    if rule.kinds == NULL:
        raise NoLayout
    return rule._replace(kinds=rule.kinds & ~NULL)


def is_rendered(declared: str) -> bool:
    """Return whether a declared type is one of texts that have several spellings of a value."""
    return declared in _RENDERED_TYPES or moment_digits(declared) is not None


def _frame(layout: JsonLayout, matching: MatchingRows, wanted: Mapping[str, WantedLeaf]) -> pl.DataFrame:
    columns = []
    for name, (path, declared) in wanted.items():
        leaf = layout.leaf_numbers.get(path)
        if leaf is None:
            columns.append(pl.repeat(None, len(matching.rows), dtype=_kind(declared), eager=True).alias(name))
        else:
            columns.append(_rendered(matching.leaves[leaf], declared, matching.content).alias(name))
    return pl.DataFrame(columns)


def _kind(declared: str) -> pl.DataType | type[pl.DataType]:
    return VERSION_NUMBER if declared == VERSION else pl.String


def _rendered(leaf: LeafColumn, declared: str, content: Content) -> pl.Series:
    """Render a leaf of every row as canonical text, or as a number for a version."""
    texts = pl.Series(pl.from_arrow(leaf.blobs.views(content, pa.string_view())))
    if declared == VERSION:
        return versions_of_texts(texts.cast(pl.String))
    if is_rendered(declared):
        return rendered_texts(texts, leaf.blobs, content, declared)
    if declared in _BY_VALUE:
        return _by_value(texts, leaf)
    if declared in FLOATING:
        rendered = float_texts(texts.cast(pl.Float64), declared)
        return _each_once(texts, declared) if rendered is None else rendered
    scale = decimal_scale(declared)
    if scale is not None and (leaf.fraction_digits < scale).any():
        endings = pl.Series(["0" * (scale - digits) if digits else "." + "0" * scale for digits in range(scale + 1)])
        frame = pl.DataFrame([texts.alias("text"), endings.gather(leaf.fraction_digits).alias("ending")])
        return frame.select(pl.concat_str("text", "ending")).to_series()
    return texts


def rendered_texts(texts: pl.Series, blobs: Blobs, content: Content, declared: str) -> pl.Series:
    """Return the canonical texts of a type that `is_rendered`, of texts that stand there in a content."""
    if declared == "char":
        return texts.str.strip_chars_end(" ")
    if declared == "uuid" and texts.str.contains(_UUID).all():
        return texts
    digits = moment_digits(declared)
    if digits is None:
        return _each_once(texts, declared)
    moments, is_read = read_moments(content.bytes, blobs.starts, blobs.lengths, digits)
    left = pl.Series(~is_read).arg_true()
    rendered = pl.Series(moments).cast(pl.String)
    return rendered.scatter(left, _each_once(texts.gather(left), declared)) if len(left) else rendered


def _each_once(texts: pl.Series, declared: str) -> pl.Series:
    known = texts.unique()
    return texts.replace_strict(known, [canonical_text(text, declared) for text in known], return_dtype=pl.String)


def _by_value(texts: pl.Series, leaf: LeafColumn) -> pl.Series:
    """Render numbers whatever their fraction is, without the zeros at its end: it is not rounded to an integer."""
    has_fraction = pl.Series(leaf.fraction_digits > 0)
    if not has_fraction.any():
        return texts
    plain = texts.cast(pl.String)
    whole = plain.str.strip_chars_end("0").str.strip_chars_end(".")
    return plain.zip_with(~has_fraction, whole)
