"""Test keys that a sink's prepared transactions may hold: not known, until they are settled or have waited too long."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.sentences import incident_sentence
from makewhole.model.refusal import RefusalCode
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.combinations import with_every_change
from tests.world.orders import BORN, DAY, Order, orders
from tests.world.prepared import PreparedTransactions, Statement, prepared_transactions
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found, ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PENDING, OVERDUE, NOT_KNOWN = ("pending", "in_doubt"), ("missing", "in_doubt"), ("undecidable", "in_doubt")
LOST, DIFFERS = ("missing", "lost_after_topic"), ("mismatched", "value_differs")
UPSERT = {"compensation": "{missing: upsert, mismatched: upsert, duplicate: quarantine}"}


@pytest.fixture
def sink(shop: ReconciledShop) -> Iterator[PreparedTransactions]:
    """The sink of the shop's store."""
    shop.describe(has_ledger=False)
    with prepared_transactions(shop.dsn) as sink:
        yield sink


def found(shop: ReconciledShop, context: WindowContext) -> Found:
    return shop.found(context, STORE_HOP)


def happened(shop: ReconciledShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return incidents.of(journal, context.window)


def insert(*rows: Order) -> Statement:
    """Return the statement that inserts orders into the store."""
    return "insert into warehouse select * from json_populate_recordset(null::warehouse, %s)", (json.dumps(rows),)


def changed(shop: ReconciledShop, remedies: dict[str, str] | None = None) -> None:
    shop.describe(has_ledger=False, hop=remedies or UPSERT)


def test_an_inserted_row_in_doubt_is_pending_with_its_transaction(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:3])
    sink.prepare("flow-0-[3,4)", insert(made[3]))
    context, closed = shop.whole_way()
    # Which key it holds is not known: both may be in it.
    assert found(shop, context) == {"O3": PENDING, "O4": PENDING}
    evidence = shop.evidence(context, STORE_HOP, "O3")
    (transaction,) = evidence["in_doubt"]
    assert (transaction["gid"], transaction["owner"]) == ("flow-0-[3,4)", "postgres")
    assert (transaction["tables"], transaction["prepared"][-6:]) == (["public.warehouse"], "+00:00")
    assert evidence["waiting_since"] == context.window.opened_at.isoformat()
    assert (closed.state, closed.handed_over) == (WindowState.CERTIFIED, 2)
    assert plan_window(context).plan is None
    (incident,) = happened(shop, context)
    assert (incident.kind, incident.point, incident.topic) == (
        IncidentKind.PREPARED_TRANSACTION,
        "warehouse",
        "warehouse",
    )
    assert incident_sentence(incident).startswith(
        "2 keys of warehouse (warehouse) may be held by 1 prepared transaction that is neither committed nor rolled "
        "back: 'flow-0-[3,4)' of postgres, prepared 20"
    )
    shown = CliRunner().invoke(app, ["findings", "shop", "--window", "1"], env={"COLUMNS": "400"}).stdout
    assert "in_doubt, 'flow-0-[3,4)' of postgres, prepared 20" in shown


def test_what_is_committed_later_matches_and_what_is_rolled_back_is_missing(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    shop.describe(has_ledger=False, allow_empty=True)
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:3])
    sink.prepare("one", insert(made[3]))
    sink.prepare("two", insert(made[4]))
    first, _ = shop.whole_way()
    assert found(shop, first) == {"O3": PENDING, "O4": PENDING}
    assert [item["gid"] for item in shop.evidence(first, STORE_HOP, "O3")["in_doubt"]] == ["one", "two"]
    sink.commit("one")
    sink.roll_back("two")
    second, closed = shop.whole_way(1)
    assert (found(shop, second), closed.state) == ({"O4": LOST}, WindowState.GAPS)
    assert [incident.kind for incident in happened(shop, second)] == []


def test_only_rows_that_a_transaction_may_have_changed_are_in_doubt(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    made = orders(range(8))
    shop.send(made[:6])
    shop.write("warehouse", [*made[:5], *made[4:]])  # O4 is there twice, O6 and O7 are not in the topic
    shop.sql("update warehouse set amount = 0 where id in ('O0', 'O1')")
    sink.prepare(
        "tx",
        "update warehouse set amount = 0.5 where id = 'O0'",
        "delete from warehouse where ctid = (select max(ctid) from warehouse where id = 'O4')",
        "delete from warehouse where id = 'O6'",
        "update warehouse set amount = 0 where id = 'O3'",  # it matches as it is
    )
    context, closed = shop.whole_way()
    assert found(shop, context) == {
        "O0": PENDING,
        "O1": DIFFERS,
        "O4": PENDING,
        "O6": NOT_KNOWN,
        "O7": ("unexpected", "not_in_source"),
    }
    assert (closed.state, closed.handed_over) == (WindowState.GAPS, 2)
    sink.commit("tx")
    again, _ = shop.whole_way()
    assert found(shop, again) == {
        "O1": DIFFERS,
        "O3": DIFFERS,
        "O7": ("unexpected", "not_in_source"),
    }


def test_rows_that_are_merely_locked_and_other_tables_put_nothing_in_doubt(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:3])
    shop.sql("update warehouse set amount = 0 where id = 'O0'")
    sink.prepare("locks", "select * from warehouse for update", "insert into outbox (id) values ('O3')")
    context, _ = shop.whole_way()
    assert found(shop, context) == {"O0": DIFFERS, "O3": LOST, "O4": LOST}
    assert happened(shop, context) == []


@pytest.mark.parametrize("remedy", with_every_change(["redeliver", "upsert"], first=1))
def test_past_max_age_it_is_missing_and_nothing_is_repaired_until_it_is_settled(
    shop: ReconciledShop, sink: PreparedTransactions, remedy: str
) -> None:
    changed(shop, {"compensation": f"{{missing: {remedy}}}"})
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:4])
    sink.prepare("it's old", insert(made[4]))
    shop.whole_way()
    shop.let_pass(timedelta(days=1.01))
    late, closed = shop.whole_way()
    assert (found(shop, late), closed.state) == ({"O4": OVERDUE}, WindowState.GAPS)
    assert "waiting_since" in shop.evidence(late, STORE_HOP, "O4")
    frozen = plan_window(late)
    assert frozen.plan is None
    (refusal,) = [item.refusal for item in frozen.refusals]
    assert refusal.code is RefusalCode.IN_DOUBT
    assert refusal.text.startswith("prepared transaction 'it''s old' of postgres, prepared 20")
    assert refusal.text.endswith(
        "may hold it in warehouse: it would be there twice, or overwritten, once that is committed; settle it, then "
        "run this window again"
    )
    sink.commit("it's old")
    again, closed = shop.whole_way()
    assert (found(shop, again), closed.state) == ({}, WindowState.CERTIFIED)


@pytest.mark.parametrize(("remedy", "is_unique"), [("upsert", True), ("upsert", False), ("redeliver", False)])
def test_a_transaction_that_is_prepared_after_the_plan_was_made_stops_the_repair(
    shop: ReconciledShop, sink: PreparedTransactions, remedy: str, is_unique: bool
) -> None:
    if is_unique:
        shop.sql("alter table warehouse add primary key (id)")
    changed(shop, {"compensation": f"{{missing: {remedy}}}"})
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made[:3])
    context = shop.judge_and_ask_the_gate()
    assert found(shop, context) == {"O3": LOST, "O4": LOST}
    assert plan_window(context).plan is not None
    sink.prepare("tx", insert(made[3]))
    compensate_window(context, lambda _: None)
    verify_window(context, lambda *_: None, patience_seconds=0)
    outcome, reason = shop.outcome_of(context, STORE_HOP, "O3")
    assert outcome == "refused" and (reason or "").startswith("in doubt: the key"), reason
    # A unique index shows which of the keys it holds.
    assert shop.outcome_of(context, STORE_HOP, "O4")[0] == ("repaired" if is_unique else "refused")
    sink.commit("tx")
    assert shop.sql("select count(*) from warehouse where id = 'O3'") == [(1,)]
    assert shop.sql("select count(*) from warehouse where id = 'O4'") == [(int(is_unique),)]
    assert len(shop.records(shop.topic)) == 5


def test_versions_that_are_in_doubt_are_pending_and_then_out_of_date(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    for table in ("outbox", "warehouse"):
        shop.sql(f"alter table {table} add column version bigint")
    shop.sql("alter table warehouse add primary key (id)")
    shop.more_columns["version"] = "bigint"
    shop.describe(topic_key="kafka.key", is_upsert=True, has_ledger=False)

    def version(number: int) -> list[Order]:
        at = (BORN + timedelta(hours=number)).isoformat()
        return [order | {"version": number, "amount": f"{number}.25", "at": at} for order in orders(range(4))]

    shop.send([*version(1), *version(2)])
    shop.write("warehouse", version(1)[:3])
    sink.prepare("tx", "update warehouse set version = 2, amount = 2.25 where id = 'O0'", insert(version(2)[3]))
    first, _ = shop.whole_way()
    assert found(shop, first) == {
        "O0": PENDING,
        "O1": ("mismatched", "stale_version"),
        "O2": ("mismatched", "stale_version"),
        "O3": PENDING,
    }
    shop.let_pass(DAY * 1.01)
    late, _ = shop.whole_way()
    assert (found(shop, late)["O0"], found(shop, late)["O3"]) == (("mismatched", "in_doubt"), OVERDUE)
    sink.commit("tx")
    again, _ = shop.whole_way()
    assert set(found(shop, again)) == {"O1", "O2"}


def test_what_only_the_target_has_is_not_known_while_the_ledger_is_in_doubt(
    shop: ReconciledShop, sink: PreparedTransactions
) -> None:
    shop.describe()
    made = orders(range(5))
    shop.send(made)
    shop.write("warehouse", made)
    shop.write("outbox", made[:3])
    insertion = "insert into outbox select * from json_populate_recordset(null::outbox, %s)"
    sink.prepare("branch-1", (insertion, (json.dumps(made[3:4]),)))
    context, closed = shop.whole_way()
    assert shop.found(context, LEDGER_HOP) == {"O3": NOT_KNOWN, "O4": NOT_KNOWN}
    (transaction,) = shop.evidence(context, LEDGER_HOP, "O3")["in_doubt"]
    assert (transaction["gid"], transaction["tables"]) == ("branch-1", ["public.outbox"])
    assert [(incident.point, incident.detail["keys"]) for incident in happened(shop, context)] == [("outbox", 2)]
    assert closed.state is WindowState.NOT_KNOWN
    sink.commit("branch-1")
    again, _ = shop.whole_way()
    assert shop.found(again, LEDGER_HOP) == {"O4": ("unexpected", "not_in_source")}
