"""List what waits for a person: each thing with its reason, how long it has waited, and the command to run next."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from makewhole.journal import notices, waiting
from makewhole.journal.notices import FailingChannel
from makewhole.journal.results import self_check_rounds
from makewhole.journal.results.self_check_rounds import ComparedRound
from makewhole.journal.waiting import (
    RevokedCertificate,
    UnopenedRun,
    WaitingAcceptance,
    WaitingPlan,
    WaitingWindow,
)
from makewhole.model.people.notices import Waits
from makewhole.model.plan import PlanState
from makewhole.model.text import counted
from makewhole.model.window import WindowState
from makewhole.orchestration.task_ids import COMPENSATE, OPEN_WINDOW, PLAN, PUBLISH, REOPEN, RESTORE, VERIFY
from makewhole.sql import PgConnection

LogUrl = Callable[[str | None, str | None, str | None], str | None]
"""Returns the address of the log of a task: DAG, run and task in, None where it is not known."""
_REPAIR, _UNDO = (PLAN, COMPENSATE, VERIFY), (RESTORE, REOPEN)
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class TodoItem:
    """A thing that waits for a person. `subject` names it within its pipeline; `command` is what to run next; `until`
    when it ends by itself, None: never; `run` the run of Airflow that the text names, if it does."""

    kind: Waits
    pipeline: str
    subject: str
    window: int | None
    what: str
    command: str
    since: datetime
    until: datetime | None = None
    reason: str | None = None
    log: str | None = None
    run: str | None = None

    @property
    def headline(self) -> str:
        """The line that says what waits, and why: all of it that changes only when there is something new to say."""
        window = "" if self.window is None else f" window {self.window}"
        return f"{self.pipeline}{window} {self.what}" + ("" if self.reason is None else f": {self.reason}")

    def times(self, now: datetime) -> str:
        """Return since when it waits, and how much time is left."""
        since = f"since {span(now - self.since)}"
        if self.until is None:
            return since
        left = self.until - now
        return f"{since}, " + (f"{span(left)} left" if left > timedelta() else f"its time was over {span(-left)} ago")

    def document(self) -> dict[str, Any]:
        """Describe it as data."""
        times = {"since": self.since.isoformat(), "until": None if self.until is None else self.until.isoformat()}
        return {**vars(self), "kind": self.kind.value, **times}


def waiting_items(journal: PgConnection, log_url: LogUrl) -> list[TodoItem]:
    """Return everything that waits for a person, over all pipelines, the most urgent first."""
    return ranked(
        (
            *map(_of_plan, waiting.plans(journal)),
            *map(_of_acceptance, waiting.acceptances(journal)),
            *map(_of_revoked, waiting.revoked(journal)),
            *(_of_self_check(result) for result in self_check_rounds.newest_results(journal) if not result.is_green),
            *(_of_unopened(run, log_url) for run in waiting.unopened(journal)),
            *(_of_window(window, log_url) for window in waiting.windows(journal)),
            *map(_of_refused, waiting.refused_plans(journal)),
            *map(_of_channel, notices.failing(journal)),
        )
    )


def unopened_items(journal: PgConnection, pipeline: str, log_url: LogUrl) -> list[TodoItem]:
    """Return the runs of a pipeline that could open no window, and are not tried again."""
    return [_of_unopened(run, log_url) for run in waiting.unopened(journal) if run.pipeline == pipeline]


def ranked(items: Iterable[TodoItem]) -> list[TodoItem]:
    """Return items in the order of `Waits`, then by what ends first, then the oldest first."""
    kinds = list(Waits)
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(items, key=lambda item: (kinds.index(item.kind), item.until or never, item.since, item.pipeline))


def span(time: timedelta) -> str:
    """Return a span of time in its two largest units."""
    if time < _HOUR:
        return f"{max(time // _MINUTE, 0)} min"
    if time < _DAY:
        return f"{time // _HOUR} h {time % _HOUR // _MINUTE} min"
    return f"{time // _DAY} d {time % _DAY // _HOUR} h"


def lines_of(item: TodoItem, now: datetime) -> Iterator[str]:
    """Yield the lines about an item: what waits, since when and why; the log; the command to run next."""
    window = "" if item.window is None else f" window {item.window}"
    reason = "" if item.reason is None else f": {item.reason}"
    yield f"{item.pipeline}{window} {item.what}, {item.times(now)}{reason}"
    if item.log is not None:
        yield f"   log:  {item.log}"
    yield f"   next: {item.command}"


def subject_of_channel(name: str) -> str:
    """Return the subject of the item that says that a channel does not work."""
    return f"channel {name}"


def _of_plan(plan: WaitingPlan) -> TodoItem:
    is_question = plan.state is PlanState.AWAITING_APPROVAL
    actions = counted(sum(plan.counts.values()), "action")
    name = f"undo {plan.subject} of plan {plan.undoes}" if plan.undoes else f"plan {plan.subject}"
    left = "paused" if plan.is_paused else "begun, and nothing goes on with it"
    act = "approve" if is_question else "resume" if plan.is_paused else "undo"
    return TodoItem(
        kind=Waits.QUESTION if is_question else Waits.REPAIR_STOPPED,
        pipeline=plan.pipeline,
        subject=f"plan {plan.subject}",
        window=plan.window,
        what=f"waits for an answer to {name} ({actions})" if is_question else f"has {name} ({actions}) {left}",
        command=f"makewhole plan {act} {plan.undoes if act == 'undo' else plan.subject}",
        since=plan.since,
        until=plan.until if is_question else None,
        reason=plan.reason,
    )


def _of_refused(plan: WaitingPlan) -> TodoItem:
    return TodoItem(
        kind=Waits.REFUSED,
        pipeline=plan.pipeline,
        subject=f"plan {plan.subject}",
        window=plan.window,
        what=f"had plan {plan.subject} ({counted(sum(plan.counts.values()), 'action')}) refused",
        command=f"makewhole plan show {plan.subject}",
        since=plan.since,
        reason=plan.reason,
    )


def _of_acceptance(asked: WaitingAcceptance) -> TodoItem:
    findings = counted(asked.findings, "finding")
    return TodoItem(
        kind=Waits.QUESTION,
        pipeline=asked.pipeline,
        subject=f"acceptance {asked.subject}",
        window=asked.window,
        what=f"waits for an answer to {asked.asked_by}, who asks to accept {findings}",
        command=f"makewhole accept --approve {asked.subject}",
        since=asked.since,
        until=asked.until,
        reason=asked.reason,
    )


def _of_revoked(revoked: RevokedCertificate) -> TodoItem:
    return TodoItem(
        kind=Waits.REVOKED,
        pipeline=revoked.pipeline,
        subject=f"certificate {revoked.certificate}",
        window=revoked.window,
        what=f"has its certificate {revoked.certificate} revoked",
        command=f"makewhole windows {revoked.pipeline} --window {revoked.window}",
        since=revoked.since,
    )


def _of_self_check(compared: ComparedRound) -> TodoItem:
    return TodoItem(
        kind=Waits.SELF_CHECK,
        pipeline=compared.pipeline,
        subject=f"round {compared.round}",
        window=compared.result.window,
        what=f"has round {compared.round} of its self-check red",
        command=f"makewhole self-check {compared.pipeline}",
        since=compared.compared_at,
        reason=compared.result.score.sentence(),
    )


def _of_unopened(run: UnopenedRun, log_url: LogUrl) -> TodoItem:
    return TodoItem(
        kind=Waits.NOT_OPENED,
        pipeline=run.pipeline,
        subject="opening" if run.step == OPEN_WINDOW else f"opening, {run.step}",
        window=None,
        what=f"could open no window in run {run.run}",
        run=run.run,
        command=f"makewhole run {run.pipeline}",
        since=run.failed_at,
        reason=_in_a_line(run.reason),
        log=log_url(run.dag, run.run, run.step),
    )


def _in_a_line(reason: str) -> str:
    """Return the reason in one line: of a numbered list of mistakes the last line, which is about all of them."""
    *listed, last = reason.splitlines() or [reason]
    return last if listed and listed[0].startswith("1. ") else "; ".join([*listed, last])


def _of_channel(channel: FailingChannel) -> TodoItem:
    return TodoItem(
        kind=Waits.NOT_SENT,
        pipeline=channel.pipeline,
        subject=subject_of_channel(channel.channel),
        window=None,
        what=f"cannot send through {channel.channel}",
        command=f"makewhole notify {channel.pipeline}",
        since=channel.since,
        reason=channel.reason,
    )


def _of_window(window: WaitingWindow, log_url: LogUrl) -> TodoItem:
    kind = _kind(window)
    broke = (
        f"{window.step} broke"
        if window.step
        else f"plan {window.plan} was not ended"
        if window.plan
        else "a step broke"
    )
    findings = counted(window.findings, "open finding")
    what = {
        Waits.ERROR: f"is certified, and {broke}" if window.step == PUBLISH else f"is in error: {broke}",
        Waits.REPAIR_STOPPED: f"had plan {window.undone} taken back in part: {broke}"
        if window.step in _UNDO
        else f"has {findings}, and its repair stopped: {broke}",
        Waits.GAPS: f"has {findings}" + (", and only a plan was asked for" if window.plan_only else ""),
        Waits.NOT_KNOWN: "is not known" + (f", with {findings}" if window.findings else ""),
    }
    return TodoItem(
        kind=kind,
        pipeline=window.pipeline,
        subject=f"window {window.window}",
        window=window.window,
        what=what[kind],
        command=_command(window, kind),
        since=window.since,
        reason=window.step_reason or window.reason,
        log=log_url(window.dag, window.run, window.step),
    )


def _kind(window: WaitingWindow) -> Waits:
    if window.step in _UNDO:
        return Waits.REPAIR_STOPPED
    if window.step in _REPAIR and window.state in (WindowState.GAPS, WindowState.OPEN):
        return Waits.REPAIR_STOPPED
    if window.plan is not None and window.state is WindowState.GAPS:
        return Waits.REPAIR_STOPPED
    by_state = {WindowState.GAPS: Waits.GAPS, WindowState.NOT_KNOWN: Waits.NOT_KNOWN}
    return by_state.get(window.state, Waits.ERROR)


def _command(window: WaitingWindow, kind: Waits) -> str:
    if window.step in _UNDO and window.undone is not None:
        return f"makewhole plan undo {window.undone}"
    if kind is Waits.GAPS and not window.plan_only:
        return f"makewhole findings {window.pipeline} --window {window.window}"
    if kind is Waits.NOT_KNOWN:
        return f"makewhole windows {window.pipeline} --window {window.window}"
    return f"makewhole run {window.pipeline} --window {window.window}"
