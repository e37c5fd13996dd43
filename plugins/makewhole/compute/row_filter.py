"""Test a value against a term of a hop's `where`, `column = literal`, as PostgreSQL would.

PostgreSQL compares in the column's type: a JSON text is compared as text, a number by its value (never rounded).
"""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from makewhole.compute.canonical import canonical_text
from makewhole.config.hops.where import parse_where


@dataclass(frozen=True, kw_only=True)
class TypedTerm:
    """A term with its literal as canonical text of the type `declared`. A null column does not pass."""

    column: str
    literal: str
    declared: str

    def holds(self, value: Any) -> bool:
        """Tell whether a decoded JSON value equals the literal."""
        if isinstance(value, bool):
            return self.literal == ("true" if value else "false")
        if isinstance(value, int | Decimal):
            try:
                return Decimal(self.literal) == value
            except InvalidOperation:
                return False
        return isinstance(value, str) and value == self.literal


def typed_term(column: str, literal: str | bool | int | Decimal) -> TypedTerm:
    """Return the term that compares a column with a literal of a pipeline file."""
    if isinstance(literal, bool):
        declared = "boolean"
    elif isinstance(literal, str):
        declared = "string"
    elif isinstance(literal, int):
        declared = "int"
    else:
        declared = f"decimal(38,{-int(literal.as_tuple().exponent)})"
    return TypedTerm(column=column, literal=canonical_text(literal, declared) or "", declared=declared)


def filter_terms(where: str | None) -> tuple[TypedTerm, ...]:
    """Return the terms of a hop's filter; none where it has no filter."""
    return tuple(typed_term(part.column, part.literal) for part in parse_where(where)) if where else ()
