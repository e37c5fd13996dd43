"""Refuse to write keys that were erased on purpose, as the store says in the transaction of the chunk."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import EffectKind
from makewhole.tables.items import RestoreRow, RowItem, UpsertRow
from makewhole.tables.writing import ErasedKeys

_NONE: Mapping[str, Refusal] = MappingProxyType({})


def refuse_erased(
    point: TablePoint, erased_of: ErasedKeys, items: Sequence[RowItem], by_tombstones: Mapping[str, Refusal] = _NONE
) -> dict[int, Refusal]:
    """Return a refusal, by action number, for each item that would bring back an erased key. `by_tombstones`: the keys
    that the topics of the point say it of, each with its refusal."""
    if point.erased is None:
        return {}
    bringing = [item for item in items if _brings_back(item)]
    erased = erased_of(keys_brought_back(bringing))
    refusal = Refusal(RefusalCode.ERASED, f"{point.name}: {point.erased.description}")
    refused = {**by_tombstones, **dict.fromkeys(erased, refusal)}
    return {item.seq: refused[item.key] for item in bringing if item.key in refused}


def keys_brought_back(items: Sequence[RowItem]) -> list[str]:
    """Return the keys of which items write values."""
    return sorted({item.key for item in items if _brings_back(item)})


def _brings_back(item: RowItem) -> bool:
    """Return whether an item writes values of its key: what is moved aside, or inserted and taken back, does not."""
    match item:
        case UpsertRow():
            return True
        case RestoreRow():
            return item.effect.kind is not EffectKind.INSERTED
        case _:
            return False
