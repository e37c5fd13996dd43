"""Name the top-level fields of a record's value with their JSON types: the form of the value, without its content."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),  # before the numbers: it is one
    (str, "text"),
    (int, "number"),
    (float, "number"),
    (Decimal, "number"),
    (dict, "object"),
    (list, "list"),
)
NULL = "null"


def json_fields(value: bytes | None) -> Mapping[str, str] | None:
    """Return the fields of a JSON object with the types of their values; None: it is none."""
    try:
        document = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    return fields_of(document) if isinstance(document, dict) else None


def fields_of(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the fields of a decoded value with the types of their values."""
    return {name: _type_of(inner) for name, inner in document.items()}


def _type_of(value: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), NULL)
