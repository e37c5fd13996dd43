"""Set keys aside that lie before the baseline: from when on both ends of a hop reach back.

What only one end has from before that moment is neither missing nor unexpected: the other end does not reach so far.
Where a log begins at offset 0, and it is not declared from when on to judge, older keys are undecidable: they may have
been lost, or the topic may be younger than they are.

A row without a time that was there when its table was first read may be as old as any: it counts as from before the
baseline, wherever a hop has one.
"""

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from makewhole.model.verdict import Cause, Verdict


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The moments before which a verdict cannot stand on one hop; None: it stands at any time.

    Keys whose time is before `missing` or `unexpected` are before the baseline; those before `missing_unknown` or
    `unexpected_unknown` undecidable. `undated_missing`, `undated_unexpected`: so are keys without a time, of a table
    that is read for the first time.
    """

    missing: datetime | None = None
    unexpected: datetime | None = None
    missing_unknown: datetime | None = None
    unexpected_unknown: datetime | None = None
    undated_missing: bool = False
    undated_unexpected: bool = False


def mark_before_baseline(judged: pl.DataFrame, baseline: Baseline) -> pl.DataFrame:
    """Turn every missing or unexpected verdict of `judged` (`JUDGED`) from before the baseline into that.

    A key without a time keeps its verdict, unless its table is read for the first time. So does one that left the
    filter of its hop: the source has that version in the window.
    """
    turned = judged
    for verdict, before, unknown, undated in (
        (Verdict.MISSING, baseline.missing, baseline.missing_unknown, baseline.undated_missing),
        (Verdict.UNEXPECTED, baseline.unexpected, baseline.unexpected_unknown, baseline.undated_unexpected),
    ):
        is_before = _is_before(verdict, before, undated=undated)
        is_unknown = _is_before(verdict, unknown, undated=undated) & ~is_before
        turned = turned.with_columns(
            pl.when(is_unknown).then(pl.lit(Cause.OLDER_THAN_LOG.value)).otherwise("hint").alias("hint"),
            pl.when(is_before)
            .then(pl.lit(Verdict.BEFORE_BASELINE.value))
            .when(is_unknown)
            .then(pl.lit(Verdict.UNDECIDABLE.value))
            .otherwise("verdict")
            .alias("verdict"),
        )
    return turned


def _is_before(verdict: Verdict, moment: datetime | None, *, undated: bool) -> pl.Expr:
    if moment is None:
        return pl.lit(False)
    has_left = pl.col("hint").eq_missing(Cause.LEFT_FILTER.value)
    return (pl.col("verdict") == verdict.value) & ~has_left & (pl.col("time") < moment).fill_null(undated)


def latest_of(*moments: datetime | None) -> datetime | None:
    """Return the latest of the moments that are known."""
    return max((moment for moment in moments if moment is not None), default=None)
