"""A term of a hop's `where`, as rows are tested by it: `column = literal`, compared in the literal's type."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import canonical_text


@dataclass(frozen=True, kw_only=True)
class Term:
    """`literal` is the canonical text of the type `declared`. A row where the column is null does not pass."""

    column: str
    literal: str
    declared: str

    def holds(self, value: Any) -> bool:
        """Whether a decoded JSON value equals the literal."""
        return canonical_text(value, self.declared) == self.literal


def term(column: str, literal: str | bool | int | Decimal) -> Term:
    """The term that compares a column with a literal of a pipeline file."""
    if isinstance(literal, bool):
        declared = "boolean"
    elif isinstance(literal, str):
        declared = "string"
    elif isinstance(literal, int):
        declared = "int"
    else:
        declared = f"decimal(38,{-int(literal.as_tuple().exponent)})"
    return Term(column=column, literal=canonical_text(literal, declared) or "", declared=declared)
