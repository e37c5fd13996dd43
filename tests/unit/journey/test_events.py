"""Test that a journey is shown in the order of time, and believes no header."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from makewhole.journal.key_history import Judgement, KeyAction
from makewhole.journey.copies import JourneyCopy
from makewhole.journey.events import events, record_text
from makewhole.journey.trace import Journey, Stop
from makewhole.model.points import PointKind

pytestmark = pytest.mark.unit

PLAN = "flights-1-0123456789ab"
BORN = datetime(2013, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACTION = KeyAction(
    plan=PLAN,
    window=1,
    revision=2,
    plan_state="done",
    plan_reason=None,
    frozen_at=NOW + timedelta(minutes=2),
    decision="approved",
    decided_by="ann",
    decided_at=NOW + timedelta(minutes=3),
    seq=7,
    remedy="redeliver",
    hop="flights→warehouse",
    target="flights",
    outcome="done",
    reason=None,
    chunk=0,
    receipt="here",
    done_at=NOW + timedelta(minutes=4),
)
JUDGED = Judgement(
    window=1,
    revision=2,
    hop="flights→warehouse",
    verdict="missing",
    cause="lost_after_topic",
    evidence={},
    outcome="repaired",
    judged_at=NOW + timedelta(minutes=1),
    verified_at=NOW + timedelta(minutes=5),
)


def record(**changed: Any) -> JourneyCopy:
    identity: dict[str, Any] = {
        "partition": 1,
        "offset": 20,
        "leader_epoch": 3,
        "producer_id": 1000,
        "producer_epoch": 0,
        "sequence": 5,
        "is_transactional": False,
        "is_aborted": False,
        "replay_plan": None,
    }
    return JourneyCopy(place="1:20", time=BORN, values={}, window=1, revision=2, identity=identity | changed)


def journey(
    *copies: JourneyCopy, judgements: tuple[Judgement, ...] = (JUDGED,), actions: tuple[KeyAction, ...] = (ACTION,)
) -> Journey:
    stop = Stop(point="flights", kind=PointKind.TOPIC, system="topic flights", copies=copies, searched=())
    return Journey(
        pipeline="flights", key="K1", key_hash="0" * 32, stops=(stop,), judgements=judgements, actions=actions
    )


def test_a_repair_is_reported_from_the_record_to_the_outcome() -> None:
    timeline = [
        (event.kind, event.where, event.window, event.revision, event.text) for event in events(journey(record()))
    ]
    assert timeline == [
        ("record", "flights", 1, 2, "partition 1 offset 20, leader epoch 3, producer 1000 epoch 0 sequence 5"),
        (
            "judged",
            "flights→warehouse",
            1,
            2,
            "missing: lost_after_topic, its record is in the topic, and the store lacks it",
        ),
        ("planned", "flights", 1, 2, f"redeliver, action 7 of plan {PLAN}; the plan is done"),
        ("decided", "flights", 1, 2, "approval approved by ann"),
        ("done", "flights", 1, 2, "redeliver, chunk 0, receipt here"),
        ("outcome", "flights→warehouse", 1, 2, "repaired"),
    ]


def test_a_verdict_says_what_its_copiers_group_has_committed() -> None:
    commit = {"partition": 1, "lo": 18, "hi": 30, "producer_id": None, "producer_epoch": None}
    judged = replace(JUDGED, cause="never_produced", evidence={"copier_commits": [commit]}, outcome=None)

    (event,) = events(journey(judgements=(judged,), actions=()))

    assert event.text == (
        "missing: never_produced, the source has it, and no batch of the log does; its copier's group committed "
        "[18, 30) of partition 1 outside of any transaction"
    )


def test_a_refused_action_and_a_refused_plan_say_why() -> None:
    refused = replace(
        ACTION, outcome="refused", reason="too old", plan_state="refused", plan_reason="over the limit",
        chunk=None, receipt=None, done_at=None, decision=None, decided_by=None, decided_at=None,
    )  # fmt: skip
    timeline = [(event.kind, event.text) for event in events(journey(judgements=(), actions=(refused,)))]
    assert timeline == [
        ("planned", f"redeliver, action 7 of plan {PLAN}; the plan is refused: over the limit"),
        ("refused", "too old"),
    ]


def test_an_action_that_waits_is_only_planned() -> None:
    waiting = replace(ACTION, outcome=None, plan_state="awaiting_approval", decision=None)
    assert [event.kind for event in events(journey(judgements=(), actions=(waiting,)))] == ["planned"]


def test_what_has_no_time_comes_last() -> None:
    timeline = events(journey(replace(record(), time=None), record(offset=21)))
    assert [event.time for event in timeline][-1] is None


@pytest.mark.parametrize(
    ("changed", "ending"),
    [
        ({"producer_id": -1}, "leader epoch 3, no producer id"),
        ({"is_transactional": True}, "sequence 5, committed"),
        ({"is_tombstone": True}, "sequence 5, a tombstone"),
        ({"is_transactional": True, "is_aborted": True}, "sequence 5, aborted"),
        ({"replay_plan": PLAN}, f"sequence 5, replayed by plan {PLAN}"),
        ({"replay_plan": "forged-1-0123456789ab"}, "names plan forged-1-0123456789ab, which did not replay it"),
    ],
)
def test_a_record_says_what_is_special_about_it(changed: dict[str, Any], ending: str) -> None:
    assert record_text(record(**changed), {PLAN: frozenset({"1:20"})}).endswith(ending)


@pytest.mark.parametrize(("position", "is_ours"), [("1:20", True), ("1:21", False), (None, False)])
def test_a_plan_is_believed_for_no_other_record(position: str | None, is_ours: bool) -> None:
    action = replace(ACTION, position=position)
    timeline = events(journey(record(replay_plan=PLAN), judgements=(), actions=(action,)))
    assert (f"replayed by plan {PLAN}" in timeline[0].text) is is_ours


@pytest.mark.parametrize("unlike", [{"remedy": "quarantine"}, {"outcome": "refused"}, {"plan": "other"}])
def test_a_header_counts_only_when_the_journal_wrote_that_record(unlike: dict[str, Any]) -> None:
    timeline = events(journey(record(replay_plan=PLAN), judgements=(), actions=(replace(ACTION, **unlike),)))
    assert f"names plan {PLAN}, which did not replay it" in timeline[0].text
