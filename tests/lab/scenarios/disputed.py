"""Repair a store from a topic that holds wrong records (row 66)."""

import json
from collections.abc import Sequence

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_REMEDIES = "{missing: upsert, mismatched: upsert}"


@scenario(
    row=66,
    name="A wrong record in the topic, and a store that is right",
    happens=(
        "A producer sent some amounts wrongly, and the store was corrected by hand, or has no row of these orders. To "
        "the hop into the store its row is the wrong one: a repair from the topic writes the wrong amount over the "
        "right one."
    ),
    made=(
        "Some records have another amount than the ledger; of these some rows have the ledger's amount, others are not "
        "there. Some rows of right records are wrong or lost, too. `missing: upsert`, `mismatched: upsert`."
    ),
    why=(
        "A value that another hop calls wrong is not carried on: each such repair is refused with the name of that "
        "finding. The others are repaired, and the window stays open for a person."
    ),
    covered_by=("tests/integration/spark/test_disputed_values.py",),
)
def wrong_records(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop={"compensation": _REMEDIES})
    made = orders(range(lab.random.randint(30, 60)))
    chosen = lab.random.sample(made, 14)
    wrong, plain = chosen[:8], chosen[8:]
    corrected, absent, changed, lost = wrong[:5], wrong[5:], plain[:3], plain[3:]
    shop.write("outbox", made)
    shop.send([order | {"amount": "77.00"} if order in wrong else order for order in made])
    shop.load()
    for order in corrected:
        shop.sql("update warehouse set amount = %s where id = %s", order["amount"], order["id"])
    shop.sql("update warehouse set amount = amount + 1 where id = any(%s)", _ids(changed))
    shop.sql("delete from warehouse where id = any(%s)", _ids([*absent, *lost]))
    answer = _written_by_a_script(shop, len(wrong))
    context = shop.judge_and_ask_the_gate()
    plan_window(context)
    compensate_window(context, lambda _: None)
    rows = sorted(shop.sql("select id, amount::text from warehouse"))
    assert rows == sorted((order["id"], order["amount"]) for order in made if order not in absent)
    verdicts = dict.fromkeys(_ids([*corrected, *changed]), ("mismatched", "value_differs"))
    verdicts |= dict.fromkeys(_ids([*absent, *lost]), ("missing", "lost_after_topic"))
    refused, repaired = len(wrong), len(plain)
    window = Window(
        judged=shop.verified_with_outcomes(context),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made) - len(wrong), STORE_HOP: len(made) - len(chosen)},
            found={LEDGER_HOP: dict.fromkeys(_ids(wrong), ("mismatched", "value_differs")), STORE_HOP: verdicts},
            reason="",
            messages=(
                f"{STORE_HOP}: {refused} refused (`disputed`), {repaired} repaired",
                f"{LEDGER_HOP}: {len(wrong)} open",
            ),
        ),
    )
    truth = (
        f"Here {len(wrong)} of {len(made)} records have a wrong amount; of these {len(corrected)} rows are right, and "
        f"{len(absent)} are not there. {len(plain)} more rows are wrong or lost, whose records are right."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _ids(some: Sequence[Order]) -> list[str]:
    return [order["id"] for order in some]


def _written_by_a_script(shop: LabShop, expected: int) -> Naive:
    """Return what a script makes of the rows that differ from their records, on a copy of the table."""
    shop.sql("create table copy (like warehouse, primary key (id)); insert into copy table warehouse")
    documents = [record.document for record in shop.read()]
    shop.sql(
        "insert into copy select * from json_populate_recordset(null::copy, %s::json) "
        "on conflict (id) do update set amount = excluded.amount",
        json.dumps(documents),
    )
    differing = int(
        shop.sql("select count(*) from copy join outbox using (id) where copy.amount <> outbox.amount")[0][0]
    )
    return Naive(
        answer=naive.NaiveAnswer(
            check="insert … on conflict do update of the records into the store",
            text=f"{len(documents)} rows written",
            conclusion=f"{differing} wrong",
        ),
        expected=f"{expected} wrong",
    )
