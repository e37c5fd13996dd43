"""Test points that several hops lead to: what one source lacks may come from another."""

from typing import Any

import pytest

from makewhole.model.window import WindowState
from tests.world.orders import Order, orders
from tests.world.pipeline_file import ledger, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

OTHER_HOP = "others→warehouse"


def with_another_topic(shop: ReconciledShop, **more: Any) -> str:
    name = shop.add_topic()
    shop.describe(
        more_points={"others": topic("log", name)},
        more_hops=[{"from": "others", "to": "warehouse"}],
        is_observing=True,
        **more,
    )
    return name


def send_to(shop: ReconciledShop, name: str, made: list[Order]) -> None:
    own, shop.topic = shop.topic, name
    shop.send(made)
    shop.topic = own


def test_a_store_of_two_topics_has_the_keys_of_both(shop: ReconciledShop) -> None:
    others = with_another_topic(shop)
    made, more = orders(range(4)), orders(range(10, 14))
    shop.trade(made)
    send_to(shop, others, more[:3])
    shop.write("warehouse", more)
    first = shop.open()
    send_to(shop, others, [more[3] | {"at": orders([3], 1)[0]["at"]}])  # behind the end of the window
    shop.judge(first)

    assert (shop.found(first, STORE_HOP), shop.found(first, OTHER_HOP)) == ({}, {})
    assert [shop.counts(first, hop).matched for hop in (STORE_HOP, OTHER_HOP)] == [4, 3]
    shop.validate(first)
    assert shop.certify(first).state is WindowState.CERTIFIED

    day = orders(range(20, 23), 1)
    shop.trade(day)
    late = {"at": day[0]["at"]}
    shop.write("warehouse", [made[0] | late, more[0] | late, orders([77], 1)[0], orders([78])[0]])
    second, closed = shop.whole_way(1)

    twice, unexpected = ("duplicate", "written_before_committed"), ("unexpected", "not_in_source")
    unmatched = {"O77": unexpected, "O78": unexpected}
    assert shop.found(second, STORE_HOP) == unmatched | {"O0": twice}
    assert shop.found(second, OTHER_HOP) == unmatched | {"O10": twice}
    assert closed.state is WindowState.GAPS


def test_a_topic_of_two_ledgers_has_the_keys_of_both(shop: ReconciledShop) -> None:
    shop.sql("create table archive (id text, number int, region text, amount numeric(8,2), at timestamptz)")
    shop.describe(
        more_points={"archive": ledger("db", "archive")},
        more_hops=[{"from": "archive", "to": "orders"}],
        is_observing=True,
    )
    made, more = orders(range(4)), orders(range(10, 13))
    shop.trade(made)
    shop.write("archive", more)
    shop.send([*more[:2], *orders([77])])
    shop.write("warehouse", [*more[:2], *orders([77])])

    first, closed = shop.whole_way()

    unmatched = {"O77": ("unexpected", "not_in_source")}
    assert shop.found(first, LEDGER_HOP) == unmatched
    assert shop.found(first, "archive→orders") == unmatched | {"O12": ("missing", "never_produced")}
    assert shop.found(first, STORE_HOP) == {}
    assert closed.state is WindowState.GAPS


def test_what_the_filter_of_another_source_keeps_out_is_unexpected(shop: ReconciledShop) -> None:
    others = with_another_topic(shop)
    text = shop.file.read_text()
    shop.file.write_text(
        text.replace("from: others, to: warehouse", "from: others, to: warehouse, where: \"region = 'EU'\"")
    )
    shop.trade(orders(range(4)))
    more = orders([10, 11])
    send_to(shop, others, more)
    shop.write("warehouse", more)

    first, _ = shop.whole_way()

    unmatched = {"O11": ("unexpected", "not_in_source")}
    assert (shop.found(first, STORE_HOP), shop.found(first, OTHER_HOP)) == (unmatched, unmatched)


def test_versions_of_two_topics_stand_in_one_store(shop: ReconciledShop) -> None:
    others = shop.add_topic()
    shop.describe(
        is_upsert=True,
        more_points={"others": topic("log", others)},
        more_hops=[{"from": "others", "to": "warehouse", "semantics": "upsert"}],
        is_observing=True,
    )
    made, more = orders(range(4)), orders(range(10, 13))
    shop.trade(made)
    send_to(shop, others, [*more, more[0] | {"amount": "0.07"}])
    shop.write("warehouse", more)

    first, _ = shop.whole_way()

    assert shop.found(first, STORE_HOP) == {}
    assert shop.found(first, OTHER_HOP) == {"O10": ("mismatched", "stale_version")}
