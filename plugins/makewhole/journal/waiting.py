"""Read what waits for a person, over all pipelines."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from makewhole.journal.windows import OPEN_VERDICTS
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState
from makewhole.sql import PgConnection, records, single_value, statements_of

_run = statements_of("waiting")


@dataclass(frozen=True, kw_only=True)
class WaitingPlan:
    """A plan that waits for an answer, is paused, or takes the plan `undoes` back and was left at that. `until` is None
    where it is not known."""

    subject: str
    pipeline: str
    window: int
    revision: int
    undoes: str | None
    counts: Mapping[str, int]
    reason: str | None
    state: PlanState
    is_paused: bool
    since: datetime
    until: datetime | None


@dataclass(frozen=True, kw_only=True)
class WaitingAcceptance:
    """Findings that a person asks to accept, which another person answers."""

    subject: str
    pipeline: str
    window: int
    revision: int
    findings: int
    reason: str
    asked_by: str
    since: datetime
    until: datetime


@dataclass(frozen=True, kw_only=True)
class UnopenedRun:
    """A run that opened no window, and why."""

    pipeline: str
    step: str
    dag: str
    run: str
    reason: str
    failed_at: datetime


@dataclass(frozen=True, kw_only=True)
class WaitingWindow:
    """A window that is not certified, or behind whose certificate a step broke. `findings`: the keys left open in it.
    `step`, `dag`, `run` and `step_reason` are of the step that broke last, None without one. `plan` was begun, or could
    be, and the window was closed without its end; `undone` is the last one that was to be taken back."""

    pipeline: str
    window: int
    revision: int
    state: WindowState
    reason: str | None
    plan_only: bool
    since: datetime
    findings: int
    step: str | None
    dag: str | None
    run: str | None
    step_reason: str | None
    plan: str | None
    undone: str | None


@dataclass(frozen=True, kw_only=True)
class RevokedCertificate:
    """A window whose certificate was revoked, and that has no other since."""

    pipeline: str
    window: int
    certificate: int
    since: datetime


@dataclass(frozen=True, kw_only=True)
class Certified:
    """How far a pipeline is certified without a gap: up to `certified_until`; None where the oldest open window has no
    beginning, or there is none."""

    certified_until: datetime | None
    windows: int
    first_open_end: datetime | None


def plans(journal: PgConnection) -> list[WaitingPlan]:
    """Return the plans that wait for an answer, are paused or were left unfinished; first what ends first."""
    return records(WaitingPlan, _run(journal, "plans"))


def acceptances(journal: PgConnection) -> list[WaitingAcceptance]:
    """Return the acceptances that wait for an answer; first what ends first."""
    return records(WaitingAcceptance, _run(journal, "acceptances"))


def unopened(journal: PgConnection) -> list[UnopenedRun]:
    """Return the runs that opened no window and are not tried again, the oldest first."""
    return records(UnopenedRun, _run(journal, "unopened"))


def windows(journal: PgConnection) -> list[WaitingWindow]:
    """Return the windows that are not certified, or behind whose certificate a step broke, in their newest revision."""
    return records(WaitingWindow, _run(journal, "windows", verdicts=OPEN_VERDICTS))


def is_at_work(journal: PgConnection, pipeline: str) -> bool:
    """Return whether a window of a pipeline is open that was begun before: it is repaired, or judged again."""
    return bool(single_value(_run(journal, "is_at_work", pipeline=pipeline)))


def refused_plans(journal: PgConnection) -> list[WaitingPlan]:
    """Return the plans that were refused as a whole, of windows that are not certified; the oldest first."""
    return records(WaitingPlan, _run(journal, "refused"))


def revoked(journal: PgConnection) -> list[RevokedCertificate]:
    """Return the windows whose certificate was revoked, and that have no other since; the oldest first."""
    return records(RevokedCertificate, _run(journal, "revoked"))


def certified(journal: PgConnection, pipeline: str) -> Certified:
    """Return how far a pipeline is certified."""
    [reach] = records(Certified, _run(journal, "reaches", pipeline=pipeline))
    return reach
