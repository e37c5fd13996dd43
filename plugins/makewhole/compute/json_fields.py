"""Name the top-level fields of a decoded value with their JSON types: the form of the value, without its content."""

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


def fields_of(document: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the fields of a decoded value with the types of their values."""
    return {name: _type_of(inner) for name, inner in document.items()}


def _type_of(value: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), NULL)
