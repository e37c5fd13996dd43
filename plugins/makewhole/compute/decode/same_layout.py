"""JSON values that are laid out alike → their wanted leaf values, as canonical text.

A leaf's own text is its canonical text already, or nearly; what would need more than a look is left to other ways.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import canonical_text, decimal_scale
from makewhole.compute.decode.json_layout import JsonLayout, NoLayout, layout_of
from makewhole.compute.decode.leaf_columns import Alike, LeafColumn, Rule, Values, follow
from makewhole.native.arrays import Longs
from makewhole.native.byte_strings import Content
from makewhole.native.json_scan import BOOLEAN, NULL, NUMBER, TEXT

_MOST_LAYOUTS = 4
_INT64_DIGITS = 18
_MOMENTS = ("timestamp", "date")
KEY, VERSION = "a key", "a version"


class WantedLeaf(NamedTuple):
    """A leaf by its path of names, and the type it is declared in: one that is compared, or `KEY` or `VERSION`."""

    path: tuple[str, ...]
    declared: str


def decode_same_layout(column: Any, wanted: Mapping[str, WantedLeaf]) -> tuple[list[tuple[Longs, pl.DataFrame]], Longs]:
    """The values of a binary column by their layouts: rows with a frame of the wanted columns, and what rows are left.

    Texts, but for a version (int64). Null where the leaf is null or not there; a key never is.
    """
    values, parts = Values.of(column), []
    left = np.arange(len(column))
    for attempt in range(_MOST_LAYOUTS):
        if not len(left):
            break
        try:
            layout = layout_of(values[left[len(left) * attempt // _MOST_LAYOUTS]])
            alike = _followed(layout, values, left, wanted)
        except NoLayout:
            continue
        if len(alike.rows):
            parts.append((alike.rows, _frame(layout, alike, wanted)))
            left = np.setdiff1d(left, alike.rows, assume_unique=True)
    return parts, left


def _followed(layout: JsonLayout, values: Values, rows: Longs, wanted: Mapping[str, WantedLeaf]) -> Alike:
    """The rows that follow the layout and whose wanted leaves can be rendered.

    Raises:
        NoLayout: no value of this layout can.
    """
    rules: dict[int, Rule] = {}
    for path, declared in wanted.values():
        if path in layout.branches or (declared == KEY and path not in layout.places):
            raise NoLayout
        if path in layout.places:
            leaf, rule = layout.places[path], _rule(declared)
            if layout.leaves[leaf].is_text and not rule.kinds & TEXT:
                raise NoLayout
            rules[leaf] = rules[leaf].and_also(rule) if leaf in rules else rule
    return follow(layout, values, rows, rules)


def _rule(declared: str) -> Rule:
    """What a leaf has to be, to be rendered as what is declared."""
    if declared == KEY:
        return Rule(TEXT | NUMBER, least_bytes=1)
    if declared in ("string", *_MOMENTS):
        return Rule(TEXT | NULL)
    if declared == VERSION:
        return Rule(NUMBER | NULL, number_bytes=_INT64_DIGITS)
    if declared in ("int", "bigint"):
        return Rule(NUMBER | NULL)
    if declared == "boolean":
        return Rule(BOOLEAN | NULL)
    scale = decimal_scale(declared)
    return Rule(NULL) if scale is None else Rule(NUMBER | NULL, fraction_digits=scale)


def _frame(layout: JsonLayout, alike: Alike, wanted: Mapping[str, WantedLeaf]) -> pl.DataFrame:
    columns = []
    for name, (path, declared) in wanted.items():
        leaf = layout.places.get(path)
        if leaf is None:
            columns.append(pl.repeat(None, len(alike.rows), dtype=_kind(declared), eager=True).alias(name))
        else:
            columns.append(_rendered(alike.leaves[leaf], declared, alike.content).alias(name))
    return pl.DataFrame(columns)


def _kind(declared: str) -> type[pl.DataType]:
    return pl.Int64 if declared == VERSION else pl.String


def _rendered(leaf: LeafColumn, declared: str, content: Content) -> pl.Series:
    """A leaf of every row as canonical text, or as a number for a version."""
    texts = pl.Series(pl.from_arrow(leaf.blobs.views(content, pa.string_view())))
    if declared == VERSION:
        return texts.cast(pl.Int64)
    if declared in _MOMENTS:
        known = texts.unique()
        return texts.replace_strict(known, [canonical_text(text, declared) for text in known], return_dtype=pl.String)
    scale = decimal_scale(declared)
    if scale is not None and (leaf.fraction_digits < scale).any():
        endings = pl.Series(["0" * (scale - digits) if digits else "." + "0" * scale for digits in range(scale + 1)])
        frame = pl.DataFrame([texts.alias("text"), endings.gather(leaf.fraction_digits).alias("ending")])
        return frame.select(pl.concat_str("text", "ending")).to_series()
    return texts
