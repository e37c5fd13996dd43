"""Keep the effects of a plan on people's rows in their own database, written by the transactions that made them."""

from collections.abc import Iterator

from makewhole.model.errors import RefusedError
from makewhole.sql import PgConnection, load_queries, rows_in_pieces
from makewhole.tables.effects import Effect, EffectKind


def effects(session: PgConnection, plan: str, target: str) -> Iterator[list[Effect]]:
    """Yield the effects of a plan at a target, the latest first, the order in which they are undone; so many at a time.

    Runs in the caller's transaction, and locks nothing.

    Raises:
        RefusedError: a chunk has a receipt, and effects are missing.
    """
    queries, parameters = load_queries("target"), {"plan": plan, "target": target}
    with session.cursor() as cursor:
        cursor.execute(queries["chunks_without_effects"], parameters)
        missing = cursor.fetchall()
        if missing:
            raise RefusedError(
                f"chunk {missing[0][0]} of plan {plan} at {target} has a receipt for {missing[0][1]} actions and the "
                f"effects of {missing[0][2]}: it was done by a version that kept none, or makewhole.effect "
                "was changed there. It cannot be undone by a plan; restore it by hand"
            )
    for rows in rows_in_pieces(session, "target", "effects_of_plan", parameters):
        yield [
            Effect(
                plan=plan,
                target=target,
                chunk=row[0],
                seq=row[1],
                kind=EffectKind(row[2]),
                place=row[3],
                before=row[4],
                after=row[5],
            )
            for row in rows
        ]
