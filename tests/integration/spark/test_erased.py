"""Test keys that a store lacks and has not lost: rows that were purged, and keys that were erased on purpose."""

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
from makewhole.journal import certificates
from makewhole.journal.database import connect
from makewhole.journal.results import hop_results
from makewhole.model.pipeline import Remedy
from makewhole.model.plan import Plan
from makewhole.model.verdict import HopCounts
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext, connections_of
from tests.world.orders import DAY, orders
from tests.world.pipeline_file import Settings, store
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

VANISHED = ("vanished", "gone_since_certified")
ERASED = ("erased", "erased_on_purpose")
MISSING = ("missing", "lost_after_topic")
UPSERT = {"compensation": "{missing: upsert}"}
BY_TABLE = "{table: erasures, key: order_id}"
BY_COLUMN = "{column: deleted_at}"


def describe(shop: ReconciledShop, erased: str, hop: Settings | None = None) -> None:
    """Describe a pipeline whose warehouse says which of its keys were erased."""
    shop.describe(hop=hop or {}, more_points={"warehouse": store("db", "warehouse", key="id", erased=erased)})


def repair(context: WindowContext) -> None:
    """Run the plan that is frozen, and verify."""
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)


# Vanished


def test_a_row_that_a_certified_window_saw_and_that_is_gone_has_vanished(shop: ReconciledShop) -> None:
    shop.describe(hop=UPSERT)
    made = orders(range(10))
    shop.trade(made)
    _, closed = shop.whole_way()
    assert closed.state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id in ('O3', 'O4')")

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED, "O4": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O3")["seen"] == {"window": 1, "revision": 1}
    counts = shop.counts(context, STORE_HOP)
    assert (counts.source_keys, counts.matched, counts.missing, counts.vanished) == (10, 8, 0, 2)
    assert plan_window(context).plan is None
    closed = shop.certify(context)
    assert (closed.state, closed.reason) == (WindowState.CERTIFIED, None)
    assert certified_hops(shop, context)[STORE_HOP]["vanished"] == 2
    assert "vanished" not in certified_hops(shop, context)[LEDGER_HOP]

    third, closed = shop.whole_way()
    assert (shop.found(third, STORE_HOP), closed.state) == (
        {"O3": VANISHED, "O4": VANISHED},
        WindowState.CERTIFIED,
    )


def test_a_row_that_no_certified_window_saw_is_missing(shop: ReconciledShop) -> None:
    """The first revision was not certified: nobody has vouched for what it saw."""
    made = orders(range(10))
    shop.trade(made, unloaded=made[5:6])
    _, closed = shop.whole_way()
    assert closed.state is WindowState.GAPS
    shop.sql("delete from warehouse where id = 'O3'")

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O3": MISSING, "O5": MISSING}
    assert closed.state is WindowState.GAPS


def test_a_row_that_a_plan_wrote_and_that_is_gone_has_vanished(shop: ReconciledShop) -> None:
    shop.describe(hop=UPSERT)
    made = orders(range(10))
    shop.trade(made, unloaded=made[5:6])
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    repair(context)
    assert shop.certify(context).state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O5'")

    again, closed = shop.whole_way()

    assert (shop.found(again, STORE_HOP), closed.state) == ({"O5": VANISHED}, WindowState.CERTIFIED)


@pytest.mark.parametrize("day", [1, 4])
@pytest.mark.parametrize("is_ahead", [False, True], ids=["behind", "ahead"])
def test_a_row_that_a_certified_window_met_before_its_record_and_that_is_gone_has_vanished(
    shop: ReconciledShop, day: int, is_ahead: bool
) -> None:
    """The record lies in a later window, behind one with a time ahead, or as its own is ahead: no window with its
    record has seen the row."""
    shop.describe(has_ledger=False, late="1h", allow_empty=True)
    first, made, ahead = orders([2]), orders([4, 6, 8]), orders([900], day)
    shop.send([*first, *ahead, *(orders([4, 6, 8], day) if is_ahead else made)])
    shop.write("warehouse", [*first, *ahead, *made])
    assert [shop.whole_way(one)[1].state for one in range(day)] == [WindowState.CERTIFIED] * day
    shop.sql("delete from warehouse where id in ('O4', 'O8')")

    context, closed = shop.whole_way(day)

    assert shop.found(context, STORE_HOP) == {"O4": VANISHED, "O8": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O4")["seen"] == {"window": 1, "revision": 1}
    assert closed.state is WindowState.CERTIFIED


def test_a_row_that_was_met_before_its_record_by_no_certified_window_is_missing(shop: ReconciledShop) -> None:
    shop.describe(has_ledger=False)
    made = orders([2, 4], 0)
    shop.trade([made[0], *orders([900], 1), made[1]], unloaded=made[:1])
    assert shop.whole_way()[1].state is WindowState.GAPS
    shop.sql("delete from warehouse where id = 'O4'")

    context, _ = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O4": MISSING}


def test_a_stranger_that_is_gone_when_its_record_comes_is_missing(shop: ReconciledShop) -> None:
    """Nothing had written it when its window was certified: that it is gone may have been somebody's mending."""
    shop.describe(has_ledger=False, tolerance={"unexpected": "1"})
    shop.trade(orders([2, 4]))
    shop.write("warehouse", orders([6]))
    first, closed = shop.whole_way()
    assert (shop.found(first, STORE_HOP), closed.state) == (
        {"O6": ("unexpected", "not_in_source")},
        WindowState.CERTIFIED,
    )
    shop.sql("delete from warehouse where id = 'O6'")
    shop.trade([*orders([8], 1), *orders([6], 1)], unloaded=orders([6], 1))

    context, _ = shop.whole_way(1)

    assert shop.found(context, STORE_HOP) == {"O6": MISSING}


@pytest.mark.parametrize("is_upsert", [False, True])
def test_a_record_that_comes_again_after_a_purge_is_of_what_has_vanished_and_a_new_version_is_missing(
    shop: ReconciledShop, is_upsert: bool
) -> None:
    """Nobody has ever seen the new version in the store: that it is absent may be a loss."""
    shop.describe(is_upsert=is_upsert, topic_key="kafka.key", has_ledger=False)
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O3'")
    following = [*orders(range(100, 105), 1), *orders([3], 1)]
    shop.trade(following, unloaded=orders([3], 1))

    second, closed = shop.whole_way(1)

    assert shop.found(second, STORE_HOP) == {"O3": MISSING if is_upsert else VANISHED}
    assert closed.state is (WindowState.GAPS if is_upsert else WindowState.CERTIFIED)
    if not is_upsert:
        assert shop.evidence(second, STORE_HOP, "O3")["seen"] == {"window": 1, "revision": 1}


def test_the_newest_certified_window_with_a_record_of_the_key_says_when_a_row_was_last_seen(
    shop: ReconciledShop,
) -> None:
    """Whether another key of its bucket is asked for in other windows changes nothing."""
    shop.describe(topic_key="kafka.key", has_ledger=False)
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.trade([*orders(range(100, 105), 1), *orders([3], 1)], unloaded=orders([3], 1))
    assert shop.whole_way(1)[1].state is WindowState.CERTIFIED
    shop.sql("delete from warehouse where id = 'O3'")

    context = shop.judge_and_ask_the_gate()

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED}
    assert shop.evidence(context, STORE_HOP, "O3")["seen"] == {"window": 2, "revision": 1}


@pytest.mark.parametrize("remedy", [Remedy.UPSERT, Remedy.REDELIVER])
def test_what_has_vanished_is_brought_back_where_the_file_asks_for_it(shop: ReconciledShop, remedy: Remedy) -> None:
    made = orders(range(10))
    shop.trade(made)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.describe(hop={"compensation": f"{{vanished: {remedy}}}"})
    shop.sql("delete from warehouse where id = 'O3'")

    context = shop.judge_and_ask_the_gate()
    frozen = plan_window(context)

    assert shop.found(context, STORE_HOP) == {"O3": VANISHED}
    assert [(action.remedy, action.key) for action in frozen.actions] == [(remedy, "O3")]
    compensate_window(context, lambda _: None)
    sent = [record.key_text for record in shop.read()][len(made) :]
    assert sent == (["O3"] if remedy is Remedy.REDELIVER else [])
    shop.write("warehouse", [order for order in made if order["id"] in sent])  # as its loader does
    verify_window(context, lambda *_: None, patience_seconds=0)
    assert shop.sql("select count(*) from warehouse where id = 'O3'") == [(1,)]
    assert shop.outcomes(context) == {"O3": "repaired"}
    assert shop.certify(context).state is WindowState.CERTIFIED


# Erased on purpose


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
    assert certified_hops(erasing, again)[STORE_HOP]["erased"] == 1


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
    counts = verified_counts(erasing, context)
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
def test_a_plan_says_how_many_keys_nobody_has_seen_in_a_store_that_names_no_erasures(
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
    refused = [reason for part in forecast(erasing, plan.id).parts for reason in part.reasons]
    assert refused == ["erased: warehouse: erasures names this key"]


def forecast(shop: ReconciledShop, plan: str) -> DryRun:
    """Return the dry run of a plan by the pipeline's file as it is now."""
    return dry_run(shop.journal, plan, targets_of(shop.pipeline, connections_of(shop.pipeline)))


def question(context: WindowContext, plan: Plan, report: DryRun) -> ApprovalQuestion:
    """Return the question of a plan."""
    return ApprovalQuestion(
        plan=plan, label=context.window.label, about=(), who="anybody", dry_run=report, dry_run_at=datetime.now(UTC)
    )


def verified_counts(shop: ReconciledShop, context: WindowContext) -> HopCounts:
    """Return the counts of the hop to the store after compensation."""
    with connect(shop.journal) as journal:
        return hop_results.results(journal, context.window, hop_results.VERIFIED)[STORE_HOP].counts


def certified_hops(shop: ReconciledShop, context: WindowContext) -> dict[str, dict[str, object]]:
    """Return what the certificate of a revision says of its hops."""
    with connect(shop.journal) as journal:
        found = certificates.of_revision(journal, context.window)
    assert found is not None
    hops: dict[str, dict[str, object]] = dict(found.body["hops"])
    return hops
