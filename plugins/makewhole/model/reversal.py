"""What is known of the copies that compensation took back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ReversedCopy:
    """A reversal in the journal: action `seq` of a plan of a window, written to point `target`.

    `copy` identifies what it took back: `partition` and `offset` of a record, or `table_oid`, `ctid`, `sha256` of the
    row's text and, where it told the key's rows apart, `time`, with the number of `rows` that the key had then.
    `is_done`: the chunk has its receipt; otherwise the plan was begun, and nobody knows whether it was written.
    """

    plan: str
    window: int
    seq: int
    target: str
    copy: Mapping[str, Any]
    is_done: bool


@dataclass(frozen=True, kw_only=True)
class Past:
    """What was taken back before a plan of window `window` is made: by the point of the copies and the key's hash."""

    window: int = 0
    reversed: Mapping[tuple[str, str], tuple[ReversedCopy, ...]] = field(default_factory=dict)

    def of(self, point: str, key_hash: str) -> tuple[ReversedCopy, ...]:
        """The reversals of a key's copies at a point."""
        return self.reversed.get((point, key_hash), ())


NOTHING_REVERSED = Past()
