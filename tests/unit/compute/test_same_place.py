"""Test what places are refused under other names, or with other keys."""

from dataclasses import replace

import pytest

from makewhole.compute.same_place import (
    require_no_circle,
    require_one_key,
    require_one_log,
    require_reversed_once,
    require_same_names,
    with_identities,
)
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy, Reverse
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import Point, PointKind, TablePoint, TopicPoint

pytestmark = pytest.mark.unit

_REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def table(name: str, *key: str) -> TablePoint:
    return TablePoint(name=name, kind=PointKind.STORE, connection="db", table=name, key=key or ("id",))


def pipeline(*stores: TablePoint) -> Pipeline:
    topic = TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",))
    points: dict[str, Point] = {topic.name: topic, **{store.name: store for store in stores}}
    hops = tuple(Hop(source="orders", target=store.name, remedies=_REPORT) for store in stores)
    return Pipeline(name="shop", points=points, hops=hops)


SHOP = pipeline(table("a"), table("b"))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {"a": "1", "b": "1"}),
        ({"a": "1"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "1", "b": "1"}),
        ({"a": "1"}, {"a": "2", "b": "3"}),
        ({"a": "1", "gone": "3"}, {"a": "1", "b": "2"}),
        ({"a": "1", "b": "1"}, {"b": "1"}),
    ],
    ids=["first", "new point", "second name", "other table", "point taken out", "one of two names left"],
)
def test_a_place_that_keeps_a_name_is_fine(before: dict[str, str], now: dict[str, str]) -> None:
    require_same_names(SHOP, before, now)


@pytest.mark.parametrize(
    ("before", "now", "names"),
    [
        ({"old": "1"}, {"a": "1", "b": "2"}, ("a", "old")),
        ({"a": "1", "b": "2"}, {"a": "2", "b": "1"}, ("a", "b")),
    ],
    ids=["renamed", "swapped"],
)
def test_a_place_under_another_name_is_refused(
    before: dict[str, str], now: dict[str, str], names: tuple[str, str]
) -> None:
    with pytest.raises(RefusedError) as refused:
        require_same_names(SHOP, before, now)
    assert str(refused.value).startswith(f"shop: {names[0]} is what the windows before knew as {names[1]}, and what is")


def test_points_of_one_place_have_the_hops_of_both() -> None:
    apart, together = (with_identities(SHOP, {"a": "1", "b": place}) for place in ("2", "1"))
    assert [hop.name for hop in apart.hops_into("a")] == ["orders→a"]
    assert [hop.name for hop in together.hops_into("a")] == ["orders→a", "orders→b"]


def test_points_of_one_place_with_other_keys_are_refused() -> None:
    keyed = pipeline(table("a"), table("b", "number"))
    require_one_key(with_identities(keyed, {"a": "1", "b": "2"}))
    with pytest.raises(RefusedError) as refused:
        require_one_key(with_identities(keyed, {"a": "1", "b": "1"}))
    assert str(refused.value) == (
        "shop: a and b are one place, and are known by other keys (id; number): the rows that come by one hop would be "
        "unexpected on the other. Write the same `key` at both points, or reconcile b in a pipeline of its own without "
        "`unexpected`"
    )


def test_hops_that_come_back_to_a_place_by_another_name_are_refused() -> None:
    round_trip = replace(SHOP, hops=(SHOP.hops[0], replace(SHOP.hops[1], source="a", target="b")))
    require_no_circle(with_identities(round_trip, {"orders": "1", "a": "2", "b": "3"}))
    with pytest.raises(RefusedError) as refused:
        require_no_circle(with_identities(round_trip, {"orders": "1", "a": "2", "b": "1"}))
    assert str(refused.value) == (
        "shop: orders and b are one place, and hop orders→a leads from it back to it: events go one way. Take one of "
        "the hops between them out"
    )


def test_what_a_place_is_is_not_part_of_the_file() -> None:
    known = with_identities(SHOP, {"a": "1"})
    assert replace(known.points["a"], identity="") == SHOP.points["a"]
    assert known.place_of("a") == "1" and known.place_of("b") == "db:b"


def test_two_hops_that_would_reverse_one_repetition_are_refused_whatever_their_tables_are_called() -> None:
    remedies = replace(_REPORT, duplicate=Remedy.REVERSE)
    reverse = Reverse(to="back", value={"id": "{{ key }}"})
    hops = tuple(replace(hop, remedies=remedies, reverse=reverse) for hop in SHOP.hops)
    reversing = replace(SHOP, hops=hops)
    require_reversed_once(with_identities(reversing, {"a": "1", "b": "2"}))
    with pytest.raises(RefusedError) as refused:
        require_reversed_once(with_identities(reversing, {"a": "1", "b": "1"}))
    assert str(refused.value) == (
        "shop: orders→a and orders→b would both reverse one repetition, which is at both their ends: a and b are one "
        "place, or one is filled from the other. Write `reverse` on one of these hops alone, the one to the point "
        "where the harm is done"
    )
    once = replace(reversing, hops=(hops[0], SHOP.hops[1]))
    require_reversed_once(with_identities(once, {"a": "1", "b": "1"}))


def test_two_topics_do_not_fill_one_table_by_coordinates() -> None:
    first, other = (
        TopicPoint(name=name, connection="log", topic=name, key=("kafka.partition", "kafka.offset"))
        for name in ("orders", "returns")
    )
    points = {point.name: point for point in (first, other, table("a", "p", "o"), table("b", "p", "o"))}
    hops = (Hop(source="orders", target="a", remedies=_REPORT), Hop(source="returns", target="b", remedies=_REPORT))
    both = Pipeline(name="shop", points=points, hops=hops)
    require_one_log(with_identities(both, {"a": "1", "b": "2", "orders": "3", "returns": "4"}))
    require_one_log(with_identities(both, {"a": "1", "b": "1", "orders": "3", "returns": "3"}))
    by_key = {**points, "returns": replace(other, key=("$.p", "$.o"))}
    require_one_log(with_identities(replace(both, points=by_key), {"a": "1", "b": "1"}))
    with pytest.raises(RefusedError) as refused:
        require_one_log(with_identities(both, {"a": "1", "b": "1", "orders": "3", "returns": "4"}))
    assert str(refused.value) == (
        "shop: orders and returns fill one table (b) by coordinates, which are the same in both. Let each topic fill a "
        "table of its own, or name a business key at the points"
    )
