"""Test the example's own arithmetic: it must be right, or nothing that is compared with it can be."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from examples.flights.outbox import days_of, outbox_row
from examples.flights.schedule import MOST_FAULTY_DAYS, faulty_days, quiet_stretches
from examples.flights.settings import FIRST_DAY, day_after, day_start
from examples.flights.verify import judge
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.points import PointKind

pytestmark = pytest.mark.unit

CHECKOUT = Path(__file__).resolve().parents[3]
LINE = {
    "year": "2013",
    "month": "1",
    "day": "1",
    "dep_time": "NA",
    "sched_dep_time": "515",
    "dep_delay": "NA",
    "arr_time": "NA",
    "sched_arr_time": "819",
    "arr_delay": "NA",
    "carrier": "UA",
    "flight": "1545",
    "tailnum": "",
    "origin": "EWR",
    "dest": "IAH",
    "air_time": "NA",
    "distance": "1400",
    "hour": "5",
    "minute": "15",
    "time_hour": "2013-01-01T10:00:00Z",
}


def test_an_outbox_row_has_its_key_first_and_null_for_what_is_absent() -> None:
    assert outbox_row(LINE) == [
        *("2013-01-01T10:00:00Z|UA|1545", "2013-01-01T10:00:00Z", "2013", "1", "1", "\\N", "515", "\\N", "\\N"),
        *("819", "\\N", "UA", "1545", "\\N", "EWR", "IAH", "\\N", "1400", "5", "15", "2013-01-01T10:00:00Z"),
    ]


def test_a_day_holds_its_first_moment_and_not_its_last() -> None:
    moments = ["2013-01-02T04:59:59Z", "2013-01-02T05:00:00Z", "2013-01-03T04:00:00Z", "2013-01-03T05:00:00Z"]
    rows = [{"time_hour": moment} for moment in moments]
    assert [row["time_hour"] for row in days_of(rows, date(2013, 1, 2), 1)] == moments[1:3]


def test_the_day_begins_at_midnight_in_new_york_in_winter() -> None:
    assert day_start(FIRST_DAY) == datetime(2013, 1, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize("days", [1, 3, 24, 25, 100, 365])
def test_faulty_days_and_quiet_stretches_tile_the_period(days: int) -> None:
    faulty = faulty_days(FIRST_DAY, days, seed=7)
    assert len(faulty) == min(days, MOST_FAULTY_DAYS)
    covered = Counter(fault.day for fault in faulty)
    for start, end in quiet_stretches(FIRST_DAY, days, faulty):
        covered.update(start + timedelta(days=place) for place in range((end - start).days))
    assert covered == Counter(day_after(FIRST_DAY, place) for place in range(days))


def test_the_mistakes_are_the_seed_s_and_no_one_else_s() -> None:
    assert faulty_days(FIRST_DAY, 3, seed=7) == faulty_days(FIRST_DAY, 3, seed=7)
    assert faulty_days(FIRST_DAY, 3, seed=7) != faulty_days(FIRST_DAY, 3, seed=8)


def test_the_proof_names_every_flight_that_is_not_where_it_belongs() -> None:
    proof = judge(Counter("abcd"), Counter("abbce"), Counter("aacd"))
    assert proof.wrong == [
        {"hop": "outbox→flights", "key": "d", "verdict": "missing"},
        {"hop": "outbox→flights", "key": "e", "verdict": "unexpected"},
        {"hop": "flights→warehouse", "key": "b", "verdict": "missing"},
        {"hop": "flights→warehouse", "key": "e", "verdict": "missing"},
        {"hop": "flights→warehouse", "key": "d", "verdict": "unexpected"},
        {"hop": "flights→warehouse", "key": "a", "verdict": "duplicate"},
    ]
    assert proof.repeated_in_topic == ["b"]
    assert not proof.holds


def test_the_proof_holds_when_all_are_everywhere_and_once_in_the_warehouse() -> None:
    assert judge(Counter("abc"), Counter("abbc"), Counter("abc")).holds


def test_empty_systems_prove_nothing() -> None:
    assert not judge(Counter(), Counter(), Counter()).holds


def test_the_pipeline_file_is_valid_and_names_the_example_s_places() -> None:
    pipeline = load_pipeline(CHECKOUT / "dags" / "pipelines" / "flights.yaml")
    assert [(point.name, point.kind) for point in pipeline.ordered_points()] == [
        ("outbox", PointKind.LEDGER),
        ("flights", PointKind.TOPIC),
        ("warehouse", PointKind.STORE),
    ]
    assert [hop.name for hop in pipeline.hops] == ["outbox→flights", "flights→warehouse"]
    assert pipeline.hops[1].consumer_group == "dw-loader"
