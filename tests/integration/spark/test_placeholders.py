"""Test that a placeholder of the capture is no value: it is compared with nothing, and nothing is written for it."""

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.model.window import WindowState
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NOT_KNOWN = ("undecidable", "placeholder")
TEXT, BYTES = "__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
UPSERT = {"compensation": "{missing: upsert, mismatched: upsert}"}


@pytest.mark.parametrize("is_upsert", [False, True], ids=["event", "upsert"])
def test_a_placeholder_is_compared_with_nothing(shop: ReconciledShop, is_upsert: bool) -> None:
    """In a text, in bytes, and where the store has the placeholder itself, which its loader wrote over a text."""
    compare = '{amount: "decimal(8,2)", region: string}'
    shop.describe(is_upsert=is_upsert, compare=compare, hop=UPSERT)
    made = orders(range(6))
    shop.write("outbox", made)
    sent: list[Order] = [
        made[0] | {"region": TEXT},
        made[1] | {"region": BYTES},
        made[2] | {"region": TEXT},
        made[3] | {"amount": TEXT},
        *made[4:],
    ]
    shop.send(sent)
    shop.write("warehouse", [*made[:2], made[2] | {"region": TEXT}, made[3], made[4], made[5] | {"amount": "9.75"}])
    before = shop.sql("select * from warehouse order by id")
    context = shop.judge_and_ask_the_gate()
    unknown = dict.fromkeys(("O0", "O1", "O2", "O3"), NOT_KNOWN)
    assert shop.found(context, LEDGER_HOP) == unknown
    assert shop.found(context, STORE_HOP) == {**unknown, "O5": ("mismatched", "value_differs")}
    plan_window(context)
    compensate_window(context, lambda _: None)
    assert shop.sql("select * from warehouse order by id")[:5] == before[:5]
    assert shop.certify(context).state is not WindowState.CERTIFIED
