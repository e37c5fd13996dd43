"""Render decimals of Kafka Connect, base64 of big-endian two's complement, as canonical texts, many at once."""

import numpy as np
import polars as pl

from makewhole.compute.canonical import COUNT, FILTERED, decimal_scale, plain_texts
from makewhole.native.arrays import Int64s

_DIGITS = 38
_MOST_SCALE = 400  # the text of a number with more digits is none of every type
_MOST_BYTES = 7
"""The most bytes of an unscaled number that is surely one of 64 bits."""


def decimal_texts(raw: pl.Series, scale: int, declared: str) -> pl.Series | None:
    """Return decimals of so many places in a declared type of as many or more, or by their value as amounts are read
    (`bigint`); None: some are unusual, or rounded."""
    if declared in ("int", "bigint", COUNT, FILTERED):
        exact = decimal_texts(raw, scale, f"decimal({_DIGITS},{scale})")
        return None if exact is None else plain_texts(exact)
    places = decimal_scale(declared)
    if places is None or not 0 <= scale <= min(places, _MOST_SCALE):
        return None
    decoded = raw.str.decode("base64", strict=False)
    sizes = decoded.bin.size()
    if decoded.null_count() != raw.null_count() or not sizes.is_between(1, _MOST_BYTES).all():
        return None
    numbers = pl.Series("n", _unscaled(decoded.drop_nulls()))
    digits = numbers.abs().cast(pl.String).str.zfill(scale + 1)
    n, text = pl.col("n"), pl.col("digits")
    sign = pl.when(n < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    point = [pl.lit("."), text.str.tail(scale) if scale else pl.lit(""), pl.lit("0" * (places - scale))]
    parts = [sign, text.str.head(pl.lit(-scale)) if scale else text, *(point if places else [])]
    texts = pl.DataFrame([numbers, digits.alias("digits")]).select(pl.concat_str(parts)).to_series()
    if not raw.null_count():
        return texts
    present = raw.is_not_null().arg_true()
    return pl.repeat(None, len(raw), dtype=pl.String, eager=True).scatter(present, texts)


def _unscaled(decoded: pl.Series) -> Int64s:
    """Return the numbers of byte strings of 1 to 7 bytes."""
    sizes = decoded.bin.size().to_numpy().astype(np.int64)
    content = np.frombuffer(b"".join(decoded.to_list()), dtype=np.uint8)
    starts = np.cumsum(sizes) - sizes
    numbers = np.zeros(len(sizes), dtype=np.int64)
    for at in range(_MOST_BYTES):
        is_there = sizes > at
        numbers[is_there] = numbers[is_there] * 256 + content[starts[is_there] + at]
    is_negative = content[starts] >= 0x80
    numbers[is_negative] -= np.int64(1) << (8 * sizes[is_negative])
    return numbers
