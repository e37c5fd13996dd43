"""Describe the effects of a plan on people's rows, which a target keeps with them."""

from dataclasses import dataclass
from enum import StrEnum


class EffectKind(StrEnum):
    """The change that an action made to a row."""

    INSERTED = "inserted"
    UPDATED = "updated"
    MOVED = "moved"
    """Moved aside, into quarantine."""
    DELETED = "deleted"
    """Only an undo deletes: what its plan had inserted."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The change of one row by one action. `place` is where the row is now, or where it was when it is gone.

    `before` and `after` are images of the row: exact texts, triggers and defaults included, of which its system makes
    the row again (PostgreSQL's are row literals). An insert has no `before`. Of a row that was moved aside, `after` is
    the row of its key that stayed, if one did.
    """

    plan: str
    target: str
    chunk: int
    seq: int
    kind: EffectKind
    place: str
    before: str | None
    after: str | None
