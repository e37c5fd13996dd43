"""Parse the `where` of a hop: `column = literal` terms joined by `and`, which the snapshot can apply."""

import re
from dataclasses import dataclass
from decimal import Decimal

from makewhole.config.values import UnfitError, shown

Literal = str | int | bool | Decimal

_TERM = re.compile(
    r"""\s*(?P<column>[A-Za-z_][A-Za-z0-9_]{0,62})\s*=\s*
    (?:'(?P<text>(?:[^']|'')*)' | (?P<boolean>true|false)\b | (?P<number>-?[0-9]+(?:\.[0-9]+)?)(?![\w.]))\s*""",
    re.VERBOSE,
)
_AND = re.compile(r"and\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class WhereTerm:
    """The condition that `column` equals `literal`; a row where the column is null or absent does not count as
    equal."""

    column: str
    literal: Literal


def parse_where(text: str) -> tuple[WhereTerm, ...]:
    """Return the terms of a condition, all of which must hold.

    Raises:
        UnfitError: the text is anything but `column = literal` terms joined by `and`.
    """
    terms: list[WhereTerm] = []
    place = 0
    while True:
        match = _TERM.match(text, place)
        if match is None:
            raise _unfit(text, place)
        terms.append(WhereTerm(column=match["column"], literal=_literal(match)))
        place = match.end()
        if place == len(text):
            return tuple(terms)
        joint = _AND.match(text, place)
        if joint is None:
            raise _unfit(text, place)
        place = joint.end()


def where(text: str) -> str:
    """Check that a text is a condition, and return it."""
    parse_where(text)
    return text


def _literal(match: re.Match[str]) -> Literal:
    if match["text"] is not None:
        return match["text"].replace("''", "'")
    if match["boolean"] is not None:
        return match["boolean"] == "true"
    return Decimal(match["number"]) if "." in match["number"] else int(match["number"])


def _unfit(text: str, place: int) -> UnfitError:
    rest = text[place:].strip()
    return UnfitError(
        f"{shown(text)} is not a condition: it stops making sense at {shown(rest) if rest else 'its end'}",
        "Write `column = literal` terms joined by `and`; a literal is a number, true, false or 'text in single quotes'",
    )
