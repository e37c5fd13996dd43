"""Keep in the journal why a step of a window did not end well, so that every command can name the cause."""

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from makewhole.model.errors import MakewholeError, NotYetError, RequestRefusedError
from makewhole.orchestration.deployment.settings import export_settings
from makewhole.orchestration.task_ids import (
    OPEN_WINDOW,
    PLANT_FAULTS,
    REOPEN,
    RESTORE,
    UNDONE_WINDOW,
    is_our_dag,
    pipeline_of_dag,
)

if TYPE_CHECKING:
    from makewhole.journal.step_failures import StepPlace

logger = logging.getLogger(__name__)
RecordedStep = TypeVar("RecordedStep", bound=Callable[..., Any])


class UncertifiedError(AirflowFailException):
    """The task is red because the window is not certified: a result of the step, and no failure of it."""


_NO_FAILURE = (NotYetError, AirflowRescheduleException, AirflowSkipException)


def recorded(function: RecordedStep) -> RecordedStep:
    """Wrap a step of a window: when it breaks, the reason is kept in the journal until the step ends well."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        context = get_current_context()
        try:
            result = function(*args, **kwargs)
        except UncertifiedError:
            forget_failure(step_place(context, *args))
            raise
        except _NO_FAILURE:
            raise
        except (Exception, AirflowTaskTimeout) as error:
            is_request = isinstance(error, RequestRefusedError) and is_by_form(context["dag_run"])
            record_failure(replace(step_place(context, *args), is_request=is_request), error)
            raise
        forget_failure(step_place(context, *args))
        return result

    return run  # type: ignore[return-value]


def is_by_form(run: Any) -> bool:
    """Return whether a run is what a form asked for, and not one of the intervals of its DAG."""
    return run.run_type not in ("scheduled", "backfill") or run.data_interval_end is None


def step_place(context: Mapping[str, Any], pipeline: str | None = None) -> "StepPlace":
    """Return the step that a task does. Of the task that opens the window: without a window; `pipeline` is then the one
    that its DAG is for, None where the form names it. Those of an undo are steps of the window whose rows it puts
    back."""
    from makewhole.journal.step_failures import StepPlace

    ti = context["ti"]
    opened = None
    if ti.task_id in (RESTORE, REOPEN):
        opened = ti.xcom_pull(task_ids=RESTORE, key=UNDONE_WINDOW)
    elif ti.task_id != OPEN_WINDOW:
        opened = ti.xcom_pull(task_ids=OPEN_WINDOW)
    if isinstance(opened, dict):
        pipeline, window = opened["pipeline"], {"number": opened["window"], "revision": opened["revision"]}
    else:
        form = context["params"] if is_our_dag(ti.dag_id) else {}
        pipeline, window = pipeline or pipeline_of_dag(ti.dag_id) or form.get("pipeline"), {}
    return StepPlace(pipeline=str(pipeline), step=ti.task_id, dag=ti.dag_id, run=ti.run_id, **window)


def record_failure(place: "StepPlace", error: BaseException) -> None:
    """Write why a step broke; where the journal is away only the log has it. A later task of a run that opened no
    window broke for that: the reason is kept already."""
    from makewhole.journal import step_failures
    from makewhole.journal.database import connect

    if not place.number and place.step not in (OPEN_WINDOW, PLANT_FAULTS):
        return
    try:
        with connect() as journal:
            step_failures.put(journal, place, error)
    except MakewholeError as away:
        logger.warning("the reason is in this log alone: %s", away)


def end_tries(context: Mapping[str, Any]) -> None:
    """Write that the step of a failed task is not tried again: a callback of Airflow's (`on_failure_callback`),
    which comes after the last try. Whatever goes wrong in it is logged alone."""
    from makewhole.journal import step_failures
    from makewhole.journal.database import connect

    try:
        export_settings()
        place = step_place(context)
        with connect() as journal:
            step_failures.end_tries(journal, place)
    except Exception as away:  # of Airflow, a driver: none may change the end of a task
        logger.warning("that this task is not tried again is in this log alone: %s", away)


def forget_failure(place: "StepPlace") -> None:
    """Remove what an earlier try of a step left; where the journal is away it stays until the next step ends well."""
    from makewhole.journal import step_failures
    from makewhole.journal.database import connect

    try:
        with connect() as journal:
            step_failures.forget(journal, place)
    except MakewholeError as away:
        logger.warning("an older failure of this step stays listed: %s", away)


def step_reason(context: Mapping[str, Any]) -> str | None:
    """Return why the step of a task did not end well in this run, as the application of Spark has left it."""
    from makewhole.journal import step_failures
    from makewhole.journal.database import connect

    place = step_place(context)
    try:
        with connect() as journal:
            failure = step_failures.at(journal, place)
    except MakewholeError as away:
        logger.warning("the reason is in this log alone: %s", away)
        return None
    return None if failure is None or failure.run != place.run else failure.reason
