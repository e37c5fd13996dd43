"""Make the text of a business key, and its stable 128-bit hash."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import polars_hash as plh

from makewhole.compute.canonical import plain_text
from makewhole.native.arrays import Int64s
from makewhole.native.numbered_texts import numbered_texts

_HALF = 2**64


class KeyProblem(ValueError):  # noqa: N818 - the reason that a record is reported with
    """The reason why a record has no usable business key."""


def key_text(components: Sequence[str]) -> str:
    """Join the components of a key: one is its own text, several become a compact JSON array of strings."""
    if len(components) == 1:
        return components[0]
    return json.dumps(list(components), ensure_ascii=False, separators=(",", ":"))


def key_of_numbers(components: Sequence[Int64s]) -> pl.Series:
    """Return the text of each key of two or more numbers, one of each column, as `key_text` makes it."""
    between = ['","'] * (len(components) - 1)
    return numbered_texts(['["', *between, '"]'], components)


def component_text(value: Any) -> str:
    """Return a JSON value as a key component: strings unchanged, numbers by value (`1.0` is `1`), lower-case booleans.

    Raises:
        KeyProblem: null, an object, an array, an empty or unencodable text, NUL in a text, a number beyond measure.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        try:
            return plain_text(Decimal(value))
        except ValueError:
            raise KeyProblem("key is a number beyond measure") from None
    if not isinstance(value, str):
        raise KeyProblem("key is null" if value is None else "key is not a scalar")
    return _usable(value)


def _usable(text: str) -> str:
    if not text:
        raise KeyProblem("key is empty")
    if "\x00" in text:
        raise KeyProblem("key contains NUL, which no table can hold")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise KeyProblem("key is not valid Unicode (lone surrogate)") from None
    return text


def with_hash(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `key_hi` and `key_lo` (xxh3-128 of the UTF-8 text of `key`) to the frame."""
    return (
        frame.with_columns(plh.col("key").nchash.xxh3_128().alias("_hash"))
        .with_columns(
            (pl.col("_hash") // _HALF).cast(pl.UInt64).alias("key_hi"),
            (pl.col("_hash") % _HALF).cast(pl.UInt64).alias("key_lo"),
        )
        .drop("_hash")
    )


def hash_hex() -> pl.Expr:
    """Return column `key_hash`: `key_hi` and `key_lo` as 32 hexadecimal digits."""
    return pl.concat_str([_hex("key_hi"), _hex("key_lo")]).alias("key_hash")


def _hex(column: str) -> pl.Expr:
    return pl.col(column).map_batches(_to_hex, return_dtype=pl.String)


def _to_hex(series: pl.Series) -> pl.Series:
    """Format unsigned 64-bit integers as big-endian hex, from numpy's view of their bytes."""
    raw = series.to_numpy().astype(">u8").tobytes().hex()
    return pl.Series(series.name, [raw[at : at + 16] for at in range(0, len(raw), 16)], dtype=pl.String)


def key_hash(key: str) -> str:
    """Return the hash of one key as 32 hexadecimal digits, as findings store it."""
    frame = with_hash(pl.DataFrame({"key": [key]}, schema={"key": pl.String}))
    return str(frame.select(hash_hex()).item())


def hashes_of_hex() -> tuple[pl.Expr, pl.Expr]:
    """Return columns `key_hi` and `key_lo`, from `key_hash`."""
    digits = pl.col("key_hash").str
    return (
        digits.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64).alias("key_hi"),
        digits.slice(16).str.to_integer(base=16, dtype=pl.UInt64).alias("key_lo"),
    )


def split_hex(key_hash: str) -> tuple[int, int]:
    """Split a key hash of 32 hexadecimal digits into `key_hi` and `key_lo`."""
    return int(key_hash[:16], 16), int(key_hash[16:], 16)
