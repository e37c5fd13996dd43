"""End the log of a failed task with the reason and the next step, where people look first."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowException

logger = logging.getLogger(__name__)


def log_last_line(context: Mapping[str, Any]) -> None:
    """Write the last line of the reason why a task failed: a callback of Airflow's (`on_failure_callback`). Of an error
    that is not ours no text that may quote data is in it."""
    from makewhole.journal.step_failures import reason_of

    error = context.get("exception")
    if not isinstance(error, BaseException):
        return
    reason = str(error) if isinstance(error, AirflowException) else reason_of(error)
    lines = reason.strip().splitlines() or [type(error).__name__]
    logger.error("%s failed: %s", context["ti"].task_id, lines[-1])
