"""Read at Airflow why a task failed: what its log ends with, where the journal does not have it."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from makewhole.cli.airflow_api import AirflowApi, AirflowRefusedError
from makewhole.orchestration.task_ids import REASON_OF_FAILURE


@dataclass(frozen=True, kw_only=True)
class FailedTask:
    """The last line of its log, and whether it is not tried again although it might have been."""

    reason: str
    is_permanent: bool


def failed_task(api: AirflowApi, dag: str, run_id: str, task: str) -> FailedTask | None:
    """Return why a task failed; None: it has left no reason, or this user may not see it."""
    path = f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}"
    try:
        left = api.get(path)
        reason = str(api.get(f"{path}/xcomEntries/{REASON_OF_FAILURE}")["value"]).removeprefix(f"{task} failed: ")
    except AirflowRefusedError as error:
        if error.status not in (httpx.codes.NOT_FOUND, httpx.codes.FORBIDDEN):
            raise
        return None
    return FailedTask(reason=reason, is_permanent=left["try_number"] <= left["max_tries"])


def first_failed_task(api: AirflowApi, dag: str, run_id: str, tasks: Sequence[str]) -> FailedTask | None:
    """Return why the first of these tasks that has left a reason failed."""
    return next((failure for task in tasks if (failure := failed_task(api, dag, run_id, task)) is not None), None)
