"""Finish older windows before a run opens its own: start the run that goes on with one, and wait for its end."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.reschedule import rescheduled
from makewhole.orchestration.task_ids import (
    ONCALL_DAG,
    continue_dag_id,
    dag_and_run,
    own_oncall_dag_id,
    reconcile_dag_id,
)

if TYPE_CHECKING:
    from makewhole.window.opening.interval import Request
    from makewhole.window.opening.unfinished import OlderWindow

logger = logging.getLogger(__name__)
_ACTIVE = ["queued", "running"]


def finish_older_windows(context: Mapping[str, Any], pipeline: Pipeline, request: "Request") -> None:
    """Return when no older window has to be finished first.

    Raises:
        AirflowRescheduleException: one has to. A run is at it; the task gives its worker back and looks again.
        RefusedError: one was gone on with in vain.
    """
    from makewhole.journal import continuations, windows
    from makewhole.journal.database import connect
    from makewhole.window.opening.unfinished import find_older

    ti = context["ti"]
    # A task that is cleared asks once more; one that is rescheduled does not.
    asked_by = f"{request.id} try {ti.try_number}"
    name = pipeline.name
    # Of both forms: that a file has `access` may be new.
    dags = (continue_dag_id(name), reconcile_dag_id(name), ONCALL_DAG, own_oncall_dag_id(name))

    def is_active(asked: str) -> bool:
        own_dag, run = dag_and_run(asked)
        named = dags if own_dag is None else (own_dag,)
        return any(ti.get_dr_count(dag_id=dag, run_ids=[run], states=_ACTIVE) for dag in named)

    with connect() as journal:
        windows.lock_pipeline(journal, pipeline.name)
        older = find_older(journal, pipeline, request, asked_by, is_active)
        if older is None:
            return
        if not older.is_worked_on:
            _start(older)
            continuations.put(journal, older.window, older.run, asked_by)
    logger.warning("%s", older)
    raise rescheduled()


def _start(older: "OlderWindow") -> None:
    """Start the run that goes on with a window; harmless when it is started already."""
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS  # there once a task runs

    bounds = older.window.bounds
    form = {"window": bounds.number, "revision": bounds.revision}
    dag = continue_dag_id(older.window.pipeline)
    answer = SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag, run_id=older.run, conf=form))
    if isinstance(answer, ErrorResponse) and answer.error is not ErrorType.DAGRUN_ALREADY_EXISTS:
        raise AirflowException(f"run {older.run} of {dag} could not be started: {answer.error}")
