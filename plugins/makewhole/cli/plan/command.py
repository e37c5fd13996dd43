"""Run `makewhole plan show`, and collect the other commands of `makewhole plan`."""

import json as json_format
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import AsJson, console, print_table, printable, service_environment
from makewhole.cli.plan import answer, control, dry_run
from makewhole.cli.plan.control import PlanId, known_plan
from makewhole.cli.plan.idle import idle_sentence, idle_since, what_to_do
from makewhole.cli.plan.list_plans import list_plans
from makewhole.cli.plan.undo import undo
from makewhole.compensation.preview.never_seen import never_seen
from makewhole.compensation.preview.table_lock import table_lock_sentence
from makewhole.journal import plan_progress
from makewhole.journal.database import connect
from makewhole.journal.plan_progress import StoredAction
from makewhole.model.errors import ConfigurationError
from makewhole.model.plan import Plan
from makewhole.model.points import Point
from makewhole.window.context import find_pipeline

plan_app = typer.Typer(no_args_is_help=True, help="What compensation does, and who said yes.")
_console = console()
_SHOWN = 20


@plan_app.command("show")
def show(
    plan: PlanId,
    limit: Annotated[int, typer.Option(min=1, help="At most so many actions for people.")] = _SHOWN,
    json: AsJson = False,
) -> None:
    """Show the actions of a plan in their order, its hash, and its state."""
    with service_environment(), connect() as journal:
        stored = known_plan(journal, plan)
        locks = _locks(plan_progress.locking_chunks(journal, plan))
        risks = never_seen(journal, plan, _points_now(stored))
        idle = idle_since(journal, stored)
        if json:
            for piece in _as_json(stored, locks, plan_progress.actions_of(journal, plan), risks, idle):
                typer.echo(piece, nl=False)
            return
        actions = list(plan_progress.actions_of(journal, plan, most=limit))
    _console.print(f"plan {stored.id}: window {stored.window} of {stored.pipeline}, {stored.state.value}")
    _console.print(f"SHA-256 {stored.sha256}" + (f"; {printable(stored.reason)}" if stored.reason else ""))
    idling = () if idle is None else (f"{idle_sentence(idle)}; {what_to_do(stored)}",)
    for sentence in (*idling, *risks, *locks):
        _console.print(Text(printable(sentence)))
    print_table(_console, _table(actions))
    if stored.actions > limit:
        _console.print(f"and {stored.actions - limit} more; --limit {stored.actions} or --json shows them all")


def _points_now(stored: Plan) -> Mapping[str, Point]:
    """Return the points as the pipeline's file has them now; none where it cannot be read."""
    try:
        return find_pipeline(stored.pipeline).points
    except ConfigurationError:
        return {}


def _as_json(
    stored: Plan, locks: Sequence[str], actions: Iterable[StoredAction], risks: Sequence[str], idle: datetime | None
) -> Iterator[str]:
    """Yield a plan as one line of JSON, action by action: there may be millions."""
    yield _json(_document(stored, locks, idle))[:-1] + ', "actions": ['
    for number, item in enumerate(actions):
        yield (", " if number else "") + _json(_action_document(item))
    yield f'], "risks": {_json(list(risks))}}}\n'


def _json(document: Any) -> str:
    return json_format.dumps(document, ensure_ascii=False)


def _document(stored: Plan, locks: Sequence[str], idle: datetime | None) -> dict[str, Any]:
    return {
        "id": stored.id,
        "pipeline": stored.pipeline,
        "window": stored.window,
        "revision": stored.revision,
        "sha256": stored.sha256,
        "state": stored.state.value,
        "reason": stored.reason,
        "idle_since": None if idle is None else idle.isoformat(),
        "counts": dict(stored.counts),
        "locks": list(locks),
    }


def _action_document(item: StoredAction) -> dict[str, Any]:
    return {
        "seq": item.action.seq,
        "remedy": item.action.remedy.value,
        "hop": item.action.hop,
        "target": item.action.target,
        "key": item.action.key,
        "outcome": item.outcome,
        "reason": None if item.refusal is None else str(item.refusal),
    }


def _locks(chunks: Mapping[str, int]) -> list[str]:
    """Return a sentence on each table whose other writers wait for so many chunks of the plan."""
    return [table_lock_sentence(target, number) for target, number in chunks.items()]


def _table(actions: Sequence[StoredAction]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("seq", "remedy", "target", "key", "outcome"):
        table.add_column(heading, overflow="fold")
    for item in actions:
        action = item.action
        why = "" if item.refusal is None else f": {item.refusal}"
        cells = (str(action.seq), action.remedy.value, action.target, action.key, f"{item.outcome or ''}{why}")
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


plan_app.command("list")(list_plans)
plan_app.command("undo")(undo)
plan_app.command("approve")(answer.approve)
plan_app.command("reject")(answer.reject)
for _command in (control.pause, control.resume, control.rate, control.stop, control.watch):
    plan_app.command()(_command)
plan_app.command("dry-run")(dry_run.run_dry)
