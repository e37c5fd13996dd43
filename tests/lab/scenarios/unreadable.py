"""Send some records in another wrapping than the others (row 57)."""

import json

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.consumer import read_records
from tests.world.orders import milliseconds, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=57,
    name="Some records come in another wrapping",
    happens=(
        "A new version of the producer sends its JSON inside a JSON string. Whoever reads the records by their fields "
        "does not find these orders, and takes them for lost."
    ),
    made=(
        "Some orders are sent as a JSON string that holds their JSON, with their key; others are not sent at all. The "
        "loader reads both forms. `missing: produce` from the outbox, `unexpected: quarantine` at the store."
    ),
    why=(
        "What could not be read is not absent: a key that may be that of such a record is undecidable, and nothing is "
        "sent or moved aside for it. Kafka's own key says which keys these are; the others are repaired."
    ),
    covered_by=("tests/integration/spark/test_unreadable_records.py",),
)
def another_wrapping(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(
        hop={"compensation": "{missing: redeliver, unexpected: quarantine}"},
        ledger_hop={"compensation": "{missing: produce}"},
    )
    made = orders(range(lab.random.randint(20, 60)))
    chosen = lab.random.sample(made, 9)
    wrapped, unsent = chosen[:5], chosen[5:]
    plain = [order for order in made if order not in chosen]
    shop.write("outbox", made)
    shop.send(plain)
    client = shop.producer()
    for order in wrapped:
        value = json.dumps(json.dumps(order))
        client.produce(shop.topic, key=order["id"], value=value, partition=0, timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0
    shop.write("warehouse", [*plain, *wrapped])
    answer = _by_fields(shop.bootstrap, shop.topic, [order["id"] for order in made], len(chosen))
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    sent = shop.journal_sql("select key, outcome from makewhole.action order by key")
    assert sent == sorted((order["id"], "done") for order in unsent)
    assert sorted(shop.sql("select id from warehouse")) == sorted((order["id"],) for order in [*plain, *wrapped])
    unknown = {order["id"]: ("undecidable", "unreadable_record") for order in wrapped}
    window = Window(
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(plain) + len(wrapped), "data": len(plain), "undecodable": len(wrapped)},
            matched={LEDGER_HOP: len(plain), STORE_HOP: len(plain)},
            found={
                LEDGER_HOP: unknown | {order["id"]: ("missing", "never_produced") for order in unsent},
                STORE_HOP: unknown,
            },
            reason="",
        ),
    )
    truth = f"Here {len(wrapped)} of {len(made)} orders were sent in the other form, and {len(unsent)} not at all."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _by_fields(bootstrap: str, topic: str, keys: list[str], missing: int) -> Naive:
    """Return what a check that reads the records by their fields does not find."""
    ids = set()
    for record in read_records(bootstrap, topic):
        document = json.loads(record.value or b"null")
        ids |= {document["id"]} if isinstance(document, dict) else set()
    absent = len(set(keys) - ids)
    return Naive(
        answer=naive.NaiveAnswer(
            check="ids of the ledger that no record of the topic has in its field `id`",
            text=f"{len(keys)} ids, {len(ids)} in the topic",
            conclusion=f"{absent} lost",
        ),
        expected=f"{missing} lost",
    )
