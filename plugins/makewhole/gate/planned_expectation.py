"""Describe expectations as data: a number with its bounds, and the two expectations that it gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

IS_KNOWN = " is known"  # ends the id of the not-null half of a number
HIGHEST = 2**53  # the largest whole number that every float comparison on the way keeps exact


class Role(StrEnum):
    """The consequence of a failed expectation for the answer."""

    EVIDENCE = "evidence"  # the verdicts cannot be trusted: ERROR, nothing may be repaired on them
    FINDING = "finding"  # the verdicts are sound and say that something is wrong: FAIL
    NOTE = "note"  # worth a line, stops nothing


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One expectation. `type` and `kwargs` are the library's; `{found}` in `sentence` takes what it observed."""

    id: str
    type: str
    kwargs: Mapping[str, Any]
    role: Role
    sentence: str

    @property
    def severity(self) -> str:
        """The library's severity: only critical failures stop a window."""
        return "warning" if self.role is Role.NOTE else "critical"


@dataclass(frozen=True, kw_only=True)
class Number:
    """One column of a hop's row, which must be known: `at_least <= value <= at_most`."""

    name: str
    value: int | None
    at_least: int = 0
    at_most: int
    sentence: str
    role: Role = Role.EVIDENCE

    def planned(self, hop: str) -> tuple[Planned, Planned]:
        """Return the not-null and the between expectation; a number below zero is broken evidence in any role."""
        is_impossible = self.value is not None and self.value < 0
        known = Planned(
            id=f"{hop} {self.name}{IS_KNOWN}",
            type="expect_column_values_to_not_be_null",
            kwargs={"column": self.name},
            role=Role.EVIDENCE,
            sentence=f"{hop}: the number `{self.name}` is not known, so nothing can be concluded from it",
        )
        between = Planned(
            id=f"{hop} {self.name}",
            type="expect_column_values_to_be_between",
            kwargs={"column": self.name, "min_value": self.at_least, "max_value": self.at_most},
            role=Role.EVIDENCE if is_impossible else self.role,
            sentence=f"{hop}: {self.sentence}",
        )
        return known, between


def difference(first: int | None, second: int | None) -> int | None:
    """Subtract; None when either is not known."""
    return None if first is None or second is None else first - second


def text(number: int | None) -> str:
    """Format a number for sentences: 1,234."""
    return "an unknown number of" if number is None else f"{number:,}"


def keys(number: int | None) -> str:
    """Format a number of keys for sentences: 1,234 keys."""
    return f"{text(number)} {'key' if number == 1 else 'keys'}"
