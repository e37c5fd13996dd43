"""Test how long the tasks of the DAGs are tried again, and how long one try may run."""

from datetime import timedelta
from typing import Any

import psycopg2
import psycopg2.errors
import pytest
from airflow.sdk import DAG
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException, AirflowTaskTimeout

from makewhole.model.errors import LeaseLostError, RefusedError, TransientError
from makewhole.model.pipeline import Pipeline
from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration.accept_dag import accept_dag
from makewhole.orchestration.dags import oncall_dag, reconcile_dag
from makewhole.orchestration.last_line import log_last_line
from makewhole.orchestration.persistence import retries_for
from makewhole.orchestration.steps.recorded_failure import end_tries
from makewhole.orchestration.undo_dag import undo_dag

pytestmark = pytest.mark.unit

HOUR = timedelta(hours=1)
PATIENT = Pipeline(
    name="patient",
    points={},
    hops=(),
    settle=timedelta(days=3),
    retry_for=24 * HOUR,
    time_limits=TimeLimits(snapshot=20 * HOUR, verify=2 * HOUR),
)
HASTY = Pipeline(name="hasty", points={}, hops=(), retry_for=timedelta(0), time_limits=TimeLimits(validate=9 * HOUR))


def least_waits(dag: DAG, task_id: str) -> timedelta:
    """Add up the shortest delays before each retry, as Airflow computes them."""
    task = dag.get_task(task_id)
    longest, delay = task.max_retry_delay, task.retry_delay
    assert isinstance(longest, timedelta)
    assert isinstance(delay, timedelta)
    waited = timedelta()
    for _ in range(task.retries or 0):
        waited, delay = waited + min(longest, delay), min(longest, delay * task.retry_exponential_backoff)
    return waited


@pytest.mark.parametrize("task_id", ["open_window", "snapshot", "reconcile", "validate", "plan", "compensate"])
def test_a_transient_error_is_tried_again_for_as_long_as_the_file_says(task_id: str) -> None:
    waited = least_waits(reconcile_dag(PATIENT), task_id)
    assert 24 * HOUR <= waited < 25 * HOUR
    assert least_waits(reconcile_dag(HASTY), task_id) == timedelta(0)


def test_the_first_retry_comes_within_half_a_minute_and_the_last_ones_within_minutes() -> None:
    task = reconcile_dag(PATIENT).get_task("snapshot")
    assert (task.retry_delay, task.max_retry_delay) == (timedelta(seconds=15), timedelta(minutes=10))
    assert retries_for(6 * HOUR) == 41


def test_a_dag_for_several_pipelines_is_as_patient_as_the_most_patient_one() -> None:
    for dag in (oncall_dag([HASTY, PATIENT]), accept_dag([HASTY, PATIENT])):
        assert least_waits(dag, "plan") >= 24 * HOUR
    assert least_waits(undo_dag(HASTY), "plan") == timedelta(0)
    limits = {task.task_id: task.execution_timeout for task in oncall_dag([HASTY, PATIENT]).tasks}
    assert (limits["snapshot"], limits["reconcile"], limits["validate"]) == (41 * HOUR, 21 * HOUR, 9 * HOUR)


def test_every_step_has_a_time_limit_and_the_wait_for_a_person_has_none() -> None:
    limits = {task.task_id: task.execution_timeout for task in reconcile_dag(PATIENT).tasks}
    assert limits.pop("approve") is None
    assert limits.pop("settle") == timedelta(minutes=10)
    assert limits.pop("report_watermark") == PATIENT.time_limits.certify
    expected = vars(PATIENT.time_limits)
    assert limits == {name: expected[name] for name in limits} | {
        "snapshot": (20 + 12 + 4) * HOUR,
        "reconcile": (12 + 4) * HOUR,
    }
    assert len(limits) == 8


def test_a_settle_time_above_a_day_is_waited_for() -> None:
    settle: Any = reconcile_dag(PATIENT).get_task("settle")
    assert settle.timeout > timedelta(days=3).total_seconds()


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (TransientError("away"), RetryAction.DEFAULT),
        (LeaseLostError("taken"), RetryAction.DEFAULT),
        (psycopg2.OperationalError("away"), RetryAction.DEFAULT),
        (ConnectionResetError("reset"), RetryAction.DEFAULT),
        (AirflowException("the job ended with exit code 1"), RetryAction.DEFAULT),
        (RefusedError("no"), RetryAction.FAIL),
        (AirflowNotFoundException("no connection"), RetryAction.FAIL),
        (psycopg2.errors.UndefinedTable("no table"), RetryAction.FAIL),
        (KeyError("x"), RetryAction.FAIL),
        (TypeError("x"), RetryAction.FAIL),
        (AirflowTaskTimeout("12 h"), RetryAction.FAIL),
    ],
)
def test_only_what_may_mend_itself_is_tried_again(error: BaseException, action: RetryAction) -> None:
    for dag in (reconcile_dag(PATIENT), oncall_dag([PATIENT]), undo_dag(PATIENT)):
        for task in dag.tasks:
            assert task.retry_policy is not None
            assert task.on_failure_callback == [end_tries, log_last_line]
            assert task.retry_policy.evaluate(error, 1, 41).action is action, task.task_id
