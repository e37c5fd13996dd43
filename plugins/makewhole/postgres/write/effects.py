"""Keep the effects of a plan on people's rows in their own database, written by the transactions that made them."""

from collections.abc import Collection, Iterator

from makewhole.model.errors import RefusedError
from makewhole.sql import PgConnection, record, records, rows_in_pieces, single_value, statements_of
from makewhole.tables.effects import Effect
from makewhole.tables.receipts import KeptAtTarget

_run = statements_of("target")


def effects(session: PgConnection, plan: str, target: str) -> Iterator[list[Effect]]:
    """Yield the effects of a plan at a target, the latest first, the order in which they are undone; so many at a time.

    Runs in the caller's transaction, and locks nothing.

    Raises:
        RefusedError: a chunk has a receipt, and effects are missing.
    """
    place = {"plan": plan, "target": target}
    for missing in _run(session, "chunks_without_effects", **place):
        raise RefusedError(
            f"chunk {missing.chunk} of plan {plan} at {target} has a receipt for {missing.actions} actions and the "
            f"effects of {missing.found}: it was done by a version that kept none, or makewhole.effect "
            "was changed there. It cannot be undone by a plan; restore it by hand"
        )
    for rows in rows_in_pieces(session, "target", "effects_of_plan", place):
        yield [record(Effect, row, **place) for row in rows]


def kept_of_plan(session: PgConnection, plan: str, target: str) -> KeptAtTarget:
    """Count what is kept of a plan at a target, in the caller's transaction."""
    [kept] = records(KeptAtTarget, _run(session, "count_kept_of_plan", plan=plan, target=target))
    return kept


def forget_plan(session: PgConnection, plan: str, target: str, *, only_rows_aside: bool) -> None:
    """Remove the rows that a plan moved aside, and unless these are all that goes, its effects, receipts and fence, in
    the caller's transaction."""
    place = {"plan": plan, "target": target}
    _run(session, "forget_rows_aside", **place)
    if not only_rows_aside:
        for statement in ("forget_effects", "forget_receipts", "forget_fence"):
            _run(session, statement, **place)


def erase_actions(session: PgConnection, plan: str, target: str, seqs: Collection[int]) -> int:
    """Remove the effects of some actions of a plan, and the rows that they moved aside, in the caller's transaction.
    Returns how many rows there were."""
    place = {"plan": plan, "target": target, "seqs": sorted(seqs)}
    aside = single_value(_run(session, "erase_rows_aside", **place))
    return int(aside) + int(single_value(_run(session, "erase_effects", **place)))
