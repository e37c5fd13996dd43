"""Hash a plan: what an approval binds to, and what is checked again before the plan runs."""

import hashlib

import pyarrow as pa

from makewhole.journal.actions import copy_actions
from makewhole.model.errors import RefusedError
from makewhole.model.plan import Plan
from makewhole.sql import PgConnection

PLAN_FORMAT = "makewhole plan 2"
"""The first line of what is hashed; a change of the format changes it."""


def plan_hash(pipeline: str, window: int, payload_sha256: str | None) -> "hashlib._Hash":
    """SHA-256 over what a plan is besides its actions; the lines of the actions follow, in order.

    The result is what an approval binds to. `payload_sha256` is None for a plan that writes nothing.
    """
    return hashlib.sha256(f"{PLAN_FORMAT}\n{pipeline}\n{window}\n{payload_sha256 or '-'}\n".encode())


def unchanged_actions(journal: PgConnection, plan: Plan, payload_sha256: str | None) -> pa.Table:
    """Return the actions of a plan as columns of `journal.actions.SCHEMA`, after checking them against its hash.

    Raises:
        RefusedError: something of the plan was changed in the journal since it was frozen.
    """
    digest = plan_hash(plan.pipeline, plan.window, payload_sha256)
    actions = copy_actions(journal, plan.id, digest.update)
    if digest.hexdigest() != plan.sha256:
        raise RefusedError(
            f"plan {plan.id} is not the one that was frozen: its actions were changed in the journal. "
            "Nothing is written; open a new revision of the window"
        )
    return actions
