"""Hold the draft of an action, or the refusal of a finding with its reason."""

from dataclasses import dataclass

from makewhole.model.plan import Action
from makewhole.model.reversal import Repetition
from makewhole.model.verdict import Finding


@dataclass(frozen=True, kw_only=True)
class ActionDraft:
    """An action without its payload, and the finding it answers. `origin`: (partition, offset) of the original record.

    A reversal takes back the record `repetition`, or of the extra rows the one with the number `extra`, from 0.
    """

    action: Action
    finding: Finding
    origin: tuple[int, int] | None = None
    repetition: Repetition | None = None
    extra: int = 0


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A finding for which nothing is done, and the reason."""

    hop: str
    key_hash: str
    reason: str
