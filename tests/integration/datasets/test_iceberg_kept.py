"""Test what `keep` removes of a plan that wrote to an Iceberg table, whose effects stay for good."""

import pytest

from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.model.errors import RefusedError
from tests.integration.datasets.iceberg_shop import IcebergShop
from tests.integration.datasets.test_iceberg_windows import ALL, trade_badly
from tests.integration.spark.test_keep import age, keep

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_what_a_plan_left_beside_an_iceberg_table_goes_and_its_effects_there_stay(shop: IcebergShop) -> None:
    shop.describe_lake(compensation=ALL, keep={"effects": "30d"})
    trade_badly(shop)
    context = shop.judge_and_ask_the_gate()
    plan = shop.planned(context)
    shop.approve(plan)
    shop.run(context, plan)
    shop.close(context)
    rows, effects = shop.lake.rows("dw.warehouse"), shop.lake.rows("makewhole.effects")
    age(shop)

    [stays] = keep(shop)
    assert stays.stays == (
        f"plan {plan.id} moved 2 rows aside, which are kept: their way back needs its effects. Write `quarantine` in "
        "`keep` as well, or put them back"
    )
    shop.describe_lake(compensation=ALL, keep={"effects": "30d", "quarantine": "30d"})
    outcomes = [
        (leftover.kind.value, leftover.amount.files, leftover.amount.rows, leftover.stays) for leftover in keep(shop)
    ]

    assert outcomes == [("quarantine", 0, 0, None), ("effects", 1, 0, None)]
    assert (keep(shop), shop.lake.rows("dw.warehouse")) == ([], rows)
    assert shop.lake.rows("makewhole.effects") == effects
    with pytest.raises(RefusedError, match=f"undo of plan {plan.id} is no longer possible: "):
        plan_undo(context, plan.id, reverses=False)
