"""Keep the effects of a plan on people's rows in their own database, written by the transactions that made them."""

from collections.abc import Iterator

from makewhole.model.errors import RefusedError
from makewhole.sql import PgConnection, record, rows_in_pieces, statements_of
from makewhole.tables.effects import Effect

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
