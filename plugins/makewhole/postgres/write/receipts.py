"""Receipts of chunks, kept in the target's own database: written with the rows, or not at all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.model.errors import CorruptionError, LeaseLostError
from makewhole.sql import PgConnection, load_queries


@dataclass(frozen=True, kw_only=True)
class ChunkId:
    """Which chunk of which plan at which target, on whose authority."""

    plan: str
    plan_sha256: str
    target: str
    chunk: int
    lease_epoch: int


@dataclass(frozen=True, kw_only=True)
class ReceiptRow:
    """`actions` took effect; `refused` says which did not, by action number, and why."""

    chunk: int
    actions: int
    lease_epoch: int
    refused: Mapping[int, str] = field(default_factory=dict)


def ensure_schema(connection: PgConnection) -> None:
    """Schema `makewhole` with its tables, created or brought up to date on first need, in one transaction."""
    queries = load_queries("target")
    with connection, connection.cursor() as cursor:
        cursor.execute(queries["has_target_schema"])
        if not _only(cursor.fetchone()):
            cursor.execute(queries["lock_target_schema"])
            cursor.execute(queries["create_target_schema"])


def receipts(connection: PgConnection, plan: str, target: str, plan_sha256: str) -> list[ReceiptRow]:
    """The receipts of a plan at a target, in order of chunk. Runs in the caller's transaction.

    Raises:
        CorruptionError: they have holes, or were given for a plan of another content.
    """
    with connection.cursor() as cursor:
        cursor.execute(load_queries("target")["receipts_of_plan"], {"plan": plan, "target": target})
        found = cursor.fetchall()
    if [row[0] for row in found] != list(range(len(found))) or any(row[2] != plan_sha256 for row in found):
        raise CorruptionError(
            f"the receipts of plan {plan} at {target} do not fit the plan (a hole, or another content); somebody "
            "changed makewhole.receipt in the target database: stop, and compare it with `makewhole plan show`"
        )
    return [
        ReceiptRow(
            chunk=row[0], actions=row[1], lease_epoch=row[3], refused={int(seq): why for seq, why in row[4].items()}
        )
        for row in found
    ]


def fence(connection: PgConnection, plan: str, target: str, lease_epoch: int) -> None:
    """Wait for whoever works on this plan here, and let nobody with an earlier lease begin a chunk of it any more: what
    the receipts say from then on stays true until a runner with this lease or a later one writes.

    Runs in the caller's transaction.

    Raises:
        LeaseLostError: somebody with a later lease has been here.
    """
    _wait_alone(connection, plan, target, lease_epoch)
    parameters = {"plan": plan, "target": target, "lease_epoch": lease_epoch}
    with connection.cursor() as cursor:
        cursor.execute(load_queries("target")["raise_fence"], parameters)


def begin_chunk(connection: PgConnection, chunk: ChunkId) -> ReceiptRow | None:
    """Inside the chunk's transaction: wait for whoever works on this plan here, then say whether it is done already.

    Raises:
        LeaseLostError: a newer runner has been here.
        CorruptionError: chunks before this one have no receipt.
    """
    _wait_alone(connection, chunk.plan, chunk.target, chunk.lease_epoch)
    found = receipts(connection, chunk.plan, chunk.target, chunk.plan_sha256)
    if chunk.chunk < len(found):
        return found[chunk.chunk]
    if chunk.chunk > len(found):
        raise CorruptionError(
            f"plan {chunk.plan}: {chunk.target} has {len(found)} receipts where {chunk.chunk} chunks should be done; "
            "somebody removed rows of makewhole.receipt there"
        )
    return None


def put_receipt(connection: PgConnection, chunk: ChunkId, actions: int, refused: Mapping[int, str]) -> ReceiptRow:
    """The receipt, in the transaction of the rows."""
    parameters: dict[str, Any] = {
        "plan": chunk.plan,
        "target": chunk.target,
        "chunk": chunk.chunk,
        "actions": actions,
        "plan_sha256": chunk.plan_sha256,
        "lease_epoch": chunk.lease_epoch,
        "refused": json.dumps({str(seq): why for seq, why in refused.items()}),
    }
    with connection.cursor() as cursor:
        cursor.execute(load_queries("target")["insert_receipt"], parameters)
    return ReceiptRow(chunk=chunk.chunk, actions=actions, lease_epoch=chunk.lease_epoch, refused=dict(refused))


def _wait_alone(connection: PgConnection, plan: str, target: str, lease_epoch: int) -> None:
    """Nobody else works on this plan here until the transaction ends, and nobody with a later lease has done so."""
    queries, parameters = load_queries("target"), {"plan": plan, "target": target}
    with connection.cursor() as cursor:
        cursor.execute(queries["begin_chunk"])
        cursor.execute(queries["lock_target"], parameters)
        cursor.execute(queries["newest_epoch"], parameters)
        if _only(cursor.fetchone()) > lease_epoch:
            raise LeaseLostError(f"plan {plan}: a newer runner has been at {target}; this one stops")


def _only(row: tuple[Any, ...] | None) -> Any:
    return row[0] if row else None
