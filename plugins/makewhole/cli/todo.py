"""Run `makewhole todo`: list what waits for a person, over all pipelines, the most urgent first."""

import json as json_format
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from makewhole.cli.airflow_api import log_url
from makewhole.cli.environment import AsJsonLines, console, printable, service_environment
from makewhole.journal import waiting
from makewhole.journal.database import connect
from makewhole.journal.waiting import UnopenedRun, WaitingAcceptance, WaitingPlan, WaitingWindow
from makewhole.model.plan import PlanState
from makewhole.model.text import counted
from makewhole.model.window import WindowState
from makewhole.orchestration.task_ids import COMPENSATE, PLAN, VERIFY
from makewhole.sql import PgConnection

_console = console()
_REPAIR = (PLAN, COMPENSATE, VERIFY)
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


class Waits(StrEnum):
    """The kinds of items that wait for a person, the most urgent first: questions end by themselves, and the plan is
    rejected then; while a pipeline stands still nothing of it is checked; a repair that stopped has written a part."""

    QUESTION = "question"
    NOT_OPENED = "not_opened"
    ERROR = "error"
    REPAIR_STOPPED = "repair_stopped"
    GAPS = "gaps"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, kw_only=True)
class TodoItem:
    """A thing that waits for a person. `command` is what to run next; `until` when it ends by itself, None: never."""

    kind: Waits
    pipeline: str
    window: int | None
    what: str
    command: str
    since: datetime
    until: datetime | None = None
    reason: str | None = None
    log: str | None = None

    def document(self) -> dict[str, Any]:
        """Describe it as data."""
        times = {"since": self.since.isoformat(), "until": None if self.until is None else self.until.isoformat()}
        return {**vars(self), "kind": self.kind.value, **times}


def todo(json: AsJsonLines = False) -> None:
    """List what waits for a person, over all pipelines, the most urgent first, each with the command to run next.

    Questions that end by themselves come first, then pipelines that stand still, repairs that stopped on the way, gaps,
    and what is not known; within each the one that ends first, then the oldest.
    """
    with service_environment(), connect() as journal:
        items = waiting_items(journal)
    if json:
        for item in items:
            typer.echo(json_format.dumps(item.document(), ensure_ascii=False))
        return
    show_items(_console, items, datetime.now(UTC))


def waiting_items(journal: PgConnection) -> list[TodoItem]:
    """Return everything that waits for a person, the most urgent first."""
    return ranked(
        (
            *map(_of_plan, waiting.plans(journal)),
            *map(_of_acceptance, waiting.acceptances(journal)),
            *map(_of_unopened, waiting.unopened(journal)),
            *map(_of_window, waiting.windows(journal)),
        )
    )


def ranked(items: Iterable[TodoItem]) -> list[TodoItem]:
    """Return items in the order of `Waits`, then by what ends first, then the oldest first."""
    kinds = list(Waits)
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(items, key=lambda item: (kinds.index(item.kind), item.until or never, item.since, item.pipeline))


def show_items(out: Console, items: list[TodoItem], now: datetime) -> None:
    """Print two lines an item: what waits and since when; below, the command to run next."""
    if not items:
        out.print("nothing waits for a person")
        return
    for number, item in enumerate(items, start=1):
        for line in _lines(number, item, now):
            out.print(Text(printable(line)))


def _lines(number: int, item: TodoItem, now: datetime) -> Iterator[str]:
    window = "" if item.window is None else f" window {item.window}"
    reason = "" if item.reason is None else f": {item.reason}"
    yield f"{number}. {item.pipeline}{window} {item.what}, {_times(item, now)}{reason}"
    if item.log is not None:
        yield f"   log:  {item.log}"
    yield f"   next: {item.command}"


def _times(item: TodoItem, now: datetime) -> str:
    since = f"since {_span((now - item.since).total_seconds())}"
    if item.until is None:
        return since
    left = (item.until - now).total_seconds()
    ends = f"{_span(left)} left" if left > 0 else f"its time was over {_span(-left)} ago"
    return f"{since}, {ends}"


def _span(seconds: float) -> str:
    """Return a span of time in its two largest units."""
    if seconds < _HOUR:
        return f"{max(int(seconds), 0) // _MINUTE} min"
    if seconds < _DAY:
        return f"{int(seconds) // _HOUR} h {int(seconds) % _HOUR // _MINUTE} min"
    return f"{int(seconds) // _DAY} d {int(seconds) % _DAY // _HOUR} h"


def _of_plan(plan: WaitingPlan) -> TodoItem:
    is_question = plan.state is PlanState.AWAITING_APPROVAL
    actions = counted(sum(plan.counts.values()), "action")
    name = f"undo {plan.subject} of plan {plan.undoes}" if plan.undoes else f"plan {plan.subject}"
    return TodoItem(
        kind=Waits.QUESTION if is_question else Waits.REPAIR_STOPPED,
        pipeline=plan.pipeline,
        window=plan.window,
        what=f"waits for an answer to {name} ({actions})" if is_question else f"has {name} ({actions}) paused",
        command=f"makewhole plan {'approve' if is_question else 'resume'} {plan.subject}",
        since=plan.since,
        until=plan.until if is_question else None,
        reason=plan.reason,
    )


def _of_acceptance(asked: WaitingAcceptance) -> TodoItem:
    findings = counted(asked.findings, "finding")
    return TodoItem(
        kind=Waits.QUESTION,
        pipeline=asked.pipeline,
        window=asked.window,
        what=f"waits for an answer to {asked.asked_by}, who asks to accept {findings}",
        command=f"makewhole accept --approve {asked.subject}",
        since=asked.since,
        until=asked.until,
        reason=asked.reason,
    )


def _of_unopened(run: UnopenedRun) -> TodoItem:
    return TodoItem(
        kind=Waits.NOT_OPENED,
        pipeline=run.pipeline,
        window=None,
        what=f"could open no window in run {run.run}",
        command=f"makewhole run {run.pipeline}",
        since=run.failed_at,
        reason=run.reason,
        log=log_url(run.dag, run.run, run.step),
    )


def _of_window(window: WaitingWindow) -> TodoItem:
    kind = _kind(window)
    broke = f"{window.step} broke" if window.step else "a step broke"
    findings = counted(window.findings, "open finding")
    what = {
        Waits.ERROR: f"is in error: {broke}",
        Waits.REPAIR_STOPPED: f"has {findings}, and its repair stopped: {broke}",
        Waits.GAPS: f"has {findings}" + (", and only a plan was asked for" if window.plan_only else ""),
        Waits.NOT_KNOWN: f"is not known, with {findings}",
    }
    return TodoItem(
        kind=kind,
        pipeline=window.pipeline,
        window=window.window,
        what=what[kind],
        command=_command(window, kind),
        since=window.since,
        reason=window.step_reason or window.reason,
        log=log_url(window.dag, window.run, window.step),
    )


def _kind(window: WaitingWindow) -> Waits:
    if window.step in _REPAIR and window.state in (WindowState.GAPS, WindowState.OPEN):
        return Waits.REPAIR_STOPPED
    by_state = {WindowState.GAPS: Waits.GAPS, WindowState.NOT_KNOWN: Waits.NOT_KNOWN}
    return by_state.get(window.state, Waits.ERROR)


def _command(window: WaitingWindow, kind: Waits) -> str:
    if kind is Waits.GAPS and not window.plan_only:
        return f"makewhole findings {window.pipeline} --window {window.window}"
    if kind is Waits.NOT_KNOWN:
        return f"makewhole windows {window.pipeline} --window {window.window}"
    return f"makewhole run {window.pipeline} --window {window.window}"
