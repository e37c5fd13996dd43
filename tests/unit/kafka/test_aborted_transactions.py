"""Test the abort filter against a model that knows which transaction each batch belongs to."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.log.aborted_transactions import AbortedTransaction, AbortedTransactions, AbortFilter

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class LogEntry:
    """One batch or marker of a made-up log, with what the model knows of it."""

    offset: int
    end_offset: int
    producer_id: int
    kind: str
    transaction: int | None


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[LogEntry], dict[int, AbortedTransaction]]:
    """A log of interleaved producers, and its aborted transactions by number."""
    entries: list[LogEntry] = []
    open_transactions: dict[int, tuple[int, int]] = {}
    aborted: dict[int, AbortedTransaction] = {}
    offset = draw(st.integers(0, 100))
    number = 0
    for _ in range(draw(st.integers(0, 40))):
        producer = draw(st.integers(1, 4))
        kind = draw(st.sampled_from(["data", "plain", "commit", "abort"]))
        size = draw(st.integers(1, 5)) if kind in ("data", "plain") else 1
        if kind == "plain":
            entries.append(LogEntry(offset, offset + size, producer, kind, None))
        elif kind == "data":
            if producer not in open_transactions:
                number += 1
                open_transactions[producer] = (number, offset)
            entries.append(LogEntry(offset, offset + size, producer, kind, open_transactions[producer][0]))
        elif producer in open_transactions:
            current, first = open_transactions.pop(producer)
            entries.append(LogEntry(offset, offset + 1, producer, kind, current))
            if kind == "abort":
                aborted[current] = AbortedTransaction(first_offset=first, producer_id=producer, marker_offset=offset)
        else:
            continue
        offset += size
    return entries, aborted


def filtered(entries: list[LogEntry], aborted: list[AbortedTransaction]) -> list[bool]:
    filter_ = AbortFilter(aborted)
    verdicts = []
    for entry in entries:
        if entry.kind == "abort":
            filter_.end_transaction(entry.offset, entry.producer_id)
        if entry.kind in ("data", "plain"):
            verdicts.append(filter_.is_aborted(entry.end_offset - 1, entry.producer_id, entry.kind == "data"))
    return verdicts


@given(logs(), st.integers(0, 40), st.integers(1, 40), st.randoms())
def test_drops_exactly_the_batches_of_aborted_transactions_from_any_page(log, start, length, random) -> None:  # type: ignore[no-untyped-def]
    entries, aborted = log
    page = entries[start : start + length]
    if not page:
        return
    lo, hi = page[0].offset, page[-1].end_offset
    listed = [
        transaction
        for transaction in aborted.values()
        if transaction.marker_offset is not None and transaction.marker_offset >= lo and transaction.first_offset < hi
    ]
    random.shuffle(listed)
    expected = [entry.transaction in aborted for entry in page if entry.kind in ("data", "plain")]
    assert filtered(page, listed) == expected


def test_a_commit_of_a_later_transaction_of_the_same_producer_is_kept() -> None:
    filter_ = AbortFilter([AbortedTransaction(first_offset=0, producer_id=7)])
    assert filter_.is_aborted(4, 7, True)
    filter_.end_transaction(5, 7)
    assert not filter_.is_aborted(9, 7, True)


def test_plain_batches_of_an_active_producer_are_kept() -> None:
    assert not AbortFilter([AbortedTransaction(first_offset=0, producer_id=7)]).is_aborted(4, 7, False)


def test_each_transaction_is_listed_once_with_its_marker() -> None:
    transactions = AbortedTransactions()
    first = AbortedTransaction(first_offset=3, producer_id=7)
    transactions.add([first, AbortedTransaction(first_offset=5, producer_id=8)])
    transactions.end_transaction(9, 7)
    transactions.add([first])
    assert transactions.listed() == (
        AbortedTransaction(first_offset=3, producer_id=7, marker_offset=9),
        AbortedTransaction(first_offset=5, producer_id=8),
    )


def test_a_marker_does_not_end_a_transaction_that_began_behind_it() -> None:
    transactions = AbortedTransactions()
    transactions.end_transaction(2, 7)
    transactions.add([AbortedTransaction(first_offset=3, producer_id=7)])
    transactions.end_transaction(2, 7)
    assert transactions.listed()[0].marker_offset is None
