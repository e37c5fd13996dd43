"""Test keys of every shape, filters, undecodable records, and reports that are the same however they are made."""

import json
from pathlib import Path

import polars as pl
import pytest

from makewhole.model.gate import GateAnswer
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from makewhole_spark import spark_carrier
from makewhole_spark.snapshot import read_topics
from tests.world.orders import orders
from tests.world.reports import report
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


# Keys and filters


def test_keys_of_several_parts_are_distinguished_by_all_of_them(shop: ReconciledShop) -> None:
    shop.describe(key="[region, id]", topic_key='["$.region", "$.id"]')
    first, other = orders([1])[0], {**orders([1])[0], "region": "EU"}
    shop.trade([first, other, *orders(range(2, 10))], unloaded=[other])

    context, closed = shop.whole_way()

    assert shop.counts(context, LEDGER_HOP).matched == 10
    assert shop.found(context, STORE_HOP) == {'["EU","O1"]': ("missing", "lost_after_topic")}
    assert closed.state is WindowState.GAPS


def test_numbers_are_keys_whatever_their_json_and_their_column(shop: ReconciledShop) -> None:
    shop.describe(key="number", topic_key='"$.number"')
    made = orders(range(10))
    shop.trade(made, unsent=made[3:4], unloaded=made[7:8])
    shop.send([{**made[3], "number": "3"}])  # the same number as text

    context, _ = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {}
    assert shop.found(context, STORE_HOP) == {
        "3": ("missing", "lost_after_topic"),
        "7": ("missing", "lost_after_topic"),
    }


def test_a_filtered_hop_expects_only_what_passes_and_nothing_else(shop: ReconciledShop) -> None:
    shop.describe(hop={"where": "\"region = 'EU'\""})
    made = orders(range(10))
    shop.trade(made, unloaded=made)
    shop.write("warehouse", [made[0], made[2], made[4], made[6], made[3]])  # 8 is lost, 3 does not belong here

    context, closed = shop.whole_way()

    assert shop.counts(context, LEDGER_HOP).matched == 10
    assert shop.counts(context, STORE_HOP).source_keys == 5
    assert shop.found(context, STORE_HOP) == {
        "O8": ("missing", "lost_after_topic"),
        "O3": ("unexpected", "not_in_source"),
    }
    assert closed.state is WindowState.GAPS


def test_values_that_differ_are_reported_by_column_and_equal_ones_in_other_clothes_are_not(
    shop: ReconciledShop,
) -> None:
    made = orders(range(4))
    shop.trade(made, unloaded=made)
    shop.write("warehouse", [made[0], {**made[1], "amount": "1.5"}, {**made[2], "amount": "2.51"}, made[3]])

    context, _ = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O2": ("mismatched", "value_differs")}
    assert shop.evidence(context, STORE_HOP, "O2")["columns"] == {"amount": {"source": "2.50", "target": "2.51"}}


def test_a_field_that_a_record_lacks_agrees_with_null_and_with_no_value(shop: ReconciledShop) -> None:
    made = orders(range(3))
    empty = [order | {"amount": None} for order in made]
    shop.write("outbox", [*empty[:2], made[2]])
    shop.send([{name: value for name, value in order.items() if name != "amount"} for order in made])
    shop.write("warehouse", [empty[0], made[1] | {"amount": "1.00"}, empty[2]])

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {"O2": ("mismatched", "value_differs")}
    assert shop.found(context, STORE_HOP) == {"O1": ("mismatched", "value_differs")}
    assert shop.evidence(context, LEDGER_HOP, "O2")["columns"] == {"amount": {"source": "2.50", "target": None}}
    assert shop.evidence(context, STORE_HOP, "O1")["columns"] == {"amount": {"source": None, "target": "1.00"}}
    assert [shop.counts(context, hop).matched for hop in (LEDGER_HOP, STORE_HOP)] == [2, 2]
    assert closed.state is WindowState.GAPS


# Records that cannot be read


def undecodable(shop: ReconciledShop, context: WindowContext, point: str) -> dict[str, str]:
    """Place → reason, from the files that the manifest names."""
    paths = shop.manifests(context)[point]["undecodable_files"]
    frame = pl.concat([pl.read_parquet(Path(context.storage.root) / path) for path in paths])
    return {row["place"]: row["reason"] for row in frame.iter_rows(named=True)}


def test_records_that_cannot_be_read_are_counted_and_placed_and_the_window_is_not_known(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    for value in (b"{broken", None, b'{"number": 7}', b'{"id": null}'):
        shop.send_raw(value)

    context, closed = shop.whole_way()

    manifest = shop.manifests(context)["orders"]
    assert (manifest["rows"], manifest["undecodable"]) == (5, 4)
    assert (manifest["accounting"]["data"], manifest["accounting"]["undecodable"]) == (5, 4)
    assert set(undecodable(shop, context, "orders")) == {"0:5", "0:6", "0:7", "0:8"}
    assert all(undecodable(shop, context, "orders").values())
    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert "4 records of orders have no usable key, 0 allowed" in str(closed.reason)


def test_rows_without_a_key_are_counted_and_placed_and_the_window_is_not_known(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    shop.write("outbox", [{**orders([5])[0], "id": None}])

    context, closed = shop.whole_way()

    assert list(undecodable(shop, context, "outbox").values()) == ["key is null or empty"]
    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert "1 records of outbox have no usable key, 0 allowed" in str(closed.reason)


def test_an_order_whose_only_record_cannot_be_read_is_missing(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made, unsent=made[2:3])
    shop.send_raw(b'{"id": "O2", "amount": ')

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {"O2": ("missing", "never_produced")}
    assert closed.state is WindowState.GAPS


def test_values_are_no_way_to_spoil_the_neighbours(shop: ReconciledShop) -> None:
    """One value with two objects on two lines, and one that is cut short, side by side: the counts would agree."""
    made = orders(range(5))
    shop.write("outbox", made)
    shop.write("warehouse", made)
    shop.send(made[:2])
    shop.send_raw(json.dumps(made[2]).encode() + b"\n" + json.dumps(made[3]).encode())
    shop.send_raw(b"")
    shop.send(made[4:])

    context, _ = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == dict.fromkeys(("O2", "O3"), ("missing", "never_produced"))
    assert set(undecodable(shop, context, "orders")) == {"0:2", "0:3"}


# The same, however it was made


def plant(shop: ReconciledShop) -> None:
    made = orders(range(60))
    shop.trade(made, unsent=made[5:8], unloaded=made[20:24])
    shop.send([made[30], made[31]])
    shop.write("warehouse", [made[40], {**made[41], "amount": "0.01"}, *orders([900])])


@pytest.mark.on_spark
def test_the_same_snapshots_give_the_same_report_whatever_the_number_of_spark_partitions(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(shop)
    context = shop.open()
    shop.snapshot(context)
    reports = []
    for waves in (4, 1, 1000):
        monkeypatch.setattr(spark_carrier, "_WAVES", waves)
        shop.reconcile(context)
        reports.append(report(shop.journal, context))
        for table in ("hop_result", "finding", "handover"):
            shop.journal_sql(f"delete from makewhole.{table}")

    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["findings"].count("\n") == 11


@pytest.mark.extended
def test_snapshots_cut_into_other_pieces_give_the_same_report(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(shop)
    reports, files = [], []
    for parallelism, records in ((1, 2_000_000), (5, 7)):
        monkeypatch.setattr(read_topics, "_RECORDS_PER_TASK", records)
        context = shop.open(read_again=True)
        shop.snapshot(context, parallelism)
        shop.reconcile(context)
        reports.append(report(shop.journal, context))
        files.append(sum(len(paths) for paths in shop.manifests(context)["orders"]["files"].values()))
    (few, first), (many, second) = zip(files, reports, strict=True)

    assert many > few
    assert first == second


def test_a_gate_that_is_asked_twice_answers_the_same(shop: ReconciledShop) -> None:
    plant(shop)
    context = shop.open()
    shop.judge(context)

    first, second = shop.validate(context), shop.validate(context)

    assert first.answer is GateAnswer.FAIL
    assert (first.failures, first.evaluated) == (second.failures, second.evaluated)
