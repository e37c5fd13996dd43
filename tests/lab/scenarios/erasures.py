"""Delete rows on purpose, by a purge and by request (row 31, from the window's side)."""

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Outcome, Window, scenario
from tests.world.orders import Order, orders
from tests.world.pipeline_file import store
from tests.world.shop import LEDGER_HOP, STORE_HOP

_ERASED = {"erased": "{table: erasures, key: order_id}"}


@scenario(
    row=31,
    name="Rows are purged, and keys are erased on request",
    happens=(
        "Some customers ask for their data to be deleted, and an old part of the store is purged. Later the window is "
        "run again, with a remedy that writes what is missing."
    ),
    made=(
        "Rows are deleted and their keys entered in the table that `erased:` names; the window is certified; other "
        "rows are deleted without a word; it is run again."
    ),
    why=(
        "What a certified window saw in the store and is gone has vanished: reported, and not brought back unasked. "
        "What the store itself names as erased is no gap and is never written."
    ),
    covered_by=("tests/integration/spark/test_erased.py",),
)
def purged_and_erased(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.sql("create table erasures (order_id text primary key)")
    shop.open_shop(
        hop={"compensation": "{missing: upsert}"},
        more_points={"warehouse": store("db", "warehouse", key="id", **_ERASED)},
    )
    made = orders(range(lab.random.randint(40, 80)))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    gone = lab.random.sample(made, lab.random.randint(10, 20))
    erased, purged = gone[:5], gone[5:]
    shop.sql("delete from warehouse where id = any(%s)", _ids(erased))
    shop.sql("insert into erasures select unnest(%s)", _ids(erased))
    first = Window(label="the day", judged=shop.day(), expected=_certified(made, erased, []))
    shop.sql("delete from warehouse where id = any(%s)", _ids(purged))
    again = shop.judge_and_ask_the_gate()
    assert plan_window(again).plan is None
    second = Window(
        label="run again", judged=shop.certify_and_collect(again), expected=_certified(made, erased, purged)
    )
    assert shop.sql("select count(*) from warehouse where id = any(%s)", _ids(gone)) == [(0,)]
    return Outcome(
        truth=f"Here {len(erased)} keys were erased on request and {len(purged)} rows purged; all of them stay away.",
        naive=(),
        windows=(first, second),
    )


def _certified(made: list[Order], erased: list[Order], purged: list[Order]) -> Judged:
    verdicts = {order["id"]: ("erased", "erased_on_purpose") for order in erased}
    verdicts |= {order["id"]: ("vanished", "gone_since_certified") for order in purged}
    return Judged(
        state=WindowState.CERTIFIED.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(verdicts)},
        found={STORE_HOP: verdicts},
    )


def _ids(some: list[Order]) -> list[str]:
    return [order["id"] for order in some]
