"""Test that the actions of some effects are found among all that a plan has, wherever they stand."""

import pyarrow as pa
import pytest

from makewhole.compensation.undo.plan_undo import _actions_of, _count_by_target
from makewhole.journal.actions import SCHEMA
from makewhole.model.actions import Action, BeforeUpsert
from makewhole.tables.effects import Effect, EffectKind

pytestmark = pytest.mark.unit


def action(seq: int) -> Action:
    target = "warehouse" if seq % 3 else "lake"
    return Action(
        seq=seq,
        chunk=seq // 4,
        hop=f"orders→{target}",
        target=target,
        key=f"K{seq}",
        key_hash=f"{seq:032x}",
        before=BeforeUpsert(place="pg:warehouse", rows=(f"(0,{seq})",)),
    )


def effect(seq: int) -> Effect:
    return Effect(
        plan="p", target="warehouse", chunk=seq // 4, seq=seq, kind=EffectKind.INSERTED, place="", before=None, after=""
    )


ACTIONS = [action(seq) for seq in range(20)]
ROWS = [{**vars(drafted), "remedy": drafted.remedy.value, "before": drafted.before_text} for drafted in ACTIONS]
PLANNED = pa.concat_tables([pa.Table.from_pylist(ROWS[:7], SCHEMA), pa.Table.from_pylist(ROWS[7:], SCHEMA)])


@pytest.mark.parametrize("seqs", [[19, 17, 2], [0], [19], [8, 7, 6, 5], list(range(20))])
def test_each_effect_has_its_action(seqs: list[int]) -> None:
    assert _actions_of(PLANNED, [effect(seq) for seq in seqs]) == {seq: ACTIONS[seq] for seq in seqs}


def test_actions_are_counted_by_target_without_being_read() -> None:
    assert _count_by_target(PLANNED) == {"lake": 7, "warehouse": 13}
    assert _count_by_target(SCHEMA.empty_table()) == {}
