"""Leave the transactions of a sink prepared, as one does that commits in two phases and is killed (row 78)."""

import json
from collections.abc import Sequence

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.world.orders import Order, orders
from tests.world.prepared import prepared_transactions
from tests.world.shop import LEDGER_HOP, STORE_HOP

_INSERT = "insert into warehouse select * from json_populate_recordset(null::warehouse, %s::json)"


@scenario(
    row=78,
    name="A sink leaves transactions prepared",
    happens=(
        "A sink that commits in two phases prepares a transaction at each checkpoint. It is killed with two of them "
        "prepared: one that its checkpoint has, and one that it does not have. Its group is past the records of both."
    ),
    made=(
        "Two transactions are prepared, with the ranges of their offsets in their names. On the next day a person "
        "commits the first and rolls the second back; the sink trusts its group, and does not write that one again."
    ),
    why=(
        "What a prepared transaction may hold is neither there nor lost: the keys are handed over with its name, and "
        "nothing is repaired, which would come twice. When it is settled, the next window says what became of them."
    ),
    covered_by=("tests/integration/spark/test_in_doubt.py", "tests/integration/postgres/test_in_doubt.py"),
)
def prepared_transactions_left(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(allow_empty=True, hop={"consumer_group": lab.shop.group})
    sink = lab.ends.enter_context(prepared_transactions(shop.dsn))
    loaded, first, second = (lab.random.randint(5, 30) for _ in range(3))
    made = orders(range(loaded + first + second))
    kept, lost = made[loaded : loaded + first], made[loaded + first :]
    shop.trade(made, unloaded=[*kept, *lost])
    shop.commit_group(shop.group, len(made))
    ranges = [f"sink-0-[{loaded},{loaded + first})", f"sink-0-[{loaded + first},{len(made)})"]
    for name, rows in zip(ranges, (kept, lost), strict=True):
        sink.prepare(name, (_INSERT, (json.dumps(rows),)))
    answers = (
        Naive(answer=naive.lag(shop.bootstrap, shop.topic, shop.group), expected=naive.WELL),
        Naive(answer=naive.rows(shop.count("outbox"), shop.count("warehouse")), expected=f"{first + second} lost"),
    )
    in_doubt = Window(label="in doubt", judged=shop.day(), expected=_in_doubt(made, loaded))
    sink.commit(ranges[0])
    sink.roll_back(ranges[1])
    settled = Window(
        label="settled",
        judged=shop.day(1),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={},
            matched={LEDGER_HOP: 0, STORE_HOP: first},
            found={STORE_HOP: {order["id"]: ("missing", "committed_before_written") for order in lost}},
            reason=f"{STORE_HOP}: {second} keys missing, 0 allowed",
        ),
    )
    return Outcome(
        truth=f"Here {first} orders are committed later, and {second} rolled back, of {len(made)}.",
        naive=answers,
        windows=(in_doubt, settled),
    )


def _in_doubt(made: Sequence[Order], loaded: int) -> Judged:
    return Judged(
        state=WindowState.CERTIFIED.value,
        accounting={"span": len(made), "data": len(made)},
        matched={LEDGER_HOP: len(made), STORE_HOP: loaded},
        found={STORE_HOP: {order["id"]: ("pending", "in_doubt") for order in made[loaded:]}},
        incidents=(("prepared_transaction", None, None, None),),
    )
