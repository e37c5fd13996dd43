"""Read and write the receipts of chunks in the target's own database, in the transaction of the rows."""

import json
from collections.abc import Mapping
from typing import Any

from makewhole.model.errors import CorruptionError, LeaseLostError
from makewhole.model.refusal import Refusal
from makewhole.sql import PgConnection, load_queries
from makewhole.tables.receipts import ChunkId, ReceiptRow


def ensure_schema(session: PgConnection) -> None:
    """Create schema `makewhole` with its tables, or bring it up to date, in one transaction."""
    queries = load_queries("target")
    with session, session.cursor() as cursor:
        cursor.execute(queries["has_target_schema"])
        if not _first_value(cursor.fetchone()):
            cursor.execute(queries["lock_target_schema"])
            cursor.execute(queries["create_target_schema"])


def receipts(session: PgConnection, plan: str, target: str, plan_sha256: str) -> list[ReceiptRow]:
    """Return the receipts of a plan at a target, in order of chunk. Runs in the caller's transaction.

    Raises:
        CorruptionError: they have holes, or were given for a plan of another content.
    """
    with session.cursor() as cursor:
        cursor.execute(load_queries("target")["receipts_of_plan"], {"plan": plan, "target": target})
        found = cursor.fetchall()
    if [row[0] for row in found] != list(range(len(found))) or any(row[2] != plan_sha256 for row in found):
        raise CorruptionError(
            f"the receipts of plan {plan} at {target} do not fit the plan (a hole, or another content); "
            "makewhole.receipt was changed in the target database: stop, and compare it with `makewhole plan show`"
        )
    return [
        ReceiptRow(
            chunk=row[0],
            actions=row[1],
            lease_epoch=row[3],
            refused={int(seq): Refusal.of_text(text) for seq, text in row[4].items()},
        )
        for row in found
    ]


def fence(session: PgConnection, plan: str, target: str, lease_epoch: int) -> None:
    """Wait for the runner that works on this plan here, and refuse new chunks of it from runners with earlier leases.

    From then on the receipts stay as they are until a runner with this lease or a later one writes. Runs in the
    caller's transaction.

    Raises:
        LeaseLostError: a runner with a later lease has been here.
    """
    _lock_target(session, plan, target, lease_epoch)
    parameters = {"plan": plan, "target": target, "lease_epoch": lease_epoch}
    with session.cursor() as cursor:
        cursor.execute(load_queries("target")["raise_fence"], parameters)


def begin_chunk(session: PgConnection, chunk: ChunkId) -> ReceiptRow | None:
    """Wait in the chunk's transaction for the runner that works on this plan here. Returns the receipt if it is done.

    Raises:
        LeaseLostError: a newer runner has been here.
        CorruptionError: chunks before this one have no receipt.
    """
    _lock_target(session, chunk.plan, chunk.target, chunk.lease_epoch)
    found = receipts(session, chunk.plan, chunk.target, chunk.plan_sha256)
    if chunk.chunk < len(found):
        return found[chunk.chunk]
    if chunk.chunk > len(found):
        raise CorruptionError(
            f"plan {chunk.plan}: {chunk.target} has {len(found)} receipts where {chunk.chunk} chunks should be done; "
            "rows of makewhole.receipt were removed there"
        )
    return None


def put_receipt(session: PgConnection, chunk: ChunkId, actions: int, refused: Mapping[int, Refusal]) -> ReceiptRow:
    """Write the receipt of a chunk, in the transaction of its rows."""
    parameters: dict[str, Any] = {
        "plan": chunk.plan,
        "target": chunk.target,
        "chunk": chunk.chunk,
        "actions": actions,
        "plan_sha256": chunk.plan_sha256,
        "lease_epoch": chunk.lease_epoch,
        "refused": json.dumps({str(seq): str(refusal) for seq, refusal in refused.items()}),
    }
    with session.cursor() as cursor:
        cursor.execute(load_queries("target")["insert_receipt"], parameters)
    return ReceiptRow(chunk=chunk.chunk, actions=actions, lease_epoch=chunk.lease_epoch, refused=dict(refused))


def _lock_target(session: PgConnection, plan: str, target: str, lease_epoch: int) -> None:
    """Lock the plan at this target until the transaction ends, and check that no runner with a later lease was here."""
    queries, parameters = load_queries("target"), {"plan": plan, "target": target}
    with session.cursor() as cursor:
        cursor.execute(queries["begin_chunk"])
        cursor.execute(queries["lock_target"], parameters)
        cursor.execute(queries["newest_epoch"], parameters)
        if _first_value(cursor.fetchone()) > lease_epoch:
            raise LeaseLostError(f"plan {plan}: a newer runner has been at {target}; this one stops")


def _first_value(row: tuple[Any, ...] | None) -> Any:
    return row[0] if row else None
