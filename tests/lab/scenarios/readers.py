"""Repair one store through a topic that another one reads, too (row 44)."""

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.orders import Order, orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found

_LAKE_HOP, _LAKE_GROUP = "orders→lake", "lake-loader"


@scenario(
    row=44,
    name="A repair that doubles another store",
    happens="What one store lacks is sent again, and another loader, which appends whatever it reads, gets it twice.",
    made="One of two stores of a topic has lost orders. The file says wrongly that the other one may read them again.",
    why="A record reaches every reader of its topic: each of their stores is read before a window counts as repaired.",
    covered_by=(
        "tests/integration/spark/test_readers.py",
        "tests/integration/compensation/execution/test_other_readers.py",
    ),
)
def doubled_store(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.open_shop(
        hop={
            "consumer_group": shop.group,
            "compensation": "{missing: redeliver, duplicate: quarantine}",
            "redeliver": f"{{to: source, despite: [{_LAKE_GROUP}]}}",
        },
        more_points={"lake": store("db", "lake")},
        more_hops=[
            {
                "from": "orders",
                "to": "lake",
                "consumer_group": _LAKE_GROUP,
                "compensation": "{missing: report, duplicate: report}",
            }
        ],
    )
    shop.sql("create table lake (like warehouse)")
    made = orders(range(lab.random.randint(40, 80)))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    shop.write("lake", made)
    shop.commit_group(_LAKE_GROUP, len(made))
    lost = lab.random.sample(made, lab.random.randint(5, 15))
    shop.sql("delete from warehouse where id = any(%s)", [order["id"] for order in lost])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    shop.repair(context)
    shop.load()
    shop.write("lake", lost)
    shop.commit_group(_LAKE_GROUP, len(shop.read()) + 1)  # behind the marker of the repair's transaction
    answer = Naive(answer=naive.lag(shop.bootstrap, shop.topic, _LAKE_GROUP), expected=naive.WELL)
    window = Window(
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(lost), _LAKE_HOP: len(made)},
            found={
                STORE_HOP: _all(lost, "missing", "committed_before_written"),
                _LAKE_HOP: _all(lost, "duplicate", "redelivered"),
            },
            reason="",
        ),
    )
    truth = f"Here {len(lost)} of {len(made)} orders are sent again, and the other store holds each of them twice."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _all(some: list[Order], verdict: str, cause: str) -> Found:
    return {order["id"]: (verdict, cause) for order in some}
