"""Test hops that lead to the same place: what it should hold for a key follows from all of them together."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.window import WindowState
from tests.integration.spark.test_survivors import amounts, repair, send
from tests.world.orders import orders
from tests.world.pipeline_file import Settings, ledger, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import left_open
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

OTHER_HOP = "others→warehouse"
ARCHIVE_HOP = "archive→orders"
UPSERT: Settings = {"limits": "{share: 1.0}", "missing": "upsert", "mismatched": "upsert"}
DISAGREE = ("conflict", "sources_disagree")


def with_two_ledgers(shop: ReconciledShop) -> None:
    shop.sql("create table archive (id text, number int, region text, amount numeric(8,2), at timestamptz)")
    shop.describe(
        more_points={"archive": ledger("db", "archive")},
        more_hops=[{"from": "archive", "to": "orders"}],
        compensation={"limits": "{share: 1.0}", "missing": "produce"},
    )


def with_two_topics(shop: ReconciledShop, *, is_upsert: bool = False, has_version: bool = False) -> str:
    others = shop.add_topic()
    semantics = {"semantics": "upsert"} if is_upsert else {}
    version = {"version": '"$.version"'} if has_version else {}
    shop.describe(
        has_ledger=False,
        is_upsert=is_upsert,
        has_version=has_version,
        more_points={"others": topic("log", others, **version)},
        more_hops=[{"from": "others", "to": "warehouse", **semantics}],
        compensation=UPSERT,
    )
    return others


def test_an_event_that_two_ledgers_have_is_produced_once(shop: ReconciledShop) -> None:
    with_two_ledgers(shop)
    made = orders(range(6))
    shop.trade(made, unsent=made[2:4])
    shop.write("archive", made)
    context = shop.judge_and_ask_the_gate()
    lost = {"O2": ("missing", "never_produced"), "O3": ("missing", "never_produced")}
    assert (shop.found(context, LEDGER_HOP), shop.found(context, ARCHIVE_HOP)) == (lost, lost)

    plan_window(context)
    compensate_window(context, lambda _: None)
    assert not left_open(shop.bootstrap, shop.topic)  # the markers are in the log: verify reads up to them
    shop.write("warehouse", made[2:4])
    verify_window(context, lambda *_: None, patience_seconds=0)
    closed = shop.certify(context)

    assert sorted(record.key_text for record in shop.read()) == sorted(order["id"] for order in made)
    assert closed.state is WindowState.CERTIFIED, closed.reason


def test_an_event_of_which_two_ledgers_have_different_values_is_not_produced(shop: ReconciledShop) -> None:
    with_two_ledgers(shop)
    made = orders(range(6))
    shop.trade(made, unsent=made[2:3])
    shop.write("archive", [order | {"amount": "0.07"} if order["id"] == "O2" else order for order in made])
    context = shop.judge_and_ask_the_gate()
    assert (shop.found(context, LEDGER_HOP), shop.found(context, ARCHIVE_HOP)) == ({"O2": DISAGREE}, {"O2": DISAGREE})

    closed = repair(shop, context)

    assert len(shop.read()) == 5
    assert closed.state is WindowState.GAPS


def test_an_event_that_another_ledger_had_with_another_value_is_a_conflict_though_the_topic_agrees(
    shop: ReconciledShop,
) -> None:
    with_two_ledgers(shop)
    made = orders(range(6))
    shop.trade(made)
    shop.sql("update outbox set amount = 0.07 where id = 'O2'")
    verdicts = shop.found(shop.judge_and_ask_the_gate(), LEDGER_HOP)
    assert {key: verdict for key, (verdict, _) in verdicts.items()} == {"O2": "mismatched"}

    day = orders([100], 1)
    shop.trade(day)
    shop.write("archive", [made[2] | {"at": day[0]["at"]}, made[3] | {"at": day[0]["at"]}])
    context, closed = shop.whole_way(1)
    assert shop.found(context, ARCHIVE_HOP) == {"O2": DISAGREE}
    assert closed.state is WindowState.GAPS

    shop.sql("update outbox set amount = 2.50 where id = 'O2'")  # a person corrects it
    context, closed = shop.whole_way(1)
    assert (shop.found(context, ARCHIVE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_an_event_of_which_two_topics_have_different_values_is_a_conflict(shop: ReconciledShop) -> None:
    others = with_two_topics(shop)
    made = orders(range(6))
    shop.trade(made)
    send(shop, others, [made[1], made[2] | {"amount": "0.07"}, *orders([10])])
    shop.write("warehouse", orders([10]))
    context = shop.judge_and_ask_the_gate()
    assert (shop.found(context, STORE_HOP), shop.found(context, OTHER_HOP)) == ({"O2": DISAGREE}, {"O2": DISAGREE})

    closed = repair(shop, context)

    assert amounts(shop, "O2") == ["2.50"]
    assert closed.state is WindowState.GAPS


def test_an_event_that_another_topic_has_differently_a_window_later_is_a_conflict(shop: ReconciledShop) -> None:
    others = with_two_topics(shop)
    made = orders(range(6))
    shop.trade(made)
    send(shop, others, orders([10]))
    shop.write("warehouse", orders([10]))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    day = orders([100], 1)
    shop.trade(day)
    send(shop, others, [made[2] | {"amount": "0.07", "at": day[0]["at"]}])
    context = shop.judge_and_ask_the_gate(1)
    assert (shop.found(context, STORE_HOP), shop.found(context, OTHER_HOP)) == ({}, {"O2": DISAGREE})

    closed = repair(shop, context)

    assert amounts(shop, "O2") == ["2.50"]
    assert closed.state is WindowState.GAPS
    again, closed = shop.whole_way()  # what came after its end is of the window that has it
    assert (shop.found(again, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def numbered(key: int, version: int, amount: str, day: int = 0) -> dict[str, object]:
    return orders([key], day)[0] | {"version": version, "amount": amount}


def test_of_versions_in_two_topics_the_latest_of_all_counts(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add version int; alter table outbox add version int")
    others = with_two_topics(shop, is_upsert=True, has_version=True)
    shop.send([numbered(1, 1, "1.00"), numbered(2, 5, "2.00"), numbered(3, 1, "3.00")])
    send(shop, others, [numbered(1, 2, "1.10"), numbered(2, 4, "2.90")])
    shop.write("warehouse", [numbered(1, 2, "1.10"), numbered(2, 5, "2.00"), numbered(3, 1, "3.00")])
    context = shop.judge_and_ask_the_gate()
    assert (shop.found(context, STORE_HOP), shop.found(context, OTHER_HOP)) == ({}, {})

    closed = repair(shop, context)

    assert (amounts(shop, "O1"), amounts(shop, "O2")) == (["1.10"], ["2.00"])
    assert closed.state is WindowState.CERTIFIED, closed.reason


def test_a_row_that_holds_an_older_version_gets_the_latest_of_all_topics(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add version int; alter table outbox add version int")
    others = with_two_topics(shop, is_upsert=True, has_version=True)
    shop.send([numbered(1, 1, "1.00")])
    send(shop, others, [numbered(1, 2, "1.10")])
    shop.write("warehouse", [numbered(1, 1, "1.00")])
    context = shop.judge_and_ask_the_gate()

    closed = repair(shop, context)

    assert amounts(shop, "O1") == ["1.10"]
    assert closed.state is WindowState.CERTIFIED, closed.reason


def test_a_row_that_its_topic_left_to_another_must_hold_what_that_had(shop: ReconciledShop) -> None:
    """Both hops say so. The row has a higher number than what should be in it, and no plan writes over that."""
    shop.sql("alter table warehouse add version int; alter table outbox add version int")
    others = with_two_topics(shop, is_upsert=True, has_version=True)
    text = shop.file.read_text()
    for name in ("orders", "others"):
        text = text.replace(f"from: {name}, to: warehouse", f'from: {name}, to: warehouse, where: "number < 100"')
    shop.file.write_text(text)
    shop.send([numbered(3, 1, "1.00")])
    send(shop, others, [numbered(1, 5, "5.00"), numbered(2, 5, "5.00")])
    shop.write("warehouse", [numbered(1, 5, "5.00"), numbered(2, 5, "5.00"), numbered(3, 1, "1.00")])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    left = [numbered(key, 7, "7.00", 1) | {"number": 100} for key in (1, 2)]
    shop.send([numbered(1, 6, "6.00", 1), numbered(2, 6, "6.00", 1), *left])
    shop.sql("update warehouse set version = 6, amount = 6, at = at + interval '1 day' where id = 'O1'")
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, STORE_HOP) == {"O1": ("mismatched", "stale_version")}
    assert {verdict for verdict, _ in shop.found(context, OTHER_HOP).values()} == {"mismatched"}

    closed = repair(shop, context)

    assert (amounts(shop, "O1"), amounts(shop, "O2")) == (["6.00"], ["5.00"])
    assert closed.state is WindowState.GAPS


def test_versions_without_numbers_in_two_topics_are_not_known(shop: ReconciledShop) -> None:
    others = with_two_topics(shop, is_upsert=True)
    made = orders(range(4))
    shop.trade(made)
    send(shop, others, [made[1], made[2] | {"amount": "0.07"}])
    context = shop.judge_and_ask_the_gate()
    unknown = {"O2": ("undecidable", "order_unknown")}
    assert (shop.found(context, STORE_HOP), shop.found(context, OTHER_HOP)) == (unknown, unknown)

    closed = repair(shop, context)

    assert amounts(shop, "O2") == ["2.50"]
    assert closed.state is WindowState.NOT_KNOWN


def set_back(shop: ReconciledShop, key: int, version: int | None, amount: str) -> None:
    """Write over a row of the first day as a loader does that was set back: with today's time."""
    changed = "" if version is None else f", version = {version}"
    shop.sql(f"update warehouse set amount = {amount}, at = '{orders([key], 1)[0]['at']}'{changed} where id = 'O{key}'")


def test_a_row_of_an_event_that_both_topics_have_is_compared_with_them(shop: ReconciledShop) -> None:
    others = with_two_topics(shop)
    made = orders(range(6))
    shop.trade(made)
    send(shop, others, [*made[1:3], *orders([10])])
    shop.write("warehouse", orders([10]))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    shop.trade(orders([100], 1))
    send(shop, others, orders([110], 1))
    shop.write("warehouse", orders([110], 1))
    set_back(shop, 2, None, "0.07")
    context = shop.judge_and_ask_the_gate(1)
    verdicts = shop.found(context, STORE_HOP) | shop.found(context, OTHER_HOP)

    assert {key: verdict for key, (verdict, _) in verdicts.items()} == {"O2": "mismatched"}
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert amounts(shop, "O2") == ["2.50"]


def test_a_row_of_an_event_that_a_topic_and_a_ledger_have_is_compared_with_both(shop: ReconciledShop) -> None:
    shop.sql("create table archive (id text, number int, region text, amount numeric(8,2), at timestamptz)")
    shop.describe(
        has_ledger=False,
        more_points={"archive": ledger("db", "archive")},
        more_hops=[{"from": "archive", "to": "warehouse"}],
        compensation=UPSERT,
    )
    made = orders(range(6))
    shop.trade(made)
    shop.write("archive", [*made[1:2], made[2] | {"amount": "0.07"}, *made[3:4]])
    hop = "archive→warehouse"
    first = shop.judge_and_ask_the_gate()
    assert (shop.found(first, STORE_HOP), shop.found(first, hop)) == ({"O2": DISAGREE}, {"O2": DISAGREE})

    shop.trade(orders([100], 1))
    shop.write("archive", orders([100], 1))
    for key in (1, 2):
        set_back(shop, key, None, "9.99")
    context = shop.judge_and_ask_the_gate(1)
    by_hop = [{key: verdict for key, (verdict, _) in shop.found(context, name).items()} for name in (STORE_HOP, hop)]

    assert by_hop == [{"O1": "mismatched", "O2": "conflict"}] * 2
    assert repair(shop, context).state is WindowState.GAPS
    assert (amounts(shop, "O1"), amounts(shop, "O2")) == (["1.50"], ["9.99"])


def test_a_row_that_a_loader_set_back_gets_the_latest_of_all_topics(shop: ReconciledShop) -> None:
    shop.sql("alter table warehouse add version int; alter table outbox add version int")
    others = with_two_topics(shop, is_upsert=True, has_version=True)
    shop.send([numbered(1, 1, "1.00"), numbered(2, 4, "2.00"), numbered(3, 1, "3.00")])
    send(shop, others, [numbered(1, 2, "1.10"), numbered(2, 3, "2.90")])
    shop.write("warehouse", [numbered(1, 2, "1.10"), numbered(2, 4, "2.00"), numbered(3, 1, "3.00")])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    shop.send([numbered(100, 1, "9.00", day=1)])
    send(shop, others, [numbered(110, 1, "9.00", day=1)])
    shop.write("warehouse", [numbered(100, 1, "9.00", day=1), numbered(110, 1, "9.00", day=1)])
    set_back(shop, 1, 1, "1.00")
    set_back(shop, 2, 3, "2.90")
    context = shop.judge_and_ask_the_gate(1)
    verdicts = shop.found(context, STORE_HOP) | shop.found(context, OTHER_HOP)

    assert {key: verdict for key, (verdict, _) in verdicts.items()} == {"O1": "mismatched", "O2": "mismatched"}
    assert repair(shop, context).state is WindowState.CERTIFIED
    assert (amounts(shop, "O1"), amounts(shop, "O2")) == (["1.10"], ["2.00"])
