"""Test until when windows before one were compared by other columns, and that few rows say so in a long history."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window
from makewhole.sql import PgConnection
from tests.world.long_history import questions, rows_read, run_outside

pytestmark = pytest.mark.integration

Columns = Mapping[str, str]

MOMENT, DAY = datetime(2013, 1, 1, tzinfo=UTC), timedelta(days=1)
A, B, C = ({"amount": f"decimal(8,{scale})"} for scale in (1, 2, 3))
HOP = "a→b"


def write_window(
    session: PgConnection, number: int, compare: Columns, revision: int = 1, *, is_judged: bool = True
) -> Window:
    window = Window(
        pipeline="demo",
        number=number,
        revision=revision,
        start=MOMENT + number * DAY,
        end=MOMENT + (number + 1) * DAY,
        opened_at=MOMENT + (number + 1) * DAY,
        ranges={},
    )
    configuration = {"compare": dict(compare)}
    windows.insert(session, window, request=f"{number}.{revision}", plan_only=False, configuration=configuration)
    if is_judged:
        results = [HopResult(hop=HOP, counts=HopCounts(), digest="0")]
        hop_results.commit_results(session, window, hop_results.RECONCILED, results)
    return window


@pytest.mark.parametrize("seed", range(3))
def test_the_newest_window_with_other_columns_is_found_by_its_newest_judged_revision(journal: str, seed: int) -> None:
    draw = random.Random(seed)
    by_number: dict[int, Columns] = {}
    with connect(journal) as session:
        for number in range(1, 25):
            for revision in range(1, draw.randint(1, 3) + 1):
                compare, is_judged = draw.choice((A, A, A, B, C)), draw.random() < 0.7
                window = write_window(session, number, compare, revision, is_judged=is_judged)
                if is_judged:
                    by_number[number] = compare
            for now in (A, B, C):
                others = [at for at, compare in by_number.items() if at < number and compare != now]
                expected = (MOMENT + (max(others) + 1) * DAY, by_number[max(others)]) if others else None
                assert windows.compared_otherwise(session, window, HOP, now) == expected


@pytest.mark.parametrize("other", [2, None])
def test_whether_a_window_long_ago_had_other_columns_is_known_without_reading_those_since(
    journal: str, monkeypatch: pytest.MonkeyPatch, other: int | None
) -> None:
    with connect(journal) as session:
        for number in range(1, 501):
            newest = write_window(session, number, B if number == other else A)
    run_outside(journal, "vacuum analyze")
    with questions(monkeypatch) as asked, connect(journal) as session:
        expected = None if other is None else (MOMENT + (other + 1) * DAY, B)
        assert windows.compared_otherwise(session, newest, HOP, A) == expected
        assert windows.compared_otherwise(session, newest, HOP, B) == (MOMENT + 500 * DAY, A)
    with connect(journal) as session:
        read = [
            rows_read(session, statement.text)
            for statement in asked.asked
            if statement.name == "window.compared_otherwise"
        ]
    assert [rows for rows in read if rows > 10] == []
    assert len(read) == 2
