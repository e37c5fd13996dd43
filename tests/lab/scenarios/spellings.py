"""Have each system spell the same keys and values in its own way (row 41)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_KEY = ("account", "line", "code")
_TYPES = {"outbox": ("uuid", "numeric(10,2)", "bigint"), "warehouse": ("text", "numeric(12,4)", "text")}


@scenario(
    row=41,
    name="One value in several spellings",
    happens=(
        "A numeric column writes 5.00 where JSON writes 5; a UUID is in capitals on one side; a store keeps an integer "
        "in a text column, with zeros in front. All of it is the same."
    ),
    made=(
        "A key of three columns, each of which ledger, topic and store spell in their own way, and so the amount. On "
        "the second day some orders of the first are sent once more, in another spelling than the first time."
    ),
    why=(
        "A key is a value of its column's type, and both sides are brought to that type. So no spelling makes a loss, "
        "and none hides a copy."
    ),
    covered_by=("tests/integration/spark/test_key_types.py", "tests/integration/spark/test_keys_of_several_parts.py"),
)
def several_spellings(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(key=f"[{', '.join(_KEY)}]", topic_key=json.dumps([f"$.{part}" for part in _KEY]))
    for table, types in _TYPES.items():
        columns = ", ".join(f"add column {name} {kind}" for name, kind in zip(_KEY, types, strict=True))
        shop.sql(f"alter table {table} {columns}")
    first, second = (lab.random.randint(20, 60) for _ in range(2))
    made, following = orders(range(1, 1 + first)), orders(range(101, 101 + second), 1)
    _trade(shop, made)
    answers = tuple(_by_texts(shop, part, first) for part in _KEY)
    day = Window(
        label="the first day",
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": first, "data": first},
            matched={LEDGER_HOP: first, STORE_HOP: first},
        ),
    )
    again = lab.random.sample(made, lab.random.randint(3, 8))
    _trade(shop, following, day=1)
    _send(shop, ({**_in_store(order), "line": f"{order['number']}.000"} for order in again), day=1)
    there = second + len(again)
    next_day = Window(
        label="the second day",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": there, "data": there},
            matched={LEDGER_HOP: second, STORE_HOP: there},
            found={LEDGER_HOP: {_key(order): ("duplicate", "retry_without_idempotence") for order in again}},
            reason="",
        ),
    )
    truth = f"Here {first} orders are whole under any spelling, and {len(again)} of them are sent again a day later."
    return Outcome(truth=truth, naive=answers, windows=(day, next_day))


def _account(order: Order) -> str:
    return f"{order['number']:08x}-00ab-4cde-8f01-23456789abcd"


def _key(order: Order) -> str:
    """The key as makewhole writes it."""
    number = str(order["number"])
    return json.dumps([_account(order), number, number], separators=(",", ":"))


def _in_ledger(order: Order) -> Order:
    return {**order, "account": _account(order), "line": order["number"], "code": order["number"]}


def _in_topic(order: Order) -> Order:
    return {
        **order,
        "account": _account(order).upper(),
        "line": order["number"],
        "code": str(order["number"]),
        "amount": float(order["amount"]),
    }


def _in_store(order: Order) -> Order:
    return {**_in_topic(order), "code": f"{order['number']:06d}"}


def _trade(shop: LabShop, made: Sequence[Order], day: int = 0) -> None:
    shop.write("outbox", map(_in_ledger, made))
    _send(shop, map(_in_topic, made), day)
    shop.write("warehouse", map(_in_store, made))


def _send(shop: LabShop, records: Iterable[dict[str, Any]], day: int) -> None:
    for record in records:
        shop.send_raw(json.dumps(record).encode(), day)


def _by_texts(shop: LabShop, part: str, count: int) -> Naive:
    """Whether the texts of a part of the key in the ledger are found in topic and store."""
    should = {text for (text,) in shop.sql(f"select {part}::text from outbox")}
    there = {str(record.document[part]) for record in shop.read()}
    stored = {text for (text,) in shop.sql(f"select {part}::text from warehouse")}
    lost = len(should - (there & stored))
    answer = naive.NaiveAnswer(
        check=f"texts of `{part}` in the ledger ({_TYPES['outbox'][_KEY.index(part)]}), in the topic and in the store",
        text=f"{min(should)}, {min(there)}, {min(stored)}",
        conclusion=f"{lost} lost" if lost else naive.WELL,
    )
    return Naive(answer=answer, expected=f"{count} lost")
