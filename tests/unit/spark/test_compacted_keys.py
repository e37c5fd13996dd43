"""Check where compaction takes what no newer record has."""

from typing import Any

import pytest

from makewhole.compute.decode.unread_keys import ComparedKeys, may_take_other_keys
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole_spark.reconcile.gather.compacted_tails import PieceOfTail, compacted_tail
from makewhole_spark.snapshot.compacted_keys import (
    COMPARED_KEYS,
    compared_entry,
    compared_in,
    compared_keys,
    lacks_compacted,
)

pytestmark = pytest.mark.unit

SAME, OTHERS = {COMPARED_KEYS: {"same": 3, "others": 0}}, {COMPARED_KEYS: {"same": 3, "others": 1}}


def topic(name: str, *key: str, explode: str | None = None) -> TopicPoint:
    return TopicPoint(name=name, connection="k", topic=name, key=key, explode=explode)


PIPELINE = Pipeline(
    name="p",
    points={
        "orders": topic("orders", "$.lines.id", explode="$.lines"),
        "events": topic("events", "$.id"),
        "changes": topic("changes", "kafka.key.tenant", "kafka.key.id"),
        "mixed": topic("mixed", "kafka.key", "$.no"),
        "store": TablePoint(name="store", kind=PointKind.STORE, connection="pg", table="store", key=("id",)),
    },
    hops=(),
)


@pytest.mark.parametrize(
    ("point", "manifest", "expected"),
    [
        ("orders", {"accounting": {"compacted": 1}}, True),
        ("orders", {"accounting": {"compacted": 0}}, False),
        ("orders", {}, False),
        ("events", {"accounting": {"compacted": 1}}, True),
        ("events", {"accounting": {"compacted": 1}, **SAME}, False),
        ("events", {"accounting": {"compacted": 1}, **OTHERS}, True),
        ("events", {"accounting": {"compacted": 0}, **OTHERS}, False),
        ("events", {"accounting": {"compacted": 1}, COMPARED_KEYS: {"same": 0, "others": 0}}, True),
        ("changes", {"accounting": {"compacted": 1}}, False),
        ("mixed", {"accounting": {"compacted": 1}}, True),
        ("store", {"accounting": None}, False),
    ],
    ids=[
        "elements",
        "whole elements",
        "not read",
        "not compared",
        "the same key",
        "another key",
        "whole",
        "nothing to compare",
        "by the Kafka key",
        "in part",
        "table",
    ],
)
def test_compaction_may_take_the_only_record_of_a_key(point: str, manifest: dict[str, Any], expected: bool) -> None:
    assert lacks_compacted(PIPELINE, point, manifest) is expected


def test_few_records_count_with_those_of_the_window_before() -> None:
    """A window of few records is not known by these alone, and one without a record by those before."""
    few, many, others = ComparedKeys(same=1), ComparedKeys(same=100), ComparedKeys(same=9, others=1)
    kept = [
        compared_keys(compared_entry(pieces, compared_entry([before], {})))
        for pieces, before in [([few, ComparedKeys()], others), ([many], others), ([ComparedKeys()], few)]
    ]
    assert kept == [few + others, many, few]
    assert [may_take_other_keys(topic("events", "$.id"), keys) for keys in kept] == [True, False, False]


def test_where_nothing_was_compared_there_are_no_numbers() -> None:
    assert compared_keys({}) is None
    assert compared_in([{}, {}]) is None
    assert compared_in([SAME, {}, OTHERS]) == ComparedKeys(same=6, others=1)


@pytest.mark.parametrize("manifest", [{**SAME}, {}, {COMPARED_KEYS: {"same": 1000, "others": 0}}])
def test_another_kafka_key_around_a_window_may_have_been_of_what_is_gone_there(manifest: dict[str, Any]) -> None:
    """One of the producers takes another Kafka key: the last record of each of these is left in another window."""
    compacted, around = {"accounting": {"compacted": 50}, **manifest}, ComparedKeys(same=2000, others=60)
    assert lacks_compacted(PIPELINE, "events", compacted, around)
    assert not lacks_compacted(PIPELINE, "changes", compacted, around)
    assert not lacks_compacted(PIPELINE, "events", {**compacted, "accounting": {"compacted": 0}}, around)


def test_the_keys_of_others_around_a_window_do_not_show_that_its_own_agree() -> None:
    """A window that was compacted whole says nothing of its keys."""
    empty_window = {"accounting": {"compacted": 50}, COMPARED_KEYS: {"same": 0, "others": 0}}
    assert lacks_compacted(PIPELINE, "events", empty_window, ComparedKeys(same=2000))


@pytest.mark.parametrize(
    ("around", "of_tail", "taken", "is_new"),
    [
        (ComparedKeys(same=9), ComparedKeys(same=9), [], False),
        (ComparedKeys(), ComparedKeys(same=1), [], False),
        (ComparedKeys(), ComparedKeys(), [2], False),
        (None, ComparedKeys(), [2], False),
        (ComparedKeys(same=9, others=1), ComparedKeys(same=1000), [2], False),
        (ComparedKeys(same=1000), ComparedKeys(same=1000, others=1), [2], True),
    ],
    ids=["same", "idle window", "no records", "not compared", "others in windows", "others in the tail"],
)
def test_all_that_is_known_of_a_topic_decides_what_its_compacted_tail_may_hide(
    around: ComparedKeys | None, of_tail: ComparedKeys, taken: list[int], is_new: bool
) -> None:
    """A piece is not judged by its own records: those with another Kafka key may be left in another partition."""
    point = topic("events", "$.id")
    piece = PieceOfTail(partition=1, compared=of_tail)
    tail = compacted_tail(point, around, [piece, PieceOfTail(partition=2, compacted=5)])
    assert sorted(tail.partitions if tail else ()) == taken
    in_windows = compacted_tail(point, around, [piece])
    assert (in_windows is not None) is is_new
    assert in_windows is None or in_windows.compared == of_tail


def test_a_compacted_tail_of_elements_may_hide_any_and_one_of_kafka_keys_none() -> None:
    elements, changes = (PIPELINE.points[name] for name in ("orders", "changes"))
    assert isinstance(elements, TopicPoint) and isinstance(changes, TopicPoint)
    tail = compacted_tail(elements, None, [PieceOfTail(partition=0, compacted=1)])
    assert tail is not None and tail.partitions == {0}
    assert compacted_tail(changes, None, [PieceOfTail(partition=0, compacted=1)]) is None
