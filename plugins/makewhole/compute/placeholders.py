"""Find the texts that a capture sends in place of a value: they are no values, and say nothing of what they replace."""

import base64
import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

import polars as pl

from makewhole.compute.canonical import canonical_text

_UNAVAILABLE = "__debezium_unavailable_value"
_MAP = {_UNAVAILABLE: _UNAVAILABLE}
PLACEHOLDERS = (
    _UNAVAILABLE,
    base64.b64encode(_UNAVAILABLE.encode()).decode(),
    f"\\x{_UNAVAILABLE.encode().hex()}",
    json.dumps(_MAP, separators=(",", ":")),
)
"""Placeholders of Debezium for a value that PostgreSQL's log did not hold (its option `unavailable.value.placeholder`):
in a text; in bytes as base64, and as PostgreSQL writes a `bytea`; in an `hstore` that is sent as JSON."""
_UUID = uuid.UUID(bytes=hashlib.md5(_UNAVAILABLE.encode(), usedforsecurity=False).digest(), version=3)
NUMBERS = [*_UNAVAILABLE.encode()]
"""The same for an array of integers or days."""
_OF_ARRAYS: tuple[list[Any], ...] = ([_UNAVAILABLE], NUMBERS, [str(_UUID)])
"""The same for an array of texts, of integers or days, and of UUIDs."""
_TYPES = ("string", "json", "string[]", "bigint[]", "date[]", "uuid[]", "inet[]")
_CANONICAL = sorted(
    {*PLACEHOLDERS, *(f"!{text!a}" for text in PLACEHOLDERS)}
    | {str(canonical_text(value, declared)) for value in (*PLACEHOLDERS, *_OF_ARRAYS, _MAP) for declared in _TYPES}
)
"""The same as compared columns have them: where the declared type is no text it cannot hold them."""


def is_placeholder(value: Any) -> bool:
    """Return whether a decoded value stands for one that the capture did not send."""
    if isinstance(value, dict):
        return value == _MAP
    return value in _OF_ARRAYS if isinstance(value, list) else value in PLACEHOLDERS


def is_canonical_placeholder(text: str | None) -> bool:
    """Return whether a canonical text is that of a placeholder."""
    return text in _CANONICAL


def holds_placeholder(columns: Sequence[str]) -> pl.Expr:
    """Return whether a copy has a placeholder in one of these columns of canonical texts."""
    texts = (pl.col(name).is_in(_CANONICAL) for name in columns)
    return pl.any_horizontal(pl.lit(False), *texts).fill_null(False)
