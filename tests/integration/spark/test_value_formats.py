"""Test that a window has the same verdicts whatever format the values of its topic have."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest

from makewhole.model.window import WindowState
from tests.world.envelopes import (
    bare_change_event,
    behind_prefix,
    change_event,
    compact,
    connect_key,
    connect_value,
    json_in_string,
)
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import topic
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import producer
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

COMPARE = '{amount: "decimal(8,2)", at: timestamp, region: string, number: int}'


class Format(NamedTuple):
    """A format of values and record keys as a pipeline file names them, and what writes it."""

    name: str
    value: Callable[[Order], bytes]
    record_key: str
    key: Callable[[str], bytes]
    key_place: str


def json_key(key: str) -> bytes:
    return compact({"id": key})


FORMATS = {
    "json": Format("json", compact, "string", str.encode, "kafka.key"),
    "json schema": Format(
        "json_schema",
        lambda order: behind_prefix(compact(order)),
        "json_schema",
        lambda key: behind_prefix(json_key(key)),
        "kafka.key.id",
    ),
    "json in a string": Format("json_in_string", json_in_string, "json", compact, "kafka.key"),
    "connect": Format("connect", connect_value, "connect", connect_key, "kafka.key.id"),
    "debezium": Format("debezium", lambda order: change_event("c", order), "connect", connect_key, "kafka.key.id"),
    "debezium, no schema": Format(
        "debezium", lambda order: bare_change_event("r", order), "json", json_key, "kafka.key.id"
    ),
}
EACH = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
BOTH_KEYS = pytest.mark.parametrize("is_key_in_value", [True, False], ids=["key in the value", "record key"])


def describe(shop: ReconciledShop, form: Format, *, is_key_in_value: bool, **more: object) -> None:
    """Describe the shop with a topic in a format."""
    settings = {"value": form.name, "key": '"$.id"' if is_key_in_value else form.key_place}
    settings |= {} if form.record_key == "string" else {"record_key": form.record_key}
    said: dict[str, object] = {
        "compare": COMPARE,
        "more_points": {"orders": topic("log", shop.topic, **settings)},
        "ledger_hop": {"compensation": "{missing: report}"},
    }
    shop.describe(**{**said, **more})  # type: ignore[arg-type]


def send(shop: ReconciledShop, form: Format, some: Sequence[Order], broken: Sequence[str] = ()) -> None:
    """Send records of orders; the values of `broken` keys end too early."""
    client = producer(shop.bootstrap)
    for order in some:
        value = form.value(order)[:-1] if order["id"] in broken else form.value(order)
        stamp = milliseconds(order["at"])
        client.produce(shop.topic, key=form.key(order["id"]), value=value, timestamp=stamp)
    assert client.flush(30) == 0


@EACH
@BOTH_KEYS
def test_records_of_a_format_match_their_rows(shop: ReconciledShop, form: Format, is_key_in_value: bool) -> None:
    describe(shop, form, is_key_in_value=is_key_in_value)
    made = orders(range(40))
    shop.write("outbox", made)
    send(shop, form, made)
    shop.write("warehouse", made)

    context, closed = shop.whole_way()

    assert closed.state is WindowState.CERTIFIED, closed.reason
    for hop in (LEDGER_HOP, STORE_HOP):
        assert shop.counts(context, hop).matched == 40


@EACH
@BOTH_KEYS
def test_losses_and_changes_are_found_in_each_format(shop: ReconciledShop, form: Format, is_key_in_value: bool) -> None:
    describe(shop, form, is_key_in_value=is_key_in_value)
    made = orders(range(40))
    changed = [made[5] | {"amount": "99.99"}, made[6] | {"at": made[7]["at"]}, made[7] | {"region": None}]
    shop.write("outbox", made)
    send(shop, form, [*made[:20], *made[21:], made[30]])
    shop.write("warehouse", [*made[:5], *changed, *made[8:10], *made[11:20], *made[21:]])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {
        "O20": ("missing", "never_produced"),
        "O30": ("duplicate", "retry_without_idempotence"),
    }
    assert shop.found(context, STORE_HOP) == {
        "O5": ("mismatched", "value_differs"),
        "O6": ("mismatched", "value_differs"),
        "O7": ("mismatched", "value_differs"),
        "O10": ("missing", "lost_after_topic"),
    }


@EACH
def test_a_broken_record_is_kept_with_its_place_and_its_neighbours_are_read(shop: ReconciledShop, form: Format) -> None:
    describe(shop, form, is_key_in_value=False)
    made = orders(range(300))
    shop.write("outbox", made)
    send(shop, form, made, broken=["O7"])
    shop.write("warehouse", [*made[:7], *made[8:]])

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, LEDGER_HOP) == {"O7": ("undecidable", "unreadable_record")}
    assert shop.counts(context, LEDGER_HOP).matched == 299
    assert shop.counts(context, STORE_HOP).matched == 299
    closed = shop.certify(context)
    assert "1 records of orders have no usable key" in str(closed.reason)
