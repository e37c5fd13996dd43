"""Test that what a window asks the journal does not grow statement by statement with the windows before it."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from makewhole.journal import observations, windows
from makewhole.journal.database import connect
from makewhole.journal.observations import Observation
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.kafka.lineage import seen_epochs
from makewhole.model.verdict import HopCounts
from makewhole.model.window import PartitionRange, Window
from makewhole.sql import PgConnection

pytestmark = pytest.mark.integration

MOMENT = datetime(2013, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
WINDOWS = 30
ADDED_UP = """
create aggregate pg_temp.epochs_up_to(bigint, jsonb) (sfunc = makewhole.epochs_with, stype = jsonb, initcond = '[]');
select number, log_epochs, added_up from (
    select number, log_epochs, pg_temp.epochs_up_to(lo, leader_epochs) over (order by number) as added_up
    from makewhole.window_range
) as ranges where log_epochs <> added_up
"""


def write_window(session: PgConnection, number: int, revision: int = 1, *, is_judged: bool = True) -> Window:
    """Write a window of two partitions, ten offsets each, which has another revision when its number is even."""
    parts = tuple(
        PartitionRange(topic="t", topic_id="A", partition=partition, lo=10 * number, hi=10 * number + 10)
        for partition in (0, 1)
    )
    window = Window(
        pipeline="demo",
        number=number,
        revision=revision,
        start=MOMENT + number * DAY,
        end=MOMENT + (number + 1) * DAY,
        opened_at=MOMENT + (number + 1) * DAY,
        ranges={"a": parts},
    )
    windows.insert(session, window, request=f"{number}.{revision}", plan_only=False, configuration={})
    if is_judged:
        results = [HopResult(hop="a→b", counts=HopCounts(), digest="0")]
        hop_results.commit_results(session, window, hop_results.RECONCILED, results)
    return window


def counted(patch: pytest.MonkeyPatch, module: Any) -> list[int]:
    """Note the number of rows of each statement that a module of the journal runs."""
    rows: list[int] = []
    inner: Callable[..., list[tuple[Any, ...]]] = module._run

    def run(*args: Any, **values: Any) -> list[tuple[Any, ...]]:
        answer = inner(*args, **values)
        rows.append(len(answer))
        return answer

    patch.setattr(module, "_run", run)
    return rows


def test_all_windows_are_read_with_their_ranges_by_two_statements(
    journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(journal) as session:
        written = [write_window(session, number) for number in range(1, WINDOWS + 1)]
        rows = counted(monkeypatch, windows)
        judged = windows.newest_judged(session, "demo")
        assert rows == [WINDOWS, 2 * WINDOWS]
        assert [(window.number, window.ranges) for window in judged] == [
            (window.number, window.ranges) for window in reversed(written)
        ]
        rows.clear()
        assert windows.newest(session, "demo") == judged
        assert rows == [WINDOWS, 2 * WINDOWS]
        rows.clear()
        assert windows.newest(session, "other") == []
        assert rows == [0]


def test_the_last_judged_window_costs_its_own_rows(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(journal) as session:
        assert windows.last_judged(session, "demo") is None
        for number in range(1, WINDOWS + 1):
            write_window(session, number)
        rerun = write_window(session, 7, revision=2)
        write_window(session, 7, revision=3, is_judged=False)
        write_window(session, WINDOWS + 1, is_judged=False)
        judged = windows.newest_judged(session, "demo")
        rows = counted(monkeypatch, windows)

        assert windows.last_judged(session, "demo") == judged[0]
        assert rows == [1, 2]
        assert judged[0].number == WINDOWS
        last = windows.last_judged(session, "demo", 7)
        assert last is not None
        assert (last.number, last.revision) == (7, rerun.revision)
        assert windows.last_judged(session, "demo", WINDOWS + 1) is None
        assert windows.last_judged(session, "other") is None


@pytest.mark.parametrize("seed", range(8))
def test_the_epochs_beside_the_last_range_are_those_of_all_ranges(journal: str, seed: int) -> None:
    draw, parts = random.Random(seed), list[PartitionRange]()
    lo, epoch, lineage = 0, 0, 0
    with connect(journal) as session:
        for number in range(1, 25):
            if parts and draw.random() < 0.2:  # a truncation: the log goes on from an earlier offset
                lo, lineage, epoch = draw.randrange(parts[0].lo, lo + 1), lineage + 1, epoch + 1
            hi, epochs = lo + draw.randrange(10), list[tuple[int, int]]()
            for end in sorted(draw.randrange(lo, hi + 1) for _ in range(draw.choice([0, 0, 1, 2]))):
                epochs.append((epoch, end))
                epoch += draw.randrange(1, 3)
            known = (*epochs, (epoch, hi)) if draw.random() < 0.8 else ()
            part = PartitionRange(
                topic="t", topic_id="A", partition=0, lo=lo, hi=hi, lineage=lineage, leader_epochs=known
            )
            parts.append(part)
            lo = hi
            window = Window(
                pipeline="demo",
                number=number,
                revision=1,
                start=None,
                end=MOMENT + number * DAY,
                opened_at=MOMENT,
                ranges={"a": (part,)},
            )
            windows.insert(session, window, request=str(number), plan_only=False, configuration={})
            [*_, last] = windows.covered_ranges(session, "demo", "a")[0]
            assert (last, last.leader_epochs) == (part, seen_epochs(parts))
    with connect(journal) as session, session.cursor() as cursor:  # as the migration adds them up
        cursor.execute(ADDED_UP)
        assert cursor.fetchall() == []


def test_what_was_observed_last_costs_one_row(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(journal) as session:
        for number in range(WINDOWS):
            seen = Observation(
                point="a", observed_at=MOMENT + number * DAY, topic_id="A", stable_offsets={0: number, 1: 2}
            )
            observations.put(session, "demo", seen)
        write_window(session, 1)
        everything = observations.since(session, "demo", "a", MOMENT - DAY)
        rows = counted(monkeypatch, observations)

        assert observations.last(session, "demo", "a", MOMENT + 7 * DAY) == everything[7]
        assert rows == [1, 2]  # the observation, and the lanes of the topic
        assert observations.last(session, "demo", "a", MOMENT + 7.5 * DAY) == everything[7]
        assert observations.last(session, "demo", "a", MOMENT - DAY) is None
        assert observations.last(session, "demo", "b", MOMENT + 99 * DAY) is None
