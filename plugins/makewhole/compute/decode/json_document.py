"""Parse one record value as a JSON object: the reference that the faster decoders must agree with."""

import json
import re
from decimal import Decimal
from typing import Any

from makewhole.compute.keys import KeyProblem
from makewhole.compute.numbers import number_of_json

DEEPEST = 200
_MOST_INT_DIGITS = 4_000
_PREFIX_BYTES = 5
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def parse_document(value: bytes | None, above: int = 0) -> Any:
    """Parse a value as a JSON object, numbers exact. `above`: how deep it stands in a value itself.

    Raises:
        KeyProblem: not an object, or not JSON at all.
    """
    if value is None:
        raise KeyProblem("value is null (a tombstone)")
    if value[:1] == b"\0" and value[_PREFIX_BYTES:].lstrip().startswith(b"{"):
        raise KeyProblem(
            "value is JSON behind the prefix of a schema registry (a zero byte and the number of a schema), as a "
            "serializer of JSON Schema writes it; write `value: json_schema` at the point"
        )
    document = parse_json(value, above)
    if not isinstance(document, dict):
        raise KeyProblem("value is not a JSON object")
    return document


def parse_json(value: bytes, above: int = 0) -> Any:
    """Parse a value as JSON, numbers exact. `above`: how deep it stands in a value itself.

    Raises:
        KeyProblem: it is none.
    """
    try:
        text = value.decode("utf-8" if above else "utf-8-sig")
        if is_too_deep(text, DEEPEST - above):
            raise KeyProblem(f"value is nested more than {DEEPEST} deep")
        # Python refuses to make an int of more than 4,300 digits.
        parse_int = Decimal if len(text) > _MOST_INT_DIGITS else None
        return json.loads(text, parse_float=number_of_json, parse_int=parse_int, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise KeyProblem("value is not valid UTF-8") from None
    except KeyProblem:
        raise
    except ValueError:
        raise KeyProblem("value is not JSON") from None


def is_too_deep(text: str, deepest: int) -> bool:
    """Decide by counting brackets: Python's recursion limit would depend on the depth of the caller."""
    if text.count("{") + text.count("[") <= deepest:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "{[" else -1
        if depth > deepest:
            return True
    return False


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
