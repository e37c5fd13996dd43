"""Test that no repair carries on what another hop, or an older window, calls wrong."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.window.context import WindowContext
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.pipeline_file import ledger
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

MISMATCHED = "disputed: outbox→orders calls this key mismatched (value_differs)"
UNEXPECTED = "disputed: outbox→orders calls this key unexpected (not_in_source)"


def planned(shop: ReconciledShop, context: WindowContext) -> None:
    """Plan and run."""
    plan_window(context)
    compensate_window(context, lambda _: None)


def priced(order: Order, amount: str) -> Order:
    return order | {"amount": amount}


def rows(shop: ReconciledShop, table: str = "warehouse") -> list[tuple[str, str]]:
    return [(key, amount) for key, amount in shop.sql(f"select id, amount::text from {table} order by id, amount")]


def outcome(shop: ReconciledShop, context: WindowContext, key: str, hop: str = STORE_HOP) -> tuple[str, str]:
    result, reason = shop.outcome_of(context, hop, key)
    return result, reason or ""


def wrong_in_topic(shop: ReconciledShop) -> list[Order]:
    """Send O1 with 7.00, which the ledger has with 1.50; O2 is right. Return the orders as the ledger has them."""
    made = orders([1, 2])
    shop.write("outbox", made)
    shop.send([priced(made[0], "7.00"), made[1]])
    return made


def remedies(**chosen: str) -> Mapping[str, Any]:
    inner = ", ".join(f"{verdict}: {remedy}" for verdict, remedy in chosen.items())
    return {"hop": {"compensation": f"{{{inner}}}"}}


def test_a_value_that_the_ledger_calls_wrong_is_not_written_over_the_row_that_agrees_with_it(
    shop: ReconciledShop,
) -> None:
    shop.describe(**remedies(mismatched="upsert"))
    made = wrong_in_topic(shop)
    shop.write("warehouse", [made[0], priced(made[1], "9.00")])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O1": ("mismatched", "value_differs")}
    assert set(shop.found(context, STORE_HOP)) == {"O1", "O2"}
    planned(shop, context)
    assert rows(shop) == [("O1", "1.50"), ("O2", "2.50")]
    result, reason = outcome(shop, context, "O1")
    assert result == "refused"
    assert reason.startswith(MISMATCHED), reason


def test_of_two_rows_none_is_moved_aside_where_the_record_that_decides_is_called_wrong(shop: ReconciledShop) -> None:
    shop.describe(**remedies(duplicate="quarantine"))
    made = wrong_in_topic(shop)
    shop.write("warehouse", [made[0], priced(made[0], "7.00"), made[1], made[1]])
    context = shop.judge_and_ask_the_gate()
    planned(shop, context)
    assert rows(shop) == [("O1", "1.50"), ("O1", "7.00"), ("O2", "2.50")]
    assert outcome(shop, context, "O1")[1].startswith(MISMATCHED)


@pytest.mark.parametrize("remedy", ["redeliver", "upsert"])
def test_a_record_that_differs_from_the_ledger_is_not_brought_to_a_store_that_has_none(
    shop: ReconciledShop, remedy: str
) -> None:
    shop.describe(**remedies(missing=remedy))
    wrong_in_topic(shop)
    context = shop.judge_and_ask_the_gate()
    planned(shop, context)
    assert [record.key_text for record in shop.read()] == ["O1", "O2", *(["O2"] if remedy == "redeliver" else [])]
    assert rows(shop) == ([("O2", "2.50")] if remedy == "upsert" else [])
    assert outcome(shop, context, "O1")[1].startswith(MISMATCHED)


@pytest.mark.parametrize("remedy", ["redeliver", "upsert"])
def test_a_record_that_the_ledger_does_not_have_is_not_brought_to_a_store(shop: ReconciledShop, remedy: str) -> None:
    shop.describe(**remedies(missing=remedy))
    made = orders([1, 2])
    shop.write("outbox", made[1:])
    shop.send(made)
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O1": ("unexpected", "not_in_source")}
    planned(shop, context)
    assert [record.key_text for record in shop.read()] == ["O1", "O2", *(["O2"] if remedy == "redeliver" else [])]
    assert rows(shop) == ([("O2", "2.50")] if remedy == "upsert" else [])
    assert outcome(shop, context, "O1")[1].startswith(UNEXPECTED)


def test_a_value_that_an_open_finding_of_an_older_window_calls_wrong_moves_no_row_aside(shop: ReconciledShop) -> None:
    shop.describe(**remedies(duplicate="quarantine"))
    made = wrong_in_topic(shop)
    shop.write("warehouse", [priced(made[0], "7.00"), made[1]])
    first, _ = shop.whole_way()
    assert shop.found(first, LEDGER_HOP) == {"O1": ("mismatched", "value_differs")}
    assert shop.found(first, STORE_HOP) == {}
    later = (BORN + DAY + timedelta(hours=1)).isoformat()
    shop.write("warehouse", [order | {"at": later} for order in made])
    shop.trade(orders([101], 1))
    second = shop.judge_and_ask_the_gate(1)
    assert set(shop.found(second, STORE_HOP)) == {"O1", "O2"}
    planned(shop, second)
    assert rows(shop) == [("O1", "1.50"), ("O1", "7.00"), ("O101", "101.50"), ("O2", "2.50")]
    result, reason = outcome(shop, second, "O1")
    assert result == "refused"
    assert reason.startswith(f"{MISMATCHED} in window 1"), reason


def test_a_newer_version_is_carried_on_although_an_older_one_was_called_wrong(shop: ReconciledShop) -> None:
    shop.describe(is_upsert=True, **remedies(missing="upsert", mismatched="upsert"))
    made = wrong_in_topic(shop)
    shop.write("warehouse", [priced(made[0], "7.00"), made[1]])
    shop.whole_way()
    newer = made[0] | {"amount": "8.00", "at": orders([1], 1)[0]["at"]}
    shop.write("outbox", [newer])
    shop.send([newer])
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, LEDGER_HOP) == {}
    planned(shop, second)
    assert rows(shop) == [("O1", "8.00"), ("O2", "2.50")]


# What is sent


def with_payload(shop: ReconciledShop, **more: Any) -> None:
    """Have the outbox keep the record in a column of its own."""
    shop.describe(
        more_points={"outbox": ledger("db", "outbox", payload="body")},
        ledger_hop={"compensation": "{missing: produce}"},
        **more,
    )
    shop.sql("alter table outbox add body jsonb")


def test_a_payload_that_says_something_else_than_the_compared_columns_is_not_sent(shop: ReconciledShop) -> None:
    with_payload(shop)
    made = orders([1, 2, 3])
    shop.write("outbox", made)
    shop.sql("update outbox set body = to_jsonb(outbox) - 'body'")
    shop.sql("update outbox set body = body || '{\"amount\": 7}' where id = 'O1'")
    shop.send(made[2:])
    shop.write("warehouse", made[2:])
    context = shop.judge_and_ask_the_gate()
    planned(shop, context)
    assert [record.key_text for record in shop.read()] == ["O3", "O2"]
    assert outcome(shop, context, "O1", LEDGER_HOP) == (
        "refused",
        "disputed: the record that outbox gives has another value than its row in amount, and would be mismatched in "
        "orders for ever; correct the row, or the column that is named under `payload` at points.outbox, then run this "
        "window again",
    )


def test_a_padded_text_is_sent_as_it_is_compared(shop: ReconciledShop) -> None:
    shop.describe(ledger_hop={"compensation": "{missing: produce}"}, compare='{amount: "decimal(8,2)", code: string}')
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add code char(5)")
    made = [order | {"code": "ab"} for order in orders([1, 2])]
    shop.trade(made, unsent=made[1:])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O2": ("missing", "never_produced")}
    planned(shop, context)
    assert [record.key_text for record in shop.read()] == ["O1", "O2"]
    second = shop.judge_and_ask_the_gate()
    assert shop.found(second, LEDGER_HOP) == {}


# What is found after the plan was frozen


def test_what_another_window_finds_after_the_plan_was_frozen_stops_the_action_and_is_named(
    shop: ReconciledShop,
) -> None:
    shop.describe(**remedies(mismatched="upsert"))
    made = orders([1, 2])
    shop.trade(made)
    first, _ = shop.whole_way()
    assert shop.found(first, LEDGER_HOP) == {}
    later = (BORN + DAY + timedelta(hours=1)).isoformat()
    shop.trade(orders([101], 1))
    shop.sql("update warehouse set amount = 9, at = %s where id in ('O1', 'O2')", later)
    second = shop.judge_and_ask_the_gate(1)
    assert set(shop.found(second, STORE_HOP)) == {"O1", "O2"}
    plan_window(second)

    shop.sql("update outbox set amount = 9 where id = 'O1'")
    again = shop.judge_and_ask_the_gate()
    assert shop.found(again, LEDGER_HOP) == {"O1": ("mismatched", "value_differs")}
    compensate_window(second, lambda _: None)

    assert rows(shop) == [("O1", "9.00"), ("O101", "101.50"), ("O2", "2.50")]
    verify_window(second, lambda *_: None, patience_seconds=0)
    result, reason = outcome(shop, second, "O1")
    assert result == "refused"
    assert reason.startswith(f"{MISMATCHED} in window 1"), (result, reason)
