"""Test what `makewhole plan show` says of a plan beside its actions."""

import pytest

from makewhole.cli.plan.command import _locks
from makewhole.journal.plan_progress import StoredAction
from makewhole.model.pipeline import Remedy
from makewhole.model.plan import Action

pytestmark = pytest.mark.unit


def stored(seq: int, chunk: int, **before: bool) -> StoredAction:
    action = Action(
        seq=seq, remedy=Remedy.UPSERT, hop="h", target="warehouse", key="K", key_hash="0", chunk=chunk, before=before
    )
    return StoredAction(action=action, outcome=None, reason=None)


def test_a_plan_says_how_many_chunks_make_other_writers_wait() -> None:
    actions = [stored(0, 0, locks_table=True), stored(1, 0, locks_table=True), stored(2, 1, locks_table=True)]
    assert _locks([*actions, stored(3, 2)]) == [
        "warehouse has no unique index on its key: its other writers wait during 2 chunks, each for as long as its "
        "transaction takes"
    ]
    assert _locks([stored(3, 2)]) == []
