"""Describe chunks and their receipts, which a target keeps with the rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from makewhole.model.refusal import Refusal


@dataclass(frozen=True, kw_only=True)
class ChunkId:
    """The identity of a chunk: its plan, target and number, and the lease of the runner that writes it."""

    plan: str
    plan_sha256: str
    target: str
    chunk: int
    lease_epoch: int


@dataclass(frozen=True, kw_only=True)
class ReceiptRow:
    """A receipt: `actions` is the number that took effect, `refused` has the refusal of each other by action number."""

    chunk: int
    actions: int
    lease_epoch: int
    refused: Mapping[int, Refusal] = field(default_factory=dict)


ActionsOfKey = Mapping[str, frozenset[int]]
"""The numbers of the actions of a key, by plan: an undo keeps the rows of the plan that it takes back, too."""


@dataclass(frozen=True, kw_only=True)
class KeptAtTarget:
    """How much is kept of a plan at a target: `effects` with receipts and fences, and rows that it moved aside, of
    which `waiting` were not put back."""

    effects: int
    aside: int
    waiting: int
