"""Test filters that change between windows: what the change of the file alone explains is no wrong row."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.window import WindowState
from tests.integration.spark.test_survivors import repair
from tests.world.orders import Order, orders
from tests.world.pipeline_file import Settings
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

QUARANTINE: Settings = {"limits": "{share: 1.0}", "unexpected": "quarantine"}


def describe(shop: ReconciledShop, region: str | None, *, is_upsert: bool = False) -> None:
    hop = {} if region is None else {"where": f"\"region = '{region}'\""}
    shop.describe(has_ledger=False, hop=hop, compensation=QUARANTINE, late="1d", is_upsert=is_upsert)


def of(region: str, made: list[Order]) -> list[Order]:
    return [order for order in made if order["region"] == region]


def rows(shop: ReconciledShop) -> set[str]:
    return {row[0] for row in shop.sql("select id from warehouse")}


def test_rows_whose_records_pass_the_new_filter_stay(shop: ReconciledShop) -> None:
    describe(shop, "EU")
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", of("EU", made))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, "US")
    day = orders(range(100, 112), 1)
    shop.send(day)
    shop.write("warehouse", of("US", day))
    late = orders([112], 1)[0]["at"]
    shop.write("warehouse", [order | {"at": late} for order in of("US", made)])
    context = shop.judge_and_ask_the_gate(1)
    changed = {order["id"]: ("undecidable", "filter_changed") for order in of("US", made)}
    assert shop.found(context, STORE_HOP) == changed
    closed = repair(shop, context)

    assert rows(shop) == {order["id"] for order in (*made, *of("US", day))}
    assert closed.state is WindowState.NOT_KNOWN


def test_rows_that_a_narrowed_filter_keeps_out_are_reported_and_stay(shop: ReconciledShop) -> None:
    describe(shop, None)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, "EU")
    day = orders(range(100, 112), 1)
    shop.send(day)
    shop.write("warehouse", of("EU", day))
    shop.sql("update warehouse set at = at + interval '1 day' where region = 'US'")
    context = shop.judge_and_ask_the_gate(1)
    changed = {order["id"]: ("undecidable", "filter_changed") for order in of("US", made)}
    assert shop.found(context, STORE_HOP) == changed
    closed = repair(shop, context)

    assert rows(shop) == {order["id"] for order in (*made, *of("EU", day))}
    assert closed.state is WindowState.NOT_KNOWN


def test_a_window_that_is_run_again_with_a_narrowed_filter_moves_nothing_aside(shop: ReconciledShop) -> None:
    describe(shop, None)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", [*made, *orders([77])])
    first = shop.judge_and_ask_the_gate()
    assert shop.found(first, STORE_HOP) == {"O77": ("unexpected", "not_in_source")}
    assert repair(shop, first).state is WindowState.CERTIFIED

    describe(shop, "EU")
    again = shop.judge_and_ask_the_gate()
    changed = {order["id"]: ("undecidable", "filter_changed") for order in of("US", made)}
    assert shop.found(again, STORE_HOP) == changed
    repair(shop, again)

    assert rows(shop) == {order["id"] for order in made}


def test_rows_of_the_day_of_the_change_that_the_former_filter_lets_pass_stay(shop: ReconciledShop) -> None:
    describe(shop, None)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    day = orders(range(100, 112), 1)
    shop.send(day)
    shop.write("warehouse", [*day, *orders([177], 1)])
    describe(shop, "EU")
    context = shop.judge_and_ask_the_gate(1)
    changed = {order["id"]: ("undecidable", "filter_changed") for order in of("US", day)}
    assert shop.found(context, STORE_HOP) == changed | {"O177": ("unexpected", "not_in_source")}
    with connect(shop.journal) as journal:
        said = [incident_sentence(incident) for incident in incidents.of(journal, context.window)]
    assert said == ["`where` of orders→warehouse is region = 'EU' now, and was no filter in the windows before"]
    repair(shop, context)
    assert rows(shop) == {order["id"] for order in (*made, *day)}

    next_day = orders(range(200, 206), 2)
    shop.send(next_day)
    shop.write("warehouse", next_day)
    third = shop.judge_and_ask_the_gate(2)
    wrong = {order["id"]: ("unexpected", "not_in_source") for order in of("US", next_day)}
    assert shop.found(third, STORE_HOP) == wrong


def test_a_filter_that_is_only_written_otherwise_has_not_changed(shop: ReconciledShop) -> None:
    describe(shop, "EU")
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", of("EU", made))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    shop.describe(has_ledger=False, hop={"where": "\"region='EU'\""}, compensation=QUARANTINE)
    day = orders(range(100, 112), 1)
    shop.send(day)
    shop.write("warehouse", of("EU", day))
    shop.sql("update warehouse set at = at + interval '1 day' where at < '2025-03-02'")
    context, closed = shop.whole_way(1)
    assert (shop.found(context, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)


def test_a_narrowed_filter_takes_no_key_of_versions_out(shop: ReconciledShop) -> None:
    """Neither where the window of the version is run again, nor for rows of it in a later one; a version that leaves
    the filter after the change does."""
    describe(shop, None, is_upsert=True)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, "EU", is_upsert=True)
    changed = {order["id"]: ("undecidable", "filter_changed") for order in of("US", made)}
    again = shop.judge_and_ask_the_gate()
    assert shop.found(again, STORE_HOP) == changed
    repair(shop, again)
    assert rows(shop) == {order["id"] for order in made}

    day = orders(range(100, 112), 1)
    shop.send(day)
    shop.write("warehouse", of("EU", day))
    shop.sql("update warehouse set at = at + interval '1 day' where region = 'US'")
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, STORE_HOP) == changed
    repair(shop, second)
    assert rows(shop) == {order["id"] for order in (*made, *of("EU", day))}

    moved = of("EU", day)[0]
    shop.send([moved | {"region": "US", "at": orders([1], 2)[0]["at"]}])
    third = shop.judge_and_ask_the_gate(2)
    assert shop.found(third, STORE_HOP) == {moved["id"]: ("unexpected", "left_filter")}


def test_a_version_that_leaves_the_filter_decides_whatever_filter_older_ones_were_read_under(
    shop: ReconciledShop,
) -> None:
    describe(shop, None, is_upsert=True)
    made = orders(range(6))
    shop.send(made)
    shop.write("warehouse", made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe(shop, "EU", is_upsert=True)
    moved = of("EU", made)[0]
    lost = of("EU", made)[1] | {"amount": "77.00"}
    at = orders([1], 1)[0]["at"]
    shop.send([moved | {"region": "US", "at": at}, lost | {"at": at}])
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, STORE_HOP) == {
        moved["id"]: ("undecidable", "filter_changed"),  # the day of the change: the filter of before lets it pass
        lost["id"]: ("mismatched", "value_differs"),
    }


def test_what_is_missing_only_because_a_filter_was_widened_is_reported_and_not_written(shop: ReconciledShop) -> None:
    writing: Settings = {"limits": "{share: 1.0}", "missing": "upsert"}
    shop.describe(has_ledger=False, hop={"where": "\"region = 'EU'\""}, compensation=writing)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", of("EU", made)[1:])
    first = shop.judge_and_ask_the_gate()
    lost = of("EU", made)[0]["id"]
    assert shop.found(first, STORE_HOP) == {lost: ("missing", "lost_after_topic")}

    shop.describe(has_ledger=False, compensation=writing)
    again = shop.judge_and_ask_the_gate()
    changed = {order["id"]: ("undecidable", "filter_changed") for order in of("US", made)}
    assert shop.found(again, STORE_HOP) == changed | {lost: ("missing", "lost_after_topic")}
    repair(shop, again)
    assert rows(shop) == {order["id"] for order in of("EU", made)}

    asked = shop.judge_and_ask_the_gate()
    assert shop.found(asked, STORE_HOP) == {order["id"]: ("missing", "lost_after_topic") for order in of("US", made)}


@pytest.mark.parametrize(
    ("before", "now", "passes"),
    [
        ("region = 'EU'", "region != 'EU'", lambda order: order["region"] == "EU"),
        ("amount < '5.5'", "amount >= 5.50", lambda order: Decimal(order["amount"]) < Decimal("5.5")),
        ("region in ('EU')", "region not in ('EU', 'CN')", lambda order: order["region"] == "EU"),
        ("region is null", "region is not null", lambda order: order["region"] is None),
    ],
)
def test_a_filter_that_is_turned_round_knows_what_the_former_one_passed(
    shop: ReconciledShop, before: str, now: str, passes: Callable[[Order], bool]
) -> None:
    """Rows of records that passed before and do not now, and keys that are missing because they did not pass before,
    are not judged by the change alone; what the new filter says of new records is."""

    def describe_by(where: str) -> None:
        shop.describe(has_ledger=False, hop={"where": f'"{where}"'}, compensation=QUARANTINE, late="1d")

    describe_by(before)
    made = orders(range(12))
    made[0] |= {"region": None} if "null" in before else {}
    shop.send(made)
    shop.write("warehouse", [order for order in made if passes(order)])
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    describe_by(now)
    day = orders(range(100, 112), 1)
    shop.send(day)
    shop.write("warehouse", [order for order in day if not passes(order)][1:] + [o for o in day if passes(o)][:1])
    late = orders([112], 1)[0]["at"]
    shop.write("warehouse", [order | {"at": late} for order in made if not passes(order)])
    context = shop.judge_and_ask_the_gate(1)

    lost = next(order["id"] for order in day if not passes(order))
    of_day = {lost: ("undecidable", "filter_changed")}
    of_day |= {order["id"]: ("undecidable", "filter_changed") for order in [o for o in day if passes(o)][:1]}
    of_before = {order["id"]: ("undecidable", "filter_changed") for order in made if not passes(order)}
    assert shop.found(context, STORE_HOP) == of_day | of_before
    third = orders(range(200, 206), 2)
    shop.send(third)
    shop.write("warehouse", [order for order in third if not passes(order)][1:])
    again = shop.judge_and_ask_the_gate(2)
    lost = next(order["id"] for order in third if not passes(order))
    assert shop.found(again, STORE_HOP) == {lost: ("missing", "lost_after_topic")}


@pytest.mark.parametrize("is_after_a_day", [False, True], ids=["next", "after"])
def test_keys_in_flight_that_a_narrowed_filter_keeps_out_are_neither_lost_nor_gone(
    shop: ReconciledShop, is_after_a_day: bool
) -> None:
    """Also where the window right before had the new filter already, and handed them on. What passes both filters is
    lost where it is."""

    def describe_waiting(where: str | None) -> None:
        hop = {"consumer_group": "loader"} | ({} if where is None else {"where": f'"{where}"'})
        shop.describe(has_ledger=False, hop=hop, compensation=QUARANTINE, late="1d", max_age="7d")

    describe_waiting(None)
    made = orders(range(12))
    shop.send(made)
    shop.write("warehouse", made[:4])
    shop.commit_group("loader", 4)
    first, closed = shop.whole_way()
    assert ({*shop.found(first, STORE_HOP)}, closed.state) == ({o["id"] for o in made[4:]}, WindowState.CERTIFIED)

    describe_waiting("region = 'EU'")
    if is_after_a_day:
        day = orders(range(100, 106), 1)
        shop.send(day)
        second, closed = shop.whole_way(1)
        assert {verdict for verdict, _ in shop.found(second, STORE_HOP).values()} == {"pending"}
    number = 1 + is_after_a_day
    day = orders(range(200, 206), number)
    shop.send(day)
    shop.write("warehouse", of("EU", orders(range(100, 106), 1) if is_after_a_day else []))
    shop.write("warehouse", of("EU", day))
    out, kept = of("US", made[4:]), of("EU", made[4:])
    shop.write("warehouse", [*out[1:], *kept[1:]])
    shop.commit_group("loader", 12 + 6 * number)
    context, closed = shop.whole_way(number)

    lost = {kept[0]["id"]: ("missing", "committed_before_written")}
    assert shop.found(context, STORE_HOP) == lost | {o["id"]: ("undecidable", "filter_changed") for o in out}
    assert closed.state is WindowState.GAPS

    for again in range(number + 1):
        asked, closed = shop.whole_way(again)
        if again == 0:
            assert shop.found(asked, STORE_HOP) == {
                **lost,
                **{o["id"]: ("undecidable", "filter_changed") for o in [*of("US", made[:4]), *out[1:]]},
            }
    assert (shop.found(asked, STORE_HOP), closed.state) == ({}, WindowState.CERTIFIED)
