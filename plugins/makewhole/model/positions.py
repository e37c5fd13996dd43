"""Describe where the records of a chunk stand in a topic, and where a log was last looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class RecordPositions:
    """Positions of records that compensation wrote to one topic: three columns of equal length, in any order.

    `seqs` are the numbers of the actions in their plan.
    """

    seqs: Sequence[int]
    partitions: Sequence[int]
    offsets: Sequence[int]

    def __len__(self) -> int:
        return len(self.seqs)


@dataclass(frozen=True, kw_only=True)
class PositionSpan:
    """Offsets `[lo, hi)` of partitions `first` to `last` (included) of a topic incarnation; None: no bound."""

    topic_id: str
    first: int
    last: int | None
    lo: int
    hi: int | None


@dataclass(frozen=True, kw_only=True)
class SeenLog:
    """A topic as it was seen once: stable offsets by partition. `topic_id` None: not known, of whatever exists now.

    `leader_epochs`: by partition those of the last records before its offset, as far as they are known: (epoch, end
    offset), ascending.
    """

    topic_id: str | None
    offsets: Mapping[int, int] = field(default_factory=dict)
    leader_epochs: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
