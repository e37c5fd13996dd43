"""Test which row of a key stays, by the value of its source, and that a plan does not work against itself."""

import json
from collections.abc import Iterable
from datetime import timedelta

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext
from tests.world.orders import BORN, DAY, Order, milliseconds, orders
from tests.world.pipeline_file import Settings, store, topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration

QUARANTINE: Settings = {"limits": "{share: 1.0}", "missing": "produce", "unexpected": "quarantine"}
Outcomes = dict[tuple[str, str], tuple[str, str, str | None]]
"""(hop, key) → (verdict, outcome, its reason)."""


def at(order: Order, amount: str, hour: int = 0, day: int = 0) -> Order:
    """The order with another amount, of a certain hour."""
    return order | {"amount": amount, "at": (BORN + day * DAY + timedelta(hours=hour)).isoformat()}


def amounts(shop: ReconciledShop, key: str, table: str = "warehouse") -> list[str]:
    """Return what the table holds of a key."""
    return [row[0] for row in shop.sql(f"select amount::text from {table} where id = %s order by amount", key)]


def repair(shop: ReconciledShop, context: WindowContext, loaded: Iterable[Order] = ()) -> ClosedWindow:
    """Plan, run, let the loader load these, verify and close."""
    plan_window(context)
    compensate_window(context, lambda _: None)
    shop.write("warehouse", loaded)
    verify_window(context, lambda *_: None, patience_seconds=0)
    return shop.certify(context)


def outcomes(shop: ReconciledShop, context: WindowContext) -> Outcomes:
    """Return what became of each finding."""
    with connect(shop.journal) as journal:
        return {
            (item.finding.hop, item.finding.key): (item.finding.verdict.value, item.outcome, item.reason)
            for item in window_findings.findings(journal, context.window)
        }


def send(shop: ReconciledShop, topic: str, made: Iterable[Order]) -> None:
    """Send records of orders into another topic."""
    client = producer(shop.bootstrap)
    for order in made:
        client.produce(topic, key=order["id"], value=json.dumps(order), timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0


def certified_day(shop: ReconciledShop, day: int = 0) -> None:
    """Close the first window whole."""
    _, closed = shop.whole_way(day)
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)


# The survivor


def test_under_upsert_the_row_of_the_latest_version_stays_and_not_that_of_a_stale_loader(shop: ReconciledShop) -> None:
    shop.describe(is_upsert=True)
    first, second = at(orders([1])[0], "100.00", 1), at(orders([1])[0], "200.00", 2)
    shop.write("outbox", [first, second])
    shop.send([first, second])
    shop.write("warehouse", [second])
    certified_day(shop)

    shop.write("warehouse", [at(first, "100.00", 1, day=1)])
    shop.trade(orders([101], 1))
    context = shop.judge_and_ask_the_gate(1)
    assert shop.found(context, STORE_HOP) == {"O1": ("duplicate", "upstream_duplicate")}
    closed = repair(shop, context)

    assert amounts(shop, "O1") == ["200.00"]
    assert outcomes(shop, context) == {(STORE_HOP, "O1"): ("duplicate", "repaired", None)}
    assert closed.state is WindowState.CERTIFIED


def test_of_an_event_the_row_that_agrees_with_its_record_stays_though_a_wrong_one_came_first(
    shop: ReconciledShop,
) -> None:
    right, wrong = at(orders([1])[0], "1.50", 2), at(orders([1])[0], "9.00", 1)
    shop.trade([right])
    certified_day(shop)

    shop.write("warehouse", [wrong, at(right, "1.50", 3, day=1)])  # the wrong one is the first by time
    shop.trade(orders([101], 1))
    context = shop.judge_and_ask_the_gate(1)
    closed = repair(shop, context)

    assert amounts(shop, "O1") == ["1.50"]
    assert outcomes(shop, context)[STORE_HOP, "O1"] == ("duplicate", "repaired", None)
    assert closed.state is WindowState.CERTIFIED


def test_keys_of_an_older_window_count_in_the_share_that_a_plan_may_be_about(shop: ReconciledShop) -> None:
    made = orders(range(3))
    shop.trade(made)
    certified_day(shop)

    shop.write("warehouse", [at(order, order["amount"], 1, day=1) for order in made])
    shop.trade(orders([101], 1))
    context = shop.judge_and_ask_the_gate(1)
    assert shop.counts(context, STORE_HOP).source_keys == 1
    closed = repair(shop, context)

    assert {outcome for _, outcome, _ in outcomes(shop, context).values()} == {"repaired"}
    assert closed.state is WindowState.CERTIFIED


def test_where_no_row_agrees_with_the_source_nothing_is_moved_and_the_finding_shows_both_values(
    shop: ReconciledShop,
) -> None:
    shop.trade(orders([1]))
    certified_day(shop)
    shop.sql("update warehouse set amount = 9")
    shop.write("warehouse", [at(orders([1])[0], "8.00", 1, day=1)])
    shop.trade(orders([101], 1))
    context = shop.judge_and_ask_the_gate(1)
    closed = repair(shop, context)

    assert amounts(shop, "O1") == ["8.00", "9.00"]
    assert outcomes(shop, context)[STORE_HOP, "O1"] == (
        "duplicate",
        "open",
        "warehouse holds it 2 times, and no row agrees with the source in amount; correct one of them by hand",
    )
    compared = shop.evidence(context, STORE_HOP, "O1")["compared"]
    assert compared["source"] == {"amount": "1.50"}
    assert sorted(row["amount"] for row in compared["warehouse"]) == ["8.00", "9.00"]
    assert closed.state is WindowState.GAPS


def test_a_row_of_a_version_that_came_behind_the_window_is_not_moved_aside(shop: ReconciledShop) -> None:
    shop.describe(is_upsert=True)
    first, second = at(orders([1])[0], "100.00", 1), at(orders([1])[0], "200.00", 2)
    shop.trade([first, second], unloaded=[first])
    certified_day(shop)
    shop.write("warehouse", [at(first, "100.00", 1, day=1)])
    shop.trade(orders([101], 1))
    context = shop.open(1)
    third = at(first, "300.00", 2, day=1)
    shop.send([third])
    shop.write("warehouse", [third])
    shop.judge(context)
    shop.validate(context)
    closed = repair(shop, context)

    assert amounts(shop, "O1") == ["100.00", "200.00", "300.00"]
    assert outcomes(shop, context)[STORE_HOP, "O1"] == (
        "duplicate",
        "refused",
        "stale: the log has a later version of this key; the window that holds it judges that one",
    )
    assert closed.state is WindowState.GAPS


# The filter


def test_a_resend_of_a_key_that_passes_the_filter_is_contained(shop: ReconciledShop) -> None:
    shop.describe(hop={"where": "\"region = 'US'\""})
    made = orders(range(4))
    shop.write("outbox", made)
    shop.send(made)
    shop.send(made[1:3])  # O1 is of the US, O2 is not
    shop.write("warehouse", [order for order in made if order["region"] == "US"])
    context = shop.judge_and_ask_the_gate()
    closed = repair(shop, context)

    assert {key: outcome[1] for key, outcome in outcomes(shop, context).items()} == {
        (LEDGER_HOP, "O1"): "contained",
        (LEDGER_HOP, "O2"): "contained",
    }
    assert closed.state is WindowState.CERTIFIED


def test_a_resend_that_the_store_behind_the_filter_has_with_another_value_is_not_contained(
    shop: ReconciledShop,
) -> None:
    shop.describe(hop={"where": "\"region = 'US'\""})
    made = orders(range(4))
    shop.trade(made, unloaded=[order for order in made if order["region"] == "EU"])
    certified_day(shop)
    shop.sql("update warehouse set amount = 9 where id = 'O1'")
    shop.sql("delete from warehouse where id = 'O3'")
    shop.send([at(made[1], "1.50", 1, day=1), at(made[3], "3.50", 1, day=1)])
    shop.trade(orders([101], 1))
    context = shop.judge_and_ask_the_gate(1)
    shop.sql("delete from warehouse where id = 'O3'")
    repair(shop, context)

    by_key = {key: item for (hop, key), item in outcomes(shop, context).items() if hop == LEDGER_HOP}
    assert by_key["O1"][1:] == ("open", "warehouse holds other values in amount")
    assert by_key["O3"][1:] == ("open", "warehouse does not hold it")


# A plan against itself


def test_a_row_whose_record_the_plan_produces_is_not_moved_aside(shop: ReconciledShop) -> None:
    made = _overwriting(shop, orders(range(4)))
    shop.trade(made, unsent=made[2:3])
    shop.write("warehouse", made[2:3])  # by hand
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O2": ("missing", "never_produced")}
    assert shop.found(context, STORE_HOP) == {"O2": ("unexpected", "not_in_source")}
    closed = repair(shop, context)

    assert [record.key_text for record in shop.read()].count("O2") == 1
    assert amounts(shop, "O2") == ["2.50"]
    assert {key: outcome[1:] for key, outcome in outcomes(shop, context).items()} == {
        (LEDGER_HOP, "O2"): ("repaired", None),
        (STORE_HOP, "O2"): ("repaired", "orders has it by now"),
    }
    assert closed.state is WindowState.CERTIFIED


def test_two_actions_on_the_only_key_of_a_window_are_one_key_of_the_share(shop: ReconciledShop) -> None:
    upsert = {"compensation": "{missing: upsert}"}
    shop.describe(
        hop=upsert,
        more_points={"archive": store("db", "archive")},
        more_hops=[{"from": "orders", "to": "archive", **upsert}],
    )
    shop.sql("create table archive as table warehouse")
    shop.trade(orders([1]), unloaded=orders([1]))
    context = shop.judge_and_ask_the_gate()
    frozen = plan_window(context)

    assert frozen.plan is not None
    assert (frozen.plan.state, frozen.plan.reason) == (PlanState.FROZEN, None)
    assert [(action.target, action.key) for action in frozen.actions] == [("warehouse", "O1"), ("archive", "O1")]
    closed = repair(shop, context)
    assert [amounts(shop, "O1", table) for table in ("warehouse", "archive")] == [["1.50"], ["1.50"]]
    assert closed.state is WindowState.CERTIFIED


def test_a_row_with_another_value_than_the_produced_record_stays_open(shop: ReconciledShop) -> None:
    made = _overwriting(shop, orders(range(4)))
    shop.trade(made, unsent=made[2:3])
    shop.write("warehouse", [made[2] | {"amount": "9.00"}])
    context = shop.judge_and_ask_the_gate()
    closed = repair(shop, context)

    assert amounts(shop, "O2") == ["9.00"]
    assert {key: outcome[1:] for key, outcome in outcomes(shop, context).items()} == {
        (LEDGER_HOP, "O2"): ("open", "warehouse holds other values in amount"),
        (STORE_HOP, "O2"): ("open", "warehouse holds other values in amount"),
    }
    assert closed.state is WindowState.GAPS


def test_a_row_whose_key_the_ledger_has_is_not_moved_aside_where_nothing_is_produced(shop: ReconciledShop) -> None:
    shop.describe(compensation={**QUARANTINE, "missing": "report"})
    made = orders(range(4))
    shop.trade(made, unsent=made[2:3])
    shop.write("warehouse", [made[2], *orders([7])])
    context = shop.judge_and_ask_the_gate()
    closed = repair(shop, context)

    assert (amounts(shop, "O2"), amounts(shop, "O7")) == (["2.50"], [])
    assert outcomes(shop, context) == {
        (LEDGER_HOP, "O2"): ("missing", "open", "no committed record of it came to orders"),
        (STORE_HOP, "O2"): (
            "unexpected",
            "refused",
            "kept: outbox has this key, which orders lacks: its row in warehouse is not extra; write `missing: "
            "produce` on hop outbox→orders: the row is put aside then, and its record sent",
        ),
        (STORE_HOP, "O7"): ("unexpected", "repaired", None),
    }
    assert closed.state is WindowState.GAPS


def test_what_a_topic_lost_is_not_produced_where_another_one_was_filled_from_it(shop: ReconciledShop) -> None:
    copies = shop.add_topic()
    shop.describe(
        compensation={"limits": "{share: 1.0}"},
        ledger_hop={"compensation": "{missing: produce}"},
        hop={"compensation": "{missing: report, unexpected: quarantine}"},
        more_points={"copies": topic("log", copies, key='"$.id"')},
        more_hops=[{"from": "orders", "to": "copies", "compensation": "{missing: report}"}],
    )
    shop.trade(orders(range(4)))
    send(shop, copies, orders(range(4)))
    certified_day(shop)
    later = orders(range(10, 13), 1)
    shop.trade(later, unloaded=later)
    send(shop, copies, later)
    shop.make_topic_again()
    shop.send(later[:1])
    context = shop.judge_and_ask_the_gate(1)
    repair(shop, context)

    assert [record.key_text for record in shop.read()] == ["O10"]
    reason = (
        "twice: copies is filled from orders, and may have had the record before orders lost it (topic_recreated); "
        "look for the key there, and send the record by hand where it lacks it"
    )
    by_key = {key: item for (hop, key), item in outcomes(shop, context).items() if hop == LEDGER_HOP}
    assert by_key == dict.fromkeys(("O11", "O12"), ("missing", "refused", reason))


def _overwriting(shop: ReconciledShop, made: list[Order]) -> list[Order]:
    """Have the loader overwrite the row of a key by its version; return the orders with one."""
    shop.describe(compensation=QUARANTINE, has_version=True)
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add version int")
    shop.more_columns["version"] = "bigint"
    return [order | {"version": 1} for order in made]
