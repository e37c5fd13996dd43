"""Render compared columns as canonical text of their declared types: equal values give equal text on every system.

PostgreSQL itself renders a table's column (`postgres/read/expressions.py`); this module renders JSON values. Null stays
null. A value that its declared type cannot hold keeps its own text behind `!`, so that it can only equal itself.

JSON has no NaN and no infinity. The texts that PostgreSQL and its JSON write for them are these values.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isinf
from typing import Any

import polars as pl
import polars_hash as plh

from makewhole.native.arrays import UInt64s
from makewhole.native.text_hashes import TextViews, hash_rows

FEWEST_COMPILED = 4_096
"""Rows for which it pays to load what is compiled."""
_MOST_DIGITS = 1_000
_EXACT = Context(prec=_MOST_DIGITS + 100)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_ENDLESS = ("infinity", "-infinity")
_BEYOND_MICROSECONDS = re.compile(r"(?<=[.,]\d{6})\d+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


def decimal_scale(declared: str) -> int | None:
    """Return the scale of `decimal(p,s)`; None for any other type."""
    found = _DECIMAL.fullmatch(declared.strip().lower())
    return int(found[1]) if found else None


def canonical_text(value: Any, declared: str) -> str | None:
    """Render one decoded JSON value (numbers as int or Decimal) as canonical text of its declared type."""
    if value is None:
        return None
    try:
        text = _renderer(declared)(value)
        text.encode()
        return text
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        return "!" + ascii(value)


def _renderer(declared: str) -> Callable[[Any], str]:
    scale = decimal_scale(declared)
    if scale is not None:
        return lambda value: _as_not_finite(value) or _decimal(value, scale)
    return _RENDERERS[declared.strip().lower()]


def _as_not_finite(value: Any) -> str | None:
    return value if isinstance(value, str) and value in _NOT_FINITE else None


def _decimal(value: Any, scale: int) -> str:
    exact = _number(value)
    if exact and exact.adjusted() > _MOST_DIGITS:
        raise ValueError("too many digits")
    number = exact.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_EXACT)
    return format(abs(number) if number == 0 else number, "f")


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError("not a number")
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        raise ValueError("not finite")
    return number


def plain_text(number: Decimal) -> str:
    """Render a number by its value: no exponent, no zeros at the end of a fraction, zero without a sign.

    Raises:
        ValueError: it would have over 1,000 digits (`1e999999999` would fill the memory), or is not finite.
    """
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("not finite")
    if not number:
        return "0"
    if len(digits) + abs(exponent) > _MOST_DIGITS:
        raise ValueError("too many digits")
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _integer(value: Any) -> str:
    if (text := _as_not_finite(value)) is not None:
        return text
    text = plain_text(_number(value))
    if "." in text:
        raise ValueError("not an integer")
    return text


def _double(value: Any) -> str:
    if (text := _as_not_finite(value)) is not None:
        return float_text(float(text))
    number = float(_number(value))
    if isinf(number):
        raise OverflowError("no double is so large")
    return float_text(number)


def float_text(value: float) -> str:
    """Return the shortest text that parses to this double; zero has no sign."""
    return repr(value + 0.0 if value else 0.0)


def _boolean(value: Any) -> str:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError("not a boolean")
    return text


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | Decimal):
        return str(value)
    raise TypeError("not a string")


def _timestamp(value: Any) -> str:
    """Render microseconds since 1970 in UTC: no offset means UTC, finer fractions are rounded as PostgreSQL does."""
    if value in _ENDLESS:
        return f"!{value}"
    finer = _BEYOND_MICROSECONDS.search(value)
    moment = datetime.fromisoformat(_BEYOND_MICROSECONDS.sub("", value, count=1))
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    delta = moment - _EPOCH
    exact = Decimal((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)
    exact += Decimal(f"0.{finer[0]}") if finer else 0
    return str(int(exact.to_integral_value(rounding=ROUND_HALF_EVEN)))


def _date(value: Any) -> str:
    if value in _ENDLESS:
        return f"!{value}"
    return date.fromisoformat(value).isoformat()


_RENDERERS: dict[str, Callable[[Any], str]] = {
    "string": _string,
    "int": _integer,
    "bigint": _integer,
    "double": _double,
    "boolean": _boolean,
    "timestamp": _timestamp,
    "date": _date,
}


_TABLED = 512  # texts shorter than this get their length prefix from a table
_PREFIXES = [pl.Series([f"{mark}{length}:" for length in range(_TABLED)] + [f"{mark}~"]) for mark in ("", ",")]


def with_row_hash(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Add `row_hash`: xxh3-64 over the canonical texts of the compared columns.

    Each text is preceded by its length in bytes, which tells null from empty: `2:UA,~,0:`.
    """
    if not columns:
        return frame.with_columns(pl.lit(0, dtype=pl.UInt64).alias("row_hash"))
    hashes = _hash_many(frame, columns) if len(frame) >= FEWEST_COMPILED else None
    if hashes is not None:
        return frame.with_columns(pl.Series("row_hash", hashes))
    longest = frame.select(pl.max_horizontal(pl.col(name).str.len_bytes().max() for name in columns)).item()
    prefixed = _prefixed_by_table if (longest or 0) < _TABLED else _prefixed
    parts = [part for number, name in enumerate(columns) for part in prefixed(name, number > 0)]
    text = pl.concat_str(parts, ignore_nulls=True).alias("row_hash")
    return frame.with_columns(frame.select(text).select(plh.col("row_hash").nchash.xxh3_64()).to_series())


def _hash_many(frame: pl.DataFrame, columns: Sequence[str]) -> UInt64s | None:
    """Return the hash of each row; None where a row is long."""
    found = [TextViews.of(frame[name].to_arrow(compat_level=pl.CompatLevel.newest())) for name in columns]
    views = [one for one in found if one is not None]
    return hash_rows(views) if len(views) == len(found) else None


def _prefixed(name: str, is_later: bool) -> list[pl.Expr]:
    """Return separator and length, then text; `~` for null."""
    separator, column = "," if is_later else "", pl.col(name)
    length = pl.concat_str([pl.lit(separator), column.str.len_bytes().cast(pl.String), pl.lit(":")])
    return [length.fill_null(f"{separator}~"), column]


def _prefixed_by_table(name: str, is_later: bool) -> list[pl.Expr]:
    """Do as `_prefixed` for short texts, with separator and length from a table: half the work."""
    column = pl.col(name)
    return [pl.lit(_PREFIXES[is_later]).gather(column.str.len_bytes().fill_null(_TABLED)), column]
