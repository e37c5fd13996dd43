"""Check which items of a chunk would bring back a key that was erased on purpose."""

from collections.abc import Sequence

import pytest

from makewhole.compensation.execution.look_again.erased_items import refuse_erased
from makewhole.model.points import Erased, PointKind, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.items import QuarantineRows, RestoreRow, RowItem, UpsertRow

pytestmark = pytest.mark.unit

STORE = TablePoint(
    name="store", kind=PointKind.STORE, connection="db", table="store", key=("id",), erased=Erased(column="deleted_at")
)
REFUSAL = Refusal(RefusalCode.ERASED, "store: its row has a value in deleted_at")


def upsert(seq: int, key: str) -> UpsertRow:
    return UpsertRow(seq=seq, key=key, key_columns=("id",), value="{}", columns=("id",), before=(), expected=())


def restore(seq: int, key: str, kind: EffectKind) -> RestoreRow:
    effect = Effect(plan="p", target="store", chunk=0, seq=0, kind=kind, place="(0,1)", before=None, after=None)
    return RestoreRow(seq=seq, key=key, effect=effect)


class Asked:
    """The store, which names key `gone` as erased; `questions`: what it was asked."""

    def __init__(self) -> None:
        self.questions: list[list[str]] = []

    def erased(self, keys: Sequence[str]) -> set[str]:
        self.questions.append(list(keys))
        return {"gone"}.intersection(keys)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_what_writes_values_of_an_erased_key_is_refused_and_what_takes_them_away_is_not(asked: Asked) -> None:
    items: list[RowItem] = [
        upsert(0, "gone"),
        upsert(1, "kept"),
        QuarantineRows(seq=2, key="gone", survivor=None, extras=()),
        *(restore(3 + at, "gone", kind) for at, kind in enumerate(EffectKind)),
    ]

    refused = refuse_erased(STORE, asked.erased, items)

    inserted = 3 + list(EffectKind).index(EffectKind.INSERTED)
    bringing = [0, *(3 + at for at in range(len(EffectKind)) if 3 + at != inserted)]
    assert refused == dict.fromkeys(bringing, REFUSAL)
    assert asked.questions == [["gone", "kept"]]


def test_a_store_that_names_no_erasures_is_not_asked(asked: Asked) -> None:
    plain = TablePoint(name="store", kind=PointKind.STORE, connection="db", table="store", key=("id",))

    assert refuse_erased(plain, asked.erased, [upsert(0, "gone")]) == {}
    assert asked.questions == []
