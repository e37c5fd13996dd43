"""Check where compaction takes what no newer record has."""

from typing import Any

import pytest

from makewhole.compute.decode.unread_keys import ComparedKeys, may_take_other_keys
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole_spark.snapshot.compacted_keys import (
    COMPARED_KEYS,
    compared_entry,
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


def test_where_nothing_was_compared_a_manifest_has_no_entry() -> None:
    assert compared_entry([None], SAME) == {}
    assert compared_keys({}) is None
