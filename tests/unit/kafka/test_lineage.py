"""Test the detection of truncation by leader epochs, against logs that are compared record by record."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.lineage import Ask, divergence, epochs_of, seen_epochs
from makewhole.kafka.offsets import EpochEnd
from makewhole.model.window import PartitionRange

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Log:
    """A leader's log: the epoch of every record. `leader` is its own epoch, under which it may have written nothing."""

    records: tuple[int, ...]
    leader: int

    def ask(self, epoch: int) -> EpochEnd | None:
        """Answer as Kafka's LeaderEpochFileCache.endOffsetFor does."""
        starts = {epoch: offset for offset, epoch in reversed(list(enumerate(self.records)))}
        starts.setdefault(self.leader, len(self.records))
        epochs = sorted(starts)
        if epoch == epochs[-1]:
            return EpochEnd(epoch, len(self.records))
        at = bisect_right(epochs, epoch)
        if at == len(epochs):
            return None
        return EpochEnd(epochs[at - 1] if at else epoch, starts[epochs[at]])


def windows(log: Log, *ends: int, lineage: int = 0, lo: int = 0) -> list[PartitionRange]:
    """Windows of a log that end at `ends`, frozen while `log.leader` leads."""
    found = []
    for hi in ends:
        epochs = epochs_of(log.ask, log.leader, lo, hi)
        found.append(
            PartitionRange(topic="t", topic_id="i", partition=0, lo=lo, hi=hi, lineage=lineage, leader_epochs=epochs)
        )
        lo = hi
    return found


def noticed(ask: Ask, ranges: Sequence[PartitionRange]) -> int:
    return divergence(ask, seen_epochs(ranges), ranges[0].lo)


def test_what_is_still_there_was_not_truncated() -> None:
    seen = windows(Log((0,) * 100, 0), 60, 100)

    assert noticed(Log((0,) * 120, 0).ask, seen) == 100
    assert noticed(Log((0,) * 100 + (1,) * 20, 1).ask, seen) == 100
    assert noticed(Log((0,) * 100, 7).ask, seen) == 100


def test_a_leader_that_lacks_records_reports_from_where_on() -> None:
    """The measured case: 200 seen, 150 had been replicated, 300 at the new leader when asked."""
    seen = windows(Log((0,) * 200, 0), 200)

    assert noticed(Log((0,) * 150 + (1,) * 150, 1).ask, seen) == 150
    assert noticed(Log((0,) * 150, 1).ask, seen) == 150


def test_truncation_below_several_windows_and_epochs_is_placed_exactly() -> None:
    old = Log((0,) * 100 + (1,) * 50 + (2,) * 50, 3)
    seen = windows(old, 80, 120, 200)

    assert seen[1].leader_epochs == ((0, 100), (1, 120), (2, 120), (3, 120))
    assert seen[2].leader_epochs == ((1, 150), (2, 200), (3, 200))
    assert noticed(Log((0,) * 100 + (1,) * 40 + (4,) * 100, 4).ask, seen) == 140
    assert noticed(Log((0,) * 70 + (4,) * 100, 4).ask, seen) == 70


def test_records_of_an_epoch_that_was_never_seen_are_not_taken_for_the_seen_ones() -> None:
    """Two unclean elections: a broker comes back with an epoch that the log which was read never had."""
    seen = windows(Log((0,) * 100 + (2,) * 100, 2), 200)

    assert noticed(Log((0,) * 100 + (1,) * 50 + (3,) * 80, 3).ask, seen) == 100


def test_after_a_truncation_the_log_that_is_remembered_is_the_new_one() -> None:
    first = windows(Log((0,) * 200, 0), 200)
    second = windows(Log((0,) * 150 + (1,) * 150, 1), 300, lo=150, lineage=1)

    assert seen_epochs([*first, *second]) == ((0, 150), (1, 300))
    assert noticed(Log((0,) * 150 + (1,) * 200, 1).ask, [*first, *second]) == 300
    assert noticed(Log((0,) * 120 + (2,) * 200, 2).ask, [*first, *second]) == 120


def test_numbers_of_epochs_that_restored_brokers_use_again_are_not_taken_for_the_seen_ones() -> None:
    seen = windows(Log((5,) * 1000 + (6,) * 1000, 6), 2000, lo=900)

    assert noticed(Log((5,) * 950 + (6,) * 1550, 6).ask, seen) == 950
    assert noticed(Log((5,) * 1000 + (6,) * 1500, 6).ask, seen) == 2000


def test_nothing_is_left_where_the_log_begins_later_or_knows_no_epoch() -> None:
    seen = windows(Log((0,) * 10 + (3,) * 90, 3), 100, lo=40)

    assert noticed(lambda _: None, seen) == 40
    assert noticed(Log((0,) * 10 + (1,) * 10 + (4,) * 9, 4).ask, seen) == 40


def test_a_leader_without_earlier_epochs_reports_only_its_own() -> None:
    assert epochs_of(Log((0,) * 10, 0).ask, 0, 0, 10) == ((0, 10),)
    assert epochs_of(Log((), 5).ask, 5, 0, 0) == ((5, 0),)
    assert epochs_of(Log((0,) * 10 + (5,) * 10, 5).ask, 5, 10, 20) == ((5, 20),)


@st.composite
def diverging_logs(draw: st.DrawFn) -> tuple[Log, list[PartitionRange], Log, int]:
    """A log and its windows, another that shares its beginning, and how many records the two share."""
    old_records = tuple(sorted(draw(st.lists(st.sampled_from((0, 2, 4, 6)), min_size=1, max_size=30))))
    shared = draw(st.integers(0, len(old_records)))
    last = old_records[shared - 1] if shared else 0
    leader = old_records[-1] + draw(st.integers(0, 1))
    after = {*old_records[shared:], leader} if shared < len(old_records) else set()
    # Epochs that the two logs both have, they have at the same offsets: each had one leader.
    others = [epoch for epoch in range(last, 10) if epoch not in after and (epoch % 2 or epoch == last or epoch > 6)]
    new_tail = sorted(draw(st.lists(st.sampled_from(others), max_size=10))) if others else []
    new_records = (*old_records[:shared], *new_tail)
    old = Log(old_records, leader)
    ends = sorted({*draw(st.lists(st.integers(0, len(old_records)), max_size=3)), len(old_records)})
    return old, windows(old, *ends), Log(new_records, 11), shared


@given(diverging_logs())
def test_the_exact_offset_is_found_whatever_the_elections_were(
    case: tuple[Log, list[PartitionRange], Log, int],
) -> None:
    old, seen, new, shared = case

    assert noticed(new.ask, seen) == shared
    assert noticed(old.ask, seen) == len(old.records)
