"""The questions that wait in Airflow for a person, and the plans that they are about."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from makewhole.cli.airflow_api import AirflowApi

_NAMED = re.compile(r"Plan `([^`]+)`, SHA-256 `")


def waiting(api: AirflowApi) -> Iterator[dict[str, Any]]:
    """Airflow's own description of each: `task_instance`, `subject`, `body`, `assigned_users`."""
    yield from api.get("/dags/~/dagRuns/~/hitlDetails", response_received="false", limit=100)["hitl_details"]


def plan_asked_about(question: Mapping[str, Any]) -> str | None:
    """The id of the plan, as the page names it; None for a question of somebody else's."""
    named = _NAMED.search(question["body"] or "")
    return named[1] if named else None


def plan_of_run(api: AirflowApi, dag: str, run_id: str) -> str | None:
    """The plan about which a run asks now."""
    for question in waiting(api):
        task = question["task_instance"]
        if (task["dag_id"], task["dag_run_id"]) == (dag, run_id):
            return plan_asked_about(question)
    return None
