"""Plans, their actions, approvals and chunks in the journal. Every function runs in the caller's transaction."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg2.extensions import connection as PgConnection  # noqa: N812 - it is a class
from psycopg2.extras import execute_values

from makewhole.journal.database import load_queries
from makewhole.model.errors import PermanentError
from makewhole.model.pipeline import Remedy
from makewhole.model.plan import Action, Plan, PlanState, Receipt


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """A plan with the digest of its payload file."""

    plan: Plan
    payload_sha256: str | None


@dataclass(frozen=True, kw_only=True)
class StoredAction:
    """An action with what became of it: `outcome` is None, `done` or `refused`."""

    action: Action
    outcome: str | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class StoredApproval:
    """The answer to a plan. `has_expired` by the journal's clock."""

    sha256: str
    decision: str
    by: str | None
    expires_at: datetime | None
    has_expired: bool


def plan_of_window(connection: PgConnection, pipeline: str, window: int, revision: int) -> StoredPlan | None:
    """The plan frozen for a window revision, after waiting for whoever is freezing one now."""
    parameters = {"pipeline": pipeline, "number": window, "revision": revision}
    _run(connection, "lock_window_plan", parameters)
    rows = _rows(connection, "plan_of_window", parameters)
    return _stored(rows[0]) if rows else None


def find_plan(connection: PgConnection, plan_id: str) -> StoredPlan | None:
    """A plan by id, or None."""
    rows = _rows(connection, "plan_by_id", {"plan": plan_id})
    return _stored(rows[0]) if rows else None


def get_plan(connection: PgConnection, plan_id: str, *, is_locked: bool = False) -> StoredPlan:
    """A plan by id, locked until the transaction ends when asked.

    Raises:
        PermanentError: there is no such plan.
    """
    rows = _rows(connection, "lock_plan" if is_locked else "plan_by_id", {"plan": plan_id})
    if not rows:
        raise PermanentError(f"there is no plan {plan_id}; `makewhole windows` names the plan of each window")
    return _stored(rows[0])


def put_plan(connection: PgConnection, stored: StoredPlan, actions: Sequence[Action]) -> None:
    """Freeze a plan with its actions."""
    plan = stored.plan
    _run(
        connection,
        "insert_plan",
        {
            "plan": plan.id,
            "pipeline": plan.pipeline,
            "number": plan.window,
            "revision": plan.revision,
            "sha256": plan.sha256,
            "payload_uri": plan.payload_uri,
            "payload_sha256": stored.payload_sha256,
            "counts": json.dumps(dict(plan.counts)),
            "state": plan.state.value,
            "reason": plan.reason,
        },
    )
    with connection.cursor() as cursor:
        execute_values(cursor, load_queries("plan")["insert_actions"], [_action_row(plan.id, a) for a in actions])


def actions_of(connection: PgConnection, plan_id: str) -> list[StoredAction]:
    """Every action of a plan in order."""
    return [
        StoredAction(
            action=Action(
                seq=row[0],
                remedy=Remedy(row[1]),
                hop=row[2],
                target=row[3],
                key=row[4],
                key_hash=row[5],
                payload_sha256=row[6],
                before=row[7],
            ),
            outcome=row[8],
            reason=row[9],
        )
        for row in _rows(connection, "actions_of_plan", {"plan": plan_id})
    ]


def set_state(connection: PgConnection, plan_id: str, state: PlanState, reason: str | None = None) -> None:
    """Move a plan on; a reason replaces the one before it."""
    _run(connection, "set_plan_state", {"plan": plan_id, "state": state.value, "reason": reason})


def put_approval(
    connection: PgConnection,
    plan: Plan,
    *,
    decision: str,
    by: str | None,
    at: datetime,
    expires: timedelta | None,
    seen: Mapping[str, Any],
) -> None:
    """Record the answer to a plan; the first one stays."""
    _run(
        connection,
        "put_approval",
        {
            "plan": plan.id,
            "sha256": plan.sha256,
            "decision": decision,
            "by": by,
            "at": at,
            "expires_seconds": None if expires is None else expires.total_seconds(),
            "seen": json.dumps(dict(seen), default=str),
        },
    )


def approval_of(connection: PgConnection, plan_id: str) -> StoredApproval | None:
    """The answer to a plan, if there is one."""
    rows = _rows(connection, "approval_of_plan", {"plan": plan_id})
    if not rows:
        return None
    sha256, decision, by, expires_at, has_expired = rows[0]
    return StoredApproval(sha256=sha256, decision=decision, by=by, expires_at=expires_at, has_expired=has_expired)


def refuse_actions(connection: PgConnection, plan_id: str, refused: Mapping[int, str]) -> None:
    """Record refusals by action number; one that is recorded already stays."""
    if refused:
        _run(
            connection,
            "refuse_actions",
            {"plan": plan_id, "seqs": list(refused), "reasons": list(refused.values())},
        )


def refused_actions(connection: PgConnection, plan_id: str, seqs: Sequence[int]) -> dict[int, str]:
    """Which of these actions are refused already, with the reason."""
    return dict(_rows(connection, "refused_actions", {"plan": plan_id, "seqs": list(seqs)}))


def follow_receipt(connection: PgConnection, receipt: Receipt, seqs: Iterable[int], refused: Mapping[int, str]) -> None:
    """Copy a receipt that was seen at the target: the chunk, and the outcome of each of its actions."""
    refuse_actions(connection, receipt.plan, refused)
    _run(connection, "finish_actions", {"plan": receipt.plan, "seqs": [seq for seq in seqs if seq not in refused]})
    _run(
        connection,
        "put_chunk",
        {
            "plan": receipt.plan,
            "target": receipt.target,
            "chunk": receipt.chunk,
            "actions": receipt.actions,
            "place": receipt.place,
        },
    )


def chunks_of(connection: PgConnection, plan_id: str) -> list[Receipt]:
    """The receipts that the journal knows of, by target and chunk."""
    return [
        Receipt(plan=plan_id, target=row[0], chunk=row[1], actions=row[2], place=row[3])
        for row in _rows(connection, "chunks_of_plan", {"plan": plan_id})
    ]


def refuse_findings(
    connection: PgConnection, window: tuple[str, int, int], refused: Sequence[tuple[str, str, str]]
) -> None:
    """Mark findings of a window revision (pipeline, number, revision): (hop, key hash, reason) of each."""
    pipeline, number, revision = window
    if refused:
        hops, hashes, reasons = zip(*refused, strict=True)
        _run(
            connection,
            "refuse_findings",
            {
                "pipeline": pipeline,
                "number": number,
                "revision": revision,
                "hops": list(hops),
                "hashes": list(hashes),
                "reasons": list(reasons),
            },
        )


def replayed_keys(connection: PgConnection, pipeline: str, plans: Sequence[str]) -> list[tuple[str, str]]:
    """(plan, key hash) of everything these plans of the pipeline may have written to topics."""
    rows = _rows(connection, "replayed_keys", {"pipeline": pipeline, "plans": list(plans)})
    return [(row[0], row[1]) for row in rows]


def _stored(row: tuple[Any, ...]) -> StoredPlan:
    plan = Plan(
        id=row[0],
        pipeline=row[1],
        window=row[2],
        revision=row[3],
        sha256=row[4],
        payload_uri=row[5],
        counts=row[6],
        state=PlanState(row[7]),
        reason=row[8],
    )
    return StoredPlan(plan=plan, payload_sha256=row[9])


def _action_row(plan_id: str, action: Action) -> tuple[Any, ...]:
    return (
        plan_id,
        action.seq,
        action.remedy.value,
        action.hop,
        action.target,
        action.key,
        action.key_hash,
        action.payload_sha256,
        json.dumps(dict(action.before)),
    )


def _run(connection: PgConnection, name: str, parameters: Mapping[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(load_queries("plan")[name], parameters)


def _rows(connection: PgConnection, name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(load_queries("plan")[name], parameters)
        return cursor.fetchall()
