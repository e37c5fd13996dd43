"""Read and write JSON with exact numbers: read as Decimal, written digit by digit. Nothing is ever a binary float."""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn


def loads(text: str | bytes) -> Any:
    """Return objects as dicts, arrays as lists, every number as a Decimal.

    Raises:
        ValueError: it is not JSON (NaN and Infinity are not), no memory would hold its depth, or a number in it is
            beyond every Decimal.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("too deep") from None
    except InvalidOperation:
        raise ValueError("a number of which no Decimal has the exponent") from None


def dumps(value: Any) -> str:
    """Return one line, compact, names in their given order; `1.50` is written as `1.50`.

    Raises:
        TypeError: a part of it is no JSON.
    """
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int() | Decimal():
            return str(value)
        case Mapping():
            return "{" + ",".join(f"{dumps(str(name))}:{dumps(inner)}" for name, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(dumps(inner) for inner in value) + "]"
        case _:
            raise TypeError(f"a {type(value).__name__} is no JSON")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
