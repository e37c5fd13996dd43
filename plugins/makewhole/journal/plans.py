"""Read and write plans and the approvals of people. Every function runs in the caller's transaction."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from makewhole.journal.actions import put_actions
from makewhole.journal.statements import scope
from makewhole.model.errors import PermanentError
from makewhole.model.plan import Plan, PlanState
from makewhole.model.window import Window
from makewhole.sql import PgConnection, record, records, single_value, statements_of

_run = statements_of("plan")

LogEnds = Mapping[str, Mapping[int, int]]
"""Target → partition → stable offset."""


class Control(StrEnum):
    """The instruction to a runner for its next chunk."""

    RUN = "run"
    PAUSE = "pause"


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """A plan with the digest of its payload file, its control and rate, and when it began and ended.

    `records_per_second` None: the pipeline's. `log_ends` are where the logs of its targets ended when it first began;
    None: it never did. `asked_until` is when the question that waits for a person ends; None: no run has asked.
    """

    plan: Plan
    payload_sha256: str | None
    control: Control = Control.RUN
    records_per_second: int | None = None
    began_at: datetime | None = None
    ended_at: datetime | None = None
    log_ends: LogEnds | None = None
    asked_until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ListedPlan:
    """A plan with the moment at which it was frozen."""

    plan: StoredPlan
    frozen_at: datetime


@dataclass(frozen=True, kw_only=True)
class StoredApproval:
    """A person's answer to a plan. `has_expired` by the journal's clock."""

    sha256: str
    decision: str
    by: str | None
    expires_at: datetime | None
    has_expired: bool


def plan_of_window(
    journal: PgConnection, pipeline: str, window: int, revision: int, *, is_freezing: bool = False
) -> StoredPlan | None:
    """Return the plan frozen for a window revision, after waiting for whoever is freezing one now. `is_freezing`: one
    of any revision of the window, as this transaction freezes it where there is none."""
    _run(journal, "lock_window_plan", pipeline=pipeline, number=window, revision=revision, is_freezing=is_freezing)
    return frozen_plan(journal, pipeline, window, revision)


def frozen_plan(journal: PgConnection, pipeline: str, number: int, revision: int) -> StoredPlan | None:
    """Return the plan frozen for a window revision, if there is one by now."""
    return _one_plan(journal, "plan_of_window", pipeline=pipeline, number=number, revision=revision)


def find_plan(journal: PgConnection, plan_id: str) -> StoredPlan | None:
    """Return a plan by id, or None."""
    return _one_plan(journal, "plan_by_id", plan=plan_id)


def undo_of(journal: PgConnection, plan_id: str) -> StoredPlan | None:
    """Return the plan that undoes this one, unless it was turned down."""
    return _one_plan(journal, "undo_of_plan", plan=plan_id)


def newest_undo_of(journal: PgConnection, plan_id: str) -> StoredPlan | None:
    """Return the plan that was last made to undo this one, turned down or not."""
    return _one_plan(journal, "newest_undo_of_plan", plan=plan_id)


def begun_undo_of(journal: PgConnection, plan_id: str) -> StoredPlan | None:
    """Return the plan that was last begun to undo this one, stopped or not; None: none has written anything."""
    return _one_plan(journal, "begun_undo_of_plan", plan=plan_id)


def undone_since(journal: PgConnection, window: Window) -> str | None:
    """Return the newest undo that changed rows of the window since this revision looked: of an earlier revision since
    it was opened, of its own since it was verified last."""
    return next((plan for (plan,) in _run(journal, "undone_since", **scope(window))), None)


def get_plan(journal: PgConnection, plan_id: str, *, is_locked: bool = False) -> StoredPlan:
    """Return a plan by id, locked until the transaction ends when `is_locked`.

    Raises:
        PermanentError: there is no such plan.
    """
    plan = _one_plan(journal, "lock_plan" if is_locked else "plan_by_id", plan=plan_id)
    if plan is None:
        raise PermanentError(f"there is no plan {plan_id}; `makewhole windows` names the plan of each window")
    return plan


def plans_before(journal: PgConnection, pipeline: str, window: int, revision: int) -> list[StoredPlan]:
    """Return the plans of other revisions of a window that are there already, and could still write, or whose receipts
    are not all known."""
    parameters = {"pipeline": pipeline, "number": window, "revision": revision}
    return _plans(journal, "plans_before", **parameters)


def newest_plans(
    journal: PgConnection, pipeline: str | None, states: Sequence[PlanState], most: int | None
) -> list[ListedPlan]:
    """Return the newest plans, the newest first. `pipeline` None: of all; no `states`: in any; `most` None: all."""
    names = [state.value for state in states] or None
    rows = _run(journal, "newest_plans", pipeline=pipeline, states=names, most=most)
    return [ListedPlan(plan=record(StoredPlan, row, plan=record(Plan, row)), frozen_at=row.frozen_at) for row in rows]


def idle_plans(journal: PgConnection, ids: Iterable[str]) -> dict[str, datetime]:
    """Return those of some plans that are running although no task works on them: by id since when."""
    return dict(_run(journal, "idle_plans", plans=[*ids]))


def ids_of_window(journal: PgConnection, window: Window) -> list[str]:
    """Return the ids of all plans made for a window, whatever the revision."""
    rows = _run(journal, "plans_of", pipeline=window.pipeline, number=window.number)
    return [plan for (plan,) in rows]


def frozen_at(journal: PgConnection, plan_id: str) -> datetime:
    """Return when a plan was frozen."""
    moment: datetime = single_value(_run(journal, "frozen_at", plan=plan_id))
    return moment


def put_plan(journal: PgConnection, stored: StoredPlan, actions: Iterable[bytes]) -> None:
    """Freeze a plan with the lines of its actions (`Action.line`)."""
    plan = stored.plan
    _run(
        journal,
        "insert_plan",
        plan=plan.id,
        pipeline=plan.pipeline,
        number=plan.window,
        revision=plan.revision,
        sha256=plan.sha256,
        payload_uri=plan.payload_uri,
        payload_sha256=stored.payload_sha256,
        counts=json.dumps(dict(plan.counts)),
        state=plan.state.value,
        reason=plan.reason,
        undoes=plan.undoes,
    )
    put_actions(journal, plan.id, actions)


def set_state(journal: PgConnection, plan_id: str, state: PlanState, reason: str | None = None) -> None:
    """Move a plan on; a reason replaces the one before it."""
    _run(journal, "set_plan_state", plan=plan_id, state=state.value, reason=reason, superseded_by=None)


def supersede(journal: PgConnection, plan_id: str, revision: int) -> None:
    """Reject a plan in favour of a later revision of its window; one that has ended stays as it is."""
    _run(
        journal,
        "set_plan_state",
        plan=plan_id,
        state=PlanState.REJECTED.value,
        reason=f"superseded by revision {revision}",
        superseded_by=revision,
    )


def settle(journal: PgConnection, plan_id: str, *, is_unknown: bool) -> None:
    """Mark a plan as settled: nothing is written for it any more. `is_unknown`: what it wrote cannot be known any
    more."""
    _run(journal, "settle_plan", plan=plan_id, is_unknown=is_unknown)


def set_control(journal: PgConnection, plan_id: str, control: Control, reason: str) -> None:
    """Set what the runner does with its next chunk; `reason` names who decided it."""
    _run(journal, "set_plan_control", plan=plan_id, control=control.value, reason=reason)


def set_rate(journal: PgConnection, plan_id: str, records_per_second: int | None, reason: str) -> None:
    """Set the plan's rate from its next chunk on; None: the pipeline's. `reason` names who decided it."""
    parameters = {"plan": plan_id, "records_per_second": records_per_second, "reason": reason}
    _run(journal, "set_plan_rate", **parameters)


def note_question(journal: PgConnection, plan_id: str, until: datetime) -> None:
    """Write until when a person may answer the question about a plan."""
    _run(journal, "note_question", plan=plan_id, until=until)


def begin(journal: PgConnection, plan_id: str, log_ends: LogEnds) -> None:
    """Mark a plan as running. `log_ends` are kept the first time only."""
    _run(journal, "begin_plan", plan=plan_id, log_ends=json.dumps(log_ends))


def put_approval(
    journal: PgConnection,
    plan: Plan,
    *,
    decision: str,
    by: str | None,
    at: datetime,
    expires: timedelta | None,
    seen: Mapping[str, Any],
) -> None:
    """Write the answer to a plan; the first one stays."""
    _run(
        journal,
        "put_approval",
        plan=plan.id,
        sha256=plan.sha256,
        decision=decision,
        by=by,
        at=at,
        expires_seconds=None if expires is None else expires.total_seconds(),
        seen=json.dumps(dict(seen), default=str),
    )


def approval_of(journal: PgConnection, plan_id: str) -> StoredApproval | None:
    """Return the answer to a plan, if there is one."""
    return next(iter(records(StoredApproval, _run(journal, "approval_of_plan", plan=plan_id))), None)


def name_successor(journal: PgConnection, plan: Plan) -> None:
    """Name a plan in those that its revision of the window superseded, now or before a runner was killed."""
    parameters = {"pipeline": plan.pipeline, "number": plan.window, "revision": plan.revision}
    _run(journal, "name_successor", **parameters, named=f"superseded by plan {plan.id}")


def _one_plan(journal: PgConnection, statement: str, **values: Any) -> StoredPlan | None:
    return next(iter(_plans(journal, statement, **values)), None)


def _plans(journal: PgConnection, statement: str, **values: Any) -> list[StoredPlan]:
    return [record(StoredPlan, row, plan=record(Plan, row)) for row in _run(journal, statement, **values)]
