"""Test keys that a store lacks and has not lost, as they were erased on purpose."""

import json
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from makewhole.cli.plan.command import plan_app
from makewhole.compensation.approval.page import ApprovalQuestion, approval_page, escaped
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.execution.targets import targets_of
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.preview.dry_report import DryRun
from makewhole.compensation.preview.dry_run import dry_run
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.model.plan import Plan
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, connections_of
from tests.world.orders import DAY, orders
from tests.world.pipeline_file import Settings, store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

ERASED = ("erased", "erased_on_purpose")
MISSING = ("missing", "lost_after_topic")
BY_TABLE = "{table: erasures, key: order_id}"
BY_COLUMN = "{column: deleted_at}"


def describe(shop: ReconciledShop, erased: str, hop: Settings | None = None) -> None:
    """Describe a pipeline whose warehouse says which of its keys were erased."""
    shop.describe(hop=hop or {}, more_points={"warehouse": store("db", "warehouse", key="id", erased=erased)})


@pytest.fixture
def erasing(shop: ReconciledShop) -> ReconciledShop:
    """Return the shop with a table of keys that were erased."""
    shop.sql("create table erasures (order_id text primary key)")
    return shop


def test_a_key_that_the_store_names_as_erased_is_no_gap(erasing: ReconciledShop) -> None:
    describe(erasing, BY_TABLE)
    made = orders(range(10))
    erasing.trade(made, unloaded=made[3:5])
    erasing.sql("insert into erasures values ('O3'), ('O7')")

    context = erasing.judged()

    assert erasing.found(context, STORE_HOP) == {"O3": ERASED, "O4": MISSING}
    assert erasing.evidence(context, STORE_HOP, "O3")["erased"] == "warehouse: erasures names this key"
    erasing.write("warehouse", made[4:5])
    again, closed = erasing.whole_way()
    assert (erasing.found(again, STORE_HOP), closed.state) == ({"O3": ERASED}, WindowState.CERTIFIED)
    assert erasing.certified_hops(again)[STORE_HOP]["erased"] == 1


def test_a_row_that_was_erased_in_place_is_no_copy_and_no_gap(shop: ReconciledShop) -> None:
    """A key that came back after it was erased has a row like any other."""
    shop.sql("alter table warehouse add column deleted_at timestamptz")
    describe(shop, BY_COLUMN)
    made = orders(range(10))
    shop.trade(made)
    shop.sql("update warehouse set deleted_at = now(), amount = null where id in ('O3', 'O4')")
    shop.write("warehouse", made[4:5])

    context, closed = shop.whole_way()

    assert (shop.found(context, STORE_HOP), closed.state) == ({"O3": ERASED}, WindowState.CERTIFIED)


@pytest.mark.parametrize("remedy", ["upsert", "redeliver"])
@pytest.mark.parametrize("moment", ["before the plan", "before the run"])
@pytest.mark.parametrize("erased", [BY_TABLE, BY_COLUMN], ids=["by a table", "in place"])
def test_a_key_that_is_erased_after_it_was_judged_is_not_written(
    erasing: ReconciledShop, remedy: str, moment: str, erased: str
) -> None:
    erasing.sql("alter table warehouse add column deleted_at timestamptz")
    empty = {"leave": "[deleted_at]"} if erased == BY_TABLE else {}
    describe(erasing, erased, hop={"compensation": f"{{missing: {remedy}}}", **empty})
    made = orders(range(10))
    erasing.trade(made, unloaded=made[3:5])
    context = erasing.judge_and_ask_the_gate()
    if moment == "before the plan":
        erase(erasing, erased, "O3")
    frozen = plan_window(context)
    if moment == "before the run":
        erase(erasing, erased, "O3")
    before = len(erasing.read())

    compensate_window(context, lambda _: None)
    if remedy == "redeliver":
        erasing.write("warehouse", made[4:5])
    verify_window(context, lambda *_: None, patience_seconds=0)

    planned = ["O4"] if moment == "before the plan" else ["O3", "O4"]
    assert [action.key for action in frozen.actions] == planned
    assert erasing.sql("select count(*) from warehouse where id = 'O3' and deleted_at is null") == [(0,)]
    assert len(erasing.read()) == before + (remedy == "redeliver")
    said = (
        "warehouse: erasures names this key" if erased == BY_TABLE else "warehouse: its row has a value in deleted_at"
    )
    reasons = erasing.journal_sql("select key, outcome, outcome_reason from makewhole.finding order by key")
    assert reasons == [("O3", "erased", said), ("O4", "repaired", None)]
    counts = erasing.verified_counts(context, STORE_HOP)
    assert (counts.matched, counts.missing, counts.erased) == (9, 0, 1)
    assert erasing.certify(context).state is WindowState.CERTIFIED


def erase(shop: ReconciledShop, erased: str, key: str) -> None:
    """Have the warehouse say that a key was erased: by its table of erasures, or by a row without values."""
    if erased == BY_TABLE:
        shop.sql("insert into erasures values (%s)", key)
    else:
        shop.sql("insert into warehouse (id, at, deleted_at) values (%s, now(), now())", key)


def test_a_key_that_every_store_behind_a_topic_names_is_erased_there_too_and_is_not_produced(
    erasing: ReconciledShop,
) -> None:
    erasing.describe(
        ledger_hop={"compensation": "{missing: produce}"},
        more_points={"warehouse": store("db", "warehouse", key="id", erased=BY_TABLE)},
    )
    made = orders(range(10))
    erasing.trade(made, unsent=made[3:6])
    erasing.sql("insert into erasures values ('O3')")

    context = erasing.judge_and_ask_the_gate()
    frozen = plan_window(context)
    erasing.sql("insert into erasures values ('O4')")
    compensate_window(context, lambda _: None)
    erasing.write("warehouse", made[5:6])
    verify_window(context, lambda *_: None, patience_seconds=0)

    unproduced = ("missing", "never_produced")
    assert erasing.found(context, LEDGER_HOP) == {"O3": ERASED, "O4": unproduced, "O5": unproduced}
    assert [action.key for action in frozen.actions] == ["O4", "O5"]
    assert [record.key_text for record in erasing.read()].count("O4") == 0
    assert erasing.outcomes(context) == {"O3": "open", "O4": "erased", "O5": "repaired"}
    assert erasing.certify(context).state is WindowState.CERTIFIED


def test_a_key_behind_an_open_transaction_is_pending_and_erased_when_its_waiting_has_ended(
    erasing: ReconciledShop,
) -> None:
    """O8 is in the transaction, O9 is committed behind it; O7, in it as well, is not erased."""
    describe(erasing, BY_TABLE)
    made = orders(range(10))
    erasing.trade(made, unsent=made[7:], unloaded=made[7:])
    transaction = erasing.begin_transaction(made[7:9], seconds=600)
    erasing.send(made[9:])
    erasing.sql("insert into erasures values ('O8'), ('O9')")
    in_flight = ("pending", "in_flight")
    assert erasing.found(erasing.judged(), LEDGER_HOP) == {"O7": in_flight, "O8": in_flight, "O9": in_flight}

    erasing.let_pass(DAY * 1.01)
    context = erasing.judged()

    assert erasing.found(context, LEDGER_HOP) == {"O7": ("missing", "not_committed"), "O8": ERASED, "O9": ERASED}
    erasing.end_transaction(transaction, is_committed=True)


@pytest.mark.parametrize("remedy", ["upsert", "redeliver"])
def test_a_plan_says_how_many_keys_were_never_seen_in_a_store_that_names_no_erasures(
    erasing: ReconciledShop, remedy: str
) -> None:
    hop = {"compensation": f"{{missing: {remedy}}}"}
    erasing.describe(hop=hop)
    made = orders(range(10))
    erasing.trade(made, unloaded=made[3:5])
    context = erasing.judge_and_ask_the_gate()
    plan = plan_window(context).plan
    assert plan is not None
    said = (
        "2 keys were never seen in warehouse by a certified window; if erased on purpose, writing brings back what was "
        "deleted: then name 'erased:' of warehouse in the pipeline file first"
    )

    assert forecast(erasing, plan.id).risks == (said,)
    page = approval_page(question(context, plan, forecast(erasing, plan.id)))
    assert f"**Beware**: {escaped(said)}." in page.body.split("\n\n")
    shown = CliRunner().invoke(plan_app, ["show", plan.id, "--json"])
    assert json.loads(shown.output)["risks"] == [said]
    assert said in " ".join(CliRunner().invoke(plan_app, ["show", plan.id]).output.split())

    describe(erasing, BY_TABLE, hop=hop)
    assert forecast(erasing, plan.id).risks == ()
    erasing.sql("insert into erasures values ('O3')")
    refused = [refusal for part in forecast(erasing, plan.id).parts for refusal in part.reasons]
    assert refused == [Refusal(RefusalCode.ERASED, "warehouse: erasures names this key")]


def forecast(shop: ReconciledShop, plan: str) -> DryRun:
    """Return the dry run of a plan by the pipeline's file as it is now."""
    return dry_run(shop.journal, plan, targets_of(shop.pipeline, connections_of(shop.pipeline)))


def question(context: WindowContext, plan: Plan, report: DryRun) -> ApprovalQuestion:
    """Return the question of a plan."""
    return ApprovalQuestion(
        plan=plan, label=context.window.label, about=(), who="anybody", dry_run=report, dry_run_at=datetime.now(UTC)
    )
