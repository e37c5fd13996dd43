"""Follow a run of Airflow to its end, print each change of a task's state, and note the result on the run."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import Access, AirflowApi, AirflowRefusedError
from makewhole.cli.environment import printable
from makewhole.cli.plan.open_questions import acceptance_of_run, plan_of_run

logger = logging.getLogger(__name__)
_NOTE_LENGTH = 500
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


def result_line(document: Mapping[str, Any]) -> str:
    """Return how a window ended in one line, without keys or values."""
    label = f"window {document['window']} (revision {document['revision']})"
    accepted, handed_over = document["accepted"]["findings"], document["handed_over"]["keys"]
    plan = document["plan"]
    parts = [
        f"{label} of {document['pipeline']}: {document['state']}",
        *([document["reason"]] if document["reason"] else []),
        *([f"plan {plan['id']} {plan['state']}"] if plan else []),
        *([f"{accepted:,} accepted"] if accepted else []),
        *([f"{handed_over:,} handed over"] if handed_over else []),
        *([f"certificate {document['certificate']['ordinal']}"] if document["certificate"] else []),
    ]
    line = "; ".join(printable(part) for part in parts)
    return line if len(line) <= _NOTE_LENGTH else f"{line[: _NOTE_LENGTH - 1]}…"


def note_result(api: AirflowApi, dag: str, run_id: str, document: Mapping[str, Any]) -> None:
    """Write the result as the note of a run, which Airflow's list of runs shows; who may not leaves it without one."""
    try:
        api.send("PATCH", f"/dags/{dag}/dagRuns/{run_id}", {"note": result_line(document)})
    except AirflowRefusedError as error:
        logger.info("the run has no note: %s", error)


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
