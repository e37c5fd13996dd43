"""Decode keys of several parts many at once: each part as a key of its own, which any format can, and join their texts.

What is unusual in any part (it is not there, no value of its type, or a text that JSON escapes) is left to the reading
of one record.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.value_format import DecodedParts, ValueFormat, WantedLeaf
from makewhole.compute.key_values import canonical_keys
from makewhole.model.points import KeyType
from makewhole.native.arrays import Bools, Int64s

_ESCAPED = r'["\\\x00-\x1f]'


def decode_key_parts(
    batch: pa.RecordBatch,
    form: ValueFormat,
    columns: Mapping[str, WantedLeaf],
    parts: Sequence[tuple[WantedLeaf, KeyType]],
) -> DecodedParts:
    """Decode the columns of a batch with `key`, the canonical text of a key of these parts (two at least)."""
    (first, _), *others = parts
    frames, left = form.decode_together(batch, {"key": first, **columns})
    decoded = [frames, *(form.decode_together(batch, {"key": leaf})[0] for leaf, _ in others)]
    kinds = [kind for _, kind in parts]
    texts = [_column(batch.num_rows, part, kind) for part, kind in zip(decoded, kinds, strict=True)]
    is_usual = np.logical_and.reduce([text.is_not_null().to_numpy() for text in texts])
    joined = pl.select(pl.concat_str(*_joined(texts))).to_series()
    kept, lefts = [], [left]
    for rows, frame in frames:
        usual: Bools = is_usual[rows]
        kept.append((rows[usual], frame.filter(usual).with_columns(joined.gather(rows[usual]).alias("key"))))
        lefts.append(rows[~usual])
    return kept, np.concatenate(lefts)


def _column(count: int, frames: Sequence[tuple[Int64s, pl.DataFrame]], kind: KeyType) -> pl.Series:
    """Return the canonical texts of a part of so many records; null where it is unusual."""
    if not any(len(rows) for rows, _ in frames):
        return pl.repeat(None, count, dtype=pl.String, eager=True)
    rows = np.concatenate([rows for rows, _ in frames])
    texts, _ = canonical_keys(pl.concat([frame["key"] for _, frame in frames]), kind)
    at = np.full(count, -1, dtype=np.int64)
    at[rows] = np.arange(len(rows))
    whole = pl.Series(at).replace({-1: None})
    placed = (
        texts.gather(whole.fill_null(0)).alias("text").to_frame().with_columns(whole.is_not_null().alias("is_there"))
    )
    is_usual = pl.col("is_there") & ~pl.col("text").str.contains(_ESCAPED)
    return placed.select(pl.when(is_usual).then("text")).to_series()


def _joined(texts: Sequence[pl.Series]) -> Iterable[pl.Expr]:
    """Return what a compact JSON array of these texts is made of."""
    for number, text in enumerate(texts):
        yield pl.lit('","' if number else '["')
        yield pl.lit(text)
    yield pl.lit('"]')
