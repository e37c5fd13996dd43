"""Draft an action for a finding, or refuse it with the reason."""

from dataclasses import dataclass

from makewhole.model.plan import Action
from makewhole.model.reversal import Repetition
from makewhole.model.verdict import Finding


@dataclass(frozen=True, kw_only=True)
class ActionDraft:
    """An action in the making, with the finding it answers. `origin` is the (partition, offset) to take it from.

    A reversal takes back the `repetition`, or of the rows that are too many the one with the number `extra`, from 0.
    """

    action: Action
    finding: Finding
    origin: tuple[int, int] | None = None
    repetition: Repetition | None = None
    extra: int = 0


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A finding for which nothing is done, and why."""

    hop: str
    key_hash: str
    reason: str
