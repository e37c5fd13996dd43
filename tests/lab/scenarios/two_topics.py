"""Write transactions over two topics, some orders of which come to one of them alone (row 119)."""

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab.judged import Judged
from tests.lab.naive import NaiveAnswer, compared
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.consumer import read_all
from tests.world.orders import COLUMNS, orders
from tests.world.pipeline_file import ledger, pipeline_file, topic
from tests.world.shop import LEDGER_HOP

_OTHER_HOP = "outbox→parcels"
_TRANSACTIONS = 10


@scenario(
    row=119,
    name="A transaction over two topics that brings an order to one of them alone",
    happens=(
        "A producer sends each order to two topics, in one transaction: by the transaction an order is in both or in "
        "none. Its own mistake leaves an order out of one of them, and the transaction is committed all the same."
    ),
    made=(
        f"{_TRANSACTIONS} transactions of a Java producer over two topics; of some orders the second record is never "
        "sent. `missing: produce`."
    ),
    why=(
        "A Java producer of Kafka 4 has an epoch for each transaction, and its markers have the next one: so the "
        "archives of both topics show that the transaction of such an order wrote to both, was committed in both, and "
        "has the order in one. It is sent from the ledger."
    ),
    covered_by=("tests/integration/spark/test_partial_transactions.py",),
)
def partial_transactions(lab: Lab) -> Outcome:
    shop, size = lab.shop, lab.random.randint(5, 15)
    made = orders(range(size * _TRANSACTIONS))
    left_out = lab.random.sample(made, lab.random.randint(3, 9))
    other = _open(lab)
    shop.write("outbox", made)
    with lab.java().producer(shop.bootstrap, transactional_id=f"tx-{shop.topic}", retry_backoff_ms=5) as client:
        client.init_transactions()
        for at in range(0, len(made), size):
            with client.transaction():
                for order in made[at : at + size]:
                    client.send(shop.topic, **shop.record(order))
                    if order not in left_out:
                        client.send(other, **shop.record(order))
    there = len(read_all(shop.bootstrap, other))
    answer = NaiveAnswer(
        check="records of read_committed consumers of both topics",
        text=f"{len(made)} records, {there} records",
        conclusion=compared(len(made), there),
    )
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    shop.repair(context)
    # A transaction all of whose orders are left out of the second topic does not write to it.
    partial = [order for order in left_out if not _is_all_out(order["number"] // size, size, left_out)]
    causes = {order["id"]: "partial_transaction" if order in partial else "never_produced" for order in left_out}
    return Outcome(
        truth=f"Here {len(left_out)} of {len(made)} orders are in the first topic alone.",
        naive=(Naive(answer=answer, expected=f"{len(left_out)} lost"),),
        windows=(
            Window(
                judged=shop.verified_with_outcomes(context),
                expected=Judged(
                    state=WindowState.CERTIFIED.value,
                    accounting={"span": len(made) + _TRANSACTIONS, "data": len(made), "control": _TRANSACTIONS},
                    matched={LEDGER_HOP: len(made), _OTHER_HOP: len(made) - len(left_out)},
                    found={_OTHER_HOP: {key: ("missing", cause) for key, cause in causes.items()}},
                    messages=(f"{_OTHER_HOP}: {len(left_out)} repaired",),
                ),
            ),
        ),
    )


def _is_all_out(transaction: int, size: int, left_out: list[dict[str, object]]) -> bool:
    numbers = {order["number"] for order in left_out}
    return set(range(transaction * size, (transaction + 1) * size)) <= numbers


def _open(lab: Lab) -> str:
    """Make a ledger and two topics that are filled from it; the name of the second one."""
    shop, other = lab.shop, f"{lab.shop.topic}-parcels"
    shop.make_tables()
    shop.make_topic()
    lab.cluster.create_topic(other, min_isr=2)
    lab.ends.callback(lab.cluster.delete_topic, other)
    text = pipeline_file(
        "shop",
        points={
            "outbox": ledger("db", "outbox"),
            "orders": topic("log", shop.topic),
            "parcels": topic("log", other),
        },
        hops=[{"from": "outbox", "to": "orders"}, {"from": "outbox", "to": "parcels"}],
        settings={
            "start": "earliest",
            "settle": "0s",
            "compare": '{amount: "decimal(8,2)"}',
            "compensation": "{limits: {share: 1.0}}",
        },
        columns=COLUMNS,
    )
    shop.file.write_text(text)
    return other
