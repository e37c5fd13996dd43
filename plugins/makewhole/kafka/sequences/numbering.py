"""Calculate with the sequence numbers of producers across their wrap, and name the ways in which a numbering breaks."""

from dataclasses import dataclass
from enum import StrEnum

SEQUENCES = 2**31
NO_PRODUCER = -1
NO_SEQUENCE = -1


def sequence_after(sequence: int, records: int = 1) -> int:
    """Return the sequence `records` further on, wrapping at 2^31."""
    return (sequence + records) % SEQUENCES


def sequence_distance(expected: int, sequence: int) -> int:
    """Return how far `sequence` is ahead (+) or behind (-) of `expected`, the short way round the wrap."""
    ahead = (sequence - expected) % SEQUENCES
    return ahead if ahead < SEQUENCES // 2 else ahead - SEQUENCES


class Break(StrEnum):
    """Kind of break in a numbering."""

    GAP = "gap"
    REPEAT = "repeat"
    MISSING_HEAD = "missing_head"


@dataclass(frozen=True, kw_only=True)
class SequenceBreak:
    """A place where a producer's numbering does not continue. `records` is how many are skipped or repeated.

    In a gap, those that unseen offsets could hold do not count.
    """

    kind: Break
    producer_id: int
    producer_epoch: int
    offset: int
    expected: int
    found: int
    records: int
