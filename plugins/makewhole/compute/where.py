"""A term of a hop's `where`, as rows are tested by it: `column = literal`, compared as PostgreSQL would.

PostgreSQL compares in the column's type. So a JSON text is compared as text, a number by its value (never rounded).
"""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from makewhole.compute.canonical import canonical_text


@dataclass(frozen=True, kw_only=True)
class TypedTerm:
    """`literal` is the canonical text of the type `declared`. A row where the column is null does not pass."""

    column: str
    literal: str
    declared: str

    def holds(self, value: Any) -> bool:
        """Whether a decoded JSON value equals the literal."""
        if isinstance(value, bool):
            return self.literal == ("true" if value else "false")
        if isinstance(value, int | Decimal):
            try:
                return Decimal(self.literal) == value
            except InvalidOperation:
                return False
        return isinstance(value, str) and value == self.literal


def term(column: str, literal: str | bool | int | Decimal) -> TypedTerm:
    """The term that compares a column with a literal of a pipeline file."""
    if isinstance(literal, bool):
        declared = "boolean"
    elif isinstance(literal, str):
        declared = "string"
    elif isinstance(literal, int):
        declared = "int"
    else:
        declared = f"decimal(38,{-int(literal.as_tuple().exponent)})"
    return TypedTerm(column=column, literal=canonical_text(literal, declared) or "", declared=declared)
