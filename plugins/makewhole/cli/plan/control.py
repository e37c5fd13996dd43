"""Run `makewhole plan pause|resume|rate|stop|watch`: control a plan while it runs."""

import json as json_format
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from makewhole.cli.airflow_api import AirflowRefusedError, access, airflow
from makewhole.cli.environment import AsJson, Exit, console, printable, service_environment
from makewhole.cli.plan.idle import idle_sentence, idle_since, what_to_do
from makewhole.compensation.execution import control
from makewhole.compensation.execution.pace import WatchedSpeed
from makewhole.journal import plan_progress, plans
from makewhole.journal.database import connect
from makewhole.journal.deployment.address import journal_dsn
from makewhole.journal.plans import StoredPlan
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.plan import Plan, PlanState
from makewhole.model.text import duration
from makewhole.orchestration.task_ids import COMPENSATE, reconcile_dag_id
from makewhole.sql import PgConnection

PlanId = Annotated[str, typer.Argument(help="Id of the plan, as `makewhole windows PIPELINE --json` shows it.")]
_console = console()
_errors = console(stderr=True)
_POLL_SECONDS = 1.0
_FORBIDDEN = 403
_BEGINNING = "1970-01-01T00:00:00+00:00"
_WOULD_CLEAR = {"dry_run": True, "task_ids": [COMPENSATE], "start_date": _BEGINNING, "end_date": _BEGINNING}
_GOES_ON = (PlanState.FROZEN, PlanState.AWAITING_APPROVAL, PlanState.APPROVED, PlanState.RUNNING)


def known_plan(journal: PgConnection, plan: str) -> Plan:
    """Return the plan with an id.

    Raises:
        RefusedError: there is none.
    """
    stored = plans.find_plan(journal, plan)
    if stored is None:
        raise RefusedError(
            f"there is no plan {plan}; `makewhole windows PIPELINE --last 0 --json` names the plan of each window"
        )
    return stored.plan


def pause(
    plan: PlanId,
    reason: Annotated[str, typer.Option(help="Why, for those who read the journal later.")] = "",
    json: AsJson = False,
) -> None:
    """Wait before the next chunk, until `resume`. What is written stays; no other runner can take the plan over."""
    _send(plan, lambda dsn, by: control.pause(dsn, plan, by=by, reason=reason), json=json)


def resume(plan: PlanId, json: AsJson = False) -> None:
    """Resume a paused plan."""
    _send(plan, lambda dsn, by: control.resume(dsn, plan, by=by), json=json)


def rate(
    plan: PlanId,
    records_per_second: Annotated[int, typer.Argument(min=1, help="So many a second, from the next chunk on.")],
    json: AsJson = False,
) -> None:
    """Slow a plan down, or speed it up."""
    _send(plan, lambda dsn, by: control.set_rate(dsn, plan, records_per_second, by=by), json=json)


def stop(
    plan: PlanId,
    reason: Annotated[str, typer.Option(help="Why, for those who read the journal later.")] = "",
    json: AsJson = False,
) -> None:
    """End a plan before its next chunk, for good. What is written stays, with its receipts; run the window again to
    repair the rest."""
    _send(plan, lambda dsn, by: control.stop(dsn, plan, by=by, reason=reason or "no reason given"), json=json)


def _send(plan_id: str, command: Callable[[str, str], Plan], *, json: bool) -> None:
    """Send a command to a plan, in the name of the person whom Airflow knows, when it lets them."""
    with service_environment():
        with connect() as journal:
            pipeline = known_plan(journal, plan_id).pipeline
        plan = command(journal_dsn(), _person_who_may(pipeline))
    if json:
        document = {"id": plan.id, "state": plan.state.value, "reason": plan.reason}
        typer.echo(json_format.dumps(document, ensure_ascii=False))
        return
    _console.print(Text(printable(f"plan {plan.id}: {plan.state.value}; {plan.reason}")))


def _person_who_may(pipeline: str) -> str:
    """Return the name of who calls, when Airflow lets them clear tasks of the pipeline's DAG. That is asked by a dry
    run of it, over an interval that has no run.

    Raises:
        PermanentError: it does not.
    """
    person, dag = access(), reconcile_dag_id(pipeline)
    try:
        with airflow(person) as api:
            api.send("POST", f"/dags/{dag}/clearTaskInstances", _WOULD_CLEAR)
    except AirflowRefusedError as error:
        if error.status != _FORBIDDEN:
            raise
        raise PermanentError(
            f"{person.user} may not steer plans of {pipeline}: Airflow does not let them clear tasks of the DAG {dag}. "
            f"Ask a person who may. {error}"
        ) from error
    return person.user


def watch(
    plan: PlanId, json: Annotated[bool, typer.Option("--json", help="One JSON object a change.")] = False
) -> None:
    """Show how far a plan is, its keys a second and the time left, until it has ended. Exit code 0 when it is done, 1
    when it was not done."""
    with service_environment():
        ended = _follow(plan, _as_lines if json else _as_bar)
    raise typer.Exit(Exit.CERTIFIED if ended.plan.state is PlanState.DONE else Exit.GAPS_REMAIN)


@dataclass(frozen=True, kw_only=True)
class _PlanLook:
    """How far a plan was at one look: actions done in all, actions a second, and seconds left; None: not measured.
    `idle_since`: since when no task has worked on it, though it is running."""

    stored: StoredPlan
    done: int
    idle_since: datetime | None
    per_second: float | None
    seconds_left: float | None

    @property
    def text(self) -> str:
        """Its state, with the speed where it is known."""
        state = "paused" if self.stored.control is plans.Control.PAUSE else self.stored.plan.state.value
        if self.idle_since is not None:
            return f"{state}; {idle_sentence(self.idle_since)}; {what_to_do(self.stored.plan)}"
        is_over = self.stored.plan.state not in _GOES_ON
        if is_over or self.per_second is None or self.seconds_left is None:
            return state
        return f"{state}, {self.per_second:,.0f} keys a second, {duration(round(self.seconds_left) * 1000)} left"


def _follow(plan: str, show: Callable[[Iterator[_PlanLook]], StoredPlan]) -> StoredPlan:
    speed = WatchedSpeed()

    def progress() -> Iterator[_PlanLook]:
        while True:
            with connect() as journal:
                stored = plans.get_plan(journal, plan)
                done = plan_progress.actions_done(journal, plan)
                idle = idle_since(journal, stored.plan)
            speed.look(done, stored.plan.actions)
            if stored.control is plans.Control.PAUSE:
                speed.forget()
            yield _PlanLook(
                stored=stored,
                done=done,
                idle_since=idle,
                per_second=speed.records_per_second,
                seconds_left=speed.seconds_left,
            )
            if stored.plan.state not in _GOES_ON:
                return
            time.sleep(_POLL_SECONDS)

    return show(progress())


def _as_bar(progress: Iterator[_PlanLook]) -> StoredPlan:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=_errors) as bar:
        task = bar.add_task("", total=None)
        for look in progress:
            stored = look.stored
            bar.update(task, description=look.text, completed=look.done, total=stored.plan.actions)
    reason = f": {stored.plan.reason}" if stored.plan.reason else ""
    _console.print(Text(printable(f"plan {stored.plan.id}: {stored.plan.state.value}{reason}")))
    return stored


def _as_lines(progress: Iterator[_PlanLook]) -> StoredPlan:
    last: dict[str, Any] = {}
    for look in progress:
        stored = look.stored
        document = {
            "id": stored.plan.id,
            "state": stored.plan.state.value,
            "control": stored.control.value,
            "reason": stored.plan.reason,
            "idle_since": None if look.idle_since is None else look.idle_since.isoformat(),
            "actions_done": look.done,
            "actions": stored.plan.actions,
            "actions_per_second": None if look.per_second is None else round(look.per_second, 1),
            "seconds_left": None if look.seconds_left is None else round(look.seconds_left),
        }
        if document != last:
            typer.echo(json_format.dumps(document, ensure_ascii=False))
            last = document
    return stored
