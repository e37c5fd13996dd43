"""Read and write the receipts of chunks in the target's own database, in the transaction of the rows."""

import json
from collections.abc import Mapping

from makewhole.model.errors import CorruptionError, LeaseLostError
from makewhole.model.refusal import Refusal
from makewhole.sql import PgConnection, single_value, statements_of
from makewhole.tables.receipts import ChunkId, ReceiptRow

_run = statements_of("target")


def ensure_schema(session: PgConnection) -> None:
    """Create schema `makewhole` with its tables, or bring it up to date, in one transaction."""
    with session:
        if not single_value(_run(session, "has_target_schema")):
            _run(session, "lock_target_schema")
            _run(session, "create_target_schema")


def receipts(session: PgConnection, plan: str, target: str, plan_sha256: str) -> list[ReceiptRow]:
    """Return the receipts of a plan at a target, in order of chunk. Runs in the caller's transaction.

    Raises:
        CorruptionError: they have holes, or were given for a plan of another content.
    """
    rows = _run(session, "receipts_of_plan", plan=plan, target=target)
    is_whole = [row.chunk for row in rows] == list(range(len(rows)))
    if not is_whole or any(row.plan_sha256 != plan_sha256 for row in rows):
        raise CorruptionError(
            f"the receipts of plan {plan} at {target} do not fit the plan (a hole, or another content); "
            "makewhole.receipt was changed in the target database: stop, and compare it with `makewhole plan show`"
        )
    return [
        ReceiptRow(
            chunk=row.chunk,
            actions=row.actions,
            lease_epoch=row.lease_epoch,
            refused={int(seq): Refusal.of_text(text) for seq, text in row.refused.items()},
        )
        for row in rows
    ]


def fence(session: PgConnection, plan: str, target: str, lease_epoch: int) -> None:
    """Wait for the runner that works on this plan here, and refuse new chunks of it from runners with earlier leases.

    From then on the receipts stay as they are until a runner with this lease or a later one writes. Runs in the
    caller's transaction.

    Raises:
        LeaseLostError: a runner with a later lease has been here.
    """
    _lock_target(session, plan, target, lease_epoch)
    _run(session, "raise_fence", plan=plan, target=target, lease_epoch=lease_epoch)


def begin_chunk(session: PgConnection, chunk: ChunkId) -> ReceiptRow | None:
    """Wait in the chunk's transaction for the runner that works on this plan here. Returns the receipt if it is done.

    Raises:
        LeaseLostError: a newer runner has been here.
        CorruptionError: chunks before this one have no receipt.
    """
    _lock_target(session, chunk.plan, chunk.target, chunk.lease_epoch)
    done = receipts(session, chunk.plan, chunk.target, chunk.plan_sha256)
    if chunk.chunk < len(done):
        return done[chunk.chunk]
    if chunk.chunk > len(done):
        raise CorruptionError(
            f"plan {chunk.plan}: {chunk.target} has {len(done)} receipts where {chunk.chunk} chunks should be done; "
            "rows of makewhole.receipt were removed there"
        )
    return None


def put_receipt(session: PgConnection, chunk: ChunkId, actions: int, refused: Mapping[int, Refusal]) -> ReceiptRow:
    """Write the receipt of a chunk, in the transaction of its rows."""
    texts = json.dumps({str(seq): str(refusal) for seq, refusal in refused.items()})
    _run(session, "insert_receipt", **vars(chunk), actions=actions, refused=texts)
    return ReceiptRow(chunk=chunk.chunk, actions=actions, lease_epoch=chunk.lease_epoch, refused=dict(refused))


def _lock_target(session: PgConnection, plan: str, target: str, lease_epoch: int) -> None:
    """Lock the plan at this target until the transaction ends, and check that no runner with a later lease was here."""
    _run(session, "begin_chunk")
    _run(session, "lock_target", plan=plan, target=target)
    if single_value(_run(session, "newest_epoch", plan=plan, target=target)) > lease_epoch:
        raise LeaseLostError(f"plan {plan}: a newer runner has been at {target}; this one stops")
