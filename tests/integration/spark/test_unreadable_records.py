"""Test that what could not be read is not absent: nothing is sent or moved aside in its place."""

import json
from collections.abc import Sequence

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.combinations import with_every_change
from tests.world.orders import Order, milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NOT_KNOWN = ("undecidable", "unreadable_record")
UNSENT = ("missing", "never_produced")
EVERYTHING = {"ledger_hop": {"compensation": "{missing: produce}"}}


def wrapped(order: Order) -> bytes:
    """Return the record's JSON inside a JSON string, as some outboxes send it."""
    return json.dumps(json.dumps(order)).encode()


def registered(order: Order) -> bytes:
    """Return it behind the five bytes of a registry."""
    return b"\0\0\0\0\x01" + json.dumps(order).encode()


def with_nan(order: Order) -> bytes:
    """Return it with an amount that is no JSON."""
    return json.dumps(order).replace(json.dumps(order["amount"]), "NaN").encode()


def send_raw(shop: ReconciledShop, records: Sequence[tuple[str | None, bytes, Order]]) -> None:
    """Send records given by key and value, with the time of an order."""
    client = producer(shop.bootstrap)
    for key, value, order in records:
        client.produce(shop.topic, key=key, value=value, partition=0, timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0


def sent(shop: ReconciledShop, context: WindowContext) -> list[str]:
    """Plan and run; return the keys of the records that were written."""
    before = len(shop.read())
    plan_window(context)
    compensate_window(context, lambda _: None)
    return [record.key_text for record in shop.read()[before:]]


@pytest.mark.parametrize("unreadable", with_every_change([wrapped, registered, with_nan], first=1))
def test_a_key_whose_record_could_not_be_read_is_not_sent_again_and_the_others_are(
    shop: ReconciledShop, unreadable: object
) -> None:
    shop.describe(**EVERYTHING)  # type: ignore[arg-type]
    made = orders(range(12))
    shop.write("outbox", made)
    shop.send(made[:8])
    send_raw(shop, [(order["id"], unreadable(order), order) for order in made[8:10]])  # type: ignore[operator]
    shop.write("warehouse", made[:10])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O8": NOT_KNOWN, "O9": NOT_KNOWN, "O10": UNSENT, "O11": UNSENT}
    assert shop.found(context, STORE_HOP) == {"O8": NOT_KNOWN, "O9": NOT_KNOWN}
    assert sorted(sent(shop, context)) == ["O10", "O11"]
    assert shop.certify(context).state is not WindowState.CERTIFIED


def test_where_the_record_key_says_nothing_no_absent_key_is_known(shop: ReconciledShop) -> None:
    shop.describe(**EVERYTHING)  # type: ignore[arg-type]
    made = orders(range(6))
    shop.write("outbox", made)
    send_raw(shop, [("customer 7", json.dumps(order).encode(), order) for order in made[:4]])
    send_raw(shop, [("customer 7", b"{", made[4])])
    shop.write("warehouse", made[:4])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O4": NOT_KNOWN, "O5": NOT_KNOWN}
    assert sent(shop, context) == []


def test_a_record_behind_the_window_that_could_not_be_read_may_be_the_one_that_is_looked_for(
    shop: ReconciledShop,
) -> None:
    shop.describe(**EVERYTHING)  # type: ignore[arg-type]
    made, later = orders(range(6)), orders([20], 1)
    shop.write("outbox", made)
    shop.send(made[:5])
    shop.write("warehouse", made[:5])
    shop.send(later)
    send_raw(shop, [("O5", wrapped(made[5]), later[0])])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP)["O5"][0] == "undecidable"
    assert "O5" not in sent(shop, context)


@pytest.mark.parametrize(("key", "code"), [("O5", RefusalCode.ARRIVED), (None, RefusalCode.NOT_KNOWN)])
def test_a_record_that_cannot_be_read_and_comes_before_the_plan_runs_stops_what_it_may_be(
    shop: ReconciledShop, key: str | None, code: RefusalCode
) -> None:
    shop.describe(**EVERYTHING)  # type: ignore[arg-type]
    made = orders(range(6))
    shop.write("outbox", made)
    shop.send(made[:5])
    shop.write("warehouse", made[:5])
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, LEDGER_HOP) == {"O5": UNSENT}
    plan = plan_window(context).plan
    assert plan is not None
    send_raw(shop, [(order["id"], json.dumps(order).encode(), order) for order in orders([20], 1)])
    send_raw(shop, [(key, wrapped(made[5]), made[5])])
    compensate_window(context, lambda _: None)
    ((outcome, why),) = shop.journal_sql(
        "select outcome, outcome_reason from makewhole.action where plan = %s", plan.id
    )
    assert (outcome, Refusal.of_text(why).code) == ("refused", code), why
    assert "cannot be read" in why
    verify_window(context, lambda *_: None)
    closed = shop.certify(context)
    assert closed.state is WindowState.NOT_KNOWN
    assert "records that came since and cannot be read may be theirs" in (closed.reason or "")


def test_a_row_whose_record_could_not_be_read_is_not_moved_aside(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False, hop={"compensation": "{unexpected: quarantine, mismatched: upsert}"})
    made = orders(range(8))
    shop.send(made[:5])
    send_raw(shop, [(order["id"], wrapped(order), order) for order in made[5:7]])
    shop.write("warehouse", made)
    context = shop.judge_and_ask_the_gate()
    assert shop.found(context, STORE_HOP) == {
        "O5": NOT_KNOWN,
        "O6": NOT_KNOWN,
        "O7": ("unexpected", "not_in_source"),
    }
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert sorted(key for (key,) in shop.sql("select id from warehouse")) == [f"O{number}" for number in range(7)]


@pytest.mark.parametrize("key", with_every_change([None, "O5"], first=1))
def test_a_late_row_whose_record_an_earlier_window_could_not_read_is_not_missing(
    shop: ReconciledShop, key: str | None
) -> None:
    """The record lies in the window of its time, whose other keys were whole; the ledger's row came after it."""
    shop.describe(**EVERYTHING)  # type: ignore[arg-type]
    made, late = orders(range(5)), orders([5, 6])
    shop.trade(made)
    send_raw(shop, [(key, wrapped(late[0]), late[0])])
    first, closed = shop.whole_way()
    assert (shop.found(first, LEDGER_HOP), closed.state) == ({}, WindowState.NOT_KNOWN)
    shop.write("outbox", late)
    new = orders(range(20, 24), 1)
    shop.trade(new, unsent=new[:1])
    second = shop.judge_and_ask_the_gate(1)
    known = {"O20": UNSENT} if key is None else {"O20": UNSENT, "O6": UNSENT}
    assert shop.found(second, LEDGER_HOP) == dict.fromkeys(("O5", "O6"), NOT_KNOWN) | known
    assert sorted(sent(shop, second)) == sorted(known)


@pytest.mark.parametrize("key", with_every_change(["O5", None], first=1))
def test_a_row_that_is_loaded_late_from_a_record_that_an_earlier_window_could_not_read_is_not_unexpected(
    shop: ReconciledShop, key: str | None
) -> None:
    shop.describe(**EVERYTHING, hop={"compensation": "{unexpected: quarantine}"})  # type: ignore[arg-type]
    made, unread = orders(range(5)), orders([5])[0]
    shop.trade(made)
    send_raw(shop, [(key, wrapped(unread), unread)])
    shop.whole_way()
    loaded = unread | {"at": orders([9], 1)[0]["at"]}
    shop.trade(orders(range(20, 24), 1))
    shop.write("warehouse", [loaded])
    second = shop.judge_and_ask_the_gate(1)
    assert shop.found(second, STORE_HOP) == {"O5": NOT_KNOWN}
    plan_window(second)
    compensate_window(second, lambda _: None)
    assert shop.sql("select count(*) from warehouse where id = 'O5'") == [(1,)]
