"""Parse the `where` of a hop: comparisons of columns with literals, joined by `and`, which the snapshot can apply."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from makewhole.config.values import UnfitError, shown

Literal = str | int | bool | Decimal


class Operator(StrEnum):
    """The comparison of a term."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


ORDERING = (Operator.LESS, Operator.AT_MOST, Operator.GREATER, Operator.AT_LEAST)
"""The operators that need an order of values."""

_LONGEST_NUMBER = 1_000
_TERMS = (
    "Write terms joined by `and`: `column = literal`, also with !=, <, <=, > or >=; `column in (literal, literal)` or "
    "`not in`; `column is null` or `is not null`. A literal is a number, true, false or 'text in single quotes'"
)
_NO_OR = (
    "There is no `or`, and there are no parentheses but around the literals of `in`. Several values of one column are "
    "`column in (literal, literal)`; "
)
_COLUMN = re.compile(r"\s*(?P<column>[A-Za-z_][A-Za-z0-9_]{0,62})")
_OPERATOR = re.compile(
    r"\s*(?P<sign>!=|<>|<=|>=|=|<|>)\s* | \s+(?P<null>is\s+(?:not\s+)?null)\b\s* | \s+(?P<list>(?:not\s+)?in)\s*(?=\()",
    re.VERBOSE | re.IGNORECASE,
)
_LITERAL = re.compile(
    r"\s*(?:'(?P<text>(?:[^']|'')*)' | (?P<boolean>true|false)\b | (?P<number>-?[0-9]+(?:\.[0-9]+)?)(?![\w.]))\s*",
    re.VERBOSE,
)
_AND = re.compile(r"and\b", re.IGNORECASE)
_OR = re.compile(r"or\b|\(", re.IGNORECASE)
_NULL = re.compile(r"\s*null\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class WhereTerm:
    """The condition that `column` compares with `literals` as the operator says: one literal of a comparison, several
    of `in` and `not in`, none of a test for null. A null column passes `is null` alone."""

    column: str
    literals: tuple[Literal, ...]
    operator: Operator = Operator.EQUAL


def parse_where(text: str) -> tuple[WhereTerm, ...]:
    """Return the terms of a condition, all of which must hold.

    Raises:
        UnfitError: the text is anything but terms joined by `and`.
    """
    terms: list[WhereTerm] = []
    place = 0
    while True:
        term, place = _term(text, place)
        terms.append(term)
        if place == len(text):
            return tuple(terms)
        joint = _AND.match(text, place)
        if joint is None:
            raise _unfit(text, place)
        place = joint.end()


def where(text: str) -> str:
    """Check that a text is a condition, and return it."""
    parse_where(text)
    return text


def ordered_texts(text: str, compared: Mapping[str, str]) -> list[str]:
    """Return the columns of a condition that it puts in an order with a text, and whose declared type (`compared`) has
    no order.

    Raises:
        UnfitError: it is no condition.
    """
    ordering = [term for term in parse_where(text) if term.operator in ORDERING and isinstance(term.literals[0], str)]
    unordered = ("string", "json", "boolean")
    return list(dict.fromkeys(term.column for term in ordering if compared.get(term.column, "string") in unordered))


def _term(text: str, place: int) -> tuple[WhereTerm, int]:
    """Return the term that begins at a place, and where it ends."""
    column = _COLUMN.match(text, place)
    sign = None if column is None else _OPERATOR.match(text, column.end())
    if column is None or sign is None:
        raise _unfit(text, place)
    operator = _operator(sign)
    if sign["null"]:
        return WhereTerm(column=column["column"], literals=(), operator=operator), sign.end()
    if sign["list"]:
        literals, end = _listed(text, place, sign.end())
    else:
        if _NULL.match(text, sign.end()):
            raise _compared_with_null(text, operator)
        literals, end = _one(text, place, sign.end())
    if operator in ORDERING and isinstance(literals[0], bool):
        found = f"{shown(text)} asks whether {column['column']} is {operator} a boolean, and booleans have no order"
        raise UnfitError(found, f"Write `{column['column']} = true` or `= false`")
    return WhereTerm(column=column["column"], literals=literals, operator=operator), end


def _operator(sign: re.Match[str]) -> Operator:
    word = " ".join((sign["sign"] or sign["null"] or sign["list"]).lower().split())
    return Operator.UNEQUAL if word == "<>" else Operator(word)


def _one(text: str, begin: int, place: int) -> tuple[tuple[Literal, ...], int]:
    match = _LITERAL.match(text, place)
    if match is None:
        raise _unfit(text, begin)
    return (_literal(match),), match.end()


def _listed(text: str, begin: int, place: int) -> tuple[tuple[Literal, ...], int]:
    """Return the literals between the parenthesis at a place and its end, and the place behind them."""
    literals: list[Literal] = []
    while not literals or text[place : place + 1] == ",":
        (literal,), place = _one(text, begin, place + 1)
        literals.append(literal)
    if text[place : place + 1] != ")":
        raise _unfit(text, begin)
    if len({_nature(literal) for literal in literals}) > 1:
        found = f"{shown(text)} compares one column with literals of several types"
        raise UnfitError(found, "Write all literals of a list as numbers, or all as 'texts', or true and false")
    return tuple(literals), len(text) - len(text[place + 1 :].lstrip())


def _nature(literal: Literal) -> type:
    return int if isinstance(literal, Decimal) else type(literal)


def _literal(match: re.Match[str]) -> Literal:
    if match["text"] is not None:
        return match["text"].replace("''", "'")
    if match["boolean"] is not None:
        return match["boolean"] == "true"
    if len(match["number"]) > _LONGEST_NUMBER:
        raise UnfitError(
            f"{shown(match['number'])} is too long", f"Write numbers of at most {_LONGEST_NUMBER} characters"
        )
    return Decimal(match["number"]) if "." in match["number"] else int(match["number"])


def _compared_with_null(text: str, operator: Operator) -> UnfitError:
    is_test = operator in (Operator.EQUAL, Operator.UNEQUAL)
    test = Operator.IS_NULL if operator is Operator.EQUAL else Operator.IS_NOT_NULL
    remedy = f"Write `column {test}`" if is_test else _TERMS
    return UnfitError(f"{shown(text)} compares a column with null, which no value passes", remedy)


def _unfit(text: str, place: int) -> UnfitError:
    rest = text[place:].strip()
    hint = _NO_OR + _TERMS[0].lower() + _TERMS[1:] if _OR.match(rest) else _TERMS
    return UnfitError(
        f"{shown(text)} is not a condition: it stops making sense at {shown(rest) if rest else 'its end'}", hint
    )
