"""Read numbers exactly from JSON and from texts, and render them by their value."""

import re
from decimal import Decimal
from typing import Any

MOST_DIGITS = 1_000
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
# What `money` is in JSON where the server's language is English: $1,234.50.
_DOLLARS = re.compile(r"(-?)\$([0-9]{1,3}(,[0-9]{3})*\.[0-9]{2})")


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
