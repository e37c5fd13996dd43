"""`makewhole run`: one window of a pipeline, now, through Airflow."""

import json as json_format
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import Access, AirflowApi, access, airflow
from makewhole.cli.documents import window_document
from makewhole.cli.report import PipelineName, windows_table
from makewhole.cli.surroundings import exit_of, printable, service
from makewhole.config.context import find_pipeline
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.errors import TransientError
from makewhole.model.window import WindowState

_DAG = "makewhole_oncall"
_ENDED = ("success", "failed")
_WAIT_FOR_DAG_SECONDS = 120.0
_POLL_SECONDS = 1.0
_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S"]


def run(
    pipeline: PipelineName,
    start: Annotated[
        datetime | None,
        typer.Option("--from", formats=_TIMES, help="Start, UTC unless it says otherwise.", show_default=False),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option("--to", formats=_TIMES, help="End; now when not given.", show_default=False),
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Compare and plan, and change nothing.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why, for the journal.", show_default=False)] = None,
    follow: Annotated[bool, typer.Option(help="Wait for the end, and show each step.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object; progress goes to stderr.")] = False,
) -> None:
    """Check one window of a pipeline and repair it. Exit code 0 certified, 1 gaps remain, 3 not known, 4 error."""
    console = Console(stderr=json, highlight=False, soft_wrap=True, markup=False)
    with service():
        find_pipeline(pipeline)
        form = {
            "pipeline": pipeline,
            "from": _text(start),
            "to": _text(end or datetime.now(UTC)),
            "plan_only": plan_only,
            "reason": reason,
        }
        where = access()
        with airflow(where) as api:
            run_id = _trigger(api, form)
            console.print(f"run {run_id}: {where.url}/dags/{_DAG}/runs/{run_id}")
            if not follow:
                typer.echo(json_format.dumps({"pipeline": pipeline, "run": run_id})) if json else None
                return
            _follow(api, where, run_id, console)
        document = _document(pipeline, run_id)
    if json:
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    else:
        _show(console, document)
    raise typer.Exit(exit_of(WindowState(document["state"])))


def _text(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _trigger(api: AirflowApi, form: dict[str, Any]) -> str:
    """Start the run; a pipeline file that is new takes Airflow some seconds to see."""
    api.wait_for_dag(_DAG, _WAIT_FOR_DAG_SECONDS)
    api.wait_for_dag(f"makewhole_reconcile_{form['pipeline']}", _WAIT_FOR_DAG_SECONDS)
    deadline = time.monotonic() + _WAIT_FOR_DAG_SECONDS
    while True:
        known = api.get(f"/dags/{_DAG}/details")["params"]["pipeline"]["schema"]["enum"]
        if form["pipeline"] in known:
            break
        if time.monotonic() > deadline:
            raise TransientError(f"Airflow does not know {form['pipeline']} yet (it knows {known}); try again")
        time.sleep(_POLL_SECONDS)
    run = api.send("POST", f"/dags/{_DAG}/dagRuns", {"logical_date": None, "conf": form})
    return str(run["dag_run_id"])


def _follow(api: AirflowApi, where: Access, run_id: str, console: Console) -> None:
    """Until the run has ended, each task's state as it changes."""
    seen: dict[str, str] = {}
    with console.status("starting") as status:
        while True:
            tasks = api.get(f"/dags/{_DAG}/dagRuns/{run_id}/taskInstances", limit=100)["task_instances"]
            for task in sorted(tasks, key=lambda task: task["start_date"] or "9999"):
                _tell(task, seen, console, status.update)
                if task["state"] == "awaiting_input" and seen.get("told") != run_id:
                    seen["told"] = run_id
                    console.print(f"waits for a person: {where.url}/dags/{_DAG}/runs/{run_id}/required_actions")
            if api.get(f"/dags/{_DAG}/dagRuns/{run_id}")["state"] in _ENDED:
                return
            time.sleep(_POLL_SECONDS)


def _tell(task: dict[str, Any], seen: dict[str, str], console: Console, update: Callable[[str], None]) -> None:
    name, state = task["task_id"], task["state"]
    if state is None or seen.get(name) == state:
        return
    seen[name] = state
    update(f"{name}: {state}")
    if state in ("success", "failed", "awaiting_input", "up_for_retry"):
        took = f" {task['duration']:.1f} s" if task["duration"] else ""
        colour = {"success": "green", "failed": "red"}.get(state, "yellow")
        console.print(Text.assemble(f"  {name}: ", (state, colour), took))


def _document(pipeline: str, run_id: str) -> dict[str, Any]:
    with connect() as journal:
        place = windows.by_request(journal, pipeline, run_id)
        if place is None:
            raise TransientError(
                f"run {run_id} opened no window; the log of its task open_window says why: "
                f"{access().url}/dags/{_DAG}/runs/{run_id}"
            )
        return window_document(journal, windows.load(journal, pipeline, *place))


def _show(console: Console, document: dict[str, Any]) -> None:
    console.print(windows_table([document]))
    plan = document["plan"]
    if plan:
        actions = ", ".join(f"{count} {remedy}" for remedy, count in plan["actions"].items())
        console.print(f"plan {plan['id']}: {actions}; {plan['state']}")
    for failure in document["failures"]:
        console.print(f"gate: {printable(failure)}")
    if document["certificate"]:
        console.print(f"certificate: {document['certificate']['uri']}")
    elif WindowState(document["state"]) is WindowState.GAPS:
        console.print(f"see them: makewhole findings {document['pipeline']} --window {document['window']}")
