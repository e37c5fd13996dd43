"""Write the rows of records that were never produced by hand (row 52)."""

from collections.abc import Sequence

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.scenarios.survivors import SURVIVOR_TESTS
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_BOTH_REMEDIES = {"limits": "{share: 1.0}", "missing": "produce", "unexpected": "quarantine"}
_HAPPENS = (
    "Some records never reached the topic, and a person has written their rows into the store by hand. On one hop the "
    "key is missing, on the next its row is unexpected"
)


@scenario(
    row=52,
    name="A record that was never produced, whose row was written by hand",
    happens=f"{_HAPPENS}; a plan that sends the one and moves the other aside would end with too few.",
    made=(
        "`missing: produce`, `unexpected: quarantine`; the store names a `version`, and its loader overwrites. Some "
        "orders are not sent, and their rows are written all the same."
    ),
    why=(
        "What one action of a plan makes true is taken into account for the others: the record is sent, its row has "
        "its source then and stays, and both findings are judged again."
    ),
    covered_by=SURVIVOR_TESTS,
)
def row_by_hand(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(is_upsert=True, has_version=True, compensation=_BOTH_REMEDIES)
    made = [order | {"version": 1} for order in orders(range(lab.random.randint(20, 60)))]
    unsent = _written_by_hand(lab, made)
    counted = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    window = Window(
        judged=_repaired(shop, made, sent_again=unsent),
        expected=_expected(WindowState.CERTIFIED, made, unsent, produced="repaired", row="repaired"),
    )
    return Outcome(truth=_truth(made, unsent), naive=(Naive(answer=counted, expected=naive.WELL),), windows=(window,))


@scenario(
    row=52,
    name="A row written by hand, and a loader that inserts",
    happens=f"{_HAPPENS}; and the loader appends whatever it reads, so that a record sent now is a second row.",
    made="As before, with a store that names no `version`.",
    why=(
        "Neither a second row nor none: the row is put aside first, and then the record is sent: the loader's row is "
        "the only one. With one of the two remedies alone nothing is done, and the refusal names the other."
    ),
    covered_by=("tests/integration/spark/test_rows_aside.py",),
)
def row_by_hand_and_a_loader_that_inserts(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(compensation=_BOTH_REMEDIES)
    made = orders(range(lab.random.randint(20, 60)))
    unsent = _written_by_hand(lab, made)
    answer = (
        Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=naive.WELL),
        Naive(answer=sent_by_a_script(shop, unsent), expected=f"{len(unsent)} repeated"),
    )
    window = Window(
        judged=_repaired(shop, made, sent_again=unsent),
        expected=_expected(WindowState.CERTIFIED, made, unsent, produced="repaired", row="repaired"),
    )
    return Outcome(truth=_truth(made, unsent), naive=answer, windows=(window,))


def _truth(made: Sequence[Order], unsent: Sequence[Order]) -> str:
    return f"Here {len(unsent)} of {len(made)} orders were never sent, and have a row all the same."


def _written_by_hand(lab: Lab, made: list[Order]) -> list[Order]:
    """Take a day's orders all the way but for some, whose rows are written into the store; return those."""
    shop, unsent = lab.shop, lab.random.sample(made, lab.random.randint(3, 10))
    shop.write("outbox", made)
    shop.send([order for order in made if order not in unsent])
    shop.load()
    shop.write("warehouse", unsent)
    return unsent


def _repaired(shop: LabShop, made: Sequence[Order], sent_again: Sequence[Order]) -> Judged:
    """Judge the day, repair it, and let the loader read what was sent; each order has one row then, as it had."""
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    before = len(shop.read())
    compensate_window(context, lambda _: None)
    sent = sorted(record.key_text for record in shop.read()[before:])
    assert sent == sorted(order["id"] for order in sent_again), sent
    shop.load()
    rows = sorted(shop.sql("select id, amount::text from warehouse"))
    assert rows == sorted((order["id"], order["amount"]) for order in made), rows
    return shop.verified_with_outcomes(context)


def _expected(state: WindowState, made: Sequence[Order], unsent: Sequence[Order], *, produced: str, row: str) -> Judged:
    there, keys = len(made) - len(unsent), [order["id"] for order in unsent]
    return Judged(
        state=state.value,
        accounting={"span": there, "data": there},
        matched={LEDGER_HOP: there, STORE_HOP: there},
        found={
            LEDGER_HOP: dict.fromkeys(keys, ("missing", "never_produced")),
            STORE_HOP: dict.fromkeys(keys, ("unexpected", "not_in_source")),
        },
        reason=None if state is WindowState.CERTIFIED else "",
        messages=(f"{STORE_HOP}: {len(keys)} {row}", f"{LEDGER_HOP}: {len(keys)} {produced}"),
    )


def sent_by_a_script(shop: LabShop, unsent: Sequence[Order]) -> naive.NaiveAnswer:
    """Return what the loader makes of them when a script sends what the topic lacks, on a copy of the table."""
    shop.sql("create table copy as table warehouse")
    shop.write("copy", unsent)
    extra = int(shop.sql("select count(*) - count(distinct id) from copy")[0][0])
    return naive.NaiveAnswer(
        check="a script that sends what the ledger has and the topic lacks",
        text=f"{len(unsent)} records sent, {shop.count('copy')} rows then",
        conclusion=f"{extra} repeated",
    )
