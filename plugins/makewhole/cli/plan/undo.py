"""Run `makewhole plan undo`: take back what a plan wrote, through Airflow."""

import json as json_format
from collections import Counter
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import access, airflow
from makewhole.cli.environment import AsJson, Exit, console, printable, service_environment
from makewhole.cli.plan.control import PlanId
from makewhole.cli.runs.failed_task import first_failed_task
from makewhole.cli.runs.follow import follow
from makewhole.cli.runs.paused import require_released
from makewhole.compensation.undo.plan_undo import (
    UndoRequest,
    describe_remaining_records,
    require_same_kind,
    require_undoable,
)
from makewhole.journal import plan_progress, plans, windows
from makewhole.journal.database import connect
from makewhole.journal.retention import removals
from makewhole.model.errors import RefusedError
from makewhole.model.plan import PlanState
from makewhole.orchestration.task_ids import UNDO_STEPS, undo_dag_id
from makewhole.window.context import find_pipeline


def undo(
    plan: PlanId,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="Send an event for each record that takes its effect back.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why, for those who are asked.", show_default=False)] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Unpause the DAG of the pipeline's undos first: it begins paused.")
    ] = False,
    is_followed: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for the end.")] = True,
    json: AsJson = False,
) -> None:
    """Take a plan back: its rows as they were before it. A person is asked first; records in topics stay.

    Exit code 0: every row is back. 1: some were left as they are, or a person said no.
    """
    out = console(stderr=json)
    with service_environment():
        pipeline, stays = _check_undoable(plan, reverses=reverse)
        for sentence in stays:
            out.print(Text(printable(sentence), style="yellow"))
        where = access()
        with airflow(where) as api:
            dag = undo_dag_id(pipeline)
            api.wait_for_dag(dag)
            require_released(api, where, dag, release=release)
            run_id = api.trigger(dag, {"plan": plan, "reverse": reverse, "reason": reason})
            out.print(f"run {run_id}: {where.run_url(dag, run_id)}")
            is_green = not is_followed or follow(api, dag, run_id, out, where) == "success"
            failed = None if is_green else first_failed_task(api, dag, run_id, UNDO_STEPS)
        document = _document(plan, run_id, stays) | {"failed": None if failed is None else failed.reason}
    if json:
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    elif is_followed:
        _show(out, document, where.run_url(dag, run_id))
    if is_followed:
        is_whole = is_green and document["state"] == PlanState.DONE and not document["left"]
        raise typer.Exit(Exit.CERTIFIED if is_whole else Exit.GAPS_REMAIN)


def _check_undoable(plan: str, *, reverses: bool) -> tuple[str, tuple[str, ...]]:
    """Return the pipeline of a plan, and what will stay; refuse a plan that cannot be undone here, before Airflow is
    asked."""
    with connect() as journal:
        stored = plans.get_plan(journal, plan)
        request = UndoRequest(plan=plan, pipeline=find_pipeline(stored.plan.pipeline), reverses=reverses)
        require_undoable(stored, request.pipeline)
        removals.require_undoable(journal, plan)
        known = plans.undo_of(journal, plan)
        written = plan_progress.actions_by_target(journal, plan)
    if known is not None and not reverses:  # whether there is more to reverse is seen when the undo is planned
        require_same_kind(known.plan, request)
    stays = describe_remaining_records(request, written)
    if len(stays) == len(written) and not reverses:
        raise RefusedError(f"plan {plan} wrote no rows. {'. '.join(stays)}")
    return stored.plan.pipeline, stays


def _document(plan: str, run_id: str, stays: tuple[str, ...]) -> dict[str, Any]:
    with connect() as journal:
        undone = plans.get_plan(journal, plan).plan
        stored = plans.newest_undo_of(journal, plan)
        undo = None if stored is None else stored.plan
        done = 0 if undo is None else plan_progress.actions_done(journal, undo.id)
        refused = Counter(
            () if undo is None else (str(refusal) for *_, refusal in plan_progress.refused_keys(journal, undo.id))
        )
        window = windows.load(journal, undone.pipeline, undone.window, undone.revision)
    return {
        "plan": plan,
        "undo": None if undo is None else undo.id,
        "run": run_id,
        "state": None if undo is None else undo.state.value,
        "reason": None if undo is None else undo.reason,
        "actions": 0 if undo is None else undo.actions,
        "done": done,
        "left": dict(sorted(refused.items())),
        "stays": list(stays),
        "window": {
            "pipeline": window.pipeline,
            "window": window.number,
            "revision": window.revision,
            "state": window.state.value,
            "reason": window.reason,
        },
    }


def _show(out: Console, document: dict[str, Any], url: str) -> None:
    if document["undo"] is None:
        why = f": {document['failed']}" if document["failed"] else f"; the log of the task `plan` says why: {url}"
        out.print(Text(printable(f"nothing was undone{why}")))
        return
    if document["failed"]:
        out.print(Text(printable(f"this run did not end well: {document['failed']}"), style="red"))
    reason = f": {printable(document['reason'])}" if document["reason"] else ""
    out.print(f"plan {document['undo']}: {document['state']}{reason}; {document['done']} of {document['actions']} done")
    for reason, count in document["left"].items():
        out.print(f"left as they are: {count} {printable(reason)}")
    window = document["window"]
    out.print(f"window {window['window']} of {window['pipeline']}: {window['state']}")
    if window["reason"]:
        out.print(Text(printable(window["reason"])))
