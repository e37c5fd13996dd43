"""Check which verdicts become undecidable where part of a log is gone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import JUDGED
from makewhole.compute.judge.log_history import LogHistory, TimeSpan, log_history, remaining_copies, truncated_copies
from makewhole.compute.judge.undecidable import (
    Lags,
    UndecidableSpans,
    UnreadRecords,
    mark_undecidable,
    mark_unreadable,
    undecidable_spans,
)
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.window import PartitionRange, Window

pytestmark = pytest.mark.unit

DAY = timedelta(days=1)
BORN = datetime(2025, 3, 1, tzinfo=UTC)
SETTLE = timedelta(minutes=5)
LAGS = Lags(settle=SETTLE, longest=timedelta(hours=2))
WHOLE = LogHistory()
PARTIAL = LogHistory(is_partial=True)


def window(number: int) -> Window:
    start, end = BORN + (number - 1) * DAY, BORN + number * DAY
    return Window(pipeline="shop", number=number, revision=1, start=start, end=end, opened_at=end, ranges={})


def incident(kind: IncidentKind, lo: int = 0, hi: int = 10, partition: int = 0, **detail: Any) -> Incident:
    return Incident(
        kind=kind, point="orders", topic="orders", topic_id="A", partition=partition, lo=lo, hi=hi, detail=detail
    )


def judged(*rows: tuple[str, datetime | None]) -> pl.DataFrame:
    filled = [{"key": str(at), "verdict": verdict, "time": time} for at, (verdict, time) in enumerate(rows)]
    return pl.DataFrame(filled, schema=JUDGED)


def turned(frame: pl.DataFrame, open_spans: UndecidableSpans) -> list[tuple[str, str | None]]:
    return mark_undecidable(frame, open_spans).select("verdict", "hint").rows()


EXPIRED = ("undecidable", "expired")


def test_where_every_offset_was_read_every_verdict_stands() -> None:
    frame = judged(("missing", BORN), ("unexpected", None), ("mismatched", BORN), ("matched", BORN))

    assert mark_undecidable(frame, undecidable_spans(WHOLE, WHOLE, LAGS)).equals(frame)


def test_a_key_that_a_partial_topic_lacks_or_has_with_another_value_is_undecidable() -> None:
    frame = judged(("missing", BORN), ("mismatched", BORN), ("unexpected", BORN), ("duplicate", BORN))

    assert turned(frame, undecidable_spans(WHOLE, PARTIAL, LAGS)) == [
        EXPIRED,
        EXPIRED,
        ("unexpected", None),
        ("duplicate", None),
    ]


def test_a_row_that_no_record_gave_is_undecidable_where_records_of_the_source_are_gone() -> None:
    frame = judged(("missing", BORN), ("unexpected", BORN), ("mismatched", BORN))

    assert turned(frame, undecidable_spans(PARTIAL, WHOLE, LAGS)) == [
        ("missing", None),
        EXPIRED,
        EXPIRED,
    ]


def test_an_unreadable_record_may_have_deleted_its_key_where_the_latest_version_counts() -> None:
    """An event is not taken back by a record of its source."""
    frame, none = judged(("missing", BORN)), UnreadRecords.none()
    unread = UnreadRecords(keys=none.keys, is_any=True)
    answers = [mark_unreadable(frame, unread, none, LAGS, takes_latest=latest)["verdict"] for latest in (True, False)]
    assert [verdicts.to_list() for verdicts in answers] == [["undecidable"], ["missing"]]


def test_an_earlier_partial_window_makes_only_keys_of_its_time_undecidable() -> None:
    """A producer lags by the settle time at most. A row may come as late as any is waited for."""
    history = LogHistory(expired=(TimeSpan(start=BORN, end=BORN + DAY),))
    moments = [BORN - 2 * SETTLE, BORN - SETTLE, BORN + DAY - SETTLE, BORN + DAY, BORN + DAY + LAGS.longest, None]

    missing = turned(judged(*(("missing", at) for at in moments)), undecidable_spans(WHOLE, history, LAGS))
    strange = turned(judged(*(("unexpected", at) for at in moments)), undecidable_spans(history, WHOLE, LAGS))

    is_open = [[verdict == "undecidable" for verdict, _ in answers] for answers in (missing, strange)]
    assert is_open == [[False, True, True, False, False, True], [False, False, True, True, False, True]]


def test_what_a_key_index_has_dropped_is_late_by_the_settle_time_at_most() -> None:
    """Its span has the time already by which its rows may be late."""
    history = LogHistory(dropped=(TimeSpan(end=BORN),))
    frame = judged(*(("unexpected", BORN + after) for after in (-SETTLE, SETTLE / 2, SETTLE, LAGS.longest / 2)))

    answers = turned(frame, undecidable_spans(history, WHOLE, LAGS))

    assert [verdict for verdict, _ in answers] == ["undecidable", "undecidable", "unexpected", "unexpected"]


@pytest.mark.parametrize(("kind", "cause"), [("truncated", "truncated"), ("recreated", "topic_recreated")])
def test_an_unexpected_row_is_undecidable_where_the_log_was_truncated_or_recreated(kind: str, cause: str) -> None:
    incidents = (incident(IncidentKind.TRUNCATED),)
    history = LogHistory(truncated=incidents) if kind == "truncated" else LogHistory(recreated=incidents)
    frame = judged(("unexpected", BORN), ("missing", BORN))

    assert turned(frame, undecidable_spans(history, WHOLE, LAGS)) == [
        ("undecidable", cause),
        ("missing", None),
    ]
    assert turned(frame, undecidable_spans(WHOLE, history, LAGS)) == [
        ("unexpected", None),
        ("missing", None),
    ]


def test_the_history_keeps_incidents_of_this_and_of_earlier_windows_apart() -> None:
    incidents = [
        (window(1), incident(IncidentKind.EXPIRED, before_it_was_read=True)),
        (window(2), incident(IncidentKind.TRUNCATED, lo=5, lineage=0)),
        (window(3), incident(IncidentKind.LEADER_CHANGED)),
        (window(3), incident(IncidentKind.HANGING_TRANSACTION)),
        (window(3), incident(IncidentKind.TRUNCATED, lo=7, lineage=1)),
    ]

    history = log_history(window(3), "orders", incidents, expired=0)

    assert history.expired == (TimeSpan(start=BORN, end=BORN + DAY),)
    assert [truncation.lo for truncation in history.truncations] == [5, 7]
    assert [truncation.lo for truncation in history.truncated] == [7]
    assert (len(history.leader_changes), len(history.transactions), history.is_partial) == (1, 1, False)
    assert log_history(window(3), "other", incidents, expired=0) == LogHistory()
    assert log_history(window(3), "orders", incidents, expired=1).is_partial
    unread = incident(IncidentKind.TRUNCATED, before_it_was_read=True)
    partial = log_history(window(3), "orders", [(window(3), unread)], expired=0)
    assert (partial.is_partial, partial.truncated, partial.truncations) == (True, (), ())


@pytest.mark.parametrize("kind", [IncidentKind.EXPIRED, IncidentKind.TRUNCATED])
def test_what_a_later_window_could_not_read_may_have_held_any_key_of_one_that_is_judged_again(
    kind: IncidentKind,
) -> None:
    unread = incident(kind, before_it_was_read=True)
    again = log_history(window(3), "orders", [(window(4), unread)], expired=0)
    assert (again.is_partial, again.expired) == (True, ())
    read = incident(IncidentKind.TRUNCATED, before_it_was_read=False)
    assert not log_history(window(3), "orders", [(window(4), read)], expired=0).is_partial


def test_a_truncation_takes_every_older_lineage_from_its_offset_on() -> None:
    def part(partition: int, lo: int, hi: int, lineage: int = 0, topic_id: str = "A") -> PartitionRange:
        return PartitionRange(topic="orders", topic_id=topic_id, partition=partition, lo=lo, hi=hi, lineage=lineage)

    incidents = [
        (window(2), incident(IncidentKind.TRUNCATED, lo=150, lineage=0)),
        (window(3), incident(IncidentKind.TRUNCATED, lo=100, lineage=1)),
    ]
    history = log_history(window(4), "orders", incidents, expired=0)

    assert history.truncated_from([part(0, 0, 200), part(1, 0, 200)]) == {0: 100}
    assert history.truncated_from([part(0, 150, 180, lineage=1)]) == {0: 100}
    assert history.truncated_from([part(0, 100, 130, lineage=2)]) == {}
    assert history.truncated_from([part(0, 0, 100)]) == {}
    assert history.truncated_from([part(0, 0, 200, topic_id="B")]) == {}


def test_copies_are_truncated_by_partition_and_offset() -> None:
    copies = pl.DataFrame({"partition": [0, 0, 1], "offset": [99, 100, 100]})

    assert truncated_copies(copies, {0: 100}).rows() == [(0, 100)]
    assert remaining_copies(copies, {0: 100}).rows() == [(0, 99), (1, 100)]
    assert truncated_copies(copies, {}).is_empty()
