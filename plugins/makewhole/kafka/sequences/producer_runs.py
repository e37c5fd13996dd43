"""Follow the epochs of one producer in one partition, in the order in which they came."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from makewhole.kafka.sequences.epoch_runs import Counts, EpochRun
from makewhole.kafka.sequences.numbering import SequenceBreak

LISTED_RUNS = 32


@dataclass(kw_only=True, slots=True)
class Producer:
    """A producer's epochs. A transaction of a Kafka 4 client is an epoch (KIP-890), so there may be very many.

    `runs` are the first of them and `last` the newest, whole; `folded` counts those between. `epochs` is how many
    there are, `bumps` how often a higher one came, `regressions` how often a lower one did, which brokers refuse.
    """

    producer_id: int
    runs: list[EpochRun]
    last: EpochRun
    folded: Counts
    epochs: int = 1
    bumps: int = 0
    regressions: int = 0

    @classmethod
    def of(cls, producer_id: int, run: EpochRun) -> Self:
        """Return a producer with its first epoch."""
        return cls(producer_id=producer_id, runs=[run], last=run, folded=Counts())

    @property
    def listed(self) -> list[EpochRun]:
        """Epochs that are kept one by one, in order."""
        return self.runs if self.last is self.runs[-1] else [*self.runs, self.last]

    @property
    def counts(self) -> Counts:
        """Counts of all epochs together."""
        return sum((run.counts for run in self.listed), self.folded)

    @property
    def is_exact(self) -> bool:
        """Whether no count of a listed epoch is a lower bound only."""
        return all(run.is_exact for run in self.listed)

    def begin(self, run: EpochRun) -> None:
        """Begin the next epoch. It must begin at 0, if the broker remembered the epoch before."""
        before = self.last
        if run.producer_epoch > before.producer_epoch:
            self.bumps += 1
            first = run.stretches[0]
            missing = first.sequence - (first.unseen_at_start - before.current.unseen_at_end)
            if missing > 0:
                run.note_missing_head(missing)
        else:
            self.regressions += 1
        self.epochs += 1
        self._append(run)

    def _append(self, run: EpochRun) -> None:
        if self.last is not self.runs[-1]:
            self.folded = self.folded + self.last.counts
        if len(self.runs) < LISTED_RUNS:
            self.runs.append(run)
        self.last = run

    def breaks(self) -> Iterator[SequenceBreak]:
        """Yield the listed breaks of the numbering, in offset order."""
        for run in self.listed:
            yield from run.breaks(self.producer_id)

    def shifted(self, unseen: int) -> "Producer":
        """Return a copy for a piece that began `unseen` unseen offsets earlier."""
        is_listed = self.last is self.runs[-1]
        runs = [run.shifted(unseen) for run in self.runs]
        last = runs[-1] if is_listed else self.last.shifted(unseen)
        return replace(self, runs=runs, last=last, folded=replace(self.folded))

    def joined(self, later: "Producer") -> "Producer":
        """Return this producer with its `later` part behind; both count unseen offsets from the same beginning."""
        joined = self.shifted(0)
        first, *rest = later.shifted(0).listed
        if first.producer_epoch == joined.last.producer_epoch:
            joined._replace_last(joined.last.joined(first))
        else:
            joined.begin(first)
        joined._take(rest, later)
        return joined

    def _replace_last(self, run: EpochRun) -> None:
        if self.last is self.runs[-1]:
            self.runs[-1] = run
        self.last = run

    def _take(self, rest: list[EpochRun], later: "Producer") -> None:
        """Add the further epochs of `later`, which are compared with each other already."""
        self.folded = self.folded + later.folded
        for run in rest:
            self._append(run)
        self.epochs += later.epochs - 1
        self.bumps += later.bumps
        self.regressions += later.regressions

    def to_json(self) -> dict[str, Any]:
        """Return the producer as JSON-able data."""
        return {
            "producer_id": self.producer_id,
            "epochs": self.epochs,
            "bumps": self.bumps,
            "regressions": self.regressions,
            "folded": self.folded.to_json(),
            "runs": [run.to_json() for run in self.runs],
            "last": None if self.last is self.runs[-1] else self.last.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the producer that `to_json` gave."""
        runs = [EpochRun.from_json(run) for run in document["runs"]]
        return cls(
            producer_id=document["producer_id"],
            runs=runs,
            last=runs[-1] if document["last"] is None else EpochRun.from_json(document["last"]),
            folded=Counts(**document["folded"]),
            epochs=document["epochs"],
            bumps=document["bumps"],
            regressions=document["regressions"],
        )
