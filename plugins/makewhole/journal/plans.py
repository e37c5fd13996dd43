"""Plans, their actions, approvals and chunks in the journal. Every function runs in the caller's transaction."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from makewhole.journal.actions import put_actions
from makewhole.model.errors import PermanentError
from makewhole.model.pipeline import Remedy
from makewhole.model.plan import Action, Plan, PlanState, Receipt
from makewhole.sql import PgConnection, load_queries

LogEnds = Mapping[str, Mapping[int, int]]
"""Target → partition → stable offset."""


class Control(StrEnum):
    """What a runner is told to do with its next chunk."""

    RUN = "run"
    PAUSE = "pause"


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """A plan with the digest of its payload file, how it is steered, and how far its life has come.

    `records_per_second` None: the pipeline's. `log_ends` are where the logs of its targets ended when it was first
    begun; None: it never was.
    """

    plan: Plan
    payload_sha256: str | None
    control: Control = Control.RUN
    records_per_second: int | None = None
    began_at: datetime | None = None
    ended_at: datetime | None = None
    log_ends: LogEnds | None = None


@dataclass(frozen=True, kw_only=True)
class StoredAction:
    """An action with what became of it: `outcome` is None, `done` or `refused`."""

    action: Action
    outcome: str | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class ChunkActions:
    """Which actions a chunk has: those of its target and number, with `first <= seq <= last`."""

    plan: str
    target: str
    chunk: int
    first: int
    last: int


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


def undo_of(connection: PgConnection, plan_id: str) -> StoredPlan | None:
    """The plan that undoes this one, unless it was turned down."""
    rows = _rows(connection, "undo_of_plan", {"plan": plan_id})
    return _stored(rows[0]) if rows else None


def newest_undo_of(connection: PgConnection, plan_id: str) -> StoredPlan | None:
    """The plan that was last made to undo this one, turned down or not."""
    rows = _rows(connection, "newest_undo_of_plan", {"plan": plan_id})
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


def plans_before(connection: PgConnection, pipeline: str, window: int, revision: int) -> list[StoredPlan]:
    """The plans of earlier revisions of a window that could still write, or of which nobody has asked yet what they
    wrote before they were stopped."""
    parameters = {"pipeline": pipeline, "number": window, "revision": revision}
    return [_stored(row) for row in _rows(connection, "plans_before", parameters)]


def put_plan(connection: PgConnection, stored: StoredPlan, actions: Iterable[Action]) -> None:
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
            "undoes": plan.undoes,
        },
    )
    put_actions(connection, plan.id, actions)


def actions_of(connection: PgConnection, plan_id: str) -> list[StoredAction]:
    """Every action of a plan in order."""
    return [
        StoredAction(
            action=Action(
                seq=row[0],
                chunk=row[1],
                remedy=Remedy(row[2]),
                hop=row[3],
                target=row[4],
                key=row[5],
                key_hash=row[6],
                before=json.loads(row[7]),
            ),
            outcome=row[8],
            reason=row[9],
        )
        for row in _rows(connection, "actions_of_plan", {"plan": plan_id})
    ]


def set_state(connection: PgConnection, plan_id: str, state: PlanState, reason: str | None = None) -> None:
    """Move a plan on; a reason replaces the one before it."""
    _run(connection, "set_plan_state", {"plan": plan_id, "state": state.value, "reason": reason, "superseded_by": None})


def supersede(connection: PgConnection, plan_id: str, revision: int) -> None:
    """Reject a plan in favour of a later revision of its window; one that has ended stays as it is."""
    _run(
        connection,
        "set_plan_state",
        {
            "plan": plan_id,
            "state": PlanState.REJECTED.value,
            "reason": f"superseded by revision {revision}",
            "superseded_by": revision,
        },
    )


def settle(connection: PgConnection, plan_id: str, *, is_untold: bool) -> None:
    """Another plan took the place of this one. `is_untold`: what it wrote cannot be known any more."""
    _run(connection, "settle_plan", {"plan": plan_id, "is_untold": is_untold})


def set_control(connection: PgConnection, plan_id: str, control: Control, reason: str) -> None:
    """What the runner does with its next chunk, and who said so."""
    _run(connection, "set_plan_control", {"plan": plan_id, "control": control.value, "reason": reason})


def set_rate(connection: PgConnection, plan_id: str, records_per_second: int | None, reason: str) -> None:
    """How fast the plan goes from its next chunk on, and who said so. None: as the pipeline says."""
    parameters = {"plan": plan_id, "records_per_second": records_per_second, "reason": reason}
    _run(connection, "set_plan_rate", parameters)


def begin(connection: PgConnection, plan_id: str, log_ends: LogEnds) -> None:
    """The plan runs from now on. `log_ends` are kept the first time only."""
    _run(connection, "begin_plan", {"plan": plan_id, "log_ends": json.dumps(log_ends)})


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


def refused_actions(connection: PgConnection, wanted: ChunkActions) -> dict[int, str]:
    """Which actions of a chunk are refused already, by number, with the reason."""
    return dict(_rows(connection, "refused_actions", vars(wanted)))


def chunks_refused_whole(connection: PgConnection, plan_id: str, target: str) -> set[int]:
    """The chunks at a target of which every action is refused: nothing of them is ever written."""
    return {row[0] for row in _rows(connection, "chunks_refused_whole", {"plan": plan_id, "target": target})}


def follow_receipt(connection: PgConnection, receipt: Receipt, refused: Mapping[int, str]) -> None:
    """Copy a receipt that was seen at the target. Its actions are done with that, but for those that are refused."""
    refuse_actions(connection, receipt.plan, refused)
    _run(connection, "put_chunk", vars(receipt))


def actions_by_target(connection: PgConnection, plan_id: str) -> dict[str, int]:
    """How many actions a plan has for each target."""
    return dict(_rows(connection, "actions_by_target", {"plan": plan_id}))


def name_successor(connection: PgConnection, plan: Plan) -> None:
    """Name a plan in those that its revision of the window superseded, now or before somebody was killed."""
    parameters = {"pipeline": plan.pipeline, "number": plan.window, "revision": plan.revision}
    _run(connection, "name_successor", {**parameters, "named": f"superseded by plan {plan.id}"})


def actions_done(connection: PgConnection, plan_id: str) -> int:
    """How many actions of a plan took effect, as far as the journal has seen their receipts."""
    return int(_rows(connection, "actions_done", {"plan": plan_id})[0][0])


def chunks_of(connection: PgConnection, plan_id: str) -> list[Receipt]:
    """The receipts that the journal knows of, by target and chunk."""
    return [
        Receipt(plan=plan_id, target=row[0], chunk=row[1], actions=row[2], place=row[3])
        for row in _rows(connection, "chunks_of_plan", {"plan": plan_id})
    ]


def keys_written_since(
    connection: PgConnection, window: tuple[str, int, int], keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, bool]]:
    """Which of these keys (hop, key hash) a plan of the pipeline wrote after the window revision (pipeline, number,
    revision) was opened: which plan, and whether that is proven. It is not where nothing tells what the plan wrote."""
    pipeline, number, revision = window
    parameters = {
        "pipeline": pipeline,
        "number": number,
        "revision": revision,
        "hops": [hop for hop, _ in keys],
        "hashes": [key_hash for _, key_hash in keys],
    }
    return {(row[0], row[1]): (row[2], row[3]) for row in _rows(connection, "keys_written_since", parameters)}


def refused_keys(connection: PgConnection, plan_id: str) -> list[tuple[str, str, str]]:
    """(hop, key hash, reason) of every action that was refused when the plan ran, in order."""
    return [(row[0], row[1], row[2]) for row in _rows(connection, "refused_keys", {"plan": plan_id})]


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
        undoes=row[9],
    )
    return StoredPlan(
        plan=plan,
        payload_sha256=row[10],
        control=Control(row[11]),
        records_per_second=row[12],
        began_at=row[13],
        ended_at=row[14],
        log_ends=None if row[15] is None else _log_ends(row[15]),
    )


def _log_ends(stored: Mapping[str, Mapping[str, int]]) -> LogEnds:
    """As the journal has them, where JSON makes text of every name."""
    return {target: {int(number): end for number, end in ends.items()} for target, ends in stored.items()}


def _run(connection: PgConnection, name: str, parameters: Mapping[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(load_queries("plan")[name], parameters)


def _rows(connection: PgConnection, name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(load_queries("plan")[name], parameters)
        return cursor.fetchall()
