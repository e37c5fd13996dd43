"""Load records of aborted transactions, which the topic then lacks (row 65)."""

import json
from collections.abc import Sequence

from confluent_kafka import TopicPartition

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.unsent import sent_by_a_script
from tests.lab.shop import LabShop
from tests.world.consumer import committed, consumer, read_to_end
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_ONE = {"limits": "{share: 1.0}", "missing": "produce"}
_BOTH = {**_ONE, "unexpected": "quarantine"}


@scenario(
    row=65,
    name="Remedies that wait for each other",
    happens=(
        "Transactions are aborted and never tried again, and the loader reads uncommitted records: their rows are in "
        "the store, and the topic lacks them. Who sends the records makes second rows; who moves the rows aside "
        "loses the orders."
    ),
    made=(
        "Orders in transactions, some of which are aborted; a loader that reads uncommitted records and inserts. "
        "First with `missing: produce` alone, then with `unexpected: quarantine` as well."
    ),
    why=(
        "With one remedy alone nothing is done, and the refusal names the other. With both it is one action: the row "
        "is moved aside, then its record is sent, and the loader brings the row again."
    ),
    covered_by=("tests/integration/spark/test_rows_aside.py",),
)
def rows_of_aborted_records(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(compensation=_ONE)
    made = orders(range(lab.random.randint(30, 60)))
    batches = [made[first : first + 6] for first in range(0, len(made), 6)]
    ended_badly = sorted(lab.random.sample(range(len(batches) - 1), 2))
    aborted = [order for number in ended_badly for order in batches[number]]
    shop.write("outbox", made)
    shop.transactions(batches, lambda number: number not in ended_badly)
    _load_uncommitted(shop)
    answers = (
        Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=naive.WELL),
        Naive(answer=sent_by_a_script(shop, aborted), expected=f"{len(aborted)} repeated"),
    )
    before = _judge_and_repair(shop)
    shop.describe(**shop.with_loader_named({"compensation": _BOTH}))
    after = _judge_and_repair(shop)
    rows = sorted(shop.sql("select id, amount::text from warehouse"))
    assert rows == sorted((order["id"], order["amount"]) for order in made)
    assert shop.sql("select count(*) from makewhole.quarantine") == [(len(aborted),)]
    markers = len(batches)
    windows = (
        Window(label="with one remedy", judged=before, expected=_expected(made, aborted, markers, is_repaired=False)),
        Window(label="with both", judged=after, expected=_expected(made, aborted, markers, is_repaired=True)),
    )
    truth = f"Here {len(aborted)} of {len(made)} orders were aborted, and have a row all the same."
    return Outcome(truth=truth, naive=answers, windows=windows)


def _expected(made: Sequence[Order], aborted: Sequence[Order], markers: int, *, is_repaired: bool) -> Judged:
    there, keys = len(made) - len(aborted), [order["id"] for order in aborted]
    state = WindowState.CERTIFIED if is_repaired else WindowState.GAPS
    messages = [f"{STORE_HOP}: {len(keys)} {'repaired' if is_repaired else 'open'}"]
    messages += [f"{LEDGER_HOP}: {len(keys)} {'repaired' if is_repaired else 'refused (`twice`)'}"]
    return Judged(
        state=state.value,
        accounting={"span": len(made) + markers, "data": there, "control": markers, "aborted": len(keys)},
        matched={LEDGER_HOP: there, STORE_HOP: there},
        found={
            LEDGER_HOP: dict.fromkeys(keys, ("missing", "aborted_transaction")),
            STORE_HOP: dict.fromkeys(keys, ("unexpected", "read_uncommitted")),
        },
        reason=None if is_repaired else "",
        messages=tuple(messages),
    )


def _judge_and_repair(shop: LabShop) -> Judged:
    """Judge the day, repair it, and let the loader read what was sent."""
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    _load_uncommitted(shop)
    return shop.verified_with_outcomes(context)


def _load_uncommitted(shop: LabShop) -> None:
    """Run a loader that reads uncommitted records from where it stopped, inserts them, and commits."""
    with consumer(shop.bootstrap, shop.group, isolation="read_uncommitted") as client:
        asked = [TopicPartition(shop.topic, 0)]
        start = {at.partition: at.offset for at in committed(client, asked) if at.offset >= 0}
        shop.write(
            "warehouse", [json.loads(message.value() or b"") for message in read_to_end(client, shop.topic, start)]
        )
        reached = [at for at in client.position(asked) if at.offset >= 0]
        if reached:
            client.commit(offsets=reached, asynchronous=False)
