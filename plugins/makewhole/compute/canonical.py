"""Compared columns in their declared types, as canonical text: the same value gives the same text on every system.

The text of a table's column comes from PostgreSQL itself (`postgres/expressions.py`); the text of a JSON value from
here. Null stays null. A value that its declared type cannot hold keeps its own text behind `!`, so that it can only be
equal to itself.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import polars as pl
import polars_hash as plh

_WIDE = Context(prec=80)
_MOST_DIGITS = 1_000
_BEYOND_MICROSECONDS = re.compile(r"(?<=[.,]\d{6})\d+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


def decimal_scale(declared: str) -> int | None:
    """The scale of `decimal(p,s)`; None for any other type."""
    found = _DECIMAL.fullmatch(declared.strip().lower())
    return int(found[1]) if found else None


def canonical_text(value: Any, declared: str) -> str | None:
    """One decoded JSON value (numbers as int or Decimal) as canonical text of its declared type."""
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
        return lambda value: _decimal(value, scale)
    return _RENDERERS[declared.strip().lower()]


def _decimal(value: Any, scale: int) -> str:
    number = _number(value).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_WIDE)
    return format(abs(number) if number == 0 else number, "f")


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError("not a number")
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        raise ValueError("not finite")
    return number


def plain_text(number: Decimal) -> str:
    """A number by its value: no exponent, no zeros at the end of a fraction, zero without a sign.

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
    text = plain_text(_number(value))
    if "." in text:
        raise ValueError("not an integer")
    return text


def _double(value: Any) -> str:
    return float_text(float(_number(value)))


def float_text(value: float) -> str:
    """The shortest text that gives this double back; zero has no sign."""
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
    """Microseconds since 1970 in UTC; without an offset it is UTC; finer fractions are rounded as PostgreSQL does."""
    finer = _BEYOND_MICROSECONDS.search(value)
    moment = datetime.fromisoformat(_BEYOND_MICROSECONDS.sub("", value, count=1))
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    delta = moment - _EPOCH
    exact = Decimal((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)
    exact += Decimal(f"0.{finer[0]}") if finer else 0
    return str(int(exact.to_integral_value(rounding=ROUND_HALF_EVEN)))


def _date(value: Any) -> str:
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


_TELLING = 512
_LENGTHS = [pl.Series([f"{mark}{length}:" for length in range(_TELLING)] + [f"{mark}~"]) for mark in ("", ",")]


def with_row_hash(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Add `row_hash`: xxh3-64 over the canonical texts of the compared columns.

    Each has its length before it, and null is apart from empty: `2:UA,~,0:`.
    """
    if not columns:
        return frame.with_columns(pl.lit(0, dtype=pl.UInt64).alias("row_hash"))
    longest = frame.select(pl.max_horizontal(pl.col(name).str.len_bytes().max() for name in columns)).item()
    marked = _marked_by_table if (longest or 0) < _TELLING else _marked
    parts = [part for number, name in enumerate(columns) for part in marked(name, number > 0)]
    text = pl.concat_str(parts, ignore_nulls=True).alias("row_hash")
    return frame.with_columns(frame.select(text).select(plh.col("row_hash").nchash.xxh3_64()).to_series())


def _marked(name: str, is_later: bool) -> list[pl.Expr]:
    """Separator, length, text; `~` for null."""
    separator, column = "," if is_later else "", pl.col(name)
    length = pl.concat_str([pl.lit(separator), column.str.len_bytes().cast(pl.String), pl.lit(":")])
    return [length.fill_null(f"{separator}~"), column]


def _marked_by_table(name: str, is_later: bool) -> list[pl.Expr]:
    """The same for short texts: separator and length from a table, which is half the work."""
    column = pl.col(name)
    return [pl.lit(_LENGTHS[is_later]).gather(column.str.len_bytes().fill_null(_TELLING)), column]
