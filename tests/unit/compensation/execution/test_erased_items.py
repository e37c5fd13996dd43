"""Check which items of a chunk would bring back a key that was erased on purpose."""

from collections.abc import Sequence
from typing import cast

import pytest

from makewhole.compensation.execution.look_again import erased_items
from makewhole.compensation.execution.look_again.erased_items import refuse_erased
from makewhole.model.points import Erased, PointKind, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.postgres.write.effects import Effect, EffectKind
from makewhole.postgres.write.halving import RowItem
from makewhole.postgres.write.quarantine import QuarantineRows
from makewhole.postgres.write.restore import RestoreRow
from makewhole.postgres.write.upsert_row import UpsertRow
from makewhole.sql import PgConnection

pytestmark = pytest.mark.unit

SESSION = cast(PgConnection, None)
STORE = TablePoint(
    name="store", kind=PointKind.STORE, connection="db", table="store", key=("id",), erased=Erased(column="deleted_at")
)
REFUSAL = Refusal(RefusalCode.ERASED, "store: its row has a value in deleted_at")


def upsert(seq: int, key: str) -> UpsertRow:
    return UpsertRow(seq=seq, key=key, key_columns=("id",), value="{}", columns=("id",), before=(), expected=())


def restore(seq: int, key: str, kind: EffectKind) -> RestoreRow:
    effect = Effect(plan="p", target="store", chunk=0, seq=0, kind=kind, place="(0,1)", before=None, after=None)
    return RestoreRow(seq=seq, key=key, effect=effect)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Have the store name key `gone` as erased; return what it was asked."""
    questions: list[list[str]] = []

    def erased_in(_: PgConnection, __: TablePoint, keys: Sequence[str]) -> set[str]:
        questions.append(list(keys))
        return {"gone"}.intersection(keys)

    monkeypatch.setattr(erased_items, "erased_in", erased_in)
    return questions


def test_what_writes_values_of_an_erased_key_is_refused_and_what_takes_them_away_is_not(asked: list[list[str]]) -> None:
    items: list[RowItem] = [
        upsert(0, "gone"),
        upsert(1, "kept"),
        QuarantineRows(seq=2, key="gone", survivor=None, extras=()),
        *(restore(3 + at, "gone", kind) for at, kind in enumerate(EffectKind)),
    ]

    refused = refuse_erased(STORE, SESSION, items)

    inserted = 3 + list(EffectKind).index(EffectKind.INSERTED)
    bringing = [0, *(3 + at for at in range(len(EffectKind)) if 3 + at != inserted)]
    assert refused == dict.fromkeys(bringing, REFUSAL)
    assert asked == [["gone", "kept"]]


def test_a_store_that_names_no_erasures_is_not_asked(asked: list[list[str]]) -> None:
    plain = TablePoint(name="store", kind=PointKind.STORE, connection="db", table="store", key=("id",))

    assert refuse_erased(plain, SESSION, [upsert(0, "gone")]) == {}
    assert asked == []
