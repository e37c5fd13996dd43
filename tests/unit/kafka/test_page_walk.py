"""Test that a damaged batch costs only the offsets up to the next sound one."""

import struct
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.log.batches import split_batches
from makewhole.kafka.log.page import LogPage
from makewhole.kafka.log.page_walk import CheckedBatch, checked_batches, first_reachable
from makewhole.kafka.log.reader import Undecodable, read_range
from makewhole.model.window import Accounting

pytestmark = pytest.mark.unit


def three(handmade: ModuleType, form: str, at: int, value: int) -> list[bytes]:
    """Return batches of five offsets each, a header field of the second overwritten."""
    batches = [bytearray(handmade.plain_batch(5 * number, handmade.rows(5))) for number in range(3)]
    struct.pack_into(form, batches[1], at, value)
    return [bytes(batch) for batch in batches]


LIES = {
    "wrong checksum": (">I", 17, 1),
    "record format 0 is not supported": (">B", 16, 0),
    "impossible counts: -1 records": (">i", 57, -1),
    "impossible counts: 2147483647 records": (">i", 57, 2**31 - 1),
    "impossible counts: 5 records, last offset delta -7": (">i", 23, -7),
    "its offsets lie before the end of the batch before it": (">q", 0, 2),
    "its offsets reach into those of the next batch": (">q", 0, 9),
    "wrong checksum (CRC-32C)": (">i", 23, 2**30),
}


@pytest.mark.parametrize(("reason", "lie"), LIES.items(), ids=LIES)
def test_a_batch_with_a_wrong_header_costs_itself_only(
    handmade: ModuleType, reason: str, lie: tuple[str, int, int]
) -> None:
    log = handmade.MemoryLog(three(handmade, *lie), page_batches=3)
    reader = read_range(log, handmade.wanted(0, 15))
    assert [row for batch in reader for row in batch.column("offset").to_pylist()] == [*range(5), *range(10, 15)]
    [bad] = reader.undecodable
    assert bad.reason.startswith(reason)
    assert bad[:3] == Undecodable(3, 5, 10, "")[:3]
    assert reader.accounting == Accounting(span=15, data=10, undecodable=5)


def test_a_run_of_damaged_batches_is_judged_once(handmade: ModuleType) -> None:
    batches = [handmade.plain_batch(5 * number, handmade.rows(5)) for number in range(4)]
    data = bytearray(b"".join(batches))
    size = len(batches[0])
    data[size + 17] ^= 1
    struct.pack_into(">i", data, size + 8, 60)  # and it is shorter than it was: what follows it is no header
    page = LogPage(data=bytes(data), batches=list(split_batches(bytes(data))))
    steps = list(checked_batches(page, is_crc_checked=True))
    assert steps[0] == CheckedBatch(page.batches[0])
    assert (steps[1].batch, steps[1].reason) == (page.batches[1], "wrong checksum (CRC-32C)")
    assert all(step.reason is None for step in steps[2:])


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    damaged=st.integers(0, 11),
    reach=st.integers(0, 30),
)
def test_the_first_batch_behind_the_damage_is_found(sizes: list[int], damaged: int, reach: int) -> None:
    """A broker fails up to some offset behind the damage, and answers from there on."""
    bases = [sum(sizes[:number]) for number in range(len(sizes))]
    hi, behind = sum(sizes), bases[damaged % len(sizes)]
    lost_up_to = behind + sizes[damaged % len(sizes)] + reach

    def probe(at: int) -> int | None:
        assert behind < at < hi
        return None if at < lost_up_to else max(base for base in bases if base <= at)

    reachable = first_reachable(probe, behind, hi)
    if lost_up_to >= hi:
        assert reachable is None
    else:
        assert reachable is not None
        assert reachable[1] == max(base for base in bases if base <= lost_up_to)
        assert probe(reachable[0]) == reachable[1]


def test_a_batch_that_only_its_last_offset_reaches_is_found_by_it() -> None:
    def probe(at: int) -> int | None:  # batches of ten; all of batch 5 but its last offset is behind the damage
        return None if at < 59 else at // 10 * 10

    assert first_reachable(probe, 40, 200) == (59, 50)
