"""Test how long what plans did is kept, and what its end says."""

import json
from typing import Any

import pytest
from psycopg2.extensions import parse_dsn
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.config.connections import from_environment
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.orchestration.housekeeping import remove_kept
from tests.integration.spark.test_keep import UPSERT, age, chain_problems, keep, repaired
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PASSWORD = "of-a-test"


def test_what_a_plan_did_goes_and_its_undo_says_so(shop: ReconciledShop) -> None:
    shop.describe(keep={"effects": "30d"}, compensation=UPSERT)
    made = orders(range(5))
    shop.trade(made, unloaded=made[:2])
    context, plan = repaired(shop)
    age(shop)
    later = orders(range(100, 105), 1)
    shop.trade(later, unloaded=later[:1])
    young, other = repaired(shop, 1)

    [planned] = keep(shop, is_dry=True)
    assert (planned.plan, planned.amount.files, planned.amount.rows, planned.stays) == (plan.id, 1, 4, None)
    assert left(shop) == {plan.id: (2, 1), other.id: (1, 1)}
    rows_before = shop.sql("select count(*) from warehouse")
    assert keep(shop) == [planned]

    assert left(shop) == {other.id: (1, 1)}
    assert shop.sql("select count(*) from warehouse") == rows_before
    with pytest.raises(
        RefusedError, match=f"undo of plan {plan.id} is no longer possible: its effects were kept 30d, "
    ):
        plan_undo(context, plan.id, reverses=False)
    answer = CliRunner().invoke(app, ["plan", "undo", plan.id, "--json"])
    assert (answer.exit_code, "no longer possible: its effects were kept 30d" in answer.output) == (2, True)
    assert plan_undo(young, other.id, reverses=False).plan is not None
    assert (keep(shop), chain_problems(shop)) == ([], [])


def left(shop: ReconciledShop) -> dict[str, tuple[int, int]]:
    """Return how many effects and receipts are kept of each plan."""
    rows = shop.sql(
        "select plan, (select count(*) from makewhole.effect as e where e.plan = r.plan), count(*) "
        "from makewhole.receipt as r group by plan"
    )
    return {plan: (effects, receipts) for plan, effects, receipts in rows}


def test_effects_stay_as_long_as_rows_aside_and_both_go_together(shop: ReconciledShop) -> None:
    shop.describe(keep={"effects": "30d"}, compensation=UPSERT)
    made = orders(range(5))
    shop.trade(made)
    shop.write("warehouse", [made[3]])
    _, plan = repaired(shop)
    age(shop)

    [stays] = keep(shop)
    assert stays.stays == (
        f"plan {plan.id} moved 1 rows aside, which are kept: their way back needs its effects. Write `quarantine` in "
        "`keep` as well, or put them back"
    )
    answer = CliRunner().invoke(app, ["keep", "shop"])
    assert (answer.exit_code, f"effects of {plan.id} stay: plan {plan.id} moved" in answer.output) == (1, True)
    with pytest.raises(PermanentError, match=f"effects of window 1 stay: plan {plan.id} moved 1 rows aside"):
        remove_kept("shop")  # as housekeeping does
    assert shop.sql("select count(*) from makewhole.quarantine") == [(1,)]

    shop.describe(keep={"effects": "30d", "quarantine": "60d"}, compensation=UPSERT)
    assert [(leftover.kind.value, leftover.amount.rows, leftover.stays) for leftover in keep(shop)] == [
        ("quarantine", 1, None),
        ("effects", 3, None),
    ]
    assert shop.sql("select count(*) from makewhole.quarantine") == [(0,)]
    assert left(shop) == {}


def test_without_the_right_to_remove_the_statement_that_grants_it_is_named(
    shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.describe(keep={"effects": "30d"}, compensation=UPSERT)
    made = orders(range(5))
    shop.trade(made, unloaded=made[:1])
    _, plan = repaired(shop)
    age(shop)
    role = f"writer_{plan.id[-8:]}"
    shop.sql(f"create role {role} login password '{PASSWORD}'")
    shop.sql(f"grant usage on schema makewhole to {role}")
    shop.sql(f"grant select, insert on all tables in schema makewhole to {role}")
    shop.sql(f"grant update on makewhole.fence to {role}")
    try:
        monkeypatch.setenv("AIRFLOW_CONN_DB", as_role(role))
        [stays] = keep(shop)
    finally:
        shop.sql(f"drop owned by {role}; drop role {role}")
    assert stays.stays is not None
    assert "grant select, insert, update, delete on quarantine to " in stays.stays
    assert left(shop) == {plan.id: (1, 1)}
    monkeypatch.undo()


def as_role(role: str) -> str:
    """Return the connection of the shop's database as another user."""
    connection: Any = from_environment("db")
    given = parse_dsn(connection.dsn)
    return json.dumps(
        {
            "conn_type": "postgres",
            "host": given["host"],
            "port": int(given["port"]),
            "login": role,
            "password": PASSWORD,
            "schema": given["dbname"],
        }
    )
