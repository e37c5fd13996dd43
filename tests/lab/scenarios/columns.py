"""Mend rows of a table that has columns of its own (row 55)."""

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

_WRITE = "{number: int, region: string, at: timestamp, status: string}"


@scenario(
    row=55,
    name="A repair of rows that have moved on in other columns",
    happens=(
        "An amount is wrong in some rows of the store. Their status has moved on since they were loaded: the "
        "record still says `new`. A repair that writes the whole record sets it back, and every check of "
        "the amounts is content."
    ),
    made=(
        "The store has a `status` beside the amount, and a `remark` of its own. Orders are loaded and sent out, some "
        "amounts are changed, some rows are lost. `compare: {amount: …}`, `missing: upsert`, `mismatched: upsert`, "
        "`write: {status: string, …}`, `leave: [remark]`."
    ),
    why=(
        "Of a row that differs the compared columns that differ are written, and nothing else; of a missing one every "
        "column is accounted for in the file, or the window is refused when it is opened."
    ),
    covered_by=(
        "tests/integration/compensation/execution/test_written_columns.py",
        "tests/integration/spark/test_written_rows.py",
    ),
)
def moved_on(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(
        hop={"compensation": "{missing: upsert, mismatched: upsert}", "write": _WRITE, "leave": "[remark]"}
    )
    shop.sql("alter table outbox add status text; alter table warehouse add status text, add remark text")
    made = [order | {"status": "new"} for order in orders(range(lab.random.randint(20, 60)))]
    chosen = lab.random.sample([order["id"] for order in made], 10)
    wrong, lost = chosen[:6], chosen[6:]
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    shop.sql("update warehouse set status = 'sent', remark = 'packed twice'")
    right = _rows(shop)
    shop.sql("update warehouse set amount = amount + 1 where id = any(%s)", wrong)
    shop.sql("delete from warehouse where id = any(%s)", lost)
    answer = _written_whole(shop, [order for order in made if order["id"] in wrong])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    compensate_window(context, lambda _: None)
    repaired = _rows(shop)
    assert {key: row for key, row in repaired.items() if key not in lost} == {
        key: row for key, row in right.items() if key not in lost
    }
    assert shop.sql("select distinct status, remark from warehouse where id = any(%s)", lost) == [("new", None)]
    verdicts = dict.fromkeys(wrong, ("mismatched", "value_differs")) | dict.fromkeys(
        lost, ("missing", "lost_after_topic")
    )
    window = Window(
        judged=shop.verified_with_outcomes(context),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - len(chosen)},
            found={STORE_HOP: verdicts},
            messages=(f"{STORE_HOP}: {len(chosen)} repaired",),
        ),
    )
    truth = f"Here {len(wrong)} of {len(made)} rows have a wrong amount, and {len(lost)} are lost."
    return Outcome(truth=truth, naive=(answer,), windows=(window,))


def _rows(shop: LabShop) -> dict[str, str]:
    """Return every row of the store as an exact text, by key."""
    return dict(shop.sql("select id, w::text from warehouse as w"))


def _written_whole(shop: LabShop, wrong: Sequence[Order]) -> Naive:
    """Return what an upsert of all fields of the records makes of the rows that differ, on a copy of the table."""
    shop.sql("create table copy (like warehouse, primary key (id)); insert into copy table warehouse")
    shop.sql(
        "insert into copy select * from json_populate_recordset(null::copy, %s::json) on conflict (id) do update set "
        "amount = excluded.amount, status = excluded.status, remark = excluded.remark",
        json.dumps(list(wrong)),
    )
    back = shop.sql("select count(*) from copy where status = 'new' and remark is null")[0][0]
    return Naive(
        answer=naive.NaiveAnswer(
            check="insert … on conflict do update of the records whose rows differ",
            text=f"{len(wrong)} rows written",
            conclusion=f"{back} statuses set back, and as many remarks lost",
        ),
        expected=f"{len(wrong)} statuses set back, and as many remarks lost",
    )
