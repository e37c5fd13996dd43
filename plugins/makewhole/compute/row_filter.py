"""Test a value against a term of a hop's `where`, `column = literal`, as PostgreSQL would.

Both are compared in the type of the column (`19.0` is `"19.00"` where a table has a number there). Without a known type
a JSON text is compared as text, a number by its value (never rounded).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from makewhole.compute.canonical import canonical_text
from makewhole.config.hops.where import parse_where


@dataclass(frozen=True, kw_only=True)
class TypedTerm:
    """A term with its literal as canonical text of the type `declared`. A null column does not pass.

    `is_of_column`: the type is that of the column; otherwise it is the literal's own.
    """

    column: str
    literal: str
    declared: str
    is_of_column: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a decoded JSON value equals the literal."""
        if self.is_of_column:
            return canonical_text(value, self.declared) == self.literal
        if isinstance(value, bool):
            return self.literal == ("true" if value else "false")
        if isinstance(value, int | Decimal):
            try:
                return Decimal(self.literal) == value
            except InvalidOperation:
                return False
        return isinstance(value, str) and value == self.literal


def typed_term(column: str, literal: str | bool | int | Decimal, declared: str | None = None) -> TypedTerm:
    """Return the term that compares a column with a literal of a pipeline file; `declared` is the column's type."""
    kind = literal_type(literal) if declared is None else declared
    text = canonical_text(literal, kind) or ""
    return TypedTerm(column=column, literal=text, declared=kind, is_of_column=declared is not None)


def literal_type(literal: str | bool | int | Decimal) -> str:
    """Return the type of a literal."""
    if isinstance(literal, bool):
        return "boolean"
    if isinstance(literal, str):
        return "string"
    if isinstance(literal, int):
        return "int"
    return f"decimal(38,{-int(literal.as_tuple().exponent)})"


def filter_terms(where: str | None, types: Mapping[str, str]) -> tuple[TypedTerm, ...]:
    """Return the terms of a hop's filter, none without one; `types` are those of columns, as far as known."""
    parts = parse_where(where) if where else ()
    return tuple(typed_term(part.column, part.literal, types.get(part.column)) for part in parts)
