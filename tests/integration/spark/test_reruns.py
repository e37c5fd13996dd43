"""Test that a window that is judged again reads less, or later, than before without forgetting what was read."""

import pytest

from makewhole.kafka.log.archive import REMOVED
from makewhole.lake.storage import Storage
from makewhole.model.errors import RefusedError
from makewhole.model.window import WindowState
from tests.world.combinations import with_every_change
from tests.world.orders import orders
from tests.world.pipeline_file import store, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


@pytest.mark.extended
def test_keys_of_a_window_that_cannot_be_read_again_are_still_known_when_they_repeat(shop: ReconciledShop) -> None:
    made = orders(range(5))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.trade(orders(range(100, 103), 1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    shop.delete_records({0: 5})
    assert shop.whole_way()[1].state is WindowState.NOT_KNOWN

    shop.trade(orders(range(200, 203), 2))
    shop.send([made[2] | {"at": orders([202], 2)[0]["at"]}])
    third, closed = shop.whole_way(2)

    assert shop.found(third, LEDGER_HOP) == {"O2": ("duplicate", "retry_without_idempotence")}
    assert closed.state is WindowState.GAPS


def test_a_key_that_was_handed_over_is_judged_although_the_window_before_cannot_be_read_again(
    shop: ReconciledShop,
) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(5))
    shop.trade(made, unloaded=made[4:])
    shop.commit_group("loader", 4)
    _, closed = shop.whole_way()
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 1)
    shop.delete_records({0: 5})
    assert shop.whole_way()[1].state is WindowState.NOT_KNOWN

    shop.trade(orders(range(100, 103), 1))
    shop.commit_group("loader", 8)
    second, closed = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O4": ("missing", "committed_before_written")}
    assert closed.state is WindowState.GAPS


def test_the_first_of_two_late_records_is_the_one_that_counts(shop: ReconciledShop) -> None:
    made = orders(range(9))
    shop.write("outbox", made)
    shop.write("warehouse", made)
    shop.send(made[:8])
    context = shop.open()
    late = made[8]
    shop.send(orders([100], 1))
    shop.send([late, late | {"amount": "0.07"}])

    shop.judge(context)

    assert shop.found(context, LEDGER_HOP) == {}


def test_a_row_without_end_in_its_time_is_judged(shop: ReconciledShop) -> None:
    shop.trade(orders(range(3)))
    shop.write("outbox", [orders([7])[0] | {"at": "infinity"}])
    first = shop.open()
    shop.judge(first)
    assert shop.found(first, LEDGER_HOP) == {"O7": ("missing", "never_produced")}


def test_a_purged_ledger_row_is_remembered_by_the_window_that_read_it(shop: ReconciledShop) -> None:
    """The record came behind the end of the window of its row."""
    made = orders(range(5))
    shop.trade(made[:4])
    shop.write("outbox", made[4:])
    first = shop.open()
    shop.send([made[4] | {"at": orders([100], 1)[0]["at"]}])
    shop.write("warehouse", made[4:])
    shop.judge(first)
    assert shop.found(first, LEDGER_HOP) == {}
    shop.validate(first)
    assert shop.certify(first).state is WindowState.CERTIFIED
    shop.sql("delete from outbox")

    shop.trade(orders(range(101, 104), 1))
    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_handed_over_keys_are_compared_as_the_file_says_now(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(5))
    shop.trade(made, unloaded=made[4:])
    shop.commit_group("loader", 4)
    assert shop.whole_way()[1].handed_over == 1
    shop.file.write_text(
        shop.file.read_text().replace('{amount: "decimal(8,2)"}', '{amount: "decimal(8,2)", region: string}')
    )

    shop.write("warehouse", made[4:])
    shop.trade(orders(range(100, 103), 1))
    shop.commit_group("loader", 8)
    second, closed = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_a_record_in_the_window_before_is_compared_as_the_file_says_now(shop: ReconciledShop) -> None:
    """The row is of the second day, and its record lies in front of the end of the first."""
    made, edge = orders(range(5)), orders([50], 1)
    shop.trade(made)
    shop.send([edge[0] | {"at": made[4]["at"]}])
    shop.write("warehouse", edge)
    first = shop.judge_and_ask_the_gate()
    assert shop.found(first, LEDGER_HOP) == {"O50": ("unexpected", "not_in_source")}
    shop.certify(first)
    shop.file.write_text(
        shop.file.read_text().replace('{amount: "decimal(8,2)"}', '{amount: "decimal(8,2)", region: string}')
    )

    shop.write("outbox", edge)
    shop.trade(orders(range(100, 103), 1))
    second, closed = shop.whole_way(1)

    assert shop.found(second, LEDGER_HOP) == {}
    assert closed.state is WindowState.CERTIFIED


def test_a_window_that_knows_no_offsets_of_a_new_topic_says_so(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    more = shop.add_topic()
    shop.sql("create table lake (id text, number int, region text, amount numeric(8,2), at timestamptz)")
    shop.describe(
        more_points={"copies": topic("log", more), "lake": store("db", "lake")},
        more_hops=[{"from": "orders", "to": "copies"}, {"from": "copies", "to": "lake"}],
        is_observing=True,
    )

    with pytest.raises(RefusedError) as refused:
        shop.ask()

    assert str(refused.value) == (
        "window 1 (the beginning to 2025-03-02T00:00:00+00:00) of shop has no offsets of copies: it was opened before "
        "its file named that topic, and cannot be judged with it. Ask for a window that was opened since; to judge "
        "this one, take the topic out of the file until it is done"
    )


def test_purged_ledger_rows_are_known_to_every_revision_that_comes(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    for purged in ("O1", "O3"):
        shop.sql(f"delete from outbox where id = '{purged}'")

        again, closed = shop.whole_way()

        assert shop.found(again, LEDGER_HOP) == {}
        assert closed.state is WindowState.CERTIFIED


def test_the_record_of_a_handed_over_key_is_no_second_one(shop: ReconciledShop) -> None:
    """The key index has it as well as the window that handed it over."""
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(5))
    shop.trade(made, unloaded=made[4:])
    shop.commit_group("loader", 4)
    assert shop.whole_way()[1].handed_over == 1

    shop.write("warehouse", [made[4], made[4]])
    shop.trade(orders(range(100, 103), 1))
    shop.commit_group("loader", 8)
    second, _ = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O4": ("duplicate", "written_before_committed")}


def test_a_file_without_the_hop_on_which_keys_wait_is_refused(shop: ReconciledShop) -> None:
    shop.describe(hop={"consumer_group": "loader"})
    made = orders(range(5))
    shop.trade(made, unloaded=made[4:])
    shop.commit_group("loader", 4)
    assert shop.whole_way()[1].handed_over == 1
    text = shop.file.read_text()
    shop.file.write_text(text.replace("  warehouse: ", "  lake: ").replace("to: warehouse", "to: lake"))

    with pytest.raises(RefusedError) as refused:
        shop.ask(1)

    assert str(refused.value) == (
        "shop: window 1 left keys in flight to this one (1 on orders→warehouse), and the file has no such hop any "
        "more: they would not be judged. Write the points of these hops under their names again until a window without "
        "such keys is certified; or give the pipeline another name: it begins a history of its own, from `start:` on"
    )


def test_keys_of_another_number_of_parts_are_refused(shop: ReconciledShop) -> None:
    shop.trade(orders(range(5)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    text = shop.file.read_text()
    text = text.replace("key: id", "key: [id, number]").replace('key: "$.id"', 'key: ["$.id", "$.number"]')
    shop.file.write_text(text)

    with pytest.raises(RefusedError) as refused:
        shop.ask(1)

    assert str(refused.value) == (
        "shop: the windows before compared keys of 1 parts at outbox, and this one would of 2; what is kept from "
        "before (the key index, keys handed over) would not be found again. Write the `key` of before, or give the "
        "pipeline another name: it begins a history of its own, from `start:` on"
    )


CHANGES = {
    "the settle time": ("settle: 0s", "settle: 1s"),
    "a hop of others": ("{from: outbox, to: orders", "{from: outbox, to: orders, where: number > -1"),
    "its filter": ("number < 1000", "number > 99"),
    "a compared column": ('{amount: "decimal(8,2)"}', '{amount: "decimal(8,2)", region: string}'),
}


@pytest.mark.parametrize(
    "what", with_every_change(["a compared column", "its filter", "a hop of others", "the settle time"], first=3)
)
def test_a_window_is_judged_again_by_a_changed_file_though_archives_were_removed(
    shop: ReconciledShop, what: str
) -> None:
    """The values of a record that was handed over cannot be read again: they are known where they are of the same.
    Nor is it known whether it passes another filter."""
    made, edge = orders(range(5)), orders([150], 1)
    hop = {"consumer_group": "loader", "where": "number < 1000"}
    shop.describe(hop=hop, keep={"archives": "30d"})
    shop.trade(made, unloaded=made[4:])
    shop.send([edge[0] | {"at": made[4]["at"]}])
    for table in ("outbox", "warehouse"):
        shop.write(table, edge)
    shop.commit_group("loader", 4)
    shop.whole_way()
    shop.write("warehouse", made[4:])
    shop.trade(orders(range(100, 103), 1))
    shop.commit_group("loader", 9)
    assert shop.found(shop.whole_way(1)[0], STORE_HOP) == {}

    storage = Storage.from_environment()
    storage.write_bytes(f"shop/window=1/revision=1/orders/archive{REMOVED}", b"records were kept 30d, and removed")
    archived = [file.path for file in storage.files_below("shop/window=1") if "/archive/" in file.path]
    assert archived
    for path in archived:
        storage.remove(path)
    was, now = CHANGES[what]
    assert was in shop.file.read_text()
    shop.file.write_text(shop.file.read_text().replace(was, now))
    if what == "its filter":
        shop.sql("delete from warehouse where id = 'O4'")
    again = shop.judged(1)

    assert again.window.revision == 2
    not_known = {
        "a compared column": dict.fromkeys(("O4", "O150"), ("undecidable", "unreadable_value")),
        "its filter": dict.fromkeys(("O4", "O150"), ("undecidable", "filter_changed")),
    }
    verdicts = {**shop.found(again, LEDGER_HOP), **shop.found(again, STORE_HOP)}
    assert verdicts == not_known.get(what, {})
