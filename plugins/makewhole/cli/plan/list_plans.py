"""Run `makewhole plan list`: show the newest plans, of one pipeline or of all."""

import json as json_format
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.cli.plan.idle import idle_sentence
from makewhole.journal import plans
from makewhole.journal.database import connect
from makewhole.journal.plans import ListedPlan
from makewhole.model.plan import PlanState
from makewhole.window.context import find_pipeline

_console = console()
_LISTED = 20
_HEADINGS = ("plan", "pipeline", "window", "rev", "frozen (UTC)", "state", "actions", "why")


def list_plans(
    pipeline: Annotated[str | None, typer.Argument(help="Name of the pipeline; all when not given.")] = None,
    state: Annotated[
        list[PlanState] | None, typer.Option(help="Only plans in this state; several times for several.")
    ] = None,
    last: Annotated[int, typer.Option("--last", min=0, help="So many of the newest plans; 0: all.")] = _LISTED,
    json: AsJsonLines = False,
) -> None:
    """List the newest plans, the newest first, with their states and why they are in them."""
    with service_environment(), connect() as journal:
        listed = plans.newest_plans(journal, pipeline, state or [], last or None)
        idle = plans.idle_plans(journal, [item.plan.plan.id for item in listed])
        if not listed and pipeline is not None:
            find_pipeline(pipeline)  # a wrong name has no plans either
    if json:
        for item in listed:
            typer.echo(json_format.dumps(_document(item, idle), ensure_ascii=False))
        return
    if not listed:
        _console.print("no plan is there; a window with findings that a remedy answers makes one")
        return
    table = Table(box=None, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("plan", "state"))
    for item in listed:
        table.add_row(*(Text(printable(cell)) for cell in _cells(item, idle)))
    print_table(_console, table)


def _cells(item: ListedPlan, idle: Mapping[str, datetime]) -> tuple[str, ...]:
    plan = item.plan.plan
    why = idle_sentence(idle[plan.id]) if plan.id in idle else plan.reason or ""
    actions = ", ".join(f"{count} {remedy}" for remedy, count in plan.counts.items())
    frozen = f"{item.frozen_at:%Y-%m-%d %H:%M}"
    names = (plan.id, plan.pipeline, str(plan.window), str(plan.revision))
    return (*names, frozen, plan.state.value, actions, why)


def _document(item: ListedPlan, idle: Mapping[str, datetime]) -> dict[str, Any]:
    plan = item.plan.plan
    of_work = {"began_at": item.plan.began_at, "ended_at": item.plan.ended_at, "idle_since": idle.get(plan.id)}
    moments = {"asked_until": item.plan.asked_until} | of_work
    return {
        "id": plan.id,
        "pipeline": plan.pipeline,
        "window": plan.window,
        "revision": plan.revision,
        "frozen_at": item.frozen_at.isoformat(),
        "state": plan.state.value,
        "reason": plan.reason,
        "counts": dict(plan.counts),
        "undoes": plan.undoes,
        **{name: None if moment is None else moment.isoformat() for name, moment in moments.items()},
    }
