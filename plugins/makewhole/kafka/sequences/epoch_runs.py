"""Follow the batches of one producer epoch in one partition, as contiguous stretches of sequences.

A sound numbering is one stretch, however long. Two runs of the same epoch, from neighbouring pieces of a log, join by
letting the earlier one follow the stretches of the later one: what was unbroken by itself may be a repeat now.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import add, attrgetter, sub
from typing import Any, Self

from makewhole.kafka.sequences.numbering import SEQUENCES, Break, SequenceBreak, sequence_after, sequence_distance

LISTED_STRETCHES = 16


@dataclass(slots=True)
class Counts:
    """Counts of a producer, exact whatever is listed.

    `gaps` and `repeats` are places; `missing` and `repeated` are the records at them. `missing_heads` are epochs that
    do not begin at 0 although they should; `wraps`, how often 2^31 - 1 was followed by 0.
    """

    batches: int = 0
    records: int = 0
    gaps: int = 0
    missing: int = 0
    repeats: int = 0
    repeated: int = 0
    missing_heads: int = 0
    wraps: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(add, _values(self), _values(other)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*map(sub, _values(self), _values(other)))

    def to_json(self) -> dict[str, int]:
        """Return the counts as JSON-able data."""
        return {name: getattr(self, name) for name in _COUNTS}


_COUNTS = tuple(member.name for member in fields(Counts))
_values: Callable[[Counts], tuple[int, ...]] = attrgetter(*_COUNTS)


@dataclass(kw_only=True, slots=True)
class Stretch:
    """`length` sequences in a row from `sequence` on, beginning at `offset`; with the break where it begins.

    `unseen_at_start` and `unseen_at_end`: how many offsets of the piece had not been seen when its first and its last
    batch came.
    """

    sequence: int
    length: int
    offset: int
    unseen_at_start: int
    unseen_at_end: int
    broken: Break | None = None
    expected: int = 0
    affected: int = 0

    @property
    def next_sequence(self) -> int:
        return sequence_after(self.sequence, self.length)

    def shifted(self, unseen: int) -> "Stretch":
        """Return a copy for a piece that began `unseen` unseen offsets earlier."""
        return replace(self, unseen_at_start=self.unseen_at_start + unseen, unseen_at_end=self.unseen_at_end + unseen)

    def uncompared(self) -> "Stretch":
        """Return a copy that is not compared with anything yet."""
        return replace(self, broken=None, expected=0, affected=0)

    def to_json(self) -> list[Any]:
        """Return the stretch as JSON-able data."""
        return [getattr(self, name) for name in _STRETCH]


_STRETCH = tuple(member.name for member in fields(Stretch))


@dataclass(kw_only=True, slots=True)
class EpochRun:
    """One epoch of one producer in one partition, in offset order.

    `next_sequence` is behind the highest sequence seen; offsets are half-open; timestamps (ms) are those of the first
    and of the last batch. `stretches` are the first ones, `current` the last. `is_exact` is false where runs were
    joined that overlap in more places than are listed: its counts are lower bounds then.
    """

    producer_epoch: int
    first_sequence: int
    next_sequence: int
    first_offset: int
    end_offset: int
    first_timestamp: int
    last_timestamp: int
    counts: Counts
    stretches: list[Stretch] = field(default_factory=list)
    current: Stretch
    has_more_stretches: bool = False
    is_exact: bool = True

    @property
    def last_sequence(self) -> int:
        """The highest sequence seen."""
        return (self.next_sequence - 1) % SEQUENCES

    @property
    def missing_head(self) -> int:
        """Number of records missing before the first, where an earlier epoch shows that it should be 0."""
        first = self.stretches[0]
        return first.affected if first.broken is Break.MISSING_HEAD else 0

    def note_missing_head(self, records: int) -> None:
        """Note that the epoch should have begun `records` before its first."""
        first = self.stretches[0]
        first.broken, first.expected, first.affected = Break.MISSING_HEAD, 0, records
        self.counts.missing_heads = 1

    def extend_unbroken(self, sequence: int, length: int, unseen: int) -> bool:
        """Add the next sequences if they follow unbroken, as almost every batch does; return whether they did."""
        current = self.current
        is_next = sequence == self.next_sequence == current.sequence + current.length
        if not is_next or sequence == 0 or sequence + length >= SEQUENCES:
            return False
        current.length += length
        current.unseen_at_end = unseen
        self.next_sequence = sequence + length
        return True

    def follow(self, stretch: Stretch) -> None:
        """Compare the next sequences with the highest so far, and add them."""
        is_continued = stretch.sequence == self.current.next_sequence
        distance = sequence_distance(self.next_sequence, stretch.sequence)
        overlap = min(max(-distance, 0), stretch.length)
        self.counts.repeated += overlap
        if is_continued:
            self._extend(stretch, overlap)
        else:
            self._begin(stretch, distance, overlap)
        gained = max(distance, 0) + stretch.length - overlap
        self.counts.wraps += (self.last_sequence + gained) // SEQUENCES
        self.next_sequence = sequence_after(self.next_sequence, gained)

    def _extend(self, stretch: Stretch, overlap: int) -> None:
        self.current.length += stretch.length
        self.current.unseen_at_end = stretch.unseen_at_end
        self.current.affected += overlap

    def _begin(self, stretch: Stretch, distance: int, overlap: int) -> None:
        unexplained = distance - (stretch.unseen_at_start - self.current.unseen_at_end)
        stretch.expected = self.next_sequence
        if distance > 0 and unexplained > 0:
            stretch.broken, stretch.affected = Break.GAP, unexplained
            self.counts.gaps += 1
            self.counts.missing += unexplained
        elif overlap:
            stretch.broken, stretch.affected = Break.REPEAT, overlap
            self.counts.repeats += 1
        self.current = stretch
        if len(self.stretches) < LISTED_STRETCHES:
            self.stretches.append(stretch)
        else:
            self.has_more_stretches = True

    def breaks(self, producer_id: int) -> Iterator[SequenceBreak]:
        """Yield the listed breaks of the numbering, in offset order."""
        for stretch in self.stretches:
            if stretch.broken is not None:
                yield SequenceBreak(
                    kind=stretch.broken,
                    producer_id=producer_id,
                    producer_epoch=self.producer_epoch,
                    offset=stretch.offset,
                    expected=stretch.expected,
                    found=stretch.sequence,
                    records=stretch.affected,
                )

    def shifted(self, unseen: int) -> "EpochRun":
        """Return a copy for a piece that began `unseen` unseen offsets earlier."""
        stretches = [stretch.shifted(unseen) for stretch in self.stretches]
        current = self.current.shifted(unseen) if self.has_more_stretches else stretches[-1]
        return replace(self, counts=replace(self.counts), stretches=stretches, current=current)

    def joined(self, later: "EpochRun") -> "EpochRun":
        """Return this run with one of the same epoch behind it, whose unseen offsets count from the same beginning."""
        joined, (head, *rest) = self.shifted(0), [stretch.uncompared() for stretch in later.stretches]
        alone = _run_of_sequences(later.producer_epoch, head)
        for stretch in rest:
            alone.follow(stretch)
        for stretch in later.stretches:
            joined.follow(stretch.uncompared())
        joined._add_remainder(later, alone)
        joined.counts.batches = self.counts.batches + later.counts.batches
        joined.counts.records = self.counts.records + later.counts.records
        joined.end_offset, joined.last_timestamp = later.end_offset, later.last_timestamp
        joined.is_exact = joined.is_exact and later.is_exact
        return joined

    def _add_remainder(self, later: "EpochRun", alone: "EpochRun") -> None:
        """Count what `later` knows beyond its listed stretches, which are what `alone` was made of."""
        if not later.has_more_stretches:
            return
        self.has_more_stretches = True
        self.is_exact = self.is_exact and self.next_sequence == alone.next_sequence
        self.counts = self.counts + (later.counts - alone.counts)
        self.current = replace(later.current)
        if sequence_distance(self.next_sequence, later.next_sequence) > 0:
            self.next_sequence = later.next_sequence

    def summary(self) -> dict[str, Any]:
        """Return what people are shown of the run, as JSON-able data."""
        return {
            "first_sequence": self.first_sequence,
            "last_sequence": self.last_sequence,
            "first_offset": self.first_offset,
            "last_offset": self.end_offset - 1,
            "first_timestamp": self.first_timestamp,
            "last_timestamp": self.last_timestamp,
            "missing_head": self.missing_head,
            "is_exact": self.is_exact,
            **self.counts.to_json(),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON-able data."""
        return {
            **{name: getattr(self, name) for name in _RUN},
            "counts": self.counts.to_json(),
            "stretches": [stretch.to_json() for stretch in self.stretches],
            "current": self.current.to_json() if self.has_more_stretches else None,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the run that `to_json` gave."""
        stretches = [_stretch(values) for values in document["stretches"]]
        return cls(
            **{name: document[name] for name in _RUN},
            counts=Counts(**document["counts"]),
            stretches=stretches,
            current=stretches[-1] if document["current"] is None else _stretch(document["current"]),
        )


_RUN = tuple(member.name for member in fields(EpochRun) if member.name not in ("counts", "stretches", "current"))


def _stretch(values: list[Any]) -> Stretch:
    stretch = Stretch(**dict(zip(_STRETCH, values, strict=True)))
    stretch.broken = None if stretch.broken is None else Break(stretch.broken)
    return stretch


def _run_of_sequences(epoch: int, stretch: Stretch) -> EpochRun:
    """Return a run of sequences alone, to be compared with another."""
    return begin_run(epoch, stretch, end_offset=0, timestamps=(0, 0), records=0)


def begin_run(epoch: int, stretch: Stretch, *, end_offset: int, timestamps: tuple[int, int], records: int) -> EpochRun:
    """Return a run that begins with the stretch of its first batch."""
    return EpochRun(
        producer_epoch=epoch,
        first_sequence=stretch.sequence,
        next_sequence=stretch.next_sequence,
        first_offset=stretch.offset,
        end_offset=end_offset,
        first_timestamp=timestamps[0],
        last_timestamp=timestamps[1],
        counts=Counts(batches=1, records=records, wraps=(stretch.sequence + stretch.length - 1) // SEQUENCES),
        stretches=[stretch],
        current=stretch,
    )
