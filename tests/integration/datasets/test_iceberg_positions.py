"""Test windows over an Iceberg table whose rows are known by the positions of their records, without any key."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.world.iceberg_lake import ORDERS, POSITION, in_order, with_position
from tests.world.orders import orders
from tests.world.pipeline_file import dataset
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MADE = orders(range(8))
COLUMNS = "{stamp: _kafka_metadata.timestamp}"


def test_holes_and_repeats_are_found_by_position_repaired_and_undone(shop: IcebergShop) -> None:
    warehouse = dataset("lake", TABLE, position="_kafka_metadata", columns=COLUMNS)
    for name in ("key", "time"):
        del warehouse[name]
    shop.describe_lake(warehouse=warehouse, topic_key="position", compensation=ALL, hop={"leave": "[stamp]"})
    shop.lake.make_table(TABLE, ORDERS.append(pa.field("_kafka_metadata", POSITION)))
    shop.send(MADE)
    rows = with_position(MADE, shop.topic)
    shop.lake.append(TABLE, [*rows[:2], *rows[4:6]])
    shop.lake.append(TABLE, rows[6:])
    path = shop.lake.list_again(TABLE)
    shop.lake.append(TABLE, with_position(MADE[:4], "another"))

    before = shop.lake.rows(TABLE)

    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        '["0","2"]': ("missing", "lost_after_topic"),
        '["0","3"]': ("missing", "lost_after_topic"),
        '["0","6"]': ("duplicate", "written_before_committed"),
        '["0","7"]': ("duplicate", "written_before_committed"),
    }
    copies = [copy["place"] for copy in shop.evidence(context, STORE_HOP, '["0","7"]')["target"]]
    assert [path.endswith(copy.partition(":")[0]) for copy in copies] == [True, True]
    assert sorted("listing 2" in copy for copy in copies) == [False, True]

    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    others = with_position(MADE[:4], "another")
    assert shop.lake.rows(TABLE) == in_order([*map(without_stamp, rows[2:4]), *rows[:2], *rows[4:], *others])
    assert shop.close(context).state is WindowState.CERTIFIED

    undo = shop.undo(context, plan)
    shop.approve(undo)
    shop.run(context, undo)
    assert (shop.refused(undo), shop.lake.rows(TABLE)) == ({}, before)


def without_stamp(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a repair writes it, which leaves the time of its record empty."""
    return {**row, "_kafka_metadata": {**row["_kafka_metadata"], "timestamp": None}}
