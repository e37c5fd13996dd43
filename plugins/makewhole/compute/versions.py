"""Read versions by one rule on every side: integers, decimals, timestamps and dates, as numbers that order them.

A number is itself, with up to nine digits after the point. A moment is `MOMENTS` and its microseconds since 1970 in
UTC, a date the moment of its midnight: far above every number, so that the two are kept apart and never ordered. What
is none of these is `UNREADABLE`, above all: the latest version of such a key is not known. No version at all is null.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import polars as pl

from makewhole.compute.canonical import canonical_text, moment_digits, plain_text

DIGITS, SCALE = 38, 9
VERSION = pl.Decimal(DIGITS, SCALE)
MOMENTS = Decimal(10) ** 24
UNREADABLE = Decimal(9) * 10**24
BEFORE_ALL = -UNREADABLE
NO_VERSION = "no version"
"""A text that stands for a value which is no version."""

LEAST_INTEGER = -(2**63)
"""The one integer of 64 bits that is no version."""
_LEAST_MOMENT = MOMENTS / 2
_MOST = Decimal(2) ** 63  # of a number, and of a moment in microseconds
_REST_OF_MOMENT, _REST_OF_UNREADABLE = 2_000_000_000, 2_000_000_001  # a fraction has fewer billionths
_EXACT = Context(prec=60)
_STEP = Decimal(1).scaleb(-SCALE)
_NUMBER = re.compile(r"[+-]?\d{1,60}(\.\d{0,60})?([eE][+-]?\d{1,3})?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_OF_DAY = Decimal(86_400_000_000)
_MOMENT_TYPE = re.compile(r"timestamp(?:\((\d)\))? with(?:out)? time zone", re.ASCII)
_NUMERIC_TYPE = re.compile(r"numeric\(\d+,(-?\d+)\)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def version_number(raw: Any) -> Decimal | None:
    """Return the number of a version as a record has it: decoded JSON with exact numbers, or the text of a header."""
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, int | Decimal | str):
        return UNREADABLE
    if isinstance(raw, str) and not _NUMBER.fullmatch(raw.strip()):
        return _moment(raw.strip())
    return _number(Decimal(raw))


def version_of_canonical(text: str | None, declared: str) -> Decimal | None:
    """Return the number of a version by the canonical text of a column in its declared type."""
    if moment_digits(declared) is not None and text is not None and not text.startswith("!"):
        return MOMENTS + int(text) if abs(int(text)) < _MOST else UNREADABLE
    return version_number(text)


def versions_of_texts(texts: pl.Series) -> pl.Series:
    """Return the numbers of versions (`VERSION`) that are written as texts, of which most are plain integers."""
    integers = texts.cast(pl.Int64, strict=False)
    if (integers == LEAST_INTEGER).any():
        integers = integers.replace(LEAST_INTEGER, None)
    numbers = integers.cast(VERSION).alias(texts.name)
    if integers.null_count() == texts.null_count():
        return numbers
    others = texts.filter(integers.is_null() & texts.is_not_null()).unique()
    known = pl.Series([version_number(text) for text in others], dtype=VERSION)
    replaced = texts.replace_strict(others, known, default=None, return_dtype=VERSION)
    return pl.select(pl.coalesce(numbers, replaced).alias(texts.name)).to_series()


def versions_of_table(texts: pl.Series) -> pl.Series:
    """Return the numbers of versions (`VERSION`) as a table's column is selected: of a moment `t` and its microseconds
    since 1970."""
    if not texts.str.starts_with("t").any():
        return versions_of_texts(texts)
    moments = texts.str.strip_prefix("t").cast(pl.Int64, strict=False).cast(VERSION) + pl.lit(MOMENTS, dtype=VERSION)
    unreadable = pl.lit(UNREADABLE, dtype=VERSION)
    versions = pl.when(moments.is_null() & texts.is_not_null()).then(unreadable).otherwise(moments)
    return pl.select(versions.alias(texts.name)).to_series()


def version_unit(column_type: str) -> Decimal:
    """Return how far apart two versions in a column of a type (with its modifier) are at least, as their numbers are.

    A version with more digits than its column has is rounded there, or cut off.
    """
    if column_type == "date":
        return _MICROSECONDS_OF_DAY
    if (match := _MOMENT_TYPE.fullmatch(column_type)) is not None:
        return Decimal(1).scaleb(6 - int(match[1] or 6))
    if (match := _NUMERIC_TYPE.fullmatch(column_type)) is not None:
        return max(Decimal(1).scaleb(-int(match[1])), _STEP)
    return Decimal(1) if column_type in ("smallint", "integer", "bigint") else Decimal(0)


def are_one_version(version: Decimal | None, other: Decimal | None, unit: Decimal) -> bool:
    """Return whether two versions are less than `unit` apart, so that a column may hold one for the other."""
    return version is not None and other is not None and abs(version - other) < unit


def is_multiple(number: Decimal, unit: Decimal) -> bool:
    """Return whether a column whose versions are `unit` apart (0: anything) holds this one as it is."""
    counted = number - MOMENTS if number >= _LEAST_MOMENT else number
    return unit == 0 or counted % unit == 0


def is_surely_below(column: str, other: str, unit: str) -> pl.Expr:
    """Return whether the version in a column is a lower one than that in another, by what the third column holds or
    more: versions that are less apart may be one."""
    return (pl.col(column) < pl.col(other)) & (pl.col(column) + pl.col(unit) <= pl.col(other))


def shown_version(number: Decimal | None) -> int | str | None:
    """Return a version as people know it: an integer, the text of a decimal or of a moment."""
    if number is None or number == UNREADABLE:
        return None if number is None else NO_VERSION
    if number >= _LEAST_MOMENT:
        microseconds = int(number - MOMENTS)
        try:
            return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
        except OverflowError:
            return f"{microseconds} µs since 1970"
    return int(number) if number == number.to_integral_value() else plain_text(number)


def are_ordered(numbers: Iterable[Decimal | None]) -> bool:
    """Return whether all of these are versions, and of one kind: numbers, or moments."""
    known = list(numbers)
    kinds = {None if number is None or number == UNREADABLE else number >= _LEAST_MOMENT for number in known}
    return None not in kinds and len(kinds) < 2


def is_later_version(version: Decimal | None, other: Decimal | None, unit: Decimal = Decimal(0)) -> bool:
    """Return whether a version surely is a later one than another, which a column holds whose versions are `unit`
    apart."""
    if version is None or other is None or not are_ordered((version, other)):
        return False
    return version > other and version >= other + unit


def split_versions(numbers: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return versions as two columns for files: 64 bits, and what is left (`int32`): the billionths of a number, or a
    mark of what it is. They are smaller than the number of 128 bits, where they vary."""
    whole, rest, size = numbers.name, f"{numbers.name}_rest", len(numbers)
    if numbers.null_count() == size:
        nothing = pl.repeat(None, size, dtype=pl.Int64, eager=True)
        return nothing.alias(whole), nothing.cast(pl.Int32).alias(rest)
    version, base = pl.col(whole), pl.lit(MOMENTS, dtype=VERSION)
    of_moment = is_moment(whole) & ~is_unreadable(whole)
    number = pl.when(is_unreadable(whole)).then(None).when(of_moment).then(version - base).otherwise(version)
    split = numbers.to_frame(whole).select(
        number.cast(pl.Int64).alias("whole"),
        number.alias("number"),
        pl.when(is_unreadable(whole)).then(_REST_OF_UNREADABLE).when(of_moment).then(_REST_OF_MOMENT).alias("mark"),
    )
    fraction = ((pl.col("number") - pl.col("whole").cast(VERSION)).cast(pl.Float64) * 10**SCALE).round()
    parts = split.select("whole", pl.coalesce(pl.col("mark"), fraction.cast(pl.Int32)).cast(pl.Int32).alias(rest))
    return parts["whole"].alias(whole), parts[rest]


def joined_versions(whole: str, rest: str) -> pl.Expr:
    """Return the numbers of versions that `split_versions` divided."""
    number, mark = pl.col(whole).cast(VERSION), pl.col(rest)
    fraction = (mark.cast(pl.Float64) / 10**SCALE).cast(VERSION)
    return (
        pl.when(mark == _REST_OF_UNREADABLE)
        .then(pl.lit(UNREADABLE, dtype=VERSION))
        .when(mark == _REST_OF_MOMENT)
        .then(number + pl.lit(MOMENTS, dtype=VERSION))
        .when(mark != 0)
        .then(number + fraction)
        .otherwise(number)
        .alias(whole)
    )


def in_64_bits(numbers: pl.Series) -> pl.Series:
    """Return numbers of 64 bits that have the order of these versions, which are of one kind; null where there is none.
    Integers and moments need not be sorted for it."""
    if numbers.null_count() == len(numbers):
        return numbers.cast(pl.Int64)
    name = numbers.name
    has_moments = numbers.to_frame().select(is_moment(name).any()).item()
    base = pl.lit(MOMENTS if has_moments else 0, dtype=VERSION)
    split = numbers.to_frame().with_columns((pl.col(name) - base).cast(pl.Int64, strict=False).alias("whole"))
    is_whole = (pl.col("whole").cast(VERSION) + base).eq_missing(pl.col(name)).all()
    return split["whole"] if split.select(is_whole).item() else numbers.rank("dense").cast(pl.Int64)


def version_in_order() -> pl.Expr:
    """Return column `version` with what has none before all others."""
    return pl.col("version").fill_null(pl.lit(BEFORE_ALL, dtype=VERSION))


def ends_versions() -> pl.Expr:
    """Return whether a copy is a tombstone without a version, which ends the versions before it."""
    return pl.col("is_tombstone").fill_null(False) & pl.col("version").is_null()


def ends_versions_in(copies: pl.DataFrame) -> pl.Expr:
    """Return which of these copies end the versions before them: what they say of it, as far as they do
    (`ends_earlier`), or that they are such a tombstone. Rows of a table are none."""
    is_end = ends_versions() if "is_tombstone" in copies.columns else pl.lit(False)
    return pl.coalesce("ends_earlier", is_end) if "ends_earlier" in copies.columns else is_end


def is_moment(name: str = "version") -> pl.Expr:
    """Return whether the version in a column is a moment; null where there is none."""
    return pl.col(name) >= pl.lit(_LEAST_MOMENT, dtype=VERSION)


def is_unreadable(name: str = "version") -> pl.Expr:
    """Return whether what stands in a column is no version."""
    return (pl.col(name) == pl.lit(UNREADABLE, dtype=VERSION)).fill_null(False)


def _number(number: Decimal) -> Decimal:
    if not number.is_finite() or number.copy_abs() >= _MOST:
        return UNREADABLE
    rounded = number.quantize(_STEP, context=_EXACT)
    return rounded if rounded == number else UNREADABLE


def _moment(text: str) -> Decimal:
    """Return the number of a moment or a date; those without an offset are in UTC."""
    moment = f"{text}T00:00:00" if _DATE.fullmatch(text) else text
    microseconds = canonical_text(moment, "timestamp") or "!"
    if microseconds.startswith("!") or len(text) < len("2000-01-01"):
        return UNREADABLE
    since_epoch = int(microseconds)
    return MOMENTS + since_epoch if abs(since_epoch) < _MOST else UNREADABLE  # the last years that PostgreSQL knows
