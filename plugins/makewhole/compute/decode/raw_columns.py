"""Render a simple value of many records, as it stands in their bytes, as the texts that one field of JSON would give.

What is not usual is rendered value by value, each once: by the same functions as a single record.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import (
    COUNT,
    FILTERED,
    FLOATING,
    canonical_text,
    decimal_scale,
    float_texts,
    moment_digits,
    plain_texts,
)
from makewhole.compute.decode.same_layout import VERSION as VERSION_LEAF
from makewhole.compute.keys import KeyProblem, component_text
from makewhole.compute.moments import MICROSECOND_DIGITS
from makewhole.compute.numbers import MOST_COUNT_DIGITS, MOST_DIGITS
from makewhole.compute.versions import LEAST_INTEGER, MOMENTS, VERSION, version_number, versions_of_texts
from makewhole.native.arrays import Bools, Int32s, Int64s
from makewhole.native.byte_strings import Blobs, Content
from makewhole.native.plain_decimals import MOST_DIGITS as MOST_WHOLE_DIGITS
from makewhole.native.plain_decimals import fraction_sizes

_FIRST_DAY, _PAST_DAYS = -719_162, 2_932_897  # of the years 1 to 9999, since 1970
_DAY_SECONDS, _MICROSECONDS = 86_400, 10**6
_MOST_NUMBER_BYTES = 8
_DIGITS = 38
_FEW = 4_096
_BY_VALUE = ("int", "bigint", COUNT, FILTERED)
_MOST_FRACTION = (MOST_DIGITS - MOST_WHOLE_DIGITS) // 2  # zeros at its end count as digits twice, see `plain_text`


class Raw(Enum):
    """The kinds of the numbers and bytes of a column. `DECIMAL`: bytes of an unscaled number, `MOMENT`: units since
    1970, `DAY`: days since then. `OTHER_NUMBER`, `OTHER_BYTES`: what only the function of a single value knows."""

    INTEGER = "integer"
    BOOLEAN = "boolean"
    DOUBLE = "double"
    TEXT = "text"
    DECIMAL = "decimal"
    MOMENT = "moment"
    DAY = "day"
    OTHER_NUMBER = "other number"
    OTHER_BYTES = "other bytes"


_OF_BYTES = (Raw.TEXT, Raw.DECIMAL, Raw.OTHER_BYTES)


@dataclass(frozen=True, kw_only=True)
class RawKind:
    """The content of a column. `scale`: the digits behind the point of a decimal, or the units of a moment in a second.
    `json_value` returns a single one (int, or bytes) as the field of a JSON object."""

    raw: Raw
    json_value: Callable[[Any], Any]
    scale: int = 0


@dataclass(frozen=True, kw_only=True)
class RawColumn:
    """A value of many records: its number, or its bytes in the content; a length of -1 is null."""

    kind: RawKind
    content: Content
    numbers: Int64s
    starts: Int32s
    lengths: Int32s

    @property
    def is_valid(self) -> Bools:
        valid: Bools = self.lengths >= 0
        return valid

    def texts(self, declared: str) -> pl.Series:
        """Return the canonical texts of a declared type."""
        if declared in _BY_VALUE:
            quick = self._amounts(declared)
        else:
            quick = self._floats(declared) if declared in FLOATING else self._quick(declared)
        return quick if quick is not None else self._each(lambda value: canonical_text(value, declared), pl.String)

    def keys(self) -> pl.Series:
        """Return texts, and numbers as texts, for `canonical_keys`; null: no key of any type."""
        if self.kind.raw is Raw.INTEGER:
            return self._integers().cast(pl.String)
        if self.kind.raw is Raw.TEXT:
            texts = self._bytes_as_texts()
            is_usable = (texts != "") & ~texts.str.contains("\x00", literal=True)
            return texts if is_usable.all() else pl.select(pl.when(is_usable).then(texts)).to_series()
        return self._each(_key, pl.String)

    def versions(self) -> pl.Series:
        """Return the numbers of versions."""
        if self.kind.raw is Raw.INTEGER and not (self.numbers == LEAST_INTEGER).any():
            return self._integers().cast(VERSION)
        if self.kind.raw is Raw.TEXT:
            return versions_of_texts(self._bytes_as_texts())
        if self.kind.raw is Raw.MOMENT and (microseconds := self._microseconds()) is not None:
            moments = microseconds.cast(VERSION).to_frame("n").select(pl.col("n") + pl.lit(MOMENTS, dtype=VERSION))
            return moments.to_series().cast(VERSION)
        return self._each(version_number, VERSION)

    # The usual ones, many at once

    def _quick(self, declared: str) -> pl.Series | None:
        """Return the texts; None: each has to be looked at."""
        scale = decimal_scale(declared)
        match self.kind.raw:
            case Raw.INTEGER if declared == "string":
                return self._integers().cast(pl.String)
            case Raw.INTEGER if scale is not None:
                return self._integers().cast(pl.String) + ("." + "0" * scale if scale else "")
            case Raw.BOOLEAN if declared in ("string", "boolean"):
                words = pl.Series(["false", "true"]).gather(self.numbers)
                return self._where_valid(words)
            case Raw.TEXT if declared in ("string", "char"):
                texts = self._bytes_as_texts()
                return texts.str.strip_chars_end(" ") if declared == "char" else texts
            case Raw.TEXT if scale is not None:
                return self._decimal_texts(scale)
            case Raw.DECIMAL if scale is not None and scale >= self.kind.scale:
                return self._decimals(scale)
            case Raw.MOMENT if moment_digits(declared) == MICROSECOND_DIGITS:
                microseconds = self._microseconds()
                return None if microseconds is None else microseconds.cast(pl.String)
            case Raw.DAY if declared in ("string", "date") and self._is_between(_FIRST_DAY, _PAST_DAYS):
                return self._integers().cast(pl.Int32).cast(pl.Date).cast(pl.String)
        return None

    def _integers(self) -> pl.Series:
        return self._where_valid(pl.Series(self.numbers))

    def _where_valid(self, values: pl.Series) -> pl.Series:
        if self.is_valid.all():
            return values
        return pl.select(pl.when(pl.Series(self.is_valid)).then(values)).to_series()

    def _bytes_as_texts(self) -> pl.Series:
        views = Blobs(starts=self.starts, lengths=self.lengths).views(self.content, pa.string_view())
        return pl.Series(pl.from_arrow(views), dtype=pl.String)

    def _is_between(self, first: int, past: int) -> bool:
        numbers = self.numbers[self.is_valid]
        return bool(((numbers >= first) & (numbers < past)).all())

    def _microseconds(self) -> pl.Series | None:
        """Return moments in microseconds since 1970; None: one is finer, or in no year from 1 to 9999."""
        units = self.kind.scale
        seconds = (_FIRST_DAY * _DAY_SECONDS, _PAST_DAYS * _DAY_SECONDS)
        if units > _MICROSECONDS or not self._is_between(seconds[0] * units, seconds[1] * units):
            return None
        return self._where_valid(pl.Series(np.where(self.is_valid, self.numbers, 0) * (_MICROSECONDS // units)))

    def _decimals(self, scale: int) -> pl.Series | None:
        own = self.kind.scale
        most = min(_DIGITS, _DIGITS - len(str(LEAST_INTEGER)) + own)
        if own < 0 or scale > most or (self.lengths > _MOST_NUMBER_BYTES).any():
            return None
        words = np.empty((len(self.numbers), 2), dtype=np.int64)
        words[:, 0], words[:, 1] = self.numbers, self.numbers >> 63
        kind = pa.decimal128(_DIGITS, own)
        unscaled: Any = pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words.data)])
        decimals = pl.Series(pl.from_arrow(unscaled)).cast(pl.Decimal(_DIGITS, scale)).cast(pl.String)
        return self._where_valid(decimals)

    def _decimal_texts(self, scale: int) -> pl.Series | None:
        """Return texts that are numbers already, with zeros at the end of their fractions; None: one is not plain."""
        sizes = fraction_sizes(self.content.bytes, self.starts, self.lengths)
        if sizes is None or sizes.most > scale:
            return None
        texts = self._bytes_as_texts()
        if sizes.least >= scale:
            return texts
        parts = texts.str.split_exact(".", 1).struct.unnest()
        fraction = pl.col("field_1").fill_null("").str.pad_end(scale, "0")
        return parts.select(pl.col("field_0") + "." + fraction).to_series()

    def _amounts(self, declared: str) -> pl.Series | None:
        """Return numbers by their value, whatever their fraction is; None: each has to be looked at."""
        match self.kind.raw:
            case Raw.INTEGER:
                return self._integers().cast(pl.String)
            case Raw.TEXT:
                return self._amounts_of_texts(MOST_COUNT_DIGITS if declared == COUNT else _MOST_FRACTION)
            case Raw.DECIMAL:
                decimals = self._decimals(self.kind.scale)
                return None if decimals is None else plain_texts(decimals)
        return None

    def _floats(self, declared: str) -> pl.Series | None:
        """Return numbers as doubles; None: each has to be looked at."""
        if self.kind.raw is Raw.DOUBLE:
            texts = float_texts(pl.Series(self.numbers.view(np.float64)), declared)
            return None if texts is None else self._where_valid(texts)
        amounts = self._amounts("int")
        return None if amounts is None else float_texts(amounts.cast(pl.Float64), declared)

    def _amounts_of_texts(self, most_fraction: int) -> pl.Series | None:
        """Return texts that are numbers already, by their value; None: one is not plain."""
        sizes = fraction_sizes(self.content.bytes, self.starts, self.lengths)
        if sizes is None or sizes.most > most_fraction:
            return None
        texts = self._bytes_as_texts()
        return plain_texts(texts) if sizes.most else texts

    # One by one

    def _each(self, render: Callable[[Any], Any], kind: Any) -> pl.Series:
        """Render every value that there is once."""
        if self.kind.raw in _OF_BYTES:
            raw = pl.Series(pl.from_arrow(Blobs(starts=self.starts, lengths=self.lengths).column(self.content)))
        elif self._is_between(0, _FEW):
            return self._each_of_few(render, kind)
        else:
            raw = self._integers()
        known = raw.unique()
        rendered = [None if value is None else self._rendered(render, value) for value in known.to_list()]
        at = pl.DataFrame({"raw": known, "text": pl.Series(rendered, dtype=kind)})
        joined = raw.to_frame("raw").join(at, on="raw", how="left", nulls_equal=True, maintain_order="left")
        return joined["text"]

    def _each_of_few(self, render: Callable[[Any], Any], kind: Any) -> pl.Series:
        """Do as `_each` for small numbers, such as those of symbols: by a table."""
        numbers = np.where(self.is_valid, self.numbers, 0)
        there = np.flatnonzero(np.bincount(numbers, minlength=1)).tolist()
        table: list[Any] = [None] * (there[-1] + 1 if there else 1)
        for number in there:
            table[number] = self._rendered(render, number)
        return self._where_valid(pl.Series(table, dtype=kind).gather(numbers))

    def _rendered(self, render: Callable[[Any], Any], value: Any) -> Any:
        return render(self.kind.json_value(value))


def _key(value: Any) -> str | None:
    try:
        return component_text(value)
    except KeyProblem:
        return None


def rendered(column: RawColumn, name: str, declared: str) -> pl.Series:
    """Return a column as `ValueFormat.decode_together` has it by its name and its declared type."""
    if name == "key":
        return column.keys()
    return column.versions() if declared == VERSION_LEAF else column.texts(declared)


def with_keys(rows: Int64s, frame: pl.DataFrame) -> tuple[Int64s, pl.DataFrame]:
    """Return rows and their columns without those whose key is null, where keys are among the columns."""
    if "key" not in frame.columns or not frame["key"].null_count():
        return rows, frame
    has_key = frame["key"].is_not_null()
    return rows[has_key.to_numpy()], frame.filter(has_key)
