"""Describe the answer of the gate."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


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
