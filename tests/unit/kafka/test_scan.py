"""Test the header scan against the log reader that opens every record, on hand-made logs."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.scan.partition import LogBounds, PartitionScan
from makewhole.model.errors import TransientError
from makewhole.model.window import Accounting, PartitionRange

pytestmark = pytest.mark.unit


def scanned(source: Any, lo: int, stable: int, end: int | None = None, **options: Any) -> PartitionScan:
    wanted = PartitionRange(topic="t", topic_id="id", partition=3, lo=lo, hi=stable)
    bounds = LogBounds(log_start=source.log_start, stable=stable, end=stable if end is None else end)
    scan = PartitionScan(source, wanted, bounds, **options)
    while not scan.is_done:
        scan.step()
    scan.open_rest()
    return scan


def made(handmade: ModuleType, log: list[tuple[str, int, int]]) -> tuple[list[bytes], list[AbortedTransaction], int]:
    """A log of (kind, producer, size): its batches, its aborted transactions, and its end."""
    batches, aborted, offset = [], [], 0
    sequences: dict[int, int] = {}
    first: dict[int, int] = {}
    for kind, producer, size in log:
        if kind == "hole":
            offset += size
            continue
        if kind in ("commit", "abort"):
            batches.append(handmade.marker(offset, producer, is_commit=kind == "commit"))
            begun = first.pop(producer, None)
            if kind == "abort" and begun is not None:
                aborted.append(AbortedTransaction(first_offset=begun, producer_id=producer, marker_offset=offset))
            offset += 1
            continue
        identity = (-1, -1, -1) if kind == "plain" else (producer, 0, sequences.get(producer, 0))
        options = {"producer": identity, "leader_epoch": offset // 20, "attributes": 0x10 * (kind == "transactional")}
        if kind == "sparse":
            batches.append(handmade.sparse_batch(offset, {size - 1: handmade.rows(1)[0]}, size, **options))
            size += 1
        else:
            batches.append(handmade.plain_batch(offset, handmade.rows(size), **options))
        if kind == "damaged":
            batches[-1] = batches[-1][:-1] + bytes([batches[-1][-1] ^ 1])
        if kind == "transactional":
            first.setdefault(producer, offset)
        if kind != "plain":
            sequences[producer] = identity[2] + size
        offset += size
    return batches, aborted, offset


KINDS = ["plain", "numbered", "transactional", "transactional", "commit", "abort", "sparse", "hole", "damaged"]
STEPS = st.tuples(st.sampled_from(KINDS), st.integers(1, 3), st.integers(1, 5))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=20), st.data())
def test_headers_alone_account_for_every_offset_as_opened_records_do(
    handmade: ModuleType, log: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    batches, aborted, end = made(handmade, log)
    lo, hi = sorted((data.draw(st.integers(0, end)), data.draw(st.integers(0, end))))
    doubt = data.draw(st.sampled_from([None, "not compacted"]))
    log_start = data.draw(st.sampled_from([0, 0, end // 2]))
    source = handmade.MemoryLog(batches, aborted, log_start=log_start, doubt=doubt)
    reader = read_range(source, handmade.wanted(lo, hi), include_aborted=True)
    for _ in reader.batches():
        pass
    scan = scanned(source, lo, hi)
    assert scan.account.accounting == reader.accounting
    assert scan.account.leader_epochs == reader.leader_epochs
    assert scan.account.undecodable == reader.undecodable
    assert scan.account.transactions == reader.transactions


def test_what_stands_behind_the_stable_offset_is_counted_apart(handmade: ModuleType) -> None:
    batches = [
        handmade.plain_batch(0, handmade.rows(3)),
        handmade.plain_batch(3, handmade.rows(2), attributes=0x10, producer=(7, 0, 0)),
        handmade.plain_batch(5, handmade.rows(4)),
        handmade.marker(9, 8, is_commit=True),
    ]
    scan = scanned(handmade.MemoryLog(batches), 0, stable=3, end=10)
    assert scan.account.accounting == Accounting(span=3, data=3)
    assert (scan.tail.records, scan.tail.control, scan.tail.empty) == (6, 1, 0)
    assert {
        transaction.producer_id: (transaction.first_offset, transaction.records)
        for transaction in scan.transactions.open.values()
    } == {7: (3, 2)}


def test_a_transaction_reaches_from_its_first_batch_to_its_marker(handmade: ModuleType) -> None:
    batches = [
        handmade.plain_batch(0, handmade.rows(3), attributes=0x10, producer=(7, 0, 0), base_timestamp=1000),
        handmade.plain_batch(3, handmade.rows(2), attributes=0x10, producer=(7, 0, 3), base_timestamp=2000),
        handmade.marker(5, 7, is_commit=True),
        handmade.marker(6, 9, is_commit=False),
    ]
    history = scanned(handmade.MemoryLog(batches), 0, stable=7).transactions
    (transaction,) = history.committed.listed
    assert (transaction.first_offset, transaction.end_offset, transaction.records, transaction.batches) == (0, 6, 5, 2)
    assert (history.committed.count, history.aborted.count, history.aborted.without_data) == (1, 1, 1)


def test_a_source_that_gives_nothing_is_a_failed_scan(handmade: ModuleType) -> None:
    class Silent(handmade.MemoryLog):  # type: ignore[misc, name-defined]
        def fetch(self, *_: Any) -> Any:
            return handmade.LogPage()

    with pytest.raises(TransientError, match="nothing was read at offset 0"):
        scanned(Silent([]), 0, stable=5)


def test_without_checksums_a_damaged_batch_is_taken_by_its_header(handmade: ModuleType) -> None:
    batches, _, end = made(handmade, [("damaged", 1, 4), ("plain", 1, 2)])
    source = handmade.MemoryLog(batches)
    assert scanned(source, 0, end).account.accounting == Accounting(span=6, data=2, undecodable=4)
    assert scanned(source, 0, end, is_crc_checked=False).account.accounting == Accounting(span=6, data=6)
