"""Write the values of Arrow columns as texts, each type in one way, as PostgreSQL would write them."""

import polars as pl
import pyarrow as pa

from makewhole.compute.moments import day_text, moment_text
from makewhole.datasets.arrow_types import NestedColumn
from makewhole.datasets.column_types import is_bytes, is_uuid

_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, in microseconds since 1970."""
NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Numbers that JSON lacks, as Arrow and as SQL write them."""
_DAY_US = 86_400_000_000
MOST_MICROSECONDS = (1 << 63) - 1
"""The range of 64 bits: moments of coarser units reach further."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def scalar_texts(array: NestedColumn) -> pl.Series:
    """Return the texts of a column without parts; null stays null."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return scalar_texts(array.dictionary_decode())
    if is_uuid(kind):
        return _uuid_texts(array.storage)
    if pa.types.is_null(kind):
        return pl.Series([None] * len(array), dtype=pl.String)
    if pa.types.is_timestamp(kind):
        return _moment_texts(array)
    if pa.types.is_date(kind):
        return _day_texts(_series(array.cast(pa.date32()).view(pa.int32())))
    if pa.types.is_time(kind):
        clock = _as_strings(pl.from_arrow(array.cast(pa.time64("ns"))), "%H:%M:%S%.9f")
        return clock.str.strip_chars_end("0").str.strip_chars_end(".")
    if is_bytes(kind):
        return pl.Series(
            [None if value is None else "\\x" + value.hex() for value in array.to_pylist()], dtype=pl.String
        )
    if pa.types.is_decimal256(kind):  # of more digits than polars has
        wide = [None if value is None else format(value, "f") for value in array.to_pylist()]
        return pl.Series(wide, dtype=pl.String)
    if pa.types.is_decimal(kind):
        return _series(array).cast(pl.String)
    texts = _series(array.cast(pa.large_string()))
    return texts.replace(NOT_FINITE) if pa.types.is_floating(kind) else texts


def _series(array: NestedColumn) -> pl.Series:
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series


def _as_strings(series: object, form: str) -> pl.Series:
    assert isinstance(series, pl.Series)
    return series.dt.strftime(form)


def _uuid_texts(array: NestedColumn) -> pl.Series:
    digits = [None if value is None else value.hex() for value in array.to_pylist()]
    texts = [d and f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in digits]
    return pl.Series(texts, dtype=pl.String)


def _day_texts(days: pl.Series) -> pl.Series:
    """Return days as SQL writes them, those outside the years 1 to 9999, of which polars writes some, one by one."""
    first, last = _FIRST_US // _DAY_US, _LAST_US // _DAY_US
    is_dated = days.is_between(first, last, closed="left")
    frame = pl.DataFrame({"days": days, "is_dated": is_dated})
    texts = frame.select(pl.when("is_dated").then("days").cast(pl.Date).dt.strftime("%Y-%m-%d")).to_series()
    others = frame.filter(~pl.col("is_dated"))["days"].unique()
    if others.is_empty():
        return texts
    known = pl.DataFrame(
        {"days": others, "text": [day_text(day) for day in others]}, schema_overrides={"text": pl.String}
    )
    named = frame.join(known, on="days", how="left", maintain_order="left")["text"]
    return pl.DataFrame({"a": texts, "b": named}).select(pl.coalesce("a", "b")).to_series()


def _moment_texts(array: NestedColumn) -> pl.Series:
    """Return moments in ISO's form with a space; one outside the years 1 to 9999, that no date names, as a number."""
    kind = array.type
    numbers = _series(array.view(pa.int64()))
    unit = _PER_SECOND[kind.unit]
    seconds, rest = numbers // unit, numbers % unit
    first, last = _FIRST_US // 1_000_000, _LAST_US // 1_000_000
    is_dated = seconds.is_between(first, last, closed="left")
    dated = pl.DataFrame({"s": seconds, "d": is_dated}).select(pl.when("d").then("s")).to_series()
    texts = (dated * 1_000).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S")
    digits = len(str(unit)) - 1
    fraction = (
        ("." + rest.cast(pl.String).str.zfill(digits)) if digits else pl.Series([""]).new_from_index(0, len(rest))
    )
    frame = pl.DataFrame({"texts": texts + fraction, "numbers": numbers, "is_dated": is_dated})
    zone = "+00" if kind.tz is not None else ""
    undated = pl.format(f"{{}} {kind.unit} since 1970", "numbers")
    return frame.select(pl.when("is_dated").then(pl.col("texts") + zone).otherwise(undated)).to_series()


def microseconds(array: NestedColumn) -> pl.Series:
    """Return the moments of a column in microseconds since 1970 (a day's is its midnight); finer ones are cut off. One
    that has more microseconds than 64 bits hold is null, as an infinite one of PostgreSQL is."""
    kind = array.type
    if pa.types.is_null(kind):
        return pl.Series([None] * len(array), dtype=pl.Int64)
    if pa.types.is_dictionary(kind):
        return microseconds(array.dictionary_decode())
    if pa.types.is_date(kind):
        return _times(_series(array.cast(pa.date32()).view(pa.int32())).cast(pl.Int64), 86_400_000_000)
    numbers, unit = _series(array.view(pa.int64())), _PER_SECOND[kind.unit]
    return numbers // (unit // 1_000_000) if unit > 1_000_000 else _times(numbers, 1_000_000 // unit)


def _times(numbers: pl.Series, factor: int) -> pl.Series:
    """Return numbers that many times; null: 64 bits do not hold it."""
    if factor == 1:
        return numbers
    most = MOST_MICROSECONDS // factor
    is_held = pl.col("n").is_between(-most, most)
    return numbers.to_frame("n").select(pl.when(is_held).then(pl.col("n"))).to_series() * factor


def distant_moments(array: NestedColumn) -> pl.Series:
    """Return the texts of the moments that have more microseconds than 64 bits hold, in ISO 8601; null: all others."""
    kind = array.type
    units, zone = _PER_SECOND[kind.unit], "Z" if kind.tz is not None else ""
    numbers = _series(array.view(pa.int64()))
    distant = numbers.to_frame("n").select(pl.when(pl.Series(microseconds(array)).is_null()).then("n")).to_series()
    return pl.Series([None if n is None else moment_text(n, units, zone) for n in distant], dtype=pl.String)
