"""Test how many findings have originals that Kafka deletes, and from when on."""

from datetime import UTC, datetime, timedelta

import pytest

from makewhole.compensation.planning.deadlines import DeadlineCounts, Deadlines
from makewhole.kafka.retention import Retention
from makewhole.model.verdict import Cause, Finding, Verdict

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 1, tzinfo=UTC)
WEEK = Retention(log_starts={0: 100}, keeps=timedelta(days=7), is_limited_in_size=False)
FOREVER = Retention(log_starts={}, keeps=None, is_limited_in_size=False)


def missing(hop: str, *offsets: int) -> Finding:
    copies = [
        {"partition": 0, "offset": offset, "time": (AT + timedelta(hours=offset)).isoformat()} for offset in offsets
    ]
    return Finding(
        hop=hop,
        key="k",
        key_hash="0" * 32,
        verdict=Verdict.MISSING,
        cause=Cause.LOST_AFTER_TOPIC,
        evidence={"source": copies},
    )


def test_findings_are_counted_over_all_batches_with_the_first_moment() -> None:
    counted = DeadlineCounts(Deadlines(retention={"t": WEEK, "kept": FOREVER}, silent={}))
    counted.add([missing("t→s", 300), missing("t→s", 99), missing("ledger→t")])
    counted.add([missing("t→s", 200, 500), missing("kept→s", 1), missing("t→s", 400)])
    assert (counted.deleted, counted.due) == (1, 3)
    assert counted.first == AT + timedelta(hours=200, days=7)


def test_nothing_is_due_where_nothing_was_counted() -> None:
    counted = DeadlineCounts(Deadlines(retention={"t": WEEK}, silent={}))
    counted.add([])
    assert (counted.deleted, counted.due, counted.first) == (0, 0, None)
