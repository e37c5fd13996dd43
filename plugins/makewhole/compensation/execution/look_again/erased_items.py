"""Refuse to write keys that were erased on purpose, as the store says in the transaction of the chunk."""

from collections.abc import Sequence

from makewhole.model.pipeline import TablePoint
from makewhole.postgres.read.erased import erased_in
from makewhole.postgres.write.effects import EffectKind
from makewhole.postgres.write.halving import RowItem
from makewhole.postgres.write.restore import RestoreRow
from makewhole.postgres.write.upsert_row import UpsertRow
from makewhole.sql import PgConnection


def refuse_erased(point: TablePoint, session: PgConnection, items: Sequence[RowItem]) -> dict[int, str]:
    """Return a refusal, by action number, for each item that would bring back an erased key."""
    if point.erased is None:
        return {}
    bringing = [item for item in items if _brings_back(item)]
    erased = erased_in(session, point, sorted({item.key for item in bringing}))
    reason = f"erased: {point.name}: {point.erased.told_by}"
    return {item.seq: reason for item in bringing if item.key in erased}


def _brings_back(item: RowItem) -> bool:
    """Tell whether an item writes values of its key: what is moved aside, or inserted and taken back, does not."""
    match item:
        case UpsertRow():
            return True
        case RestoreRow():
            return item.effect.kind is not EffectKind.INSERTED
        case _:
            return False
