"""Read numbers exactly from JSON and from texts, and render them by their value."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

MOST_DIGITS = 1_000
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
# What `money` is in JSON where the server's language is English: $1,234.50.
SPACES = " \t\n\v\f\r"
"""Characters that may stand around a number or a boolean in a text that a filter reads."""
MOST_CHARACTERS = 1_000
FILTERED_NUMBER = r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?0*[0-9]{1,3})?"
DOLLARS = r"-?[$][0-9]{1,3}(,[0-9]{3})*[.][0-9]{2}"
"""Texts that are numbers to a filter, for Python and PostgreSQL alike."""
MOST_COUNT_DIGITS = 40
_COUNT = re.compile(rf"[+-]?[0-9]{{1,{MOST_COUNT_DIGITS}}}([.][0-9]{{1,{MOST_COUNT_DIGITS}}})?", re.ASCII)
_FILTERED = re.compile(f"{FILTERED_NUMBER}|{DOLLARS}")
_DOLLARS = re.compile(r"(-?)\$([0-9]{1,3}(,[0-9]{3})*\.[0-9]{2})")


def number_of_json(text: str) -> Decimal:
    """Return the number that JSON writes so; where no Decimal holds its exponent, infinity."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("Infinity")


def exact_number(value: Any) -> Decimal:
    """Return a JSON number, or a text that is one.

    Raises:
        TypeError, ValueError, decimal.InvalidOperation: it is none, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError("not a number")
    if isinstance(value, str) and "$" in value and (dollars := _DOLLARS.fullmatch(value)):
        value = dollars[1] + dollars[2].replace(",", "")
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        raise ValueError("not finite")
    return number


def filtered_number(value: Any) -> Decimal | str:
    """Return a JSON number, or a text that is one to a filter: exactly, or one of `NOT_FINITE`.

    Raises:
        TypeError, ValueError, decimal.InvalidOperation: it is none.
    """
    if isinstance(value, str):
        value = value.strip(SPACES)
        if value in NOT_FINITE:
            return str(value)
        if len(value) > MOST_CHARACTERS or not _FILTERED.fullmatch(value):
            raise ValueError("no number")
    return exact_number(value)


def is_count(text: str) -> bool:
    """Return whether a text is the number of a count: digits with or without a sign and a fraction."""
    return _COUNT.fullmatch(text) is not None


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
    if len(digits) + abs(exponent) > MOST_DIGITS:
        raise ValueError("too many digits")
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
