"""Make keys of the coordinates of records: where they lie in a log, and how their producer numbered them."""

from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from makewhole.compute.keys import KeyProblem
from makewhole.model.points import COORDINATES

UNNUMBERED = "record has no sequence: its producer is not idempotent"
KeysAndProblems = tuple[pl.Series, pl.Series]
"""The key of each record, and why it has none: one of the two is null."""


def coordinate(part: str, coordinates: Mapping[str, int]) -> int:
    """Return a coordinate of a record, from those by the columns of the log.

    Raises:
        KeyProblem: its producer does not number its records.
    """
    number = coordinates[COORDINATES[part]]
    if number < 0:
        raise KeyProblem(UNNUMBERED)
    return number


def coordinate_keys(batch: pa.RecordBatch, key: Sequence[str]) -> KeysAndProblems:
    """Return the keys of records whose key has these parts, as `makewhole.compute.keys.key_text` makes them."""
    numbers = [pl.Series(part, pl.from_arrow(batch.column(COORDINATES[part])), dtype=pl.Int64) for part in key]
    frame = pl.DataFrame(numbers)
    texts = [part for name in key for part in (pl.lit(',"'), pl.col(name).cast(pl.String), pl.lit('"'))]
    is_numbered = pl.all_horizontal(pl.col(name) >= 0 for name in key)
    joined = pl.concat_str([pl.lit("["), pl.lit('"'), *texts[1:], pl.lit("]")])
    found = frame.select(
        pl.when(is_numbered).then(joined).alias("key"),
        pl.when(~is_numbered).then(pl.lit(UNNUMBERED)).alias("problem"),
    )
    return found["key"], found["problem"]
