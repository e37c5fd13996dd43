"""Planning is pure: order, reversals, limits and digest of the actions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.planning.draft import draft_plan, over_limits
from makewhole.compensation.planning.draft_actions import source_position
from makewhole.compensation.planning.to_repair import keys_to_reverse
from makewhole.model.actions import BeforeProduce, BeforeRedeliver, DisputedBy
from makewhole.model.hops import Remedy, Semantics
from makewhole.model.pipeline import Approval, Limits
from makewhole.model.points import TablePoint, TopicPoint
from makewhole.model.reversal import PastReversals, Repetition, ReversedCopy
from makewhole.model.verdict import Verdict
from tests.unit.compensation.planning.drafted import (
    COPY,
    finding_of,
    pipeline_of,
    plan_actions,
    reversing_pipeline,
    with_evidence,
)

pytestmark = pytest.mark.unit


def test_order_is_hop_then_remedy_then_key_whatever_the_order_of_findings() -> None:
    findings = [
        finding_of("b", Verdict.DUPLICATE, "topic→store"),
        finding_of("z", Verdict.MISSING, "topic→store"),
        finding_of("a", Verdict.MISSING, "topic→store"),
        finding_of("k", Verdict.MISSING, "ledger→topic"),
    ]
    expected = [
        (0, Remedy.PRODUCE, "topic", "k"),
        (1, Remedy.REDELIVER, "topic", "a"),
        (2, Remedy.REDELIVER, "topic", "z"),
        (3, Remedy.QUARANTINE, "store", "b"),
    ]
    for given_order in (findings, findings[::-1]):
        actions = plan_actions(pipeline_of(), given_order)
        assert [(action.seq, action.remedy, action.target, action.key) for action in actions] == expected


def test_an_action_that_sends_names_every_point_that_lacks_the_key() -> None:
    """They are asked again before it is sent. A point that has the key with another value lacks nothing."""
    pipeline = pipeline_of(mismatched=Remedy.REDELIVER)
    second = replace(pipeline.points["store"], name="second")
    hop = replace(pipeline.hops[1], semantics=Semantics.UPSERT)
    pipeline = replace(
        pipeline,
        points={**pipeline.points, "second": second},
        hops=(pipeline.hops[0], hop, replace(hop, target="second")),
    )
    latest = {"latest": COPY}
    findings = [
        finding_of("a", Verdict.MISSING, "ledger→topic"),
        with_evidence(finding_of("b", Verdict.MISSING, "topic→store"), **latest),
        with_evidence(finding_of("b", Verdict.MISSING, "topic→second"), **latest),
        with_evidence(finding_of("c", Verdict.MISSING, "topic→store"), **latest),
        with_evidence(finding_of("c", Verdict.MISMATCHED, "topic→second"), **latest),
        with_evidence(finding_of("d", Verdict.MISMATCHED, "topic→store"), **latest),
    ]

    missing_in = {action.key: action.before.absent_at for action in plan_actions(pipeline, findings)}

    assert missing_in == {"a": ("topic",), "b": ("second", "store"), "c": (), "d": ()}


@given(st.permutations([f"k{number}" for number in range(8)]))
def test_what_is_hashed_does_not_depend_on_the_order_of_findings(keys: list[str]) -> None:
    def hashed(names: list[str]) -> list[bytes]:
        findings = [finding_of(name, Verdict.MISSING, "topic→store") for name in names]
        return [action.line() for action in plan_actions(pipeline_of(), findings)]

    assert hashed(keys) == hashed(sorted(keys))


def test_what_is_not_known_or_only_reported_gives_no_action() -> None:
    findings = [
        finding_of("a", Verdict.PENDING, "topic→store"),
        finding_of("b", Verdict.UNDECIDABLE, "topic→store"),
        finding_of("c", Verdict.UNEXPECTED, "topic→store"),
    ]
    draft = draft_plan(pipeline_of(), findings, window_keys=10)
    assert (draft.drafts, draft.refusals, draft.refused_as_a_whole, draft.needs_approval) == ((), (), None, False)


def test_a_replay_topic_takes_the_redelivered_records_and_is_frozen_as_the_target() -> None:
    pipeline = pipeline_of()
    retry = TopicPoint(name="retry", connection="other", topic="flights-retry", key=("$.id",))
    hops = tuple(replace(hop, redeliver_to="retry") for hop in pipeline.hops)
    pipeline = replace(pipeline, points={**pipeline.points, "retry": retry}, hops=hops)
    findings = [finding_of("a", Verdict.MISSING, "topic→store"), finding_of("b", Verdict.MISSING, "ledger→topic")]

    steps = draft_plan(pipeline, findings, window_keys=10).drafts

    assert [(step.action.remedy, step.action.target, step.action.before, step.origin) for step in steps] == [
        (
            Remedy.PRODUCE,
            "topic",
            BeforeProduce(
                place="kafka:flights",
                absent_at=("topic",),
                once=("store",),
                disputed_by=DisputedBy(starts=("ledger→topic",)),
                accepted_by=("topic→store",),
            ),
            None,
        ),
        (
            Remedy.REDELIVER,
            "retry",
            BeforeRedeliver(
                place="other:flights-retry",
                absent_at=("store",),
                once=("store",),
                repeats="topic",
                resent_to=("topic→store",),
                disputed_by=DisputedBy(ends=("ledger→topic",), starts=("ledger→topic", "topic→store")),
                accepted_by=("topic→store",),
            ),
            (1, 17),
        ),
    ]


def test_every_extra_copy_has_a_draft_of_its_own_after_everything_else() -> None:
    repeated = finding_of("r", Verdict.DUPLICATE, "ledger→topic")
    rows = finding_of("s", Verdict.DUPLICATE, "topic→store")
    unmatched = finding_of("u", Verdict.UNEXPECTED, "topic→store")
    findings = [
        with_evidence(unmatched, target_copies=1),
        with_evidence(rows, target_copies=3),
        with_evidence(repeated, target_copies=2, repeated={"here": ["0:7", "1:2"], "elsewhere": 0}),
        finding_of("m", Verdict.MISSING, "topic→store"),
    ]
    pipeline = reversing_pipeline(duplicate=Remedy.REVERSE, unexpected=Remedy.REVERSE)

    steps = draft_plan(pipeline, findings, window_keys=100).drafts

    assert [(step.action.seq, step.action.remedy, step.action.target, step.action.key) for step in steps] == [
        (0, Remedy.REVERSE, "back", "r"),
        (1, Remedy.REDELIVER, "topic", "m"),
        (2, Remedy.REVERSE, "back", "s"),
        (3, Remedy.REVERSE, "back", "s"),
        (4, Remedy.REVERSE, "back", "u"),
    ]
    assert [step.extra for step in steps] == [0, 0, 0, 1, 0]
    assert [step.repetition for step in steps if step.repetition] == [Repetition(number=2, partition=1, offset=2)]
    assert {step.action.before.place for step in steps if step.action.target == "back"} == {"kafka:reversals"}
    assert keys_to_reverse(pipeline, findings) == {finding.key_hash for finding in findings[:3]}


def test_rows_that_were_taken_back_do_not_count_against_the_limits() -> None:
    finding = with_evidence(finding_of("a", Verdict.DUPLICATE, "topic→store"), target_copies=4)
    pipeline = replace(
        reversing_pipeline(duplicate=Remedy.REVERSE), limits=Limits(actions=1), approval=Approval(above_actions=1)
    )
    copy = ReversedCopy(plan="p", window=1, seq=0, target="back", place="pg:dw.flights", copy={}, is_done=True)

    drafts = [
        draft_plan(
            pipeline, [finding], window_keys=100, past=PastReversals(reversed={finding.key_hash: (copy,) * done})
        )
        for done in (1, 2)
    ]

    assert [(draft.refused_as_a_whole is None, draft.needs_approval) for draft in drafts] == [
        (False, True),
        (True, False),
    ]


def test_events_repeat_their_first_copy_and_upserts_their_latest_version() -> None:
    finding = finding_of("a", Verdict.MISSING, "topic→store", source=[COPY, {"partition": 1, "offset": 20}])
    assert source_position(finding) == (1, 17)
    assert source_position(finding, Semantics.UPSERT) is None
    latest = {"partition": 0, "offset": 3, "version": 9}
    named = replace(finding, evidence={**finding.evidence, "latest": latest})
    assert source_position(named, Semantics.UPSERT) == (0, 3)


def test_a_record_that_two_stores_lack_is_redelivered_once() -> None:
    pipeline = pipeline_of()
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    other = replace(store, name="other", table="dw.other")
    hops = (*pipeline.hops, replace(pipeline.hops[1], target="other"))
    pipeline = replace(pipeline, points={**pipeline.points, "other": other}, hops=hops)
    findings = [finding_of(key, Verdict.MISSING, hop) for key in "ab" for hop in ("topic→store", "topic→other")]
    findings[2:] = [with_evidence(finding, source=[{"partition": 0, "offset": 1}]) for finding in findings[2:]]

    draft = draft_plan(pipeline, findings, window_keys=10)

    assert [(step.action.seq, step.action.hop, step.action.key) for step in draft.drafts] == [
        (0, "topic→store", "a"),
        (1, "topic→store", "b"),
    ]
    assert draft.refusals == ()


def test_limits_hold_up_to_their_value_and_refuse_above() -> None:
    limits = Limits(actions=10, share=0.1)
    assert over_limits(limits, actions=10, keys=10, window_keys=100) is None
    assert over_limits(limits, actions=11, keys=11, window_keys=1000) == (
        "11 actions are more than the limit of 10; find out what broke before repairing it, then raise "
        "compensation.limits.actions"
    )
    assert over_limits(limits, actions=10, keys=10, window_keys=99) == (
        "10 keys are more than the share of 0.1 of the window's 99 keys; find out what broke before repairing it, "
        "then raise compensation.limits.share"
    )


def test_several_actions_on_one_key_are_one_key_of_the_share() -> None:
    findings = [finding_of("k", Verdict.MISSING, hop) for hop in ("ledger→topic", "topic→store")]
    pipeline = replace(pipeline_of(), limits=Limits(share=1.0))
    draft = draft_plan(pipeline, findings, window_keys=1)
    assert (len(draft.drafts), draft.refused_as_a_whole) == (2, None)


def test_approval_is_needed_above_its_limit_only() -> None:
    findings = [finding_of(str(number), Verdict.MISSING, "topic→store") for number in range(3)]
    pipeline = replace(pipeline_of(), approval=Approval(above_actions=3))
    assert not draft_plan(pipeline, findings, window_keys=100).needs_approval
    pipeline = replace(pipeline, approval=Approval(above_actions=2))
    assert draft_plan(pipeline, findings, window_keys=100).needs_approval
