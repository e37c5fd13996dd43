"""Check where compaction takes what no newer record has."""

from typing import Any

import pytest

from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole_spark.reconcile.gather.unread_records import lacks_elements

pytestmark = pytest.mark.unit

PIPELINE = Pipeline(
    name="p",
    points={
        "orders": TopicPoint(name="orders", connection="k", topic="orders", key=("$.lines.id",), explode="$.lines"),
        "events": TopicPoint(name="events", connection="k", topic="events", key=("$.id",)),
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
        ("events", {"accounting": {"compacted": 1}}, False),
        ("store", {"accounting": None}, False),
    ],
    ids=["compacted", "whole", "not read", "whole records", "table"],
)
def test_compaction_takes_elements_that_newer_records_need_not_have(
    point: str, manifest: dict[str, Any], expected: bool
) -> None:
    assert lacks_elements(PIPELINE, point, manifest) is expected
