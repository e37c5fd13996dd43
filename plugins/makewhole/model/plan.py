"""What compensation will do: frozen, ordered, hashed before anybody is asked to approve it."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from makewhole.model.pipeline import Remedy

PLAN_HEADER = "makewhole-plan"
"""The record header that names the plan which wrote a record."""


class PlanState(StrEnum):
    FROZEN = "frozen"
    REFUSED = "refused"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    REJECTED = "rejected"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, kw_only=True)
class Action:
    """One item of a plan.

    `payload_sha256` binds it to a row of the plan's payload file (`seq` is the row's place in it). `target` names the
    point that is written. `before` describes what is at the target now, as far as the remedy touches it.
    """

    seq: int
    remedy: Remedy
    hop: str
    target: str
    key: str
    key_hash: str
    payload_sha256: str | None = None
    before: Mapping[str, Any] = field(default_factory=dict)

    def canonical(self) -> str:
        """One line of JSON, the same for the same action on every machine."""
        return json.dumps(
            {
                "seq": self.seq,
                "remedy": self.remedy.value,
                "hop": self.hop,
                "target": self.target,
                "key": self.key,
                "key_hash": self.key_hash,
                "payload_sha256": self.payload_sha256,
                "before": dict(self.before),
            },
            sort_keys=True,
            separators=(",", ":"),
        )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`id` is `<pipeline>-<window>-<first 12 of sha256>`; `payload_uri` names the Parquet file with the payloads."""

    id: str
    pipeline: str
    window: int
    revision: int
    sha256: str
    payload_uri: str | None
    counts: Mapping[str, int]
    state: PlanState
    reason: str | None = None

    @property
    def actions(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The proof that a chunk happened, as found at the target itself. `place` is where: a marker or a receipt row."""

    plan: str
    target: str
    chunk: int
    actions: int
    place: str


def plan_digest(pipeline: str, window: int, actions: Iterable[Action]) -> str:
    """SHA-256 over the pipeline, the window and every action in order: what an approval binds to."""
    digest = hashlib.sha256(f"{pipeline}\n{window}\n".encode())
    for action in actions:
        digest.update(action.canonical().encode())
        digest.update(b"\n")
    return digest.hexdigest()
