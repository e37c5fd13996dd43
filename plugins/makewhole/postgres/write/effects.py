"""Keep the effects of a plan on people's rows in their own database, written by the transactions that made them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from makewhole.model.errors import RefusedError
from makewhole.sql import PgConnection, load_queries, rows_in_pieces


class EffectKind(StrEnum):
    """The change that an action made to a row."""

    INSERTED = "inserted"
    UPDATED = "updated"
    MOVED = "moved"
    """Moved aside, into `makewhole.quarantine`."""
    DELETED = "deleted"
    """Only an undo deletes: what its plan had inserted."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The change of one row by one action. `place` is where the row is now, or where it was when it is gone.

    `before` and `after` are PostgreSQL's row literals: exact for every type, triggers and defaults included. An insert
    has no `before`. Of a row that was moved aside, `after` is the row of its key that stayed, if one did.
    """

    plan: str
    target: str
    chunk: int
    seq: int
    kind: EffectKind
    place: str
    before: str | None
    after: str | None

    @property
    def fields(self) -> dict[str, Any]:
        """The effect as JSON types, for the payload of the action that restores it."""
        return asdict(self)


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
