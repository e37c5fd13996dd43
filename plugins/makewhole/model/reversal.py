"""Describe the copies that compensation took back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ReversedCopy:
    """A reversal in the journal: action `seq` of a plan of a window, written to point `target`.

    `place` is the table or topic that the copy is in, and `identity` what that is, where it was known; `copy`
    identifies it there: `partition` and `offset` of a record, or `table_oid`, `ctid`, `sha256` of the row's text and,
    where it distinguished the key's rows, `time`, with the number of `rows` that the key had then. `is_done`: the chunk
    has its receipt; otherwise the plan was begun, and whether the reversal was written is not known.
    """

    plan: str
    window: int
    seq: int
    target: str
    place: str
    copy: Mapping[str, Any]
    is_done: bool
    identity: str = ""

    def is_in(self, places: Collection[str]) -> bool:
        """Return whether it is in one of these places, by its name or by what it is."""
        return self.place in places or (bool(self.identity) and self.identity in places)


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """A record too many of a key. `number` counts the copies of its key, from 1."""

    number: int
    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class PastReversals:
    """The copies that were taken back before a plan of window `window` is made, by the key's hash, oldest first.

    `places` are those of the pipeline's points now, with what they are. They distinguish copies, the points' names do
    not: a point that was renamed still holds what was taken back, and so does a table that another connection leads to.
    """

    window: int = 0
    reversed: Mapping[str, tuple[ReversedCopy, ...]] = field(default_factory=dict)
    places: frozenset[str] = frozenset()

    def of(self, places: Collection[str], key_hash: str) -> tuple[ReversedCopy, ...]:
        """Return the reversals of a key's copies in a table or topic (`Point.places`)."""
        return tuple(copy for copy in self.reversed.get(key_hash, ()) if copy.is_in(places))

    def in_former_places(self, key_hash: str) -> tuple[ReversedCopy, ...]:
        """Return the reversals of a key's copies in places that no point of the pipeline is in any more."""
        return tuple(copy for copy in self.reversed.get(key_hash, ()) if not copy.is_in(self.places))


NOTHING_REVERSED = PastReversals()
