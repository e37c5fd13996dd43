"""How producers number their records: arithmetic across the wrap, and the ways in which a numbering breaks."""

from dataclasses import dataclass
from enum import StrEnum

SEQUENCES = 2**31
NO_PRODUCER = -1
NO_SEQUENCE = -1


def sequence_after(sequence: int, records: int = 1) -> int:
    """The sequence `records` further on, wrapping at 2^31."""
    return (sequence + records) % SEQUENCES


def sequence_distance(expected: int, found: int) -> int:
    """How far `found` is ahead (+) or behind (-) of `expected`, the short way round the wrap."""
    ahead = (found - expected) % SEQUENCES
    return ahead if ahead < SEQUENCES // 2 else ahead - SEQUENCES


class Break(StrEnum):
    """How a numbering is broken."""

    GAP = "gap"
    REPEAT = "repeat"
    MISSING_HEAD = "missing_head"


@dataclass(frozen=True, kw_only=True)
class SequenceBreak:
    """A place where a producer's numbering does not go on. `records` is how many are skipped or repeated.

    Of a gap, those that unseen offsets could hold do not count.
    """

    kind: Break
    producer_id: int
    producer_epoch: int
    offset: int
    expected: int
    found: int
    records: int
