"""Have a ledger contradict itself: two rows of one key with different values (row 40)."""

from collections.abc import Sequence

from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP


@scenario(
    row=40,
    name="Two rows of a ledger contradict each other",
    happens=(
        "A ledger has a second row of some keys, with another amount. The topic has one record of each, and which of "
        "the two it should have been nothing says."
    ),
    made=(
        "A day of orders on their whole way; second rows in the outbox, of some orders with another amount, of others "
        "with the same; last of all a person deletes the wrong ones."
    ),
    why=(
        "To agree with one of two values proves nothing: such a key is a `conflict`, with what each row holds, and "
        "only a person answers it. A second row that says the same contradicts nothing."
    ),
    covered_by=("tests/integration/spark/test_conflicts.py",),
)
def contradicting_ledger(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    made = orders(range(lab.random.randint(40, 80)))
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    chosen = lab.random.sample(made, lab.random.randint(8, 16))
    contradicted, repeated = chosen[:5], chosen[5:]
    shop.write("outbox", [{**order, "amount": "9999.00"} for order in contradicted])
    shop.write("outbox", repeated)
    answers = (_agreeing(shop), _rows(shop, len(chosen)))
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is None
    unanswered = Window(
        label="as it is",
        judged=shop.certify_and_collect(context),
        expected=_expected(WindowState.GAPS, made, contradicted, f"outbox→orders: {len(contradicted)} keys conflict"),
    )
    shop.sql("delete from outbox where amount = 9999")
    answered = Window(
        label="when a person has deleted the wrong rows",
        judged=shop.day(),
        expected=_expected(WindowState.CERTIFIED, made, []),
    )
    truth = (
        f"Here {len(chosen)} of {len(made)} orders have a second row in the ledger: {len(contradicted)} with another "
        f"amount, {len(repeated)} with the same. Topic and store have each order once."
    )
    return Outcome(truth=truth, naive=answers, windows=(unanswered, answered))


def _expected(
    state: WindowState, made: Sequence[Order], contradicted: Sequence[Order], reason: str | None = None
) -> Judged:
    conflicts = {order["id"]: ("conflict", "source_contradicts_itself") for order in contradicted}
    return Judged(
        state=state.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made) - len(contradicted), STORE_HOP: len(made)},
        found={LEDGER_HOP: conflicts} if conflicts else {},
        reason=reason,
    )


def _agreeing(shop: LabShop) -> Naive:
    """Whether what arrived agrees with the ledger, as a join says it."""
    unmatched = shop.sql(
        "select count(*) from warehouse where not exists"
        " (select from outbox where outbox.id = warehouse.id and outbox.amount = warehouse.amount)"
    )[0][0]
    answer = naive.NaiveAnswer(
        check="rows of the store without a row of the ledger that has their key and their amount",
        text=f"{unmatched} rows",
        conclusion=f"{unmatched} wrong" if unmatched else naive.WELL,
    )
    return Naive(answer=answer, expected=naive.WELL)


def _rows(shop: LabShop, second_rows: int) -> Naive:
    answer = naive.rows(shop.count("outbox"), shop.count("warehouse"))
    return Naive(answer=answer, expected=f"{second_rows} lost")
