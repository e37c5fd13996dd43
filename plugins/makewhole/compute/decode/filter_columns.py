"""Test many records against filters, by columns of canonical texts that are decoded beside the compared ones."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl

from makewhole.compute.canonical import FILTERED, moment_digits
from makewhole.compute.frames import empty_lists
from makewhole.compute.moments import ENDLESS
from makewhole.compute.placeholders import is_canonical_placeholder
from makewhole.compute.row_filter import FilterValue, TypedTerm, Unread, filter_value, is_number
from makewhole.config.hops.where import Operator

Filters = Mapping[str, Sequence[TypedTerm]]
"""Hop → the terms of its `where`."""
_PLAIN = ("string", "boolean", "date")
"""Types whose canonical texts say what filters ask, beside those of moments and of numbers that are not rounded."""
_COMPARED, _FILTERED = "c:", "f:"
_MOST_WHOLE = 2**63
_PADDING = re.compile(r" +('?)$")
_ORDERED: Mapping[Operator, Callable[[pl.Series, int], pl.Series]] = {
    Operator.LESS: pl.Series.__lt__,
    Operator.AT_MOST: pl.Series.__le__,
    Operator.GREATER: pl.Series.__gt__,
    Operator.AT_LEAST: pl.Series.__ge__,
}
_NULL_TESTS = {Operator.IS_NULL: True, Operator.IS_NOT_NULL: False}


def with_columns_of_filters(compare: Mapping[str, str], filters: Filters) -> dict[str, str] | None:
    """Return the columns to decode, by their names in a frame (`c:<name>`, and `f:<name>` of numbers that a filter
    compares, which are not rounded), with their types. None: the text of one would not say what a filter asks."""
    columns = {_column(name): declared for name, declared in compare.items()}
    for term in _terms(filters):
        column = _column_of(term)
        if is_number(term.declared):
            columns[column] = FILTERED
            is_same = is_number(compare.get(term.column, term.declared))
        else:
            known = columns.setdefault(column, term.declared)
            is_same = known == term.declared and _is_plain(known)
        if not is_same or not term.is_of_column or any(isinstance(value, Unread) for value in term.values):
            return None
    return columns


def name_of_column(column: str) -> str:
    """Return the name of a column by that in a frame."""
    return column[len(_COMPARED) :]


def _column(name: str) -> str:
    return f"{_COMPARED}{name}"


def _column_of(term: TypedTerm) -> str:
    return f"{_FILTERED}{term.column}" if is_number(term.declared) else _column(term.column)


def _is_plain(declared: str) -> bool:
    return declared in _PLAIN or moment_digits(declared) is not None


def excluded_by(frame: pl.DataFrame, filters: Filters) -> pl.Series:
    """Return the hops whose filter each record fails, as a list; `frame` has the columns of
    `with_columns_of_filters`."""
    failed = {hop: _failed(frame, terms) for hop, terms in filters.items() if terms}
    if not any(series.any() for series in failed.values()):
        return empty_lists(len(frame)).alias("excluded_by")
    names = [pl.when(series).then(pl.lit(hop)) for hop, series in failed.items()]
    return frame.select(pl.concat_list(names).list.drop_nulls().alias("excluded_by")).to_series()


def _terms(filters: Filters) -> Iterable[TypedTerm]:
    return (term for terms in filters.values() for term in terms)


def _failed(frame: pl.DataFrame, terms: Sequence[TypedTerm]) -> pl.Series:
    failed = pl.repeat(False, len(frame), dtype=pl.Boolean, eager=True)
    for term in terms:
        failed |= ~_holds(frame[_column_of(term)], term)
    return failed


def _holds(texts: pl.Series, term: TypedTerm) -> pl.Series:
    """Return whether a term holds for each canonical text, never null."""
    if term.operator in _NULL_TESTS:
        return texts.is_null() if _NULL_TESTS[term.operator] else texts.is_not_null()
    whole = _whole_numbers(term)
    if whole is None:
        return _hold_one_by_one(texts, term)
    numbers = texts.cast(pl.Int64, strict=False)
    held = _compared(numbers, term.operator, whole).fill_null(False)
    rest = texts.is_not_null() & numbers.is_null()
    return held.scatter(rest.arg_true(), _hold_one_by_one(texts.filter(rest), term)) if rest.any() else held


def _whole_numbers(term: TypedTerm) -> list[int] | None:
    """Return the literals of a term as integers of 64 bits; None: one is none, or is no number."""
    is_numeric = is_number(term.declared) or moment_digits(term.declared) is not None
    sizes = [value[1] for value in term.values if isinstance(value, tuple) and value[0] == 0]
    is_whole = all(size == int(size) and -_MOST_WHOLE < size < _MOST_WHOLE for size in sizes)
    return [int(size) for size in sizes] if is_numeric and is_whole and len(sizes) == len(term.values) else None


def _compared(numbers: pl.Series, operator: Operator, literals: list[int]) -> pl.Series:
    if operator in (Operator.EQUAL, Operator.IN):
        return numbers.is_in(literals)
    if operator in (Operator.UNEQUAL, Operator.NOT_IN):
        return ~numbers.is_in(literals)
    return _ORDERED[operator](numbers, literals[0])


def _hold_one_by_one(texts: pl.Series, term: TypedTerm) -> pl.Series:
    """Do as `_holds`, once for each text that there is."""
    known = texts.unique().drop_nulls()
    held = [term.compares(_value_of(text, term.declared), is_any=_may_be_any(text)) for text in known.to_list()]
    return texts.replace_strict(known, pl.Series(held, dtype=pl.Boolean), default=False, return_dtype=pl.Boolean)


def _may_be_any(text: str) -> bool:
    """Return whether a canonical text is that of a placeholder, or of one that is padded."""
    return is_canonical_placeholder(_PADDING.sub(r"\1", text))


def _value_of(text: str, declared: str) -> FilterValue | None:
    """Return the value of a canonical text."""
    is_moment = moment_digits(declared) is not None
    if text.startswith("!") and (is_moment or declared == "date"):
        return filter_value(text[1:], declared) if text[1:] in ENDLESS else Unread(text)
    return (0, int(text)) if is_moment else filter_value(text, declared)
