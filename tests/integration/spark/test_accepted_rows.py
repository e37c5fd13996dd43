"""Test that no record that is sent changes a row which a person has accepted, in the table of another loader."""

from datetime import timedelta

import pytest

from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.compute.keys import key_hash
from makewhole.model.acceptance import finding_id
from tests.world.acceptances import accepted
from tests.world.combinations import with_every_change
from tests.world.orders import orders
from tests.world.pipeline_file import store
from tests.world.shop import STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HOUR = timedelta(hours=1)
LAKE_HOP = "orders→lake"


@pytest.mark.parametrize("is_planned_before", with_every_change([True, False], first=1))
def test_a_record_whose_key_a_loader_would_overwrite_in_an_accepted_row_is_not_sent(
    shop: ReconciledShop, is_planned_before: bool
) -> None:
    """The first window leaves the key to the second, which finds that the warehouse lost it; what the first found of
    the lake is accepted, before the second has its plan or after. By its `version` the lake's loader overwrites."""
    shop.sql("alter table warehouse add column version int; create table lake (like warehouse)")
    shop.describe(
        has_ledger=False,
        has_version=True,
        hop={"consumer_group": "loader", "compensation": "{missing: redeliver}", "redeliver": "{to: source}"},
        more_points={"lake": store("db", "lake", version="version")},
        more_hops=[{"from": "orders", "to": "lake", "consumer_group": "lake-loader"}],
    )
    made, later = orders(range(10)), orders(range(100, 105), 1)
    shop.send(made)
    shop.write("warehouse", made[:6])
    shop.write("lake", [*made[:9], made[9] | {"amount": "7.00"}])
    shop.commit_group("loader", 6)
    shop.commit_group("lake-loader", 10)
    first, _ = shop.whole_way()
    assert shop.found(first, LAKE_HOP) == {"O9": ("mismatched", "value_differs")}

    shop.let_pass(HOUR * 13)
    shop.send(later)
    shop.write("warehouse", later)
    shop.write("lake", later)
    shop.commit_group("loader", 15)
    shop.commit_group("lake-loader", 15)
    second = shop.judge_and_ask_the_gate(1)
    assert {key for key, (verdict, _) in shop.found(second, STORE_HOP).items() if verdict == "missing"} >= {"O8", "O9"}
    if is_planned_before:
        plan_window(second)
    accepted(shop, finding_id(LAKE_HOP, key_hash("O9")))
    if not is_planned_before:
        plan_window(second)
    before = len(shop.read())
    compensate_window(second, lambda _: None)

    sent = {record.key for record in shop.read()[before:]}
    assert sent == {b"O6", b"O7", b"O8"}
    verify_window(second, lambda *_: None, patience_seconds=0)
    outcome, reason = shop.outcome_of(second, STORE_HOP, "O9")
    assert outcome == "refused"
    assert str(reason).startswith(f"accepted: a person accepted what {LAKE_HOP} says of this key, and its rows in lake")
