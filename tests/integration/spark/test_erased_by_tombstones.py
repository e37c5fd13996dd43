"""Test keys that tombstones in the topic of a store delete on purpose: how windows are judged."""

import time
from collections.abc import Mapping, Sequence

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.window import WindowState
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings, store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import add_partitions
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ERASED = ("erased", "erased_on_purpose")
MISSING = ("missing", "lost_after_topic")
VANISHED = ("vanished", "gone_since_certified")
UNPRODUCED = ("missing", "never_produced")


def warehouse(erased: str = "tombstones") -> dict[str, Settings]:
    """Return the warehouse that says by what its keys were erased."""
    return {"warehouse": store("db", "warehouse", key="id", erased=erased)}


def describe(shop: ReconciledShop, **more: object) -> None:
    """Describe a pipeline whose warehouse has erasures named by tombstones."""
    shop.describe(**{"topic_key": "kafka.key", "more_points": warehouse(), **more})  # type: ignore[arg-type]


def trade(shop: ReconciledShop, made: Sequence[Order], unloaded: Sequence[str]) -> None:
    """Take orders all the way, but for those that are not loaded."""
    shop.trade(made, unloaded=[order for order in made if order["id"] in unloaded])


def place(shop: ReconciledShop, offset: int, partition: int = 0) -> Mapping[str, object]:
    """Return the evidence of a tombstone at an offset."""
    return {"topic": shop.topic, "partition": partition, "offset": offset}


def test_a_missing_key_with_a_tombstone_behind_its_record_is_erased_and_every_offset_accounted_for(
    shop: ReconciledShop,
) -> None:
    """The row of O5 is still there: it is judged like any other. No point ever had O99."""
    describe(shop)
    made = orders(range(10))
    trade(shop, made, ["O3", "O4"])
    shop.delete(["O3", "O3", "O5", "O99"])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": ERASED, "O4": MISSING}
    assert shop.found(context, LEDGER_HOP) == {}
    evidence = shop.evidence(context, STORE_HOP, "O3")
    assert evidence["erased"] == f"warehouse: a tombstone deletes this key: {shop.topic}/0/11"
    assert evidence["tombstone"] == place(shop, 11)
    shown = " ".join(CliRunner().invoke(app, ["explain", "shop", "O3"]).output.split())
    assert "partition 0 offset 11, leader epoch 0, no producer id, a tombstone" in shown
    assert shop.accounting(context) == {
        "span": 14,
        "data": 10,
        "control": 0,
        "aborted": 0,
        "compacted": 0,
        "expired": 0,
        "undecodable": 0,
        "erasures": 4,
    }
    shop.write("warehouse", made[4:5])
    again, closed = shop.whole_way()
    assert (shop.found(again, STORE_HOP), closed.state) == ({"O3": ERASED}, WindowState.CERTIFIED)
    counts = shop.counts(again, STORE_HOP)
    assert (counts.source_keys, counts.source_rows, counts.matched, counts.erased) == (10, 10, 9, 1)


def test_without_the_line_a_tombstone_is_a_record_that_cannot_be_read(shop: ReconciledShop) -> None:
    shop.describe(topic_key="kafka.key")
    trade(shop, orders(range(10)), ["O3"])
    shop.delete(["O3"])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": MISSING}
    accounting = shop.accounting(context)
    assert (accounting["data"], accounting["undecodable"]) == (10, 1)
    assert "erasures" not in accounting


def test_a_key_that_came_back_behind_its_tombstone_is_missing(shop: ReconciledShop) -> None:
    describe(shop, has_ledger=False)
    made = orders(range(10))
    shop.send(made)
    shop.write("warehouse", [order for order in made if order["id"] not in ("O3", "O4")])
    shop.delete(["O3", "O4"])
    shop.send(made[3:4])
    shop.delete(["O4"])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": MISSING, "O4": ERASED}
    assert shop.evidence(context, STORE_HOP, "O4")["tombstone"] == place(shop, 13)


@pytest.mark.parametrize("has_ended", ["committed", "aborted", "open"])
def test_a_tombstone_in_a_transaction_counts_once_it_is_committed(shop: ReconciledShop, has_ended: str) -> None:
    """The record and its tombstone are in one batch."""
    describe(shop, has_ledger=False)
    made = orders(range(10))
    shop.send(made[:9])
    shop.write("warehouse", made[:8])
    client = shop.begin_transaction(made[9:] if has_ended == "committed" else [])
    shop.delete(["O8", "O9"], by=client)
    if has_ended != "open":
        shop.end_transaction(client, is_committed=has_ended == "committed")

    context = shop.judge_and_ask_the_gate()

    is_erased = has_ended == "committed"
    assert shop.found(context, STORE_HOP) == ({"O8": ERASED, "O9": ERASED} if is_erased else {"O8": MISSING})
    if has_ended == "open":
        shop.end_transaction(client, is_committed=False)


def test_a_tombstone_in_the_tail_or_in_a_later_window_erases_and_one_that_a_record_follows_there_does_not(
    shop: ReconciledShop,
) -> None:
    describe(shop)
    made = orders(range(10))
    trade(shop, made, ["O3", "O4", "O5"])
    first, _ = shop.whole_way()
    assert shop.found(first, STORE_HOP) == {"O3": MISSING, "O4": MISSING, "O5": MISSING}
    shop.delete(["O3", "O4"], day=1.1)
    shop.send(orders([4], 1))

    in_tail, _ = shop.whole_way()

    assert shop.found(in_tail, STORE_HOP) == {"O3": ERASED, "O4": MISSING, "O5": MISSING}
    assert shop.evidence(in_tail, STORE_HOP, "O3")["tombstone"] == place(shop, 10)
    trade(shop, orders(range(100, 110), 1), [])
    shop.whole_way(1)
    shop.delete(["O5"], day=2.1)
    in_window, _ = shop.whole_way()
    assert shop.found(in_window, STORE_HOP) == {"O3": ERASED, "O4": MISSING, "O5": ERASED}


@pytest.mark.extended
def test_a_key_that_was_handed_over_is_erased_by_a_tombstone_of_the_window_before(shop: ReconciledShop) -> None:
    describe(shop, settle="1h")
    made = orders(range(10))
    trade(shop, made, ["O3", "O4"])
    shop.delete(["O3"])
    first, _ = shop.whole_way()
    assert {verdict for verdict, _ in shop.found(first, STORE_HOP).values()} == {"pending"}
    trade(shop, orders(range(100, 110), 1), [])
    describe(shop, settle="0s")

    second, _ = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O3": ERASED, "O4": MISSING}


@pytest.mark.extended
def test_a_row_that_a_certified_window_saw_is_erased_and_not_vanished(shop: ReconciledShop) -> None:
    describe(shop)
    trade(shop, orders(range(10)), [])
    _, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id in ('O3', 'O4')")
    shop.delete(["O3"], day=1.1)

    context, closed = shop.whole_way()

    assert (shop.found(context, STORE_HOP), closed.state) == ({"O3": ERASED, "O4": VANISHED}, WindowState.CERTIFIED)


@pytest.mark.extended
def test_in_another_partition_the_time_of_a_tombstone_decides(shop: ReconciledShop) -> None:
    """An order goes to the partition that its number says; a tombstone of another partitioner may not."""
    shop.partitions = 2
    add_partitions(shop.admin, shop.topic, 2)
    describe(shop)
    made = orders(range(10))
    trade(shop, made, ["O2", "O3"])
    shop.delete(["O2"], partition=1)
    shop.delete(["O3"], partition=0, day=0)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O2": ERASED, "O3": MISSING}
    assert shop.evidence(context, STORE_HOP, "O2")["tombstone"] == place(shop, 5, 1)


def test_a_key_that_was_never_sent_is_erased_by_a_tombstone_later_than_its_row(shop: ReconciledShop) -> None:
    """A row that was written after the tombstone is a key that came back."""
    describe(shop)
    made = orders(range(10))
    shop.trade(made, unsent=made[3:6])
    shop.delete(["O3"])
    shop.delete(["O4"], day=-1)
    shop.delete(["O5"], day=1.1)

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {"O3": ERASED, "O4": UNPRODUCED, "O5": ERASED}
    assert shop.evidence(context, LEDGER_HOP, "O3")["tombstone"] == place(shop, 7)


@pytest.mark.extended
def test_two_stores_of_a_topic_are_each_asked_in_their_own_way(shop: ReconciledShop) -> None:
    shop.sql("create table erasures (order_id text primary key)")
    shop.sql("create table archive (like warehouse)")
    by_table = store("db", "archive", key="id", erased="{table: erasures, key: order_id}")
    describe(
        shop,
        more_points={**warehouse(), "archive": by_table},
        more_hops=[{"from": "orders", "to": "archive"}],
        is_observing=True,
    )
    made = orders(range(10))
    shop.trade(made, unsent=made[3:6], unloaded=made[6:8])
    shop.sql("insert into archive select * from warehouse")
    shop.delete(["O3", "O4", "O6"])
    shop.sql("insert into erasures values ('O4'), ('O5'), ('O7')")

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {"O3": UNPRODUCED, "O4": ERASED, "O5": UNPRODUCED}
    assert shop.found(context, STORE_HOP) == {"O6": ERASED, "O7": MISSING}
    assert shop.found(context, "orders→archive") == {"O6": MISSING, "O7": ERASED}
    assert shop.evidence(context, LEDGER_HOP, "O4")["erased"] == (
        f"warehouse: a tombstone deletes this key: {shop.topic}/0/8; archive: erasures names this key"
    )


def test_a_where_excludes_no_tombstone_and_a_tombstone_is_no_copy_under_it(shop: ReconciledShop) -> None:
    describe(shop, hop={"where": "region = 'US'"})
    made = orders(range(10))
    shop.write("outbox", made)
    shop.send(made)
    shop.write("warehouse", [order for order in made if order["region"] == "US" and order["id"] not in ("O3", "O5")])
    shop.delete(["O3", "O4"])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": ERASED, "O5": MISSING}
    counts = shop.counts(context, STORE_HOP)
    assert (counts.source_keys, counts.matched, counts.erased, counts.missing) == (5, 3, 1, 1)


def test_a_key_of_several_parts_in_headers_and_in_the_record_is_erased(shop: ReconciledShop) -> None:
    point = {"warehouse": store("db", "warehouse", key="[region, id]", erased="tombstones")}
    describe(shop, key="[region, id]", topic_key='["header:region", kafka.key]', more_points=point)
    made = orders(range(1, 9, 2))
    shop.write("outbox", made)
    shop.send(made, headers={"region": "US"})
    shop.write("warehouse", made[2:])
    shop.delete([made[0]["id"]], headers={"region": "US"})
    shop.delete([made[1]["id"]], headers={"region": "EU"})

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {'["US","O1"]': ERASED, '["US","O3"]': MISSING}
    assert shop.accounting(context)["erasures"] == 2


def test_a_missing_key_is_undecidable_where_the_log_behind_its_window_was_gone_before_it_was_read(
    shop: ReconciledShop,
) -> None:
    """A tombstone may have been in what retention took."""
    describe(shop)
    trade(shop, orders(range(10)), [])
    _, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    trade(shop, orders(range(100, 110), 1), ["O103"])
    context = shop.open(1)
    shop.snapshot(context)
    shop.delete(["O103"], day=2.1)
    shop.send(orders([200], 2))
    shop.delete_records({0: 21})
    shop.reconcile(context)

    assert shop.found(context, STORE_HOP) == {"O103": ("undecidable", "expired")}


@pytest.mark.extended
def test_a_row_that_a_certified_window_saw_has_vanished_though_a_tombstone_of_its_key_may_be_gone(
    shop: ReconciledShop,
) -> None:
    """The record of O3 came again in the second window; what the first one found decides, also in the second judging of
    the bucket. O103 was never seen."""
    describe(shop, has_ledger=False)
    trade(shop, orders(range(10)), [])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O3'")
    trade(shop, [*orders(range(100, 110), 1), *orders([3], 1)], ["O3", "O103"])
    context = shop.open(1)
    shop.snapshot(context)
    shop.delete(["O103"], day=2.1)
    shop.send(orders([200], 2))
    shop.delete_records({0: 22})
    shop.reconcile(context)

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED, "O103": ("undecidable", "expired")}
    assert shop.evidence(context, STORE_HOP, "O3")["seen"] == {"window": 1, "revision": 1}


def test_a_tombstone_outlives_its_record_in_a_compacted_topic(shop: ReconciledShop) -> None:
    shop.change_topic(cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.001)
    describe(shop)
    trade(shop, orders(range(10)), ["O3"])
    shop.delete(["O3"])
    deadline = time.monotonic() + 60
    while any(record.key_text == "O3" and record.value is not None for record in shop.read()):
        assert time.monotonic() < deadline
        shop.send(orders([1000], 1))
        time.sleep(0.5)

    context, closed = shop.whole_way()

    accounting = shop.accounting(context)
    assert (accounting["data"], accounting["compacted"], accounting["erasures"]) == (9, 1, 1)
    assert shop.found(context, LEDGER_HOP) == {"O3": ERASED}
    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


@pytest.mark.extended
def test_windows_that_were_read_before_the_file_had_the_line_are_read_again_first(shop: ReconciledShop) -> None:
    """The tombstone of the second window was undecodable when that was read: it is not known whose it is."""
    shop.describe(topic_key="kafka.key")
    trade(shop, orders(range(10)), ["O3", "O4"])
    shop.whole_way()
    trade(shop, orders(range(100, 110), 1), [])
    shop.delete(["O3"], day=1.1)
    shop.whole_way(1)
    describe(shop)

    unknown, _ = shop.whole_way()

    undecidable = ("undecidable", "expired")
    assert shop.found(unknown, STORE_HOP) == {"O3": undecidable, "O4": undecidable}
    shop.whole_way(1)
    known, _ = shop.whole_way()
    assert shop.found(known, STORE_HOP) == {"O3": ERASED, "O4": MISSING}
