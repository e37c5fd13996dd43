"""Read what records add to the row of their key, and what a row holds, as whole numbers of the last digit.

A record that was sent again is one *element* with its first copy. Nothing is rounded: an amount with more digits than
its sum has cannot be added, whatever a loader makes of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from makewhole.compute.canonical import decimal_scale
from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.model.places.grouping import SUM_DIGITS, Grouping

_LONGEST = 38  # digits that 128 bits hold
IDENTITY, IS_FLAWED = "identity", "is_flawed"


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The columns that a grouping adds up, with the digits behind the point of each. The count has none."""

    grouping: Grouping
    scales: Mapping[str, int]

    @classmethod
    def of(cls, grouping: Grouping, compared: Mapping[str, str]) -> "Totals":
        """Return the totals of a hop that compares these columns (name → declared type)."""
        return cls(grouping=grouping, scales={name: decimal_scale(compared[name]) or 0 for name in grouping.totals})

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in their order."""
        return self.grouping.totals

    def shown(self, name: str, number: int | None) -> str | None:
        """Return a number of a column's last digits as the column's text."""
        return None if number is None else format(Decimal(number).scaleb(-self.scales[name]), "f")


def passing_records(source: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the committed records that pass the filter of a hop."""
    passing = committed_copies(source).filter(~pl.col("excluded_by").list.contains(hop).fill_null(False))
    return passing.unique([*HASH, "place"], keep="first", maintain_order=True)


def with_amounts(records: pl.DataFrame, totals: Totals) -> pl.DataFrame:
    """Add to records of a topic (`TOPIC_KEYS` and the columns of the grouping) `identity`, what each adds to a column
    of the totals as `u:<column>` (Int128), and `is_flawed`: it has no identity, or no amount that can be added."""
    own = totals.grouping.identity
    identity = pl.col("place") if own is None else pl.col(f"c:{own}")
    amounts = [_units(f"c:{name}", totals.scales[name]).alias(_unit(name)) for name in totals.grouping.sums]
    counts = [] if totals.grouping.counts is None else [pl.lit(1, dtype=pl.Int128).alias(_unit(totals.grouping.counts))]
    read = records.with_columns(identity.alias(IDENTITY), *amounts, *counts)
    most = pl.lit(10**SUM_DIGITS, dtype=pl.Int128)
    is_unfit = [(pl.col(_unit(name)).is_null() | (pl.col(_unit(name)).abs() >= most)) for name in totals.grouping.sums]
    flaws = [pl.col(IDENTITY).is_null(), pl.col("is_tombstone"), pl.col("excluded_by").is_null(), *is_unfit]
    return read.with_columns(pl.any_horizontal(flaw.fill_null(True) for flaw in flaws).alias(IS_FLAWED))


def elements_of(records: pl.DataFrame, totals: Totals) -> pl.DataFrame:
    """Return records with amounts as elements: one row per key and identity with what the first copy adds, and
    whether another one `contradicts` it, by position."""
    units = [_unit(name) for name in totals.names]
    ordered = records.sort("partition", "offset")
    return ordered.group_by(*HASH, IDENTITY, maintain_order=True).agg(
        pl.any_horizontal([pl.lit(False), *(pl.col(unit).n_unique() > 1 for unit in units)]).alias("contradicts"),
        pl.col(IS_FLAWED).any(),
        *(pl.col(unit).first() for unit in units),
    )


def with_found(rows: pl.DataFrame, totals: Totals) -> pl.DataFrame:
    """Add to rows of a table what each holds in a column of the totals as `u:<column>` (Int128); null: nothing that
    could be a sum."""
    return rows.with_columns(_units(f"c:{name}", totals.scales[name]).alias(_unit(name)) for name in totals.names)


def numbers_of(row: Mapping[str, object], names: Sequence[str]) -> tuple[int | None, ...]:
    """Return the numbers of a row with `u:<column>`."""
    values = (row[_unit(name)] for name in names)
    return tuple(value if isinstance(value, int) else None for value in values)


def _unit(name: str) -> str:
    return f"u:{name}"


def _units(column: str, scale: int) -> pl.Expr:
    """Read canonical texts of numbers as whole numbers of the digit `scale` places behind the point; null where they
    have more digits behind it, or are none."""
    parts = pl.col(column).str.extract_groups(r"^(-?)([0-9]+)(?:\.([0-9]+?)0*)?$")
    sign, whole, fraction = (parts.struct.field(str(number)).fill_null("") for number in (1, 2, 3))
    fraction = fraction.str.strip_chars_end("0")
    digits = pl.concat_str([sign, whole, fraction.str.pad_end(scale, "0")])
    fits = (fraction.str.len_bytes() <= scale) & (whole.str.len_bytes() > 0)
    fits = fits & (whole.str.len_bytes() + scale <= _LONGEST)
    return pl.when(fits).then(digits).cast(pl.Int128, strict=False)
