"""Test a value against a term of a hop's `where`, as PostgreSQL would.

Both are compared in the type of the column (`19.0` is `"19.00"` where a table has a number there), by what they are in
it and in PostgreSQL's order. Without a known type a JSON text is compared as text, a number by its value (never
rounded). The SQL of a table's column (`postgres/read/filter_expressions.py`) reads the same texts, no more and no
fewer.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from makewhole.compute.canonical import ARRAY, FLOATING, canonical_text, decimal_scale, is_own_text, moment_digits
from makewhole.compute.moments import ENDLESS, days_of, microseconds_of, rounded_microseconds
from makewhole.compute.numbers import SPACES, filtered_number
from makewhole.compute.placeholders import is_placeholder
from makewhole.config.hops.where import ORDERING, Literal, Operator, parse_where

TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y", "on", "1"), ("false", "f", "no", "n", "off", "0")

_ORDERED: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.GREATER: operator.gt,
    Operator.AT_LEAST: operator.ge,
}
_RANKS = {"-Infinity": -1, "Infinity": 1, "NaN": 2, "-infinity": -1, "infinity": 1}


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that its type cannot hold: it equals only itself, and stands in no order with any other."""

    text: str


FilterValue = tuple[int, Decimal | int] | bool | str | Unread
"""A number, a moment (microseconds) or a day as its rank among -Infinity, finite, Infinity and NaN with its size."""


@dataclass(frozen=True, kw_only=True)
class TypedTerm:
    """A term with its literals as values of the type `declared`. A null column passes `is null` alone.

    `is_of_column`: the type is that of the column; otherwise it is the literal's own. `texts` are the literals as
    canonical text.
    """

    column: str
    declared: str
    values: tuple[FilterValue, ...] = ()
    texts: tuple[str, ...] = ()
    operator: Operator = Operator.EQUAL
    is_of_column: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a decoded JSON value compares with the literals as the term says."""
        if self.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
            return is_null(value, self.declared) is (self.operator is Operator.IS_NULL)
        if value is None:
            return False
        if self.is_of_column or self.operator in ORDERING:
            return self.compares(filter_value(value, self.declared), is_any=_may_be_any(value))
        is_one = any(_equals(value, text) for text in self.texts)
        return is_one if self.operator in (Operator.EQUAL, Operator.IN) else not is_one and not _may_be_any(value)

    def compares(self, value: FilterValue | None, *, is_any: bool) -> bool:
        """Return whether a value of the type compares with the literals as the term says. `is_any`: it is a
        placeholder, and what it stands for may be what it is compared with."""
        if self.operator in ORDERING:
            return _is_ordered(value, self.values[0], _ORDERED[self.operator])
        is_one = value in self.values
        return is_one if self.operator in (Operator.EQUAL, Operator.IN) else not is_one and not is_any


def _is_ordered(
    value: FilterValue | None, other: FilterValue | None, compare: Callable[[FilterValue, FilterValue], bool]
) -> bool:
    return isinstance(value, tuple) and isinstance(other, tuple) and compare(value, other)


def _may_be_any(value: Any) -> bool:
    """Return whether a value is a placeholder."""
    return is_placeholder(value.rstrip(" ") if isinstance(value, str) else value)


def _equals(value: Any, text: str) -> bool:
    """Return whether a value equals a literal (canonical text), where nothing says a type."""
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | Decimal):
        try:
            return Decimal(text) == value
        except InvalidOperation:
            return False
    return isinstance(value, str) and value == text


def typed_term(
    column: str, *literals: Literal, declared: str | None = None, operator: Operator = Operator.EQUAL
) -> TypedTerm:
    """Return the term that compares a column with literals of a pipeline file; `declared` is the column's type."""
    kinds = [literal_type(literal) if declared is None else declared for literal in literals]
    return TypedTerm(
        column=column,
        declared=declared or (kinds[0] if kinds else "string"),
        values=tuple(value for value in map(filter_value, literals, kinds) if value is not None),
        texts=tuple(canonical_text(literal, kind) or "" for literal, kind in zip(literals, kinds, strict=True)),
        operator=operator,
        is_of_column=declared is not None,
    )


def literal_type(literal: Literal) -> str:
    """Return the type of a literal."""
    if isinstance(literal, bool):
        return "boolean"
    if isinstance(literal, str):
        return "string"
    if isinstance(literal, int):
        return "int"
    return f"decimal(38,{-int(literal.as_tuple().exponent)})"


def filter_terms(where: str | None, types: Mapping[str, str]) -> tuple[TypedTerm, ...]:
    """Return the terms of a hop's filter, none without one; `types` are those of columns, as far as known."""
    parts = parse_where(where) if where else ()
    return tuple(
        typed_term(part.column, *part.literals, declared=types.get(part.column), operator=part.operator)
        for part in parts
    )


def filter_value(value: Any, declared: str) -> FilterValue | None:
    """Return a decoded JSON value as a filter compares it in a type; None of null."""
    if value is None:
        return None
    try:
        return _read(value, declared)
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        return Unread(canonical_text(value, "string") or "")


def is_number(declared: str) -> bool:
    """Return whether values of a type are compared as numbers, exactly."""
    return declared in ("int", "bigint", *FLOATING) or decimal_scale(declared) is not None


def is_ordered(declared: str) -> bool:
    """Return whether both sides have one order of the values of a type."""
    return is_number(declared) or declared == "date" or moment_digits(declared) is not None


def is_null(value: Any, declared: str) -> bool:
    """Return whether a decoded JSON value is null in a type."""
    return value is None or (declared == "json" and canonical_text(value, declared) is None)


def _read(value: Any, declared: str) -> FilterValue:
    if is_number(declared):
        return _number(value)
    digits = moment_digits(declared)
    if digits is not None or declared == "date":
        if value in ENDLESS:
            return _RANKS[value], 0
        if not isinstance(value, str):
            raise TypeError("no moment")
        return 0, days_of(value) if digits is None else rounded_microseconds(microseconds_of(value), digits)
    if declared == "boolean":
        return _boolean(value)
    text = canonical_text(value, declared)
    is_read = not isinstance(value, dict | list) and not declared.endswith(ARRAY) and declared != "json"
    if text is None or not is_read or (text.startswith("!") and not is_own_text(declared)):
        raise ValueError("no value of the type")
    return text


def _number(value: Any) -> FilterValue:
    number = filtered_number(value)
    return (_RANKS[number], 0) if isinstance(number, str) else (0, number)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | int | str):
        raise TypeError("no boolean")
    word = str(value).strip(SPACES).lower()
    if word in TRUE_WORDS or word in FALSE_WORDS:
        return word in TRUE_WORDS
    raise ValueError("no boolean")
