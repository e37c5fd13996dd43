"""Hash a plan: what an approval binds to, and what is checked again before the plan runs."""

import hashlib
from collections.abc import Iterable

from makewhole.model.plan import Action

PLAN_FORMAT = "makewhole plan 2"
"""The first line of what is hashed; a change of the format changes it."""


def plan_hash(pipeline: str, window: int, payload_sha256: str | None) -> "hashlib._Hash":
    """SHA-256 over what a plan is besides its actions; the lines of the actions follow, in order.

    The result is what an approval binds to. `payload_sha256` is None for a plan that writes nothing.
    """
    return hashlib.sha256(f"{PLAN_FORMAT}\n{pipeline}\n{window}\n{payload_sha256 or '-'}\n".encode())


def plan_digest(pipeline: str, window: int, payload_sha256: str | None, actions: Iterable[Action]) -> str:
    """The SHA-256 of a plan, as 64 hexadecimal digits."""
    digest = plan_hash(pipeline, window, payload_sha256)
    for action in actions:
        digest.update(action.line())
    return digest.hexdigest()
