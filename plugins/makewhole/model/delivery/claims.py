"""Name how often the effect of an event may take place downstream: the claim of a hop, and of a table at its end."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Delivery(StrEnum):
    """How often what a hop delivers takes effect in its target: at most once (losses are accepted), at least once
    (repeats are), or exactly once."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"

    @property
    def forbids_loss(self) -> bool:
        return self is not Delivery.AT_MOST_ONCE

    @property
    def forbids_repeats(self) -> bool:
        return self is not Delivery.AT_LEAST_ONCE


@dataclass(frozen=True, kw_only=True)
class TableClaim:
    """Claims on a table. `forbids_loss`: a row that was committed there may not disappear. `overwrites`: what
    loads it writes a row by its key, and `is_keyed`: only a unique key keeps a repeat out. `captured_by`: the change
    events of the table are read from its log by a connector, into this topic. `needed`: how long what describes its
    past has to stay."""

    forbids_loss: bool
    is_target: bool = False
    overwrites: bool = False
    is_keyed: bool = False
    is_captured: bool = False
    needed: timedelta = timedelta()
