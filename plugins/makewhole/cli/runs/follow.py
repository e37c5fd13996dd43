"""Follow a run of Airflow to its end and print each change of a task's state."""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import Access, AirflowApi
from makewhole.cli.plan.open_questions import acceptance_of_run, plan_of_run

_ENDED = ("success", "failed")
_POLL_SECONDS = 1.0


def follow(api: AirflowApi, dag: str, run_id: str, out: Console, where: Access) -> None:
    """Poll until the run has ended."""
    seen: dict[str, str] = {}
    asked_tries: set[int] = set()
    with out.status("starting") as status:
        while True:
            tasks = api.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances", limit=100)["task_instances"]
            for task in sorted(tasks, key=lambda task: task["start_date"] or "9999"):
                _print_change(task, seen, out, status.update)
                if task["state"] == "awaiting_input" and task["try_number"] not in asked_tries:
                    asked_tries.add(task["try_number"])
                    out.print(f"waits for a person: {where.run_url(dag, run_id)}/required_actions")
                    plan, acceptance = plan_of_run(api, dag, run_id), acceptance_of_run(api, dag, run_id)
                    if plan:
                        out.print(
                            f"look: makewhole plan dry-run {plan}; answer: makewhole plan approve {plan}, or reject"
                        )
                    if acceptance:
                        out.print(f"another person answers: makewhole accept --approve {acceptance}, or --reject")
            if api.get(f"/dags/{dag}/dagRuns/{run_id}")["state"] in _ENDED:
                return
            time.sleep(_POLL_SECONDS)


def _print_change(task: dict[str, Any], seen: dict[str, str], out: Console, update: Callable[[str], None]) -> None:
    name, state = task["task_id"], task["state"]
    if state is None or seen.get(name) == state:
        return
    seen[name] = state
    update(f"{name}: {state}")
    if state in ("success", "failed", "awaiting_input", "up_for_retry"):
        took = f" {task['duration']:.1f} s" if task["duration"] else ""
        colour = {"success": "green", "failed": "red"}.get(state, "yellow")
        out.print(Text.assemble(f"  {name}: ", (state, colour), took))
