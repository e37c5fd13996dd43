"""Test windows over an Iceberg table whose rows are known by the positions of their records, without any key."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from makewhole.tables.items import UpsertRow
from makewhole.tables.tables import Tables
from tests.integration.datasets.iceberg_shop import TABLE, IcebergShop
from tests.integration.datasets.test_iceberg_chunks import POINT, chunk_id, new_row
from tests.integration.datasets.test_iceberg_tables import BY_POSITION
from tests.integration.datasets.test_iceberg_windows import ALL
from tests.world.iceberg_lake import ORDERS, POSITION, Lake, in_order, with_position
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


@pytest.mark.parametrize("topic", ["orders", "more"])
def test_a_new_row_with_a_key_says_the_topic_of_its_hop_where_several_lead_into_its_table(
    lake: Lake, tables: Tables, topic: str
) -> None:
    lake.make_table(TABLE, ORDERS.append(pa.field("_kafka_metadata", POSITION)))
    lake.append(TABLE, with_position(MADE[:2], "another"))
    point = replace(POINT, table=TABLE, dataset=replace(BY_POSITION, of_topics=("orders", "more")))

    def write(item: UpsertRow, plan: str) -> list[str]:
        with tables.writer(point, "test") as writer:
            writer.receipts(chunk_id(plan=plan))
            receipt = writer.write_chunk(point, chunk_id(plan=plan), [item], lambda *_: {})
        return [str(refusal) for refusal in receipt.refused.values()]

    parts = tuple(f"_kafka_metadata.{part.name}" for part in POSITION)
    item = replace(new_row(0, 1), left=parts)
    (refusal,) = write(item, "shop-1-0123456789ab")
    assert refusal.startswith("unfit: the row would not say that it is of a topic which leads into this dataset")
    assert write(replace(item, topic=topic), "shop-1-0123456789ac") == []
    with tables.session("look") as session:
        (row,) = session.open_table(point).rows_of_key("O1")
    assert json.loads(row.text)["_kafka_metadata"]["topic"] == topic
