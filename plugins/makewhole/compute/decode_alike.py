"""JSON values that are laid out alike → their wanted leaf values, as canonical text.

A leaf's own text is its canonical text already, or nearly; what would need more than a look is left to other ways.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from makewhole.compute.alike import Alike, Rows, Values, follow
from makewhole.compute.byte_strings import Content
from makewhole.compute.canonical import canonical_text, decimal_scale
from makewhole.compute.json_layout import Layout, NoLayout, layout_of
from makewhole.compute.leaves import Leaves, Scalars
from makewhole.compute.words import Bools

_MOST_LAYOUTS = 4
_INT64_DIGITS = 18
_WHOLE = ("int", "bigint")
_MOMENTS = ("timestamp", "date")
KEY, VERSION = "a key", "a version"


class Wanted(NamedTuple):
    """A leaf by its path of names, and the type it is declared in: one that is compared, or `KEY` or `VERSION`."""

    path: tuple[str, ...]
    declared: str


def decode_alike(column: Any, wanted: Mapping[str, Wanted]) -> tuple[list[tuple[Rows, pl.DataFrame]], Rows]:
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


def _followed(layout: Layout, values: Values, rows: Rows, wanted: Mapping[str, Wanted]) -> Alike:
    """The rows that follow the layout and whose wanted leaves can be rendered.

    Raises:
        NoLayout: no value of this layout can.
    """
    for path, declared in wanted.values():
        if path in layout.branches or (declared == KEY and path not in layout.places):
            raise NoLayout
        if path in layout.places and layout.leaves[layout.places[path]].is_text and not _may_be_text(declared):
            raise NoLayout
    alike = follow(layout, values, rows)
    for path, declared in wanted.values():
        if path in layout.places:
            alike.keep(_renders(alike.leaves[layout.places[path]], declared))
    return alike


def _may_be_text(declared: str) -> bool:
    return declared in (KEY, "string", *_MOMENTS)


def _renders(leaf: Leaves, declared: str) -> Bools:
    """Which leaves can be rendered as what is declared, each for itself."""
    if not isinstance(leaf, Scalars):
        return np.ones(len(leaf.lengths), dtype=np.bool_) if declared != KEY else np.greater(leaf.lengths, 0)
    is_number = leaf.is_number & ~leaf.is_negative_zero
    is_whole = is_number & (leaf.fraction_digits == 0)
    scale = decimal_scale(declared)
    fits: Bools = np.zeros(len(leaf.lengths), dtype=np.bool_)
    if declared == KEY or declared in _WHOLE:
        fits = is_whole
    elif declared == VERSION:
        fits = is_whole & (leaf.lengths <= _INT64_DIGITS)
    elif declared == "boolean":
        fits = leaf.is_boolean
    elif scale is not None:
        fits = is_number & (leaf.fraction_digits <= scale)
    return fits if declared == KEY else fits | leaf.is_null


def _frame(layout: Layout, alike: Alike, wanted: Mapping[str, Wanted]) -> pl.DataFrame:
    columns = []
    for name, (path, declared) in wanted.items():
        if path in layout.places:
            columns.append(_rendered(alike.leaves[layout.places[path]], declared, alike.content).alias(name))
        else:
            columns.append(pl.repeat(None, len(alike.rows), dtype=_kind(declared), eager=True).alias(name))
    return pl.DataFrame(columns)


def _kind(declared: str) -> type[pl.DataType]:
    return pl.Int64 if declared == VERSION else pl.String


def _rendered(leaf: Leaves, declared: str, content: Content) -> pl.Series:
    """A leaf of every row as canonical text, or as a number for a version."""
    nulls = leaf.is_null if isinstance(leaf, Scalars) else None
    texts = pl.Series(pl.from_arrow(leaf.texts(content, None if nulls is None or not nulls.any() else ~nulls)))
    if declared == VERSION:
        return texts.cast(pl.Int64)
    if declared in _MOMENTS:
        known = texts.unique()
        return texts.replace_strict(known, [canonical_text(text, declared) for text in known], return_dtype=pl.String)
    scale = decimal_scale(declared)
    if scale is not None and isinstance(leaf, Scalars) and (leaf.fraction_digits < scale).any():
        endings = pl.Series(["0" * (scale - digits) if digits else "." + "0" * scale for digits in range(scale + 1)])
        frame = pl.DataFrame([texts.alias("text"), endings.gather(leaf.fraction_digits).alias("ending")])
        return frame.select(pl.concat_str("text", "ending")).to_series()
    return texts
