"""Describe what a gate tolerates, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Tolerated number of findings of each kind in a window that passes. `undecodable` counts records and rows
    without a usable key: what became of them is not known. `pending` counts keys handed over to the next window,
    `vanished` those that are gone from a store where a certified window saw them; None: any number.
    `allow_empty` allows a quiet day to pass."""

    missing: int = 0
    duplicate: int = 0
    mismatched: int = 0
    unexpected: int = 0
    conflict: int = 0
    undecodable: int = 0
    pending: int | None = None
    vanished: int | None = None
    allow_empty: bool = False


NO_TOLERANCE = Gate()
"""No finding passes, but for any number of keys that are handed over or gone since."""


class GateAnswer(StrEnum):
    """The answer. FAIL leads to a plan. ERROR (the check itself broke) never does."""

    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"


@dataclass(frozen=True, kw_only=True)
class GateReport:
    """The answer with its reasons. `planned` and `evaluated` count expectations; `failures` are sentences for
    people; `document` is what the validation library itself returned, JSON-able and small, and in the journal also the
    digest of the configuration that it was asked with, and what was accepted then."""

    answer: GateAnswer
    planned: int
    evaluated: int
    failures: tuple[str, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict)

    def asked_with(self, accepted: Mapping[str, Mapping[str, int]]) -> "GateReport":
        """Return the report with what a person had accepted when it was asked: hop → verdict → number."""
        return replace(self, document={**self.document, "accepted": accepted}) if accepted else self

    @property
    def accepted(self) -> Mapping[str, Mapping[str, int]]:
        """The findings that a person had accepted when it was asked: hop → verdict → number."""
        accepted: Mapping[str, Mapping[str, int]] = self.document.get("accepted", {})
        return accepted
