"""Test that a window which is judged again reads only what is not shown to be unchanged, and nothing else is judged by
it."""

from typing import Any

import pytest

from makewhole.journal import certificates
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole.window.certifying.chain_evidence import file_problems
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.reuse.same_log import why_not_same_log
from tests.integration.spark.test_survivors import repair
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def reused(shop: ReconciledShop, context: WindowContext) -> dict[str, int]:
    """Return by point which revision's files a window names."""
    return {
        point: manifest["reused"]["revision"]
        for point, manifest in shop.manifests(context).items()
        if "reused" in manifest
    }


def why_read(shop: ReconciledShop, context: WindowContext) -> dict[str, str]:
    return {
        point: manifest["not_reused"] for point, manifest in shop.manifests(context).items() if "not_reused" in manifest
    }


def content(shop: ReconciledShop, context: WindowContext) -> dict[str, Any]:
    """Return what certificates are made of, by point: the hashes of the files and the account of the offsets."""
    return {
        point: [manifest["sha256"], manifest["rows"], manifest.get("accounting"), manifest.get("rows_counted")]
        for point, manifest in shop.manifests(context).items()
    }


def test_nothing_of_an_unchanged_window_is_read_again(shop: ReconciledShop) -> None:
    made = orders(range(40))
    shop.trade(made, unloaded=made[3:4])
    first = shop.judge_and_ask_the_gate()
    second = shop.judge_and_ask_the_gate()
    third = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == {}
    assert reused(shop, second) == reused(shop, third) == {"outbox": 1, "orders": 1, "warehouse": 1}
    assert content(shop, first) == content(shop, second) == content(shop, third)
    assert shop.found(second, "orders→warehouse") == shop.found(first, "orders→warehouse")
    assert first.storage.files_below(f"{second.window.prefix}/orders") == []


NAMED = {"outbox": 1, "orders": 1, "warehouse": 1}
MADE = orders(range(12))


@pytest.fixture
def judged(shop: ReconciledShop) -> WindowContext:
    """A window of twelve orders, all of them everywhere."""
    shop.trade(MADE)
    return shop.judge_and_ask_the_gate()


def without(*points: str) -> dict[str, int]:
    return {point: revision for point, revision in NAMED.items() if point not in points}


@pytest.mark.usefixtures("judged")
def test_what_changed_in_a_table_is_read_and_found_and_nothing_else_is_read(shop: ReconciledShop) -> None:
    shop.sql("update warehouse set amount = 99 where id = 'O3'")
    second = shop.judge_and_ask_the_gate()
    assert reused(shop, second) == without("warehouse")
    assert why_read(shop, second) == {"warehouse": "1 of its rows may be newer than that reading"}
    assert shop.found(second, STORE_HOP) == {"O3": ("mismatched", "value_differs")}
    shop.sql("delete from outbox where id = 'O5'; update warehouse set amount = 4.50 where id = 'O3'")
    third = shop.judge_and_ask_the_gate()
    assert reused(shop, third) == without("outbox", "warehouse")
    assert why_read(shop, third)["outbox"] == "it has 11 rows where 12 were read"
    fourth = shop.judge_and_ask_the_gate()
    assert reused(shop, fourth) == {"orders": 1, "outbox": 3, "warehouse": 3}


@pytest.mark.usefixtures("judged")
def test_a_row_that_came_with_an_earlier_time_is_read_with_the_window(shop: ReconciledShop) -> None:
    shop.trade(orders(range(100, 104), 1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    again = shop.judge_and_ask_the_gate(1)
    assert set(reused(shop, again)) == set(NAMED)
    shop.write("warehouse", [MADE[3]])
    late = shop.judge_and_ask_the_gate(1)
    assert "warehouse" not in reused(shop, late)
    assert shop.found(late, STORE_HOP) == {"O3": ("duplicate", "written_before_committed")}


def test_a_window_after_which_a_plan_wrote_is_read_where_it_wrote(shop: ReconciledShop) -> None:
    remedies = {"limits": "{share: 1.0}", "missing": "upsert"}
    shop.describe(has_ledger=False, compensation=remedies)
    shop.send(MADE)
    shop.write("warehouse", [*MADE[:3], *MADE[5:]])
    first = shop.judge_and_ask_the_gate()
    second = shop.judge_and_ask_the_gate()
    assert reused(shop, second) == {"orders": 1, "warehouse": 1}
    assert shop.found(second, STORE_HOP) == shop.found(first, STORE_HOP) != {}
    assert repair(shop, second).state is WindowState.CERTIFIED  # payloads are read from the archive of the first
    third, closed = shop.whole_way()
    assert (reused(shop, third), closed.state) == ({"orders": 1}, WindowState.CERTIFIED)


def test_a_certificate_holds_the_hashes_of_files_that_an_earlier_revision_wrote(
    shop: ReconciledShop, judged: WindowContext
) -> None:
    second, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    with connect(shop.journal) as journal:
        entries = certificates.chain(journal, "shop")
        assert list(file_problems(journal, second.storage, entries)) == []
        file = next(iter(shop.manifests(judged)["orders"]["files"].values()))[0]
        second.storage.remove(file)
        (problem,) = file_problems(journal, second.storage, entries)
    assert problem == f"certificate 1 (window 1): {second.storage.uri(file)} is not there any more"


@pytest.mark.parametrize("which", ["files", "archive", "sequences"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_is_damaged_or_gone_is_not_named_again(
    shop: ReconciledShop, judged: WindowContext, which: str, is_gone: bool
) -> None:
    manifest, storage = shop.manifests(judged)["orders"], judged.storage
    names = {
        "files": next(iter(manifest["files"].values()))[0],
        "archive": next(path for path in manifest["sha256"] if path.endswith(".log")),
        "sequences": manifest["sequences"],
    }
    content = bytearray(storage.read_bytes(names[which]))
    content[len(content) // 2] ^= 1
    if is_gone:
        storage.remove(names[which])
    else:
        storage.write_bytes(names[which], bytes(content))
    second = shop.judge_and_ask_the_gate()
    assert reused(shop, second) == without("orders")
    assert why_read(shop, second)["orders"] == f"{storage.uri(names[which])} is not what was written"
    assert shop.found(second, LEDGER_HOP) == shop.found(second, STORE_HOP) == {}


@pytest.mark.usefixtures("judged")
def test_another_configuration_is_read_with(shop: ReconciledShop) -> None:
    shop.describe(compare='{amount: "decimal(8,2)", region: string}')
    second = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == dict.fromkeys(NAMED, "it was read with another configuration")
    shop.describe(compare='{amount: "decimal(8,2)", region: string}', compensation={"missing": "upsert"})
    third = shop.judge_and_ask_the_gate()
    assert reused(shop, third) == dict.fromkeys(NAMED, 2)


@pytest.mark.usefixtures("judged")
def test_another_number_of_buckets_and_other_code_are_read_with(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.buckets = 4
    second = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == dict.fromkeys(NAMED, "it was read with another number of buckets")
    monkeypatch.setattr("makewhole_spark.snapshot.reuse.read_as.code_digest", lambda: "another")
    third = shop.judge_and_ask_the_gate()
    assert why_read(shop, third) == dict.fromkeys(
        NAMED, "it was read with another version of makewhole or its libraries"
    )


@pytest.mark.usefixtures("judged")
def test_everything_is_read_again_where_it_was_asked_for(shop: ReconciledShop) -> None:
    second = shop.open(read_again=True)
    shop.judge(second)
    assert (reused(shop, second), why_read(shop, second)) == ({}, {})
    third = shop.judge_and_ask_the_gate()
    assert reused(shop, third) == dict.fromkeys(NAMED, 2)


def test_files_of_another_pipeline_are_never_named(shop: ReconciledShop, judged: WindowContext) -> None:
    path = next(iter(shop.manifests(judged)["orders"]["files"].values()))[0]
    other = path.replace("shop/", "other/", 1)
    judged.storage.write_bytes(other, judged.storage.read_bytes(path))
    shop.journal_sql(
        "update makewhole.snapshot set manifest = replace(manifest::text, %s, %s)::jsonb where point = 'orders'",
        path,
        other,
    )
    second = shop.judge_and_ask_the_gate()
    assert reused(shop, second) == without("orders")


@pytest.mark.usefixtures("judged")
def test_a_topic_of_which_records_are_deleted_is_read(shop: ReconciledShop) -> None:
    shop.delete_records({0: 5})
    second = shop.judge_and_ask_the_gate()
    assert why_read(shop, second) == {"orders": "records of partition 0 were deleted"}
    assert shop.manifests(second)["orders"]["accounting"]["expired"] == 5
    third = shop.judge_and_ask_the_gate()
    assert why_read(shop, third) == {"orders": "5 of its offsets were expired"}


def test_a_topic_that_was_made_again_is_read_though_its_log_looks_the_same(
    shop: ReconciledShop, judged: WindowContext
) -> None:
    """The place that a window was opened at tells it; its id alone does where that happens after the opening."""
    orders_point, manifest = judged.pipeline.topic("orders"), shop.manifests(judged)["orders"]
    assert why_not_same_log(judged, orders_point, manifest) is None
    shop.make_topic_again()
    shop.send([{**order, "amount": "77.77"} for order in MADE])
    assert why_not_same_log(judged, orders_point, manifest) == "the topic was made again"
    assert why_read(shop, shop.judge_and_ask_the_gate()) == {"orders": "it was read with another place"}


def test_a_topic_is_read_where_the_window_before_has_other_sequences_of_its_producers(shop: ReconciledShop) -> None:
    """The audit of a window goes on with that of the one before."""
    shop.trade(orders(range(5)))
    shop.trade(orders(range(10, 15), 1))
    first, _ = shop.whole_way()
    shop.whole_way(1)
    shop.delete_records({part.partition: part.hi for part in first.window.ranges["orders"]})
    shop.judge_and_ask_the_gate()
    again = shop.judge_and_ask_the_gate(1)
    assert why_read(shop, again)["orders"] == "the window before has other sequences of its producers"


@pytest.mark.usefixtures("judged")
def test_a_topic_that_is_compacted_by_now_is_read(shop: ReconciledShop) -> None:
    shop.change_topic(**{"cleanup.policy": "compact,delete"})
    assert why_read(shop, shop.judge_and_ask_the_gate()) == {"orders": "the topic is compacted"}


def test_records_that_could_not_be_read_are_read_again(shop: ReconciledShop) -> None:
    shop.trade(MADE)
    shop.send_raw(b"no json")
    shop.judge_and_ask_the_gate()
    assert why_read(shop, shop.judge_and_ask_the_gate()) == {"orders": "1 of its offsets were undecodable"}


@pytest.mark.usefixtures("judged")
def test_records_that_came_since_belong_to_the_next_window(shop: ReconciledShop) -> None:
    shop.trade(orders(range(100, 104), 1))
    assert reused(shop, shop.judge_and_ask_the_gate()) == NAMED


def test_a_store_that_is_read_by_keys_is_read_again(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False, is_upsert=True)
    shop.send(MADE)
    shop.write("warehouse", MADE)
    shop.judge_and_ask_the_gate()
    second = shop.judge_and_ask_the_gate()
    assert (reused(shop, second), why_read(shop, second)) == ({"orders": 1}, {})
