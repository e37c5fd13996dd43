"""Read and write what became of a plan's actions: refusals, and the receipts of their chunks.

Every function runs in the caller's transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.journal.actions import SCHEMA, action_of
from makewhole.model.actions import Action
from makewhole.model.plan import Plan, Receipt
from makewhole.model.refusal import Refusal
from makewhole.sql import PgConnection, records, rows_in_pieces, single_value, statements_of

_run = statements_of("plan")


@dataclass(frozen=True, kw_only=True)
class StoredAction:
    """An action with its `outcome`: None, `done` or `refused`, and the refusal of a refused one."""

    action: Action
    outcome: str | None
    refusal: Refusal | None


@dataclass(frozen=True, kw_only=True)
class ChunkActions:
    """The actions of a chunk: those of its target and number, with `first <= seq <= last`."""

    plan: str
    target: str
    chunk: int
    first: int
    last: int


def actions_of(journal: PgConnection, plan_id: str, most: int | None = None) -> Iterator[StoredAction]:
    """Yield the actions of a plan in order: the first so many, or every one. Some of them are in memory at a time."""
    for rows in rows_in_pieces(journal, "plan", "actions_of_plan", {"plan": plan_id, "most": most}):
        yield from map(_stored_action, rows)


def written_records(journal: PgConnection, plan_id: str) -> Iterator[list[Action]]:
    """Yield the actions of a plan that wrote a record to a topic, by their receipts, the last one first; so many at a
    time."""
    for rows in rows_in_pieces(journal, "plan", "written_records", {"plan": plan_id}):
        yield [_stored_action(row).action for row in rows]


def _stored_action(row: Any) -> StoredAction:
    refusal = None if row.reason is None else Refusal.of_text(row.reason)
    action = action_of({name: getattr(row, name) for name in SCHEMA.names})
    return StoredAction(action=action, outcome=row.outcome, refusal=refusal)


def locking_chunks(journal: PgConnection, plan_id: str) -> dict[str, int]:
    """Return the number of chunks of a plan for which other writers of their table wait, by target."""
    return dict(_run(journal, "locking_chunks", plan=plan_id))


def actions_by_target(journal: PgConnection, plan_id: str) -> dict[str, int]:
    """Return the number of actions of a plan by target."""
    return dict(_run(journal, "actions_by_target", plan=plan_id))


def refuse_actions(journal: PgConnection, plan_id: str, refused: Mapping[int, Refusal]) -> None:
    """Write refusals by action number; one that is written already stays."""
    if refused:
        _run(
            journal,
            "refuse_actions",
            plan=plan_id,
            seqs=list(refused),
            reasons=[str(refusal) for refusal in refused.values()],
        )


def refused_actions(journal: PgConnection, wanted: ChunkActions) -> dict[int, Refusal]:
    """Return the refusals of the actions of a chunk that are refused already, by action number."""
    return {seq: Refusal.of_text(text) for seq, text in _run(journal, "refused_actions", **vars(wanted))}


def refused_keys(journal: PgConnection, plan_id: str) -> list[tuple[str, str, Refusal]]:
    """Return (hop, key hash, refusal) of every action that was refused when the plan ran, in order."""
    refused = _run(journal, "refused_keys", plan=plan_id)
    return [(hop, key_hash, Refusal.of_text(text)) for hop, key_hash, text in refused]


def refuse_findings(
    journal: PgConnection, window: tuple[str, int, int], refused: Sequence[tuple[str, str, Refusal]]
) -> None:
    """Mark findings of a window revision (pipeline, number, revision) as refused: (hop, key hash, refusal) of each."""
    pipeline, number, revision = window
    if refused:
        hops, hashes, refusals = zip(*refused, strict=True)
        _run(
            journal,
            "refuse_findings",
            pipeline=pipeline,
            number=number,
            revision=revision,
            hops=list(hops),
            hashes=list(hashes),
            reasons=[str(refusal) for refusal in refusals],
        )


def refuse_findings_of(journal: PgConnection, plan: Plan) -> None:
    """Mark the findings whose actions a plan refused when it ran, in the revision that it is for."""
    window = {"pipeline": plan.pipeline, "number": plan.window, "revision": plan.revision}
    _run(journal, "refuse_findings_of", plan=plan.id, **window)


def chunks_refused_whole(journal: PgConnection, plan_id: str, target: str) -> set[int]:
    """Return the chunks at a target of which every action is refused: nothing of them is ever written."""
    return {chunk for (chunk,) in _run(journal, "chunks_refused_whole", plan=plan_id, target=target)}


def follow_receipt(journal: PgConnection, receipt: Receipt, refused: Mapping[int, Refusal]) -> None:
    """Copy a receipt that was seen at the target: its actions are done, except for those that are refused."""
    refuse_actions(journal, receipt.plan, refused)
    _run(journal, "put_chunk", **vars(receipt))


def chunks_of(journal: PgConnection, plan_id: str) -> list[Receipt]:
    """Return the receipts that the journal knows of, by target and chunk."""
    return records(Receipt, _run(journal, "chunks_of_plan", plan=plan_id))


def actions_done(journal: PgConnection, plan_id: str) -> int:
    """Return the number of actions of a plan that took effect, as far as the journal has seen their receipts."""
    return int(single_value(_run(journal, "actions_done", plan=plan_id)))


def missing_keys_by_store(journal: PgConnection, plan_id: str) -> dict[str, int]:
    """Return how many keys a plan writes that a store was found to lack, by store; refused ones are left out."""
    by_store: dict[str, int] = {}
    for hop, keys in _run(journal, "missing_keys_by_hop", plan=plan_id):
        store = hop.split("→")[1]
        by_store[store] = by_store.get(store, 0) + keys
    return by_store
