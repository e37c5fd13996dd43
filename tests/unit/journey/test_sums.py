"""Check what the records of a key add up to in its journey, beside what its rows hold."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from makewhole.journey.copies import JourneyCopy
from makewhole.journey.sums import KeySums, key_sums
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.grouping import Grouping
from makewhole.model.points import PointKind, TablePoint, TopicPoint

pytestmark = pytest.mark.unit

AT = datetime(2013, 1, 3, tzinfo=UTC)
GROUP = Grouping(identity="line", counts="lines", sums=("total",))
REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
HOP = Hop(
    source="lines",
    target="orders",
    remedies=REPORT,
    group=GROUP,
    compare={"lines": "bigint", "total": "decimal(12,2)"},
)
PIPELINE = Pipeline(
    name="totals",
    points={
        "lines": TopicPoint(name="lines", connection="log", topic="lines", key=("$.order",)),
        "orders": TablePoint(name="orders", kind=PointKind.STORE, connection="db", table="orders", key=("id",)),
    },
    hops=(HOP,),
)
ROW = JourneyCopy(place="(0,1)", time=AT, values={"lines": "2", "total": "3.50"})


def record(offset: int, line: str | None, total: str | None, **changed: Any) -> JourneyCopy:
    identity = {"partition": 0, "offset": offset, "is_aborted": False, "is_tombstone": False, **changed}
    values = {"line": line, "total": total}
    return JourneyCopy(place=f"0:{offset}", time=AT, values=values, identity=identity, excluded_by=())


def sums(*records: JourneyCopy, rows: tuple[JourneyCopy, ...] = (ROW,)) -> KeySums:
    answer = key_sums(PIPELINE, HOP, records, rows)
    assert answer is not None
    return answer


def test_a_record_that_was_sent_again_counts_once_and_what_does_not_pass_not_at_all() -> None:
    out = replace(record(3, "9", "100"), excluded_by=(HOP.name,))
    aborted = record(4, "8", "100", is_aborted=True)
    answer = sums(record(0, "1", "1"), record(1, "2", "2.5"), record(2, "2", "2.50"), out, aborted)
    assert answer == KeySums(
        hop="lines→orders",
        records=2,
        expected={"lines": "2", "total": "3.50"},
        found=({"lines": "2", "total": "3.50"},),
    )
    assert answer.text == "lines→orders: 2 records add up to lines=2, total=3.50; its row has lines=2, total=3.50"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([("2", None)], {"lines": "2", "total": None}),
        ([("2", "1.005")], {"lines": "2", "total": None}),
        ([("1", "9")], {"lines": None, "total": None}),
        ([(None, "1")], {"lines": None, "total": None}),
    ],
)
def test_a_sum_that_no_rule_gives_is_not_known(
    more: list[tuple[str | None, str | None]], expected: dict[str, str | None]
) -> None:
    assert sums(record(0, "1", "1"), *(record(at, *each) for at, each in enumerate(more, 1))).expected == expected


def test_a_key_without_a_row_and_one_with_two_say_so() -> None:
    alone = sums(record(0, "1", "1"), rows=())
    assert alone.text == "lines→orders: 1 record adds up to lines=1, total=1.00; it has no row"
    null = replace(ROW, values={"lines": None, "total": "1"})
    assert sums(rows=(ROW, null)).text == (
        "lines→orders: 0 records add up to lines=0, total=0.00; its rows have lines=2, total=3.50 and lines=null, "
        "total=1"
    )


def test_a_hop_of_copies_has_no_sums() -> None:
    assert key_sums(PIPELINE, replace(HOP, group=None), (), ()) is None
