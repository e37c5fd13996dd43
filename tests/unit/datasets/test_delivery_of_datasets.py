"""Test what weakens the delivery into datasets: properties of Iceberg tables, and sinks that keep no offsets."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from makewhole.datasets.iceberg.delivery import weak_properties
from makewhole.datasets.never_there import DatasetTables
from makewhole.model.delivery.claims import TableClaim
from makewhole.model.delivery.weaknesses import Severity
from makewhole.model.points import PointKind, TablePoint
from makewhole.tables.shape import TableShape

pytestmark = pytest.mark.unit

NEEDED = TableClaim(forbids_loss=True, is_target=True, needed=timedelta(days=2))
POINT = TablePoint(name="lake", kind=PointKind.STORE, connection="lake", table="dw.orders", key=("id",))
RETRIES, AGE = "commit.retry.num-retries", "history.expire.max-snapshot-age-ms"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, []),
        ({RETRIES: "4", AGE: str(2 * 86_400_000)}, []),
        ({RETRIES: "0"}, [(Severity.RISK, RETRIES, "0")]),
        ({AGE: "3600000"}, [(Severity.BROKEN, AGE, "1 h")]),
        ({RETRIES: "many", AGE: "long"}, []),
    ],
    ids=str,
)
def test_properties_that_are_too_little_for_no_loss(
    properties: Mapping[str, str], expected: list[tuple[Severity, str, str]]
) -> None:
    weaknesses = weak_properties("dw.orders", properties, NEEDED)

    assert [(item.severity, item.setting, item.value) for item in weaknesses] == expected


def test_icebergs_own_five_days_may_be_too_short() -> None:
    claim = TableClaim(forbids_loss=True, needed=timedelta(days=6))
    (weakness,) = weak_properties("dw.orders", {}, claim)
    assert (weakness.setting, weakness.value, weakness.expected) == (AGE, "5 d", "at least 6 d")
    assert list(weak_properties("dw.orders", {RETRIES: "0"}, TableClaim(forbids_loss=False))) == []


@pytest.mark.parametrize(("is_keyed", "overwrites", "count"), [(True, False, 1), (True, True, 0), (False, False, 0)])
def test_a_dataset_has_no_unique_key_that_could_keep_a_repeat_out(is_keyed: bool, overwrites: bool, count: int) -> None:
    claim = TableClaim(forbids_loss=True, is_keyed=is_keyed, overwrites=overwrites)
    weaknesses = DatasetTables().weaknesses(TableShape(point=POINT, compare={}, filters={}), claim)
    assert [item.setting for item in weaknesses] == ["progress"] * count
