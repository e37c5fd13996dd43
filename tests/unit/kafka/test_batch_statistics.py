"""Test the sums over batch headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.log.batches import Batch
from makewhole.kafka.scan import batch_statistics
from makewhole.kafka.scan.batch_statistics import BatchStatistics, Rates, Spread

pytestmark = pytest.mark.unit


def batch(records: int, newest: int, *, attributes: int = 0, producer_id: int = -1) -> Batch:
    return Batch(0, 0, 2, 0, attributes, records - 1, newest, newest, producer_id, 0, 0, records, 0, 61 + records)


@given(st.lists(st.integers(0, 10**6)), st.lists(st.integers(0, 10**6)))
def test_spreads_add_up_to_that_of_all_values(first: list[int], second: list[int]) -> None:
    spreads = [Spread(), Spread(), Spread()]
    for spread, values in zip(spreads, (first, second, first + second), strict=True):
        for value in values:
            spread.add(value)
    together = spreads[0] + spreads[1]
    assert (together.count, together.total, together.least, together.most) == (
        len(first + second),
        sum(first + second),
        min(first + second, default=None),
        max(first + second, default=None),
    )
    assert together.by_power == spreads[2].by_power


def test_rates_of_any_length_fit_a_limited_number_of_buckets_and_lose_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_statistics, "_BUCKETS_AT_MOST", 16)
    narrow, wide = Rates(), Rates()
    for second in range(10):
        narrow.add(1000 * second, 2)
    for second in range(1000):
        wide.add(1000 * second, 3)
    assert len(wide.records) <= 16
    assert (narrow.width_ms, sum(wide.records.values())) == (1000, 3000)
    narrow.merge(wide)
    assert narrow.width_ms == wide.width_ms
    assert sum(narrow.records.values()) == 3020
    assert min(narrow.records) == 0


def test_late_batches_are_those_behind_the_newest_before_them() -> None:
    statistics = BatchStatistics()
    for newest in (1000, 5000, 4000, 5000, 1000, -1):
        statistics.add(batch(2, newest))
    times = statistics.times
    assert (times.oldest_ms, times.newest_ms, times.late.batches, times.latest_ms) == (1000, 5000, 2, 4000)
    assert (times.without.records, sum(statistics.rates.records.values())) == (2, 10)


@pytest.mark.parametrize(
    ("attributes", "base"), [(0, -1), (0x40, 900_000), (0x08, 10)], ids=["emptied", "with a horizon", "of the broker"]
)
def test_the_time_of_a_first_record_is_no_other_that_stands_in_its_place(attributes: int, base: int) -> None:
    """A cleaned batch has no base timestamp, or the moment at which its tombstones go away."""
    statistics = BatchStatistics()
    statistics.add(batch(2, 5000, attributes=attributes)._replace(base_timestamp=base))
    assert statistics.times.oldest_ms == 5000


def test_batches_are_distinguished_by_codec_and_by_kind_of_producer() -> None:
    statistics = BatchStatistics()
    statistics.add(batch(1, 0, attributes=3))
    statistics.add(batch(2, 0, producer_id=5))
    statistics.add(batch(4, 0, attributes=0x14, producer_id=5))
    assert {codec: total.records for codec, total in statistics.codecs.items()} == {3: 1, 0: 2, 4: 4}
    assert {kind: total.records for kind, total in statistics.kinds.items()} == {
        "plain": 1,
        "idempotent": 2,
        "transactional": 4,
    }
