"""Fill one table from two topics, under two names, and with values that contradict each other (rows 60, 61)."""

import json
from collections.abc import Iterable

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, milliseconds, orders
from tests.world.pipeline_file import store, topic
from tests.world.shop import STORE_HOP

_QUARANTINE = {"limits": "{share: 1.0}", "unexpected": "quarantine", "mismatched": "upsert", "missing": "upsert"}


@scenario(
    row=60,
    name="One table under two names",
    happens=(
        "Two topics fill one table, and a pipeline knows it under two names: by a point for each topic, one of them "
        "with the schema and one without. What one topic brings the other one never had."
    ),
    made=(
        "Two hops into two points that are the same table, with `unexpected: quarantine`; a day of orders in each "
        "topic, all of them loaded."
    ),
    why=(
        "A table is known by its server, its database and its number in the catalogue, whatever a point calls it. A "
        "row is unexpected only where no topic that fills the table has its record."
    ),
    covered_by=("tests/integration/spark/test_same_place.py",),
)
def one_table_under_two_names(lab: Lab) -> Outcome:
    shop = lab.shop
    others = _second_topic(lab, target="shelf", table="public.warehouse")
    made, more = (orders(range(first, first + lab.random.randint(20, 60))) for first in (0, 1000))
    _trade(shop, made)
    _send(shop, others, more)
    shop.write("warehouse", more)
    answer = _of_one_topic(shop, made)
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is None
    window = Window(
        judged=shop.certify_and_collect(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={STORE_HOP: len(made), "others→shelf": len(more)},
            found={},
        ),
    )
    truth = f"Here {len(made)} orders came by the one topic and {len(more)} by the other; each is in the table once."
    return Outcome(truth=truth, naive=(Naive(answer=answer, expected=f"{len(more)} wrong"),), windows=(window,))


@scenario(
    row=61,
    name="Two topics say different things of an order",
    happens=(
        "Two topics fill one table. Some orders are in both, of these some with another amount, and which of the two "
        "is right nothing says."
    ),
    made=(
        "Two hops into one point, with `mismatched: upsert`; some orders are sent into the second topic, too, of these "
        "some with another amount. The table has the amounts of the first."
    ),
    why=(
        "To write what the second topic says would make the first one wrong, and the next run would turn it back. Such "
        "a key is a `conflict` on both hops, with what each topic has, and is left alone."
    ),
    covered_by=("tests/integration/spark/test_sources_together.py",),
)
def topics_that_contradict_each_other(lab: Lab) -> Outcome:
    shop = lab.shop
    others = _second_topic(lab, target="warehouse", table=None)
    made = orders(range(lab.random.randint(20, 60)))
    chosen = lab.random.sample(made, lab.random.randint(8, 16))
    other, same = chosen[:4], chosen[4:]
    _trade(shop, made)
    _send(shop, others, [*same, *({**order, "amount": "9999.00"} for order in other)])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is None
    conflicts = {order["id"]: ("conflict", "sources_disagree") for order in other}
    window = Window(
        judged=shop.certify_and_collect(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(made), "data": len(made)},
            matched={STORE_HOP: len(made) - len(other), "others→warehouse": len(same)},
            found={STORE_HOP: conflicts, "others→warehouse": conflicts},
            reason="",
        ),
    )
    truth = (
        f"Here {len(other)} of {len(made)} orders have another amount in the second topic, and {len(same)} the same."
    )
    answer = _of_one_topic(shop, made)
    return Outcome(truth=truth, naive=(Naive(answer=answer, expected=naive.WELL),), windows=(window,))


def _second_topic(lab: Lab, *, target: str, table: str | None) -> str:
    """Open the shop without a ledger, with a second topic that fills its table; `table` names it at a second point."""
    shop, name = lab.shop, f"{lab.shop.topic}-others"
    shop.open_shop(
        has_ledger=False,
        hop={"compensation": "{missing: upsert}"},
        more_points={"others": topic("log", name), **({target: store("db", table)} if table else {})},
        more_hops=[{"from": "others", "to": target}],
        compensation=_QUARANTINE,
    )
    lab.cluster.create_topic(name, partitions=1, min_isr=2, settings={})
    lab.ends.callback(lab.cluster.delete_topic, name)
    return name


def _trade(shop: LabShop, made: list[Order]) -> None:
    shop.send(made)
    shop.load()


def _send(shop: LabShop, name: str, made: Iterable[Order]) -> None:
    client = shop.producer()
    for order in made:
        client.produce(name, key=order["id"], value=json.dumps(order), timestamp=milliseconds(order["at"]))
    assert client.flush(30) == 0


def _of_one_topic(shop: LabShop, made: list[Order]) -> naive.NaiveAnswer:
    """Whether the table holds what one topic has, as a join says it."""
    known = [order["id"] for order in made]
    unmatched = shop.sql("select count(*) from warehouse where id <> all(%s)", known)[0][0]
    return naive.NaiveAnswer(
        check="rows of the table without a record in the first topic",
        text=f"{unmatched} rows",
        conclusion=f"{unmatched} wrong" if unmatched else naive.WELL,
    )
