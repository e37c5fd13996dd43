"""Render JSON and arrays as canonical text, whether they come as JSON or as PostgreSQL writes their columns.

JSON is written as `jsonb` writes it, but numbers by their value. A text that holds JSON is that JSON: Debezium sends a
`jsonb` column as a text. An array is a list in JSON and `{1,2}` in PostgreSQL's output
(https://www.postgresql.org/docs/16/arrays.html#ARRAYS-IO).
"""

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from makewhole.compute.moments import MICROSECOND_DIGITS, microseconds_of, moment_text
from makewhole.compute.numbers import number_of_json, plain_text

_MOST_DIGITS_OF_INT = 4_000
_MAY_BE_JSON = re.compile(r"""\s*(["{[]|-?[0-9]|true\b|false\b|null\b)""")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?([Zz]|UTC)|[+-]\d\d(:?\d\d)?)?", re.ASCII)
_BOUNDS = re.compile(r"(\[[-+]?[0-9]+:[-+]?[0-9]+\])+=")
_SPACES = " \t\n\v\f\r"  # of PostgreSQL: a no-break space is a letter
_TOKEN = re.compile(
    r"""[ \t\n\v\f\r]*(?:(?P<sign>[{},])|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^{},"]+))""", re.DOTALL
)


def json_value(value: Any) -> Any:
    """Return the JSON that a value is: a text that holds JSON is what it holds."""
    while isinstance(value, str) and _MAY_BE_JSON.match(value):
        try:
            value = _parsed(value)
        except (ValueError, RecursionError):
            break
    return value


def holds_scalar(value: Any) -> bool:
    """Return whether a value is a text that holds one value of JSON (a number, a text, true, false or null): it may be
    that text or that value."""
    return isinstance(value, str) and json_value(value) is not value and not isinstance(json_value(value), dict | list)


def is_writable(value: Any) -> bool:
    """Return whether JSON has only numbers that can be written: none is beyond every Decimal."""
    if isinstance(value, dict | list):
        return all(map(is_writable, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, Decimal) or value.is_finite()


def json_text(value: Any) -> str | None:
    """Return the canonical text of JSON; of a text itself, None of null."""
    value = json_value(value)
    return value if isinstance(value, str) or value is None else written_json(value)


def parts_text(value: Any) -> str | None:
    """Return the canonical text of JSON that a column of parts holds: a part that is null is as one that is left out,
    and a text that is a moment is that moment."""
    value = json_value(value)
    return value if isinstance(value, str) or value is None else written_json(_parts(value))


def _parts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _parts(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_parts(item) for item in value]
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        return value
    try:
        return moment_text(microseconds_of(value), 10**MICROSECOND_DIGITS, "Z")
    except (ValueError, OverflowError):
        return value


def written_json(value: Any) -> str:
    """Write JSON with its members in `jsonb`'s order (by length, then bytes), numbers by their value."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(_bytes(name)), _bytes(name)))
        return "{" + ", ".join(f"{_quoted(name)}: {written_json(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written_json, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _number(value)
    return json.dumps(value)


def array_text(value: Any, element: Callable[[Any], str | None]) -> str:
    """Return the canonical text of an array: the texts of its elements as JSON.

    Raises:
        ValueError: it is no array.
    """
    if isinstance(value, str):
        value = array_of_literal(value)
    if not isinstance(value, list):
        raise ValueError("not an array")
    return written_json(_mapped(value, element))


def array_literal(canonical: str, *, has_booleans: bool) -> str:
    """Return an array of a canonical text as PostgreSQL writes it."""
    return _literal(json.loads(canonical), has_booleans=has_booleans)


def array_of_literal(text: str) -> list[Any]:
    """Parse PostgreSQL's output of an array to lists of texts and None.

    Raises:
        ValueError: it is none.
    """
    body = _BOUNDS.sub("", text.strip(_SPACES), count=1)
    tokens = _tokens(body)
    if next(tokens, ("", None)) != ("{", None):
        raise ValueError("not an array")
    items = _list(tokens)
    if next(tokens, None) is not None:
        raise ValueError("not an array")
    return items


def _mapped(value: Any, element: Callable[[Any], str | None]) -> Any:
    return [_mapped(item, element) if isinstance(item, list) else element(item) for item in value]


def _tokens(body: str) -> Iterator[tuple[str, str | None]]:
    """Yield signs, and elements as ("", text or None)."""
    at = 0
    while at < len(body):
        match = _TOKEN.match(body, at)
        if match is None:
            raise ValueError("not an array")
        at = match.end()
        if match["sign"]:
            yield match["sign"], None
        elif match["quoted"] is not None:
            yield "", re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL)
        elif plain := match["plain"].strip(_SPACES):
            yield "", None if plain.upper() == "NULL" else re.sub(r"\\(.)", r"\1", plain)


def _list(tokens: Iterator[tuple[str, str | None]]) -> list[Any]:
    """Read what follows an opening brace, up to its closing one."""
    items: list[Any] = []
    for sign, text in tokens:
        if sign == "}":
            return items
        if sign == "{":
            items.append(_list(tokens))
        elif not sign:
            items.append(text)
    raise ValueError("not an array")


def _literal(value: Any, *, has_booleans: bool) -> str:
    if isinstance(value, list):
        return "{" + ",".join(_literal(item, has_booleans=has_booleans) for item in value) + "}"
    if value is None:
        return "NULL"
    if has_booleans:
        return str(value[:1])
    needs_quotes = value == "" or value.upper() == "NULL" or re.search(r'[{},"\\ \t\n\v\f\r]', value)
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"' if needs_quotes else str(value)


def _parsed(text: str) -> Any:
    parse_int = Decimal if len(text) > _MOST_DIGITS_OF_INT else None
    return json.loads(text, parse_float=number_of_json, parse_int=parse_int, parse_constant=_refused)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _number(value: int | Decimal) -> str:
    try:
        return plain_text(Decimal(value))
    except ValueError:
        return str(value)


def _quoted(text: str) -> str:
    """Write a text as JSON as PostgreSQL does; a lone surrogate, which it has not, by its escape."""
    written = json.dumps(text, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return written


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogatepass")
