"""Make keys of the coordinates of records: where they lie in a log, and how their producer numbered them."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.keys import KeyProblem, key_of_numbers
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
    numbers = [batch.column(COORDINATES[part]).to_numpy().astype(np.int64, copy=False) for part in key]
    keys = key_of_numbers(numbers).alias("key")
    if all(column.min(initial=0) >= 0 for column in numbers):
        return keys, pl.Series("problem", [None], dtype=pl.String).new_from_index(0, len(keys))
    is_numbered = pl.Series(np.logical_and.reduce([column >= 0 for column in numbers]))
    frame = pl.DataFrame({"key": keys}).select(
        pl.when(is_numbered).then("key").alias("key"),
        pl.when(~is_numbered).then(pl.lit(UNNUMBERED)).alias("problem"),
    )
    return frame["key"], frame["problem"]
