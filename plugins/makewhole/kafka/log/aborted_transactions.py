"""Find the transactional batches that a read_committed consumer would never see. Pure; one fetched page at a time.

A broker answers a committed read with all bytes up to the stable offset and a list of (producer id, first offset) of
the aborted transactions in them (KIP-98). In offset order: a transaction becomes active at its first offset, an abort
marker of its producer ends it, and transactional batches of active producers are dropped. Markers are matched by
producer id alone, because a marker's epoch may be one above that of its data (KIP-890).
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, order=True)
class AbortedTransaction:
    """An aborted transaction of one partition. `marker_offset` is its abort marker's, None when that was not seen."""

    first_offset: int
    producer_id: int
    marker_offset: int | None = None


class AbortFilter:
    """Filter of aborted batches, in offset order, by the aborted list that came with the page."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        starts = ((transaction.first_offset, transaction.producer_id) for transaction in aborted)
        self._waiting = sorted(starts, reverse=True)
        self._active: set[int] = set()

    def is_aborted(self, last_offset: int, producer_id: int, is_transactional: bool) -> bool:
        """Return whether a data batch that ends with `last_offset` belongs to an aborted transaction."""
        self._activate(last_offset)
        return is_transactional and producer_id in self._active

    def end_transaction(self, offset: int, producer_id: int) -> None:
        """End the producer's transaction at `offset`, where its abort marker stands."""
        self._activate(offset)
        self._active.discard(producer_id)

    def _activate(self, last_offset: int) -> None:
        while self._waiting and self._waiting[-1][0] <= last_offset:
            self._active.add(self._waiting.pop()[1])


class AbortedTransactions:
    """Aborted transactions of a range, collected over its pages, each with its marker once that is seen."""

    def __init__(self) -> None:
        self._markers: dict[tuple[int, int], int | None] = {}
        self._open: dict[int, set[int]] = {}

    def add(self, aborted: Iterable[AbortedTransaction], *, touching: int | None = None) -> None:
        """Add the list of one more page. The same transaction comes with every page that it touches.

        So one that does not come with a page of batches from `touching` on has ended before: its marker was damaged.
        """
        aborted = tuple(aborted)
        if touching is not None:
            self._end_those_without(aborted, touching)
        for transaction in aborted:
            key = (transaction.first_offset, transaction.producer_id)
            if self._markers.get(key) is None:
                self._markers[key] = transaction.marker_offset
                if transaction.marker_offset is None:
                    self._open.setdefault(transaction.producer_id, set()).add(transaction.first_offset)

    def _end_those_without(self, aborted: tuple[AbortedTransaction, ...], offset: int) -> None:
        still_open = {(transaction.producer_id, transaction.first_offset) for transaction in aborted}
        for producer_id, began in self._open.items():
            for first_offset in [first for first in began if (producer_id, first) not in still_open]:
                if first_offset < offset:
                    self._markers[first_offset, producer_id] = offset - 1
                    began.discard(first_offset)

    def end_transaction(self, offset: int, producer_id: int) -> None:
        """End the producer's transactions that began before its abort marker at `offset`."""
        began = self._open.get(producer_id, set())
        for first_offset in [first for first in began if first <= offset]:
            self._markers[first_offset, producer_id] = offset
            began.discard(first_offset)

    def listed(self) -> tuple[AbortedTransaction, ...]:
        """Return all of them, by first offset."""
        return tuple(
            AbortedTransaction(first_offset=first, producer_id=producer, marker_offset=marker)
            for (first, producer), marker in sorted(self._markers.items())
        )
