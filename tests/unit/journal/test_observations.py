"""An observation counts only for the log that is there now: offsets are used again, and names too."""

from datetime import UTC, datetime, timedelta

import pytest

from makewhole.journal.observations import Lane, still_seen

pytestmark = pytest.mark.unit


def at(day: int) -> datetime:
    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=day)


FIRST = [Lane(topic_id="a", partition=partition, lineage=0, lo=0, noticed_at=at(1)) for partition in (0, 1)]
TRUNCATED = Lane(topic_id="a", partition=0, lineage=1, lo=150, noticed_at=at(5))
REMADE = Lane(topic_id="b", partition=0, lineage=0, lo=0, noticed_at=at(8))
SEEN = {"0": 200, "1": 30}


def test_an_observation_of_the_same_log_counts_as_it_was_made() -> None:
    assert still_seen([], "a", at(1), SEEN) == {0: 200, 1: 30}
    assert still_seen(FIRST, "a", at(1), SEEN) == {0: 200, 1: 30}
    assert still_seen([*FIRST, TRUNCATED], "a", at(5), SEEN) == {0: 200, 1: 30}


def test_what_was_seen_before_a_truncation_was_noticed_ends_where_it_was_cut() -> None:
    assert still_seen([*FIRST, TRUNCATED], "a", at(4), SEEN) == {0: 150, 1: 30}
    assert still_seen([*FIRST, TRUNCATED], "a", at(4), {"0": 90}) == {0: 90}


def test_what_was_seen_of_an_old_incarnation_is_nothing_of_the_new_one() -> None:
    lanes = [*FIRST, TRUNCATED, REMADE]
    assert still_seen(lanes, "a", at(7), SEEN) == {}
    assert still_seen(lanes, "b", at(8), SEEN) == {0: 200, 1: 30}


def test_a_new_incarnation_that_no_window_has_read_yet_counts() -> None:
    assert still_seen(FIRST, "b", at(9), SEEN) == {0: 200, 1: 30}
