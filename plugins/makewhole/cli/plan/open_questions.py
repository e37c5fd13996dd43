"""Find the questions that wait in Airflow for a person, and the plans that they are about."""

from collections.abc import Iterator
from typing import Any

from makewhole.cli.airflow_api import AirflowApi, AirflowRefusedError
from makewhole.orchestration.task_ids import APPROVE, PLAN, is_our_dag

_XCOM = f"taskInstances/{PLAN}/xcomEntries/approval"
_NOT_FOUND = 404


def open_questions(api: AirflowApi) -> Iterator[dict[str, Any]]:
    """Yield Airflow's own description of each of ours: `task_instance`, `subject`, `body`, `assigned_users`. Those of
    makewhole's DAGs come first, then those of windows in DAGs of people's own. Questions of tasks that wait no more,
    having been marked or cleared, are there without an answer for ever, and an answer to them is taken and lost."""
    asked = api.get_all(
        "/dags/~/dagRuns/~/hitlDetails", "hitl_details", response_received="false", state="awaiting_input"
    )
    yield from (question for question in asked if is_our_dag(question["task_instance"]["dag_id"]))
    for question in asked:
        task = question["task_instance"]
        is_elsewhere = task["task_id"] == APPROVE and not is_our_dag(task["dag_id"])
        if is_elsewhere and _shown_by(api, task["dag_id"], task["dag_run_id"]):
            yield question


def question_about(api: AirflowApi, subject: str) -> dict[str, Any] | None:
    """Return the question that asks about a plan or an acceptance, None when none does."""
    for question in open_questions(api):
        task = question["task_instance"]
        if subject in _shown_by(api, task["dag_id"], task["dag_run_id"]).values():
            return question
    return None


def plan_of_run(api: AirflowApi, dag: str, run_id: str) -> str | None:
    """Return the id of the plan that a run shows for approval, None when it froze none."""
    return _shown_by(api, dag, run_id).get("plan")


def acceptance_of_run(api: AirflowApi, dag: str, run_id: str) -> str | None:
    """Return the id of the acceptance that a run shows for approval, None when it asks for none."""
    return _shown_by(api, dag, run_id).get("acceptance")


def _shown_by(api: AirflowApi, dag: str, run_id: str) -> dict[str, str]:
    """Return the ids of what a run shows for approval: of its plan or of its acceptance."""
    try:
        entry = api.get(f"/dags/{dag}/dagRuns/{run_id}/{_XCOM}", deserialize="true")
    except AirflowRefusedError as error:
        if error.status != _NOT_FOUND:
            raise
        return {}
    shown = entry["value"]
    return {name: shown[name] for name in ("plan", "acceptance") if name in shown} if isinstance(shown, dict) else {}
