"""Test that a window can be a group of tasks in a DAG of one's own."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, task
from airflow.serialization.serialized_objects import DagSerialization

from makewhole.model.errors import ConfigurationError, RefusedError
from makewhole.orchestration import window_group
from makewhole.orchestration.dags import reconcile_dag
from makewhole.orchestration.steps import opening
from makewhole.orchestration.task_ids import dag_and_run, request_id
from makewhole.orchestration.window_group import MakewholeWindow
from makewhole.window.context import find_pipeline

pytestmark = pytest.mark.unit

FILE = """\
version: 2
pipeline: orders
retry_for: 0s
points:
  outbox: {kind: ledger, connection: db, table: outbox, key: id, time: at}
  orders: {kind: topic, connection: log, topic: orders, key: "$.id"}
hops:
  - {from: outbox, to: orders}
"""


@pytest.fixture(autouse=True)
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "orders.yaml").write_text(FILE)
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path))


def nightly(dag_id: str = "nightly", add: Callable[[], Any] = lambda: None, **group: Any) -> DAG:
    """Return a DAG of one's own: a task, the window, and a task behind it."""
    with DAG(dag_id, schedule="@daily", start_date=datetime(2026, 1, 1), max_active_runs=1) as dag:
        before, after = (task(task_id=name)(lambda: None)() for name in ("load", "report"))
        before >> MakewholeWindow(pipeline="orders", **group) >> after
        add()
    return dag


def edges(dag: DAG) -> set[tuple[str, str]]:
    return {(task_id, other) for task_id in dag.task_ids for other in dag.get_task(task_id).downstream_task_ids}


def test_a_group_has_the_tasks_of_the_pipelines_own_dag_between_those_around_it() -> None:
    own, dag = reconcile_dag(find_pipeline("orders")), nightly()

    assert edges(dag) - edges(own) == {("load", "open_window"), ("certify", "report")}
    assert edges(own) <= edges(dag)
    for name in own.task_ids:
        ours, theirs = own.get_task(name), dag.get_task(name)
        assert (theirs.execution_timeout, theirs.trigger_rule, theirs.retries) == (
            ours.execution_timeout,
            ours.trigger_rule,
            ours.retries,
        )
        assert type(theirs.retry_policy) is type(ours.retry_policy)
    assert dag.get_task("load").retry_policy is None


def test_behind_a_window_that_is_published_comes_the_next_task_though_nothing_was_revoked(tmp_path: Path) -> None:
    """The task that reports revocations is skipped where there are none, which would skip whatever waits for it."""
    published = FILE.replace('key: "$.id"}', 'key: "$.id", publish: {}}')
    (tmp_path / "orders.yaml").write_text(published.replace("points:", "compare: {amount: string}\npoints:"))

    dag = nightly()

    assert {task_id for task_id, other in edges(dag) if other == "report"} == {"publish"}
    reported = dag.get_task("report_revoked")
    assert (reported.is_teardown, reported.on_failure_fail_dagrun) == (True, True)
    assert edges(dag) >= {("certify", "publish"), ("certify", "report_revoked")}


@pytest.mark.parametrize("run_type", ["scheduled", "backfill"])
def test_a_run_of_a_moment_covers_what_came_since_the_last_window(run_type: str) -> None:
    """Airflow gives the runs of a cron string an interval without length."""
    moment, before = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    assert (requested(run_type, moment, moment).start, requested(run_type, moment, moment).end) == (None, moment)
    assert (requested(run_type, before, moment).start, requested(run_type, before, moment).end) == (before, moment)


def requested(run_type: str, start: datetime | None, end: datetime | None, **params: Any) -> Any:
    """Return what is asked for by a run of a DAG of one's own, which has no form."""
    run = SimpleNamespace(
        dag_id="nightly",
        run_id="r",
        run_type=run_type,
        data_interval_start=start,
        data_interval_end=end,
        triggering_user_name=None,
    )
    return opening._window_request({"dag_run": run, "params": params})


def test_params_of_ones_own_are_no_form_of_a_window() -> None:
    theirs = {"from": "2026-01-01", "to": "ops@example.org", "plan_only": "no", "reason": "theirs", "read_again": True}
    request = requested("manual", None, None, **theirs)
    assert (request.start, request.plan_only, request.reason, request.read_again) == (None, False, None, False)


@pytest.mark.parametrize("run_type", ["manual", "asset_triggered", "scheduled"])
def test_a_run_without_an_interval_reaches_to_now(run_type: str) -> None:
    before = datetime.now(UTC)
    request = requested(run_type, None, None)
    assert request.start is None
    assert before <= request.end <= datetime.now(UTC)


def test_airflow_keeps_such_a_dag_as_it_keeps_others() -> None:
    document = DagSerialization.to_dict(nightly(group_id="proof", tooltip="What was loaded is there"))

    groups = document["dag"]["task_group"]["children"]
    assert groups["proof"][0] == "taskgroup"
    assert "open_window" in groups["proof"][1]["children"]
    kept: Any = DagSerialization.from_dict(document).task_group.children["proof"]
    assert kept.tooltip == "What was loaded is there"


def test_arguments_of_ones_own_go_before_those_of_the_file() -> None:
    dag = nightly(default_args={"owner": "shop"})

    assert (dag.get_task("open_window").owner, dag.get_task("open_window").retries) == ("shop", 0)


def test_a_dag_holds_one_window() -> None:
    with pytest.raises(RefusedError, match="nightly has tasks called approve, certify, compensate, open_window, "):
        nightly(add=lambda: MakewholeWindow(pipeline="orders", group_id="another"))


@pytest.mark.parametrize("name", ["open_window", "publish", "report_watermark"])
def test_a_task_of_ones_own_with_the_name_of_a_step_is_refused(name: str) -> None:
    """Airflow would give the second one another name, which no step knows."""
    with pytest.raises(RefusedError, match=f"d has tasks called {name}: "), DAG("d", start_date=datetime(2026, 1, 1)):
        task(task_id=name)(lambda: None)()
        MakewholeWindow(pipeline="orders")


def test_what_cannot_be_a_window_is_refused_where_the_dag_is_read() -> None:
    with pytest.raises(RefusedError, match="cannot be called makewhole_mine"):
        nightly("makewhole_mine")
    with pytest.raises(ConfigurationError, match="nothing"), DAG("d", start_date=datetime(2026, 1, 1)):
        MakewholeWindow(pipeline="nothing")


def test_a_run_of_a_dag_of_ones_own_is_known_with_its_dag() -> None:
    """Runs of two DAGs of one schedule have the same id."""
    assert request_id("makewhole_reconcile_orders", "scheduled__2026") == "scheduled__2026"
    assert request_id("nightly", "scheduled__2026") == "nightly/scheduled__2026"
    assert dag_and_run("nightly/scheduled__2026") == ("nightly", "scheduled__2026")
    assert dag_and_run("scheduled__2026") == (None, "scheduled__2026")


def test_what_people_have_before_each_task_runs_behind_what_ours_need(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(window_group, "export_settings", lambda _: ran.append("ours"))

    dag = nightly(default_args={"pre_execute": lambda _: ran.append("theirs")})

    snapshot = dag.get_task("snapshot")
    assert isinstance(snapshot, BaseOperator)
    before = snapshot._pre_execute_hook
    assert before is not None
    before({})
    assert ran == ["ours", "theirs"]
    assert DagSerialization.to_dict(dag)
