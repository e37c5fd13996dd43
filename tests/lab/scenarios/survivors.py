"""Give keys a second row with a value that is not their source's (rows 49, 50)."""

from collections.abc import Sequence
from datetime import timedelta

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

SURVIVOR_TESTS = ("tests/integration/spark/test_survivors.py",)


@scenario(
    row=49,
    name="A stale loader appends an old value",
    happens=(
        "An order is changed, and the store has its latest value. Then a loader that was started from an old position "
        "appends the value before it: the key is there twice, and its newest row holds the oldest value."
    ),
    made=(
        "`semantics: upsert`, no version. Some orders come twice, the store has the second value, the day is "
        "certified. Rows with the first value are appended with times of the next day; that day is judged and repaired."
    ),
    why=(
        "The source's value is fetched for every key that a repair touches, from outside the window, too: the row that "
        "agrees with the latest record stays, whichever came first or last, and verify compares it once more."
    ),
    covered_by=SURVIVOR_TESTS,
)
def stale_loader(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    shop.describe(is_upsert=True)
    made = orders(range(lab.random.randint(20, 60)))
    changed = [_valued(order, "200.00", hour=20) for order in lab.random.sample(made, lab.random.randint(3, 10))]
    latest = {order["id"]: order for order in [*made, *changed]}
    shop.write("outbox", [*made, *changed])
    shop.send([*made, *changed])
    shop.write("warehouse", latest.values())
    assert shop.day().state == WindowState.CERTIFIED.value
    stale = [_valued(made[order["number"]], made[order["number"]]["amount"], hour=24) for order in changed]
    truth = f"Here {len(changed)} of {len(made)} orders were changed, and their old values appended later."
    return _repaired(lab, second_rows=stale, right=changed, cause="upstream_duplicate", kept="latest", truth=truth)


@scenario(
    row=50,
    name="A wrong first row, then the right one",
    happens=(
        "A loader with a defect writes rows with a wrong value; it is corrected, and the right rows are written beside "
        "them. Which comes first says nothing about which is right."
    ),
    made=(
        "A day is loaded and certified; then the rows of some orders get another value, and the right rows are "
        "appended with times of the next day; that day is judged and repaired."
    ),
    why=(
        "The row that agrees with its record stays, and the others are moved aside. Where none agreed, nothing would "
        "be moved, and the finding would stay open with both values."
    ),
    covered_by=SURVIVOR_TESTS,
)
def wrong_first_row(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(20, 60)))
    shop.trade(made)
    assert shop.day().state == WindowState.CERTIFIED.value
    right = lab.random.sample(made, lab.random.randint(3, 10))
    shop.sql("update warehouse set amount = amount + 900 where id = any(%s)", [order["id"] for order in right])
    again = [_valued(order, order["amount"], hour=24) for order in right]
    truth = f"Here {len(right)} of {len(made)} orders have a wrong first row and a right second one."
    return _repaired(lab, second_rows=again, right=right, cause="written_before_committed", kept="first", truth=truth)


def _valued(order: Order, amount: str, hour: int) -> Order:
    """The order with an amount, and a time so many hours after the first day began."""
    return order | {"amount": amount, "at": (BORN + timedelta(hours=hour)).isoformat()}


def _repaired(
    lab: Lab, *, second_rows: Sequence[Order], right: Sequence[Order], cause: str, kept: str, truth: str
) -> Outcome:
    """Write the second rows; judge the next day and repair it. The `right` values are those that have to stay; a
    clean-up by hand keeps the `first` or the `latest` row."""
    shop, keys = lab.shop, sorted(order["id"] for order in right)
    shop.write("warehouse", second_rows)
    following = orders(range(1000, 1000 + lab.random.randint(5, 30)), 1)
    shop.trade(following)
    answer = _deduplicated(shop, right, kept)
    context = shop.judge_and_ask_the_gate(1)
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    stays = sorted(shop.sql("select id, amount::text from warehouse where id = any(%s)", keys))
    assert stays == sorted((order["id"], order["amount"]) for order in right), stays
    window = Window(
        label="the second day",
        judged=shop.verified(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(following), "data": len(following)},
            matched={LEDGER_HOP: len(following), STORE_HOP: len(following)},
            found={STORE_HOP: dict.fromkeys(keys, ("duplicate", cause))},
        ),
    )
    assert shop.outcomes(context) == dict.fromkeys(keys, "repaired"), shop.outcomes(context)
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _deduplicated(shop: LabShop, right: Sequence[Order], kept: str) -> Naive:
    """Return what a clean-up by time leaves of the same rows, on a copy of the table."""
    direction = "desc" if kept == "latest" else ""
    shop.sql(f"create table copy as select distinct on (id) * from warehouse order by id, at {direction}")
    left: dict[str, str] = dict(shop.sql("select id, amount::text from copy"))
    wrong = sum(left[order["id"]] != order["amount"] for order in right)
    return Naive(
        answer=naive.NaiveAnswer(
            check=f"a clean-up that keeps the {kept} row of each key by its time",
            text=f"{len(right)} rows deleted",
            conclusion=f"{wrong} wrong values kept",
        ),
        expected=f"{len(right)} wrong values kept",
    )
