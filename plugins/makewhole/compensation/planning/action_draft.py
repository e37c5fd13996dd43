"""Hold the draft of an action, or a finding for which there is none, with its refusal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from makewhole.model.actions import Action
from makewhole.model.hops import Remedy
from makewhole.model.refusal import Refusal
from makewhole.model.reversal import Repetition
from makewhole.model.verdict import Finding, Verdict

PlanOrder = tuple[int, int, str]
"""The place of an action in its plan: the number of its hop, that of its remedy, its key."""


@dataclass(frozen=True, kw_only=True)
class ActionDraft:
    """An action without its payload, and the finding it answers. `origin`: (partition, offset) of the original record.

    A reversal takes back the record `repetition`, or of the extra rows the one with the number `extra`, from 0.
    `aside`: the drafts that move rows of the key aside before its record is sent; they are done together or not at all.
    """

    action: Action
    finding: Finding
    origin: tuple[int, int] | None = None
    repetition: Repetition | None = None
    extra: int = 0
    aside: tuple["ActionDraft", ...] = ()
    goes_first: bool = False

    def with_before(self, **named: Any) -> Self:
        """Return the draft with these fields of its action's `before`."""
        before = replace(self.action.before, **named)
        return replace(self, action=replace(self.action, before=before))

    @property
    def writes_survivor(self) -> bool:
        """Whether the action is about rows of a table beside one that stays."""
        is_of_rows = self.action.remedy in (Remedy.QUARANTINE, Remedy.REVERSE) and self.repetition is None
        return is_of_rows and self.finding.verdict is Verdict.DUPLICATE


def asides_first(drafts: Sequence[ActionDraft]) -> list[ActionDraft]:
    """Return drafts with those that go before them, in the order in which they are done."""
    return [*(aside for draft in drafts for aside in draft.aside), *drafts]


@dataclass(frozen=True, kw_only=True)
class RefusedFinding:
    """Hold a finding for which nothing is done, and why."""

    hop: str
    key_hash: str
    refusal: Refusal
