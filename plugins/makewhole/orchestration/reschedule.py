"""Give the worker of a task back while there is nothing to do but to wait."""

from datetime import UTC, datetime, timedelta

from airflow.sdk.exceptions import AirflowRescheduleException

from makewhole.orchestration.task_ids import POLL_SECONDS


def rescheduled() -> AirflowRescheduleException:
    """Return what a task raises to give its worker back, and to be started again after the poll interval.

    That is no failure and no retry. The interval is long: a task that is rescheduled within seconds can be taken for
    failed by Airflow.
    """
    later = datetime.now(UTC) + timedelta(seconds=POLL_SECONDS)
    return AirflowRescheduleException(later)  # type: ignore[no-untyped-call]
