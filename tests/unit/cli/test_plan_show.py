"""Test what `makewhole plan show` says of a plan beside its actions."""

import json
from collections.abc import Iterator

import pytest

from makewhole.cli.plan.command import _as_json, _locks, _table
from makewhole.journal.plan_progress import StoredAction
from makewhole.model.actions import Action, BeforeUpsert
from makewhole.model.plan import Plan, PlanState
from makewhole.model.refusal import Refusal, RefusalCode

pytestmark = pytest.mark.unit


def test_a_plan_says_how_many_chunks_make_other_writers_wait() -> None:
    assert _locks({"warehouse": 2}) == [
        "warehouse has no unique index on its key: other writers of the table wait during 2 chunks, each for as long "
        "as its transaction takes (about 1 s for 10,000 actions); readers do not. A unique index on exactly the key "
        "makes this needless"
    ]
    assert _locks({}) == []


def test_the_document_of_a_plan_is_one_line_however_it_is_written() -> None:
    plan = Plan(
        id="shop-1-aa",
        pipeline="shop",
        window=1,
        revision=2,
        sha256="aa",
        payload_uri=None,
        counts={"upsert": 2},
        state=PlanState.DONE,
        reason='says "why"',
    )
    actions = [
        StoredAction(
            action=Action(
                seq=seq, hop="a→b", target="b", key=key, key_hash="0", chunk=0, before=BeforeUpsert(place="pg:b")
            ),
            outcome=outcome,
            refusal=refusal,
        )
        for seq, key, outcome, refusal in (
            (0, "ü\n", "done", None),
            (1, "z", "refused", Refusal(RefusalCode.STALE, "it came")),
        )
    ]

    for some in (actions, actions[:1], []):
        (line,) = "".join(_as_json(plan, ["waits"], iter(some), ["risk"], None)).splitlines(keepends=True)
        assert line.endswith("}\n")
        assert json.loads(line) == {
            "id": "shop-1-aa",
            "pipeline": "shop",
            "window": 1,
            "revision": 2,
            "sha256": "aa",
            "state": "done",
            "reason": 'says "why"',
            "idle_since": None,
            "counts": {"upsert": 2},
            "locks": ["waits"],
            "actions": [
                {
                    "seq": 0,
                    "remedy": "upsert",
                    "hop": "a→b",
                    "target": "b",
                    "key": "ü\n",
                    "outcome": "done",
                    "reason": None,
                },
                {
                    "seq": 1,
                    "remedy": "upsert",
                    "hop": "a→b",
                    "target": "b",
                    "key": "z",
                    "outcome": "refused",
                    "reason": "stale: it came",
                },
            ][: len(some)],
            "risks": ["risk"],
        }
        assert line == json.dumps(json.loads(line), ensure_ascii=False) + "\n"


def test_people_see_why_an_action_was_refused() -> None:
    action = Action(seq=7, hop="a→b", target="b", key="k", key_hash="0", chunk=0, before=BeforeUpsert(place="pg:b"))
    refusal = Refusal(RefusalCode.UNFIT, "the table does not take it")
    table = _table([StoredAction(action=action, outcome="refused", refusal=refusal)])
    assert [str(*column.cells) for column in table.columns] == [
        "7",
        "upsert",
        "b",
        "k",
        "refused: unfit: the table does not take it",
    ]


def test_a_plan_is_written_before_all_of_its_actions_are_read() -> None:
    """An action at a time: as many as there are never meet in memory."""
    read: list[int] = []

    def actions() -> Iterator[StoredAction]:
        for seq in range(3):
            read.append(seq)
            action = Action(
                seq=seq, hop="a→b", target="b", key="k", key_hash="0", chunk=0, before=BeforeUpsert(place="pg:b")
            )
            yield StoredAction(action=action, outcome=None, refusal=None)

    plan = Plan(
        id="p", pipeline="p", window=1, revision=1, sha256="a", payload_uri=None, counts={}, state=PlanState.FROZEN
    )
    seen = [list(read) for _ in _as_json(plan, [], actions(), [], None)]

    assert seen == [[], [0], [0, 1], [0, 1, 2], [0, 1, 2]]
