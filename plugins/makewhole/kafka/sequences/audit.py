"""Audit the sequences of a partition's producers for gaps and repeats, per (producer id, epoch).

A record's sequence is base sequence + (offset - base offset), wrapping from 2^31 - 1 to 0. A broker accepts only the
next sequence of a producer epoch, so a gap is loss on the broker's side, and the same sequence twice is one record
twice. No gap proves nothing: after a truncation a producer bumps its epoch and starts again at 0.

Batches are observed in offset order and before aborted ones are dropped. A range may be audited in pieces: each
observes the batches whose base offset lies in it, and `merge` of the pieces' audits is the audit of the whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from operator import attrgetter
from typing import Any, Protocol, Self

from makewhole.kafka.sequences.epoch_runs import Counts, EpochRun, Stretch, begin_run
from makewhole.kafka.sequences.numbering import NO_PRODUCER, NO_SEQUENCE, Break, SequenceBreak
from makewhole.kafka.sequences.producer_runs import Producer

_LISTED_BREAKS = 1000
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ProducerState:
    """State of a producer epoch in one partition: its next sequence, and the offset behind its last batch."""

    producer_id: int
    producer_epoch: int
    next_sequence: int
    end_offset: int


class SequencedBatch(Protocol):
    """A data batch as the audit needs it; `end_offset` counts compacted-away records too. Timestamps in ms."""

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
    @property
    def record_count(self) -> int: ...
    @property
    def first_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...


class SequenceAudit:
    """The numbering of one partition's producers, as its batches come in offset order.

    `starts_at_zero` says that the log is known from its very first offset on: only there must a producer that was not
    seen before begin at sequence 0, as expired producers may begin anywhere.
    """

    def __init__(self, *, starts_at_zero: bool = False) -> None:
        self.starts_at_zero = starts_at_zero
        self.unseen = 0
        self._producers: dict[int, Producer] = {}

    def skip(self, offsets: int) -> None:
        """Pass over so many offsets whose batches cannot be seen: compacted, expired or damaged.

        A gap that they could hold proves nothing and is not noted.
        """
        self.unseen += offsets

    def observe(self, batch: SequencedBatch) -> None:
        """Take the next data batch. Batches without producer id, and batches seen before, are left out."""
        sequence, producer_id = batch.base_sequence, batch.producer_id
        if producer_id == NO_PRODUCER or sequence == NO_SEQUENCE:
            return
        producer = self._producers.get(producer_id)
        if producer is None:
            self._producers[producer_id] = Producer.of(producer_id, self._first(batch))
            return
        run = producer.last
        if batch.end_offset <= run.end_offset:
            return
        if run.producer_epoch == batch.producer_epoch:
            self._continue(run, batch)
        else:
            producer.begin(self._first(batch))

    def _continue(self, run: EpochRun, batch: SequencedBatch) -> None:
        length = batch.end_offset - batch.base_offset
        if not run.extend_unbroken(batch.base_sequence, length, self.unseen):
            run.follow(self._stretch(batch))
        run.counts.batches += 1
        run.counts.records += batch.record_count
        run.end_offset, run.last_timestamp = batch.end_offset, batch.max_timestamp

    def _first(self, batch: SequencedBatch) -> EpochRun:
        return begin_run(
            batch.producer_epoch,
            self._stretch(batch),
            end_offset=batch.end_offset,
            timestamps=(batch.first_timestamp, batch.max_timestamp),
            records=batch.record_count,
        )

    def _stretch(self, batch: SequencedBatch) -> Stretch:
        return Stretch(
            sequence=batch.base_sequence,
            length=batch.end_offset - batch.base_offset,
            offset=batch.base_offset,
            unseen_at_start=self.unseen,
            unseen_at_end=self.unseen,
        )

    @property
    def producers(self) -> Iterable[Producer]:
        """Producers seen, in the order of their first batches."""
        return self._producers.values()

    def producer(self, producer_id: int) -> Producer | None:
        """Return what is known of one producer; None when it was not seen."""
        return self._producers.get(producer_id)

    @property
    def states(self) -> tuple[ProducerState, ...]:
        """States of all listed producer epochs, ordered by producer and epoch."""
        return tuple(
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=run.producer_epoch,
                next_sequence=run.next_sequence,
                end_offset=run.end_offset,
            )
            for producer in sorted(self._producers.values(), key=attrgetter("producer_id"))
            for run in sorted(producer.listed, key=attrgetter("producer_epoch"))
        )

    @property
    def breaks(self) -> list[SequenceBreak]:
        """The first thousand listed breaks of a numbering, in offset order. `counts` has them all."""
        breaks = (place for producer in self._producers.values() for place in self._breaks_of(producer))
        return sorted(breaks, key=lambda place: place.offset)[:_LISTED_BREAKS]

    def _breaks_of(self, producer: Producer) -> Iterator[SequenceBreak]:
        if (head := self.missing_head(producer)) is not None:
            yield head
        yield from producer.breaks()

    def missing_head(self, producer: Producer) -> SequenceBreak | None:
        """Return the break of a producer whose first batch in the log should begin at 0 and does not; else None."""
        first = producer.runs[0].stretches[0]
        missing = first.sequence - first.unseen_at_start
        if not self.starts_at_zero or missing <= 0:
            return None
        return SequenceBreak(
            kind=Break.MISSING_HEAD,
            producer_id=producer.producer_id,
            producer_epoch=producer.runs[0].producer_epoch,
            offset=first.offset,
            expected=0,
            found=first.sequence,
            records=missing,
        )

    def counts_of(self, producer: Producer) -> Counts:
        """Return what was counted of a producer, over all its epochs, the missing head of its first included."""
        return producer.counts + Counts(missing_heads=int(self.missing_head(producer) is not None))

    @property
    def counts(self) -> Counts:
        """Counts over all producers, exact whatever is listed."""
        return sum((self.counts_of(producer) for producer in self._producers.values()), Counts())

    def evidence_of(self, producer_id: int, producer_epoch: int) -> dict[str, Any] | None:
        """Return what the numbering shows of one producer epoch, as JSON-able data; None when neither was seen.

        `epoch` is None where the epoch is too far in the middle of many to be listed. Evidence, never a verdict.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return None
        runs = [run for run in producer.listed if run.producer_epoch == producer_epoch]
        return {
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "epoch": runs[-1].summary() if runs else None,
            "epochs": producer.epochs,
            "epoch_bumps": producer.bumps,
            **self.counts_of(producer).to_json(),
        }

    def with_latest_producers(self, limit: int) -> "SequenceAudit":
        """Return a copy with the `limit` producers that wrote last, to carry on where there are ever new ones.

        One that was left out may come back anywhere in its numbering, so a missing head is not looked for from then on.
        """
        is_whole = len(self._producers) <= limit
        latest = SequenceAudit(starts_at_zero=self.starts_at_zero and is_whole)
        latest.unseen = self.unseen
        newest = nlargest(limit, self.producers, key=lambda producer: producer.last.end_offset)
        chosen = {producer.producer_id for producer in newest}
        latest._producers = {key: producer.shifted(0) for key, producer in self._producers.items() if key in chosen}
        return latest

    def to_json(self) -> dict[str, Any]:
        """Return the audit as JSON-able data."""
        return {
            "version": _VERSION,
            "starts_at_zero": self.starts_at_zero,
            "unseen": self.unseen,
            "producers": [producer.to_json() for producer in self._producers.values()],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the audit that `to_json` gave.

        Raises:
            ValueError: the document is of another version.
        """
        if document["version"] != _VERSION:
            raise ValueError(f"sequences of version {document['version']} are not understood, only {_VERSION}")
        audit = cls(starts_at_zero=document["starts_at_zero"])
        audit.unseen = document["unseen"]
        producers = [Producer.from_json(entry) for entry in document["producers"]]
        audit._producers = {producer.producer_id: producer for producer in producers}
        return audit


def merge(earlier: SequenceAudit, later: SequenceAudit) -> SequenceAudit:
    """Return the audit of two neighbouring pieces of a log, as if they were one. Associative; changes neither."""
    merged = SequenceAudit(starts_at_zero=earlier.starts_at_zero)
    merged.unseen = earlier.unseen + later.unseen
    merged._producers = {producer.producer_id: producer.shifted(0) for producer in earlier.producers}
    for producer in later.producers:
        known = merged._producers.get(producer.producer_id)
        moved = producer.shifted(earlier.unseen)
        merged._producers[producer.producer_id] = moved if known is None else known.joined(moved)
    return merged
