"""Silence, damage and absence: whatever is not there, nothing is certified, and the message says what to do."""

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
from tests.integration.spark.world import LEDGER_HOP, STORE_HOP, World, orders

pytestmark = pytest.mark.integration


# Silence


def test_a_producer_that_stood_still_for_a_day_is_missing_everything(world: World) -> None:
    made = orders(range(10))
    world.trade(made, unsent=made)

    context, closed = world.whole_way()

    assert world.found(context, LEDGER_HOP) == {order["id"]: ("missing", "never_produced") for order in made}
    assert (closed.state, closed.certificate) == (WindowState.GAPS, None)
    assert closed.reason is not None
    assert "outbox→orders: 10 keys missing, 0 allowed" in closed.reason


def test_a_day_without_anything_is_not_known(world: World) -> None:
    world.trade(orders(range(10)))
    assert world.whole_way()[1].state is WindowState.CERTIFIED

    context, closed = world.whole_way(1)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)
    assert closed.reason is not None
    assert "outbox is empty in this window, and silence is not proof" in closed.reason
    assert world.counts(context, LEDGER_HOP).judged == 0


def test_a_quiet_day_passes_only_where_the_pipeline_says_so(world: World) -> None:
    world.describe(allow_empty="true")

    assert world.whole_way()[1].state is WindowState.CERTIFIED


def test_an_emptied_store_is_missing_everything(world: World) -> None:
    made = orders(range(10))
    world.trade(made)
    world.sql("truncate warehouse")

    context, closed = world.whole_way()

    assert world.found(context, STORE_HOP) == {order["id"]: ("missing", "lost_after_topic") for order in made}
    assert (closed.state, closed.certificate) == (WindowState.GAPS, None)


def test_a_store_emptied_after_it_was_certified_is_found_when_the_window_is_run_again(world: World) -> None:
    world.trade(orders(range(10)))
    assert world.whole_way()[1].state is WindowState.CERTIFIED
    world.sql("truncate warehouse")

    again, closed = world.whole_way()

    assert again.window.revision == 2
    assert (closed.state, closed.certificate) == (WindowState.GAPS, None)
    assert world.certificates() == 1


# Evidence that is gone


def remove_files(world: World, context: WindowContext, point: str) -> None:
    paths = [path for paths in world.manifests(context)[point]["files"].values() for path in paths]
    assert paths
    for path in paths:
        (Path(context.storage.root) / path).unlink()


@pytest.mark.parametrize("point", ["outbox", "orders", "warehouse"])
def test_a_snapshot_whose_files_are_gone_is_an_error_and_a_new_revision_is_the_way_out(
    world: World, point: str
) -> None:
    world.trade(orders(range(10)))
    context = world.open()
    world.snapshot(context)
    remove_files(world, context, point)

    with pytest.raises(CorruptionError, match="is named by a manifest and is not there; restore it, or run the window"):
        world.reconcile(context)

    closed = world.certify(context)
    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)
    assert world.whole_way()[1].state is WindowState.CERTIFIED


def test_a_snapshot_whose_manifest_is_gone_is_an_error_and_is_taken_when_asked_again(world: World) -> None:
    world.trade(orders(range(10)))
    context = world.open()
    assert world.snapshot(context) == ["outbox", "orders", "warehouse"]
    world.journal_sql("delete from makewhole.snapshot where point = 'orders'")

    with pytest.raises(PermanentError, match=r"no snapshot of orders; without it nothing can be judged\. Clear the"):
        world.reconcile(context)

    assert world.certify(context).state is WindowState.ERROR
    assert world.snapshot(context) == ["orders"]
    world.reconcile(context)
    assert world.validate(context).answer is GateAnswer.PASS
    assert world.certify(context).state is WindowState.CERTIFIED


def test_verdicts_whose_files_are_gone_make_the_gate_unable(world: World) -> None:
    world.trade(orders(range(10)))
    context = world.open()
    world.judge(context)
    for file in (Path(context.storage.root) / context.window.prefix).glob("*/verdicts/*.parquet"):
        file.unlink()

    assert world.validate(context).answer is GateAnswer.ERROR
    closed = world.certify(context)
    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)


def test_some_verdicts_gone_from_the_list_do_not_pass_the_gate(world: World) -> None:
    world.trade(orders(range(10)))
    context = world.open()
    world.judge(context)
    world.journal_sql(
        "update makewhole.hop_result set files = jsonb_set(files, '{verdicts}', (files -> 'verdicts') - 0)"
    )

    report = world.validate(context)

    assert report.answer is GateAnswer.ERROR
    assert any("were judged, the snapshots hold 10" in failure for failure in report.failures)
    assert world.certify(context).state is WindowState.ERROR


def test_a_gate_that_was_not_asked_certifies_nothing(world: World) -> None:
    world.trade(orders(range(10)))
    context = world.open()
    world.judge(context)

    closed = world.certify(context)

    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)
    assert closed.reason == "the gate could not answer: it was not asked; see the failed task of this run"


def test_an_empty_suite_certifies_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "frame_suite", lambda _summaries: ())
    monkeypatch.setattr(check, "hop_suite", lambda _pipeline, summary, _frame: HopSuite(hop=summary.hop, numbers=()))
    world.trade(orders(range(10)))

    _, closed = world.whole_way()

    assert (closed.state, closed.certificate) == (WindowState.ERROR, None)


# Systems that are not there


def test_a_topic_that_does_not_exist_opens_no_window_and_the_next_try_does(world: World) -> None:
    there = world.topic
    world.trade(orders(range(10)))
    world.topic = "nowhere"
    world.describe()

    with pytest.raises(ConfigurationError, match="nowhere"):
        world.open()

    assert world.journal_sql("select count(*) from makewhole.window") == [(0,)]
    world.topic = there
    world.describe()
    assert world.whole_way()[1].state is WindowState.CERTIFIED


@pytest.mark.parametrize("table", ["outbox", "warehouse"])
def test_a_table_that_does_not_exist_keeps_what_was_read_and_the_next_try_goes_on(world: World, table: str) -> None:
    world.trade(orders(range(10)))
    context = world.open()
    world.sql(f"alter table {table} rename to elsewhere")

    with pytest.raises(ConfigurationError, match=f"table {table} does not exist"):
        world.snapshot(context)

    assert world.certify(context).state is WindowState.ERROR
    kept = set(world.manifests(context))
    assert kept == ({"outbox", "orders"} if table == "warehouse" else set())
    world.sql(f"alter table elsewhere rename to {table}")
    assert set(world.snapshot(context)) == {"outbox", "orders", "warehouse"} - kept
    world.reconcile(context)
    world.validate(context)
    assert world.certify(context).state is WindowState.CERTIFIED


@pytest.mark.parametrize("step", ["open", "snapshot"])
def test_while_kafka_is_down_a_retry_may_help_and_the_next_try_goes_on(
    world: World, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.trade(orders(range(10)))
    good = connection_kafka(world.bootstrap)
    nobody = connection_kafka(f"127.0.0.1:{free_ports(1)[0]}")
    context = None if step == "open" else world.open()
    monkeypatch.setenv("AIRFLOW_CONN_LOG", nobody)
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 3.0)  # of this process; Spark's have all of theirs

    def walk() -> WindowContext:
        found = window_context(world.ask(request="one run").window if context is None else context.window)
        world.judge(found)
        return found

    with pytest.raises(TransientError, match="Kafka"):
        walk()

    opened = world.journal_sql("select count(*) from makewhole.window")[0][0]
    assert opened == (0 if context is None else 1)
    monkeypatch.setenv("AIRFLOW_CONN_LOG", good)
    whole = walk()
    world.validate(whole)
    assert whole.window.revision == 1
    assert world.certify(whole).state is WindowState.CERTIFIED
