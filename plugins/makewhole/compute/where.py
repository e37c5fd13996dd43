"""The `where` of a hop: `column = literal` terms joined by `and`."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from makewhole.compute.canonical import canonical_text

_TERM = re.compile(
    r"\s*(?P<column>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(?P<literal>'(?:[^']|'')*'|true|false|-?\d+(?:\.\d+)?)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Term:
    """`column = literal`; `declared` is the type in which both sides are compared."""

    column: str
    literal: str
    declared: str

    def holds(self, value: Any) -> bool:
        """Whether a decoded JSON value equals the literal."""
        return canonical_text(value, self.declared) == self.literal


def parse_where(text: str | None) -> tuple[Term, ...]:
    """The terms of a `where`, in order; none for None.

    Raises:
        ValueError: the text is not of this form; says at which column.
    """
    if text is None:
        return ()
    terms, at = [], 0
    while True:
        found = _TERM.match(text, at)
        if not found:
            raise ValueError(f"expected `column = literal` at column {at + 1} of {json.dumps(text)}")
        terms.append(_term(found["column"], found["literal"]))
        at = found.end()
        if at == len(text):
            return tuple(terms)
        joined = re.compile(r"and\b", re.IGNORECASE).match(text, at)
        if not joined:
            raise ValueError(f"expected `and` at column {at + 1} of {json.dumps(text)}")
        at = joined.end()


def _term(column: str, literal: str) -> Term:
    if literal.startswith("'"):
        return Term(column=column, literal=literal[1:-1].replace("''", "'"), declared="string")
    if literal.lower() in ("true", "false"):
        return Term(column=column, literal=literal.lower(), declared="boolean")
    scale = -int(Decimal(literal).as_tuple().exponent)
    declared = f"decimal(38,{scale})" if scale else "int"
    return Term(column=column, literal=canonical_text(Decimal(literal), declared) or "", declared=declared)
