"""Read numbers that count parts of a second, or days, since 1970 as moments and days, and count them back.

A number is a whole one, or has a fraction (`1700000000.25` seconds). What is none of these stays as it is.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import polars as pl

from makewhole.compute.canonical import moment_digits
from makewhole.compute.moments import (
    MICROSECOND_DIGITS,
    day_text,
    days_of,
    microseconds_of,
    moment_text,
    rounded_microseconds,
)
from makewhole.compute.numbers import is_count
from makewhole.compute.placeholders import is_placeholder
from makewhole.model.value_types import Unit

_MILLI = 3
_MOST_DIGITS = 25
_EXACT = Context(prec=100)
_FIRST_MICROSECOND, _PAST_MICROSECONDS = -62_135_596_800_000_000, 253_402_300_800_000_000  # of the years 1 to 9999
_FIRST_DAY, _PAST_DAYS = -719_162, 2_932_897
# What Debezium sends for PostgreSQL's infinities, seen with 3.2.0. No column can hold these days, nor what is this long
# before 1970; the other moment one could, in the year 294247, and Debezium sends the same for both.
_ENDLESS_MS = {9_223_372_036_825_200: "infinity", -9_223_372_036_832_400: "-infinity"}
_ENDLESS_DAYS = {-2_147_472_692: "infinity", -2_147_472_691: "-infinity"}


def whole_number(value: Any) -> int:
    """Return a decoded number as an integer.

    Raises:
        TypeError: it is none, or has a fraction.
    """
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS:
        value = int(value) if value == value.to_integral_value() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def counted_day(value: Any) -> str:
    """Return the day so many days after 1970-01-01."""
    days = whole_number(value)
    return _ENDLESS_DAYS.get(days) or day_text(days)


def counted_moment(digits: int, value: Any) -> str:
    """Return the moment so many units after 1970 in UTC, of which a second has `10 ** digits`."""
    count = whole_number(value)
    milliseconds, finer = divmod(count, 10 ** (digits - _MILLI)) if digits >= _MILLI else (count * 1000, 0)
    return (not finer and _ENDLESS_MS.get(milliseconds)) or moment_text(count, 10**digits, "Z")


def in_unit(unit: Unit, value: Any) -> Any:
    """Return a decoded value that counts in a unit as the text of its moment or day; a text of digits is its number.

    Null, a placeholder of the capture, a text that is a moment already, and what is no number stay as they are.
    """
    if value is None or is_placeholder(value):
        return value
    is_text = isinstance(value, str) and is_count(value)
    number = Decimal(value) if is_text or type(value) is int else value
    try:
        return counted_day(number) if unit.digits is None else _moment_of(unit.digits, number)
    except (TypeError, ValueError, ArithmeticError):
        return number if is_text else value


def _moment_of(digits: int, number: Any) -> str:
    if isinstance(number, Decimal) and number.is_finite() and number != number.to_integral_value():
        microseconds = number.scaleb(MICROSECOND_DIGITS - digits, _EXACT)
        return counted_moment(MICROSECOND_DIGITS, microseconds.to_integral_value(ROUND_HALF_EVEN, _EXACT))
    return counted_moment(digits, number)


def counted(unit: Unit, value: Any) -> Any:
    """Return the text of a moment or a day as the number that counts it in a unit, rounded to it as a column of so many
    digits rounds it. Numbers and null are such counts already.

    Raises:
        ValueError: it is none that can be counted.
    """
    if value is None or (isinstance(value, int | Decimal) and not isinstance(value, bool)):
        return value
    if not isinstance(value, str):
        raise ValueError("not a moment")
    if unit.digits is None:
        return days_of(value)
    digits = min(unit.digits, MICROSECOND_DIGITS)
    scale = Decimal(10) ** (unit.digits - MICROSECOND_DIGITS)
    return int(rounded_microseconds(microseconds_of(value), digits) * scale)


def usual_moments(raw: pl.Series, unit_digits: int, declared: str) -> pl.Series | None:
    """Return counts of moments in the years 1 to 9999 as canonical texts; None: there are others, or they would be
    rounded."""
    digits = moment_digits(declared)
    if digits is None or not unit_digits <= digits:
        return None
    unit = 10 ** (MICROSECOND_DIGITS - unit_digits)
    counts = raw.cast(pl.Int64, strict=False)
    usual = counts.is_between(_FIRST_MICROSECOND // unit, _PAST_MICROSECONDS // unit, closed="left")
    if counts.null_count() != raw.null_count() or not usual.all():
        return None
    moments: pl.Series = (counts * unit).cast(pl.String)
    return moments


def usual_days(raw: pl.Series) -> pl.Series | None:
    """Return counts of days in the years 1 to 9999 as canonical texts of dates; None: there are others."""
    counts = raw.cast(pl.Int64, strict=False)
    if counts.null_count() != raw.null_count() or not counts.is_between(_FIRST_DAY, _PAST_DAYS, closed="left").all():
        return None
    return counts.cast(pl.Int32).cast(pl.Date).cast(pl.String)
