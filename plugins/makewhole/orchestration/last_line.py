"""End the log of a failed task with the reason and the next step, where people look first, and leave it for the note of
the run."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowException

from makewhole.orchestration.task_ids import REASON_OF_FAILURE

logger = logging.getLogger(__name__)
_END_OF_GROUP = "::endgroup::"
"""Airflow opens a group around what callbacks log, and its page shows groups closed."""


def log_last_line(context: Mapping[str, Any]) -> None:
    """Write the last line of the reason why a task failed: a callback of Airflow's (`on_failure_callback`). Of an error
    that is not ours no text that may quote data is in it."""
    from makewhole.journal.step_failures import reason_of
    from makewhole.model.text import printable
    from makewhole.window.certifying.end_of_window import shortened

    error, ti = context.get("exception"), context["ti"]
    if not isinstance(error, BaseException):
        return
    reason = str(error) if isinstance(error, AirflowException) else reason_of(error)
    lines = reason.strip().splitlines() or [type(error).__name__]
    logger.info(_END_OF_GROUP)
    logger.error("%s failed: %s", ti.task_id, lines[-1])
    ti.xcom_push(key=REASON_OF_FAILURE, value=shortened(printable(f"{ti.task_id} failed: {lines[-1]}")))
