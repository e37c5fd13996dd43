"""Test the detection of truncation by leader epochs, against logs that are compared record by record."""

from collections.abc import Sequence

import pytest
from hypothesis import given

from makewhole.kafka.lineage import Ask, divergence, epochs_of, seen_epochs
from makewhole.model.window import PartitionRange
from tests.unit.kafka.logs_by_epoch import Log, diverging_logs, windows

pytestmark = pytest.mark.unit


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


@given(diverging_logs())
def test_the_exact_offset_is_found_whatever_the_elections_were(
    case: tuple[Log, list[PartitionRange], Log, int],
) -> None:
    old, seen, new, shared = case

    assert noticed(new.ask, seen) == shared
    assert noticed(old.ask, seen) == len(old.records)
