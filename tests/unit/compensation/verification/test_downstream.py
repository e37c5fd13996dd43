"""Whether a store behind a topic must hold a key: yes, no, or not known."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compensation.verification.downstream import copy_that_counts, expected_at_stores
from makewhole.compensation.verification.judge_key import store_problem
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint

pytestmark = pytest.mark.unit

REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def pipeline(*hops: tuple[str, str, str | None]) -> Pipeline:
    names = {name for source, target, _ in hops for name in (source, target)}
    stores = {
        name: TablePoint(name=name, kind=PointKind.STORE, connection="pg", table=name, key=("id",))
        for name in names
        if name.startswith("store")
    }
    topics = {
        name: TopicPoint(name=name, connection="kafka", topic=name, key=("$.id",))
        for name in names
        if name not in stores
    }
    made = tuple(Hop(source=source, target=two, remedies=REPORT, where=where) for source, two, where in hops)
    return Pipeline(name="p", points={**stores, **topics}, hops=made)


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (True, {"store_a": True, "store_b": True, "store_c": None}),
        (False, {"store_a": True, "store_b": False, "store_c": False}),
        (None, {"store_a": True, "store_b": None, "store_c": None}),
    ],
)
def test_a_filter_decides_where_it_is_known(passes: bool | None, expected: dict[str, bool | None]) -> None:
    described = pipeline(
        ("t", "store_a", None), ("t", "store_b", "x = 1"), ("t", "u", "x = 1"), ("u", "store_c", "y = 1")
    )
    assert expected_at_stores(described, "t", lambda _: passes) == expected


def test_one_way_that_a_key_passes_is_enough() -> None:
    described = pipeline(("t", "store", "x = 1"), ("t", "u", None), ("u", "store", None))
    assert expected_at_stores(described, "t", lambda _: False) == {"store": True}


@pytest.mark.parametrize(
    ("amounts", "values", "problem"),
    [
        (["5"], {"amount": "5"}, None),
        ([], {"amount": "5"}, "store does not hold it"),
        (["5", "5"], {"amount": "5"}, "store holds it 2 times"),
        (["6"], {"amount": "5"}, "store holds other values in amount"),
        ([], None, None),
        (["5"], None, "store still holds it"),
        (["5"], {}, None),
    ],
)
def test_a_store_is_whole_with_the_key_once_and_the_values_of_the_source(
    amounts: list[str], values: dict[str, str] | None, problem: str | None
) -> None:
    assert store_problem("store", [{"c:amount": amount} for amount in amounts], values) == problem


def copy_at(offset: int, version: int | None = None, *, partition: int = 0, **more: Any) -> dict[str, Any]:
    number = None if version is None else Decimal(version)
    return {
        "offset": offset,
        "partition": partition,
        "version": number,
        "is_tombstone": False,
        "excluded_by": None,
    } | more


GONE = {"is_tombstone": True}


@pytest.mark.parametrize(
    ("copies", "offset"),
    [
        ([copy_at(1, 5), copy_at(2, 4)], 1),
        ([copy_at(1, 5), copy_at(2, **GONE)], 2),
        ([copy_at(1, 5), copy_at(2, **GONE), copy_at(3, 1)], 3),
        ([copy_at(1, -5), copy_at(2)], 1),
        ([copy_at(1, 5), copy_at(2, 5)], 2),
        ([copy_at(1, 5), copy_at(2, 6, excluded_by=["topic→store"])], None),
        ([], None),
    ],
)
def test_of_versions_the_latest_counts_that_no_tombstone_ended(
    copies: list[dict[str, Any]], offset: int | None
) -> None:
    hop = replace(pipeline(("topic", "store", None)).hops[0], semantics=Semantics.UPSERT)
    counted = copy_that_counts(copies, hop)
    assert (None if counted is None else counted["offset"]) == offset


def test_of_an_event_the_first_record_counts_that_passes_the_filter() -> None:
    hop = pipeline(("topic", "store", None)).hops[0]
    copies = [copy_at(3, 1), copy_at(1, 9, excluded_by=["topic→store"]), copy_at(2, 5)]
    counted = copy_that_counts(copies, hop)
    assert counted is not None
    assert counted["offset"] == 2
