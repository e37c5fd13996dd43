"""Test silence, damage and absence: whatever is missing, nothing is certified, and the message says what to do."""

from pathlib import Path

import pytest

from makewhole.gate import check
from makewhole.gate.suite import HopSuite
from makewhole.kafka.wire import cluster
from makewhole.model.errors import (
    ConfigurationError,
    CorruptionError,
    PermanentError,
    TransientError,
)
from makewhole.model.gate import GateAnswer
from makewhole.model.window import WindowState
from makewhole.stack.environment import connection_kafka
from makewhole.stack.ports import free_ports
from makewhole.window.context import WindowContext, window_context
from tests.world.environment import set_connection
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import ReconciledShop

pytestmark = pytest.mark.integration


# Silence


def test_a_producer_that_stood_still_for_a_day_is_missing_everything(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unsent=made)

    context, closed = shop.whole_way()

    assert shop.found(context, LEDGER_HOP) == {order["id"]: ("missing", "never_produced") for order in made}
    assert (closed.state, closed.certificate) == (WindowState.GAPS, None)
    assert closed.reason is not None
    assert "outbox→orders: 10 keys missing, 0 allowed" in closed.reason


def test_a_day_without_anything_is_not_known(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED

    context, closed = shop.whole_way(1)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert closed.reason == (
        "not proven: the window is empty: there is nothing of orders, warehouse and outbox in it. Silence is not "
        "proof; where quiet intervals are right, write `gate: {allow_empty: true}` into the pipeline file and run the "
        "window again"
    )
    assert shop.counts(context, LEDGER_HOP).judged == 0


def test_a_quiet_day_passes_only_where_the_pipeline_says_so(shop: ReconciledShop) -> None:
    shop.describe(allow_empty=True)

    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_an_emptied_store_is_missing_everything(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made)
    shop.sql("truncate warehouse")

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {order["id"]: ("missing", "lost_after_topic") for order in made}
    assert (closed.state, closed.certificate) == (WindowState.GAPS, None)


def test_a_store_emptied_after_it_was_certified_is_not_known_when_the_window_is_run_again(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    assert shop.whole_way()[1].state is WindowState.CERTIFIED
    shop.sql("truncate warehouse")

    again, closed = shop.whole_way()

    assert again.window.revision == 2
    assert shop.counts(again, STORE_HOP).vanished == 10
    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert closed.reason == (
        "not proven: orders→warehouse: warehouse is empty in this window, and silence is not proof (gate.allow_empty "
        "permits it)"
    )
    chain = shop.journal_sql("select kind, revokes from makewhole.certificate order by ordinal")
    assert chain == [("certificate", None)]


# Evidence that is gone


def remove_files(shop: ReconciledShop, context: WindowContext, point: str) -> None:
    paths = [path for paths in shop.manifests(context)[point]["files"].values() for path in paths]
    assert paths
    for path in paths:
        (Path(context.storage.root) / path).unlink()


@pytest.mark.parametrize("point", ["outbox", "orders", "warehouse"])
def test_a_snapshot_whose_files_are_gone_is_an_error_and_a_new_revision_is_the_way_out(
    shop: ReconciledShop, point: str
) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    shop.snapshot(context)
    remove_files(shop, context, point)

    with pytest.raises(CorruptionError, match="is named by a manifest and is not there; restore it, or run the window"):
        shop.reconcile(context)

    closed = shop.certify(context)
    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


def test_a_snapshot_whose_manifest_is_gone_is_an_error_and_is_taken_when_asked_again(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    assert shop.snapshot(context) == ["outbox", "orders", "warehouse"]
    shop.journal_sql("delete from makewhole.snapshot where point = 'orders'")

    with pytest.raises(PermanentError, match=r"no snapshot of orders; without it nothing can be judged\. Clear the"):
        shop.reconcile(context)

    assert shop.certify(context).state is WindowState.ERROR
    assert shop.snapshot(context) == ["orders"]
    shop.reconcile(context)
    assert shop.validate(context).answer is GateAnswer.PASS
    assert shop.certify(context).state is WindowState.CERTIFIED


def test_verdicts_whose_files_are_gone_make_the_gate_unable(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    shop.judge(context)
    for file in (Path(context.storage.root) / context.window.prefix).glob("*/verdicts/*.parquet"):
        file.unlink()

    assert shop.validate(context).answer is GateAnswer.ERROR
    closed = shop.certify(context)
    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)


def test_some_verdicts_gone_from_the_list_do_not_pass_the_gate(shop: ReconciledShop) -> None:
    made = orders(range(10))
    shop.trade(made, unloaded=made)
    shop.buckets = 2
    context = shop.open()
    shop.judge(context)
    shop.journal_sql(
        "update makewhole.hop_result set files = jsonb_set(files, '{verdicts}', (files -> 'verdicts') - 0)"
    )

    report = shop.validate(context)

    assert report.answer is GateAnswer.ERROR
    assert any("were judged, the snapshots hold 10" in failure for failure in report.failures)
    assert shop.certify(context).state is WindowState.ERROR


def test_a_gate_that_was_not_asked_certifies_nothing(shop: ReconciledShop) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    shop.judge(context)

    closed = shop.certify(context)

    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)
    assert closed.reason == (
        "the gate could not answer: it was not asked; see the failed task of this run. The next run goes on with this "
        "window before its own"
    )


def test_an_empty_suite_certifies_nothing(shop: ReconciledShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "frame_suite", lambda _summaries: ())
    monkeypatch.setattr(check, "hop_suite", lambda _pipeline, summary, _frame: HopSuite(hop=summary.hop, numbers=()))
    shop.trade(orders(range(10)))

    _, closed = shop.whole_way()

    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)


# Systems that are not there


def test_a_topic_that_does_not_exist_opens_no_window_and_the_next_try_does(shop: ReconciledShop) -> None:
    there = shop.topic
    shop.trade(orders(range(10)))
    shop.topic = "nowhere"
    shop.describe()

    with pytest.raises(ConfigurationError, match="nowhere"):
        shop.open()

    assert shop.journal_sql("select count(*) from makewhole.window") == [(0,)]
    shop.topic = there
    shop.describe()
    assert shop.whole_way()[1].state is WindowState.CERTIFIED


@pytest.mark.parametrize("table", ["outbox", "warehouse"])
def test_a_table_that_does_not_exist_keeps_what_was_read_and_the_next_try_goes_on(
    shop: ReconciledShop, table: str
) -> None:
    shop.trade(orders(range(10)))
    context = shop.open()
    shop.sql(f"alter table {table} rename to elsewhere")

    with pytest.raises(ConfigurationError, match=f"table {table} does not exist"):
        shop.snapshot(context)

    assert shop.certify(context).state is WindowState.ERROR
    kept = set(shop.manifests(context))
    assert kept == {"orders"}  # the tables are read at once
    shop.sql(f"alter table elsewhere rename to {table}")
    assert set(shop.snapshot(context)) == {"outbox", "orders", "warehouse"} - kept
    shop.reconcile(context)
    shop.validate(context)
    assert shop.certify(context).state is WindowState.CERTIFIED


@pytest.mark.parametrize("step", ["open", "snapshot"])
def test_while_kafka_is_down_a_retry_may_help_and_the_next_try_goes_on(
    shop: ReconciledShop, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.trade(orders(range(10)))
    good = connection_kafka(shop.bootstrap)
    absent = connection_kafka(f"127.0.0.1:{free_ports(1)[0]}")
    context = None if step == "open" else shop.open()
    set_connection(monkeypatch, "log", absent)
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 3.0)  # of this process; Spark's have all of theirs

    def walk() -> WindowContext:
        window = shop.ask(request="one run").window if context is None else context.window
        silent = window_context(window, shop.pipeline)
        shop.judge(silent)
        return silent

    with pytest.raises(TransientError, match="Kafka"):
        walk()

    opened = shop.journal_sql("select count(*) from makewhole.window")[0][0]
    assert opened == (0 if context is None else 1)
    set_connection(monkeypatch, "log", good)
    whole = walk()
    shop.validate(whole)
    assert whole.window.revision == 1
    assert shop.certify(whole).state is WindowState.CERTIFIED
