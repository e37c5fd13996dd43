"""Select judged keys (`JUDGED`) by their verdicts, and turn these into others.

Precedence is the order of the steps, in `judge_bucket` and then in `marks`. Every step, here or in
`makewhole.compute.judge`, names the verdicts that it may turn, and none of them names `undecidable`, `before_baseline`,
`erased` or `vanished`: what a step has turned into one of these no later one takes back, and the first that explains a
key is the one that is reported. Two steps give what is undecidable already a cause, and leave its verdict: a
placeholder, and a changed filter, where that is why a value is not known.
"""

from collections.abc import Collection

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.model.verdict import Cause, Verdict


def has_verdict(*verdicts: Verdict) -> pl.Expr:
    """Select the keys with one of these verdicts."""
    return pl.col("verdict").is_in([verdict.value for verdict in verdicts])


def has_left() -> pl.Expr:
    """Select the unexpected keys whose latest version does not pass the hop's filter any more."""
    return pl.col("hint").eq_missing(Cause.LEFT_FILTER.value)


def turned(
    judged: pl.DataFrame, may_be: pl.Expr, keys: Collection[str], verdict: Verdict, cause: Cause | None = None
) -> pl.DataFrame:
    """Return the keys with another verdict, and its cause as the hint, where they are among `keys` (hashes in hex) and
    their verdict may be turned (`may_be`)."""
    return _with_verdict(judged, may_be & pl.col("key_hash").is_in(list(keys)), verdict, cause) if keys else judged


def explained(judged: pl.DataFrame, may_be: pl.Expr, keys: pl.DataFrame, cause: Cause) -> pl.DataFrame:
    """Return the keys as undecidable for a cause where they are among `keys` (`HASHES`) and their verdict may be turned
    (`may_be`)."""
    named = keys.unique().with_columns(pl.lit(True).alias("_is_named"))
    marked = judged.join(named, on=HASH, how="left", maintain_order="left")
    is_one = pl.col("_is_named").fill_null(False) & may_be
    return _with_verdict(marked, is_one, Verdict.UNDECIDABLE, cause).drop("_is_named")


def _with_verdict(judged: pl.DataFrame, is_one: pl.Expr, verdict: Verdict, cause: Cause | None) -> pl.DataFrame:
    hint = pl.lit(None if cause is None else cause.value)
    return judged.with_columns(
        pl.when(is_one).then(hint).otherwise("hint").alias("hint"),
        pl.when(is_one).then(pl.lit(verdict.value)).otherwise("verdict").alias("verdict"),
    )
