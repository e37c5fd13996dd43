"""Keep one copy of each key that a record has several elements of, where the latest version of a key counts.

All elements of a record are at one position, which orders none of them. Of several, the highest version counts; those
that nothing orders are one where they agree, and where they differ the element cannot be read: it is of that key alone.
"""

from typing import NamedTuple

import polars as pl

from makewhole.compute.versions import is_moment, is_unreadable

_RECORD = ("partition", "offset", "key")
_ROW = "_row"


class OneOfEach(NamedTuple):
    """The copies that are left, in order, and the keys that could not be read: a row for each (of the copies)."""

    copies: pl.DataFrame
    unreadable: pl.DataFrame


def one_of_each(copies: pl.DataFrame) -> OneOfEach:
    """Divide the copies of records (`partition`, `offset`, `key`, `version`, `excluded_by`, `c:…`; none is null in
    `key`)."""
    is_repeated = copies.select(pl.struct(_RECORD).is_duplicated()).to_series()
    if not is_repeated.any():
        return OneOfEach(copies, copies.clear())
    numbered = copies.with_row_index(_ROW)
    newest = numbered.filter(is_repeated).filter(~is_below_another())
    compared = [name for name in copies.columns if name.startswith("c:")]
    filters = pl.col("excluded_by").list.sort().list.join(",").alias("excluded_by")
    said = newest.with_columns(filters).with_columns(pl.struct("version", "excluded_by", *compared).alias("said"))
    differs = said.select(pl.col("said").n_unique().over(_RECORD) > 1).to_series()
    first = newest.select(pl.int_range(pl.len()).over(_RECORD) == 0).to_series()
    kept = pl.concat([numbered.filter(~is_repeated), newest.filter(first & ~differs)]).sort(_ROW)
    return OneOfEach(kept.drop(_ROW), newest.filter(first & differs).drop(_ROW))


def is_below_another() -> pl.Expr:
    """Return whether an element has a lower version than another one of its key and record. What is no version, and
    numbers beside moments, are in no order."""
    has_order = (~is_unreadable() & (is_moment().min() == is_moment().max())).all().over(_RECORD)
    is_known = pl.col("version").is_not_null().all().over(_RECORD)
    is_below = pl.col("version") < pl.col("version").max().over(_RECORD)
    return (has_order & is_known & is_below).fill_null(False)
