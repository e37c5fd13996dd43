"""Test windows over folders with rows of several topics, each of which says its own: a replay topic, another source."""

from typing import Any

import pyarrow as pa
import pytest

from makewhole.model.window import WindowState
from tests.integration.files.files_shop import FilesShop
from tests.world.files_lake import POSITIONED, positioned
from tests.world.orders import orders
from tests.world.pipeline_file import topic
from tests.world.shop import STORE_HOP

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

WITH_TOPIC = POSITIONED.append(pa.field("t", pa.string()))
MADE = orders(range(12))
LIMITS = {"limits": "{share: 1.0}", "approval": "{above_actions: 0}"}


def load(shop: FilesShop, path: str, rows: list[dict[str, Any]], name: str) -> None:
    """Write a file of rows that come from a topic."""
    shop.place.add(path, [{**row, "t": name} for row in rows], WITH_TOPIC)


def describe(shop: FilesShop, *, compensation: dict[str, str], position: str, **settings: Any) -> str:
    """Describe a folder with rows of two topics; return the name of the second."""
    second = shop.add_topic()
    warehouse = {
        "kind": "dataset",
        "connection": "lake",
        "format": "parquet",
        "path": shop.place.path,
        "key": "id",
        "position": position,
    }
    shop.describe(
        has_ledger=False,
        compensation=compensation,
        is_observing=True,
        more_points={"warehouse": warehouse, "second": topic("log", second)},
        **settings,
    )
    return second


def test_a_row_that_was_loaded_from_the_replay_topic_is_the_one_that_was_missing(shop: FilesShop) -> None:
    replay = describe(
        shop,
        compensation={"missing": "redeliver", **LIMITS},
        position="{topic: t, partition: p, offset: o}",
        hop={"redeliver_to": "second", "leave": "[t, p, o]"},
    )
    shop.send(MADE)
    rows = positioned(MADE)
    load(shop, "a.parquet", [*rows[:3], *rows[4:]], shop.topic)
    load(shop, "other.parquet", positioned(orders([90])), "web-orders")
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP).keys() == {"O3"}

    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    assert shop.refused(plan) == {}
    load(shop, "retry.parquet", positioned(MADE[3:4]), replay)

    assert shop.close(context).state is WindowState.CERTIFIED
    again = shop.judged()
    assert shop.found(again, STORE_HOP) == {}
    assert shop.counts(again, STORE_HOP).matched == len(MADE)


def describe_both(shop: FilesShop, position: str) -> str:
    """Describe a folder into which two topics lead, whose writer goes by its files; send records into both."""
    files = {"progress": "files"}
    hop = {"from": "second", "to": "warehouse", **files}
    second = describe(shop, compensation={}, position=position, hop=files, more_hops=[hop])
    shop.send(MADE[:8])
    shop.send_values([(order["id"], shop.encode(order), {}) for order in MADE[8:]], topic=second)
    return second


def test_records_in_front_of_their_writer_wait_however_far_another_topic_is_written(shop: FilesShop) -> None:
    second = describe_both(shop, "{topic: t, partition: p, offset: o}")
    load(shop, "a.parquet", positioned(MADE[:2]), shop.topic)
    load(shop, "b.parquet", positioned(MADE[8:]), second)

    verdicts = shop.found(shop.judged(), STORE_HOP)
    assert verdicts == {order["id"]: ("pending", "not_yet_consumed") for order in MADE[2:8]}


def test_where_rows_do_not_say_their_topic_no_record_is_missing_by_them(shop: FilesShop) -> None:
    describe_both(shop, "{partition: p, offset: o}")
    shop.place.add("a.parquet", positioned(MADE[:2]), POSITIONED)
    shop.place.add("b.parquet", positioned(MADE[8:]), POSITIONED)

    context, closed = shop.whole_way()

    assert {verdict for verdict, _ in shop.found(context, STORE_HOP).values()} <= {"pending", "undecidable"}
    assert closed.state is WindowState.NOT_KNOWN
