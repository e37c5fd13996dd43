"""Producer sequences: what continuous numbering proves, per (producer id, epoch) of one partition.

A record's sequence is base sequence + (offset - base offset), wrapping from 2^31 - 1 to 0. A broker accepts only the
next sequence of a producer epoch, so a gap is loss on the broker's side. No gap proves nothing: after a truncation a
producer bumps its epoch and starts again at 0. Batches must be observed in offset order and before aborted ones are
dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

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
    """A place where a producer's numbering does not go on. `records` is how many are skipped or repeated."""

    kind: Break
    producer_id: int
    producer_epoch: int
    offset: int
    expected: int
    found: int
    records: int


@dataclass(frozen=True, kw_only=True)
class ProducerState:
    """Where a producer epoch stands in one partition: its next sequence, and the offset behind its last batch."""

    producer_id: int
    producer_epoch: int
    next_sequence: int
    end_offset: int


class SequencedBatch(Protocol):
    """What the audit needs of a data batch; `end_offset` counts compacted-away records too."""

    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...


class SequenceAudit:
    """Follows the producers of one partition through its batches, in offset order.

    `known` are the states at the end of the range before. `starts_at_zero` says that an epoch not seen before must
    begin at sequence 0: true only where the log is known from its first offset on, as expired producers may begin
    anywhere.
    """

    def __init__(self, known: Iterable[ProducerState] = (), *, starts_at_zero: bool = False) -> None:
        self._states = {(state.producer_id, state.producer_epoch): state for state in known}
        self._starts_at_zero = starts_at_zero
        self._unseen = 0
        self._unseen_at: dict[tuple[int, int], int] = {}
        self.breaks: list[SequenceBreak] = []

    @property
    def states(self) -> tuple[ProducerState, ...]:
        """Every producer epoch seen, ordered; the `known` of the next range."""
        return tuple(self._states[identity] for identity in sorted(self._states))

    def skip(self, offsets: int) -> None:
        """So many offsets come next whose batches cannot be seen: compacted, expired or damaged.

        A gap that they could hold proves nothing and is not noted.
        """
        self._unseen += offsets

    def observe(self, batch: SequencedBatch) -> None:
        """Take the next data batch. Batches without producer id, and batches seen before, say nothing."""
        if batch.producer_id == NO_PRODUCER or batch.base_sequence == NO_SEQUENCE:
            return
        identity = (batch.producer_id, batch.producer_epoch)
        state = self._states.get(identity)
        if state is not None and batch.end_offset <= state.end_offset:
            return
        self._check(batch, state)
        self._states[identity] = ProducerState(
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            next_sequence=sequence_after(batch.base_sequence, batch.end_offset - batch.base_offset),
            end_offset=batch.end_offset,
        )
        self._unseen_at[identity] = self._unseen

    def _check(self, batch: SequencedBatch, state: ProducerState | None) -> None:
        if state is None:
            if self._starts_at_zero and batch.base_sequence > self._unseen:
                self._note(Break.MISSING_HEAD, batch, expected=0, records=batch.base_sequence)
            return
        distance = sequence_distance(state.next_sequence, batch.base_sequence)
        unseen = self._unseen - self._unseen_at.get((batch.producer_id, batch.producer_epoch), 0)
        if distance > unseen:
            self._note(Break.GAP, batch, expected=state.next_sequence, records=distance)
        elif distance < 0:
            repeated = min(-distance, batch.end_offset - batch.base_offset)
            self._note(Break.REPEAT, batch, expected=state.next_sequence, records=repeated)

    def _note(self, kind: Break, batch: SequencedBatch, *, expected: int, records: int) -> None:
        self.breaks.append(
            SequenceBreak(
                kind=kind,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                offset=batch.base_offset,
                expected=expected,
                found=batch.base_sequence,
                records=records,
            )
        )
