"""Set how long a task is tried again, and for how long one try may run: from the pipeline files."""

from collections.abc import Iterable
from dataclasses import fields
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowTaskTimeout

from makewhole.model.errors import DEFECTS, PermanentError
from makewhole.model.pipeline import Pipeline
from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration.deployment.settings import export_settings
from makewhole.orchestration.last_line import log_last_line
from makewhole.orchestration.notices.tasks import notify_of_run
from makewhole.orchestration.steps.recorded_failure import end_tries

_FIRST_DELAY = timedelta(seconds=15)
_LONGEST_DELAY = timedelta(minutes=10)
_GROWTH = 2.0
_NO_RETRY = [
    RetryRule(exception=PermanentError, action=RetryAction.FAIL, reason="it cannot succeed by trying again"),
    RetryRule(
        exception=[AirflowNotFoundException, "psycopg2.ProgrammingError"],
        action=RetryAction.FAIL,
        reason="a connection, table or right is missing, which a person has to add",
    ),
    RetryRule(exception=list(DEFECTS), action=RetryAction.FAIL, reason="a defect, which trying again does not mend"),
    RetryRule(
        exception=AirflowTaskTimeout,
        action=RetryAction.FAIL,
        reason="it took longer than its time limit in the pipeline file (`time_limits`)",
    ),
]


def retries_for(total: timedelta) -> int:
    """Return how many retries it takes to go on trying for at least `total`.

    Airflow waits between one and two times the delay, so this counts the shortest waits.
    """
    count, waited, delay = 0, timedelta(), _FIRST_DELAY
    while waited < total:
        count, waited, delay = count + 1, waited + delay, min(_LONGEST_DELAY, delay * _GROWTH)
    return count


def task_defaults(pipelines: Iterable[Pipeline]) -> dict[str, Any]:
    """Return the default arguments of the tasks of a DAG: transient errors are tried again, with growing delays.

    A DAG for several pipelines has the longest of their times.
    """
    pipelines = list(pipelines)
    retry_for = max((pipeline.retry_for for pipeline in pipelines), default=Pipeline.retry_for)
    sends = [notify_of_run] if any(pipeline.notify for pipeline in pipelines) else []
    return {
        "owner": "makewhole",
        "pre_execute": export_settings,
        "retries": retries_for(retry_for),
        "retry_delay": _FIRST_DELAY,
        "retry_exponential_backoff": _GROWTH,
        "max_retry_delay": _LONGEST_DELAY,
        "retry_policy": ExceptionRetryPolicy(_NO_RETRY),
        "on_failure_callback": [end_tries, *sends, log_last_line],
    }


def longest_limits(pipelines: Iterable[Pipeline]) -> TimeLimits:
    """Return, for each step, the longest of the pipelines' limits."""
    known = [pipeline.time_limits for pipeline in pipelines] or [Pipeline(name="", points={}, hops=()).time_limits]
    return TimeLimits(**{item.name: max(getattr(limits, item.name) for limits in known) for item in fields(TimeLimits)})
