"""Planning is pure: order, refusals, limits and digest of the actions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compensation.freezing.plan_hash import plan_digest
from makewhole.compensation.planning.draft import draft_plan, over_limits, plan_actions, source_position
from makewhole.compensation.planning.remedy_of import keys_to_reverse
from makewhole.model.pipeline import (
    Approval,
    Hop,
    Limits,
    Pipeline,
    PointKind,
    Remedies,
    Remedy,
    Reverse,
    Semantics,
    TablePoint,
    TopicPoint,
)
from makewhole.model.reversal import PastReversals, Repetition, ReversedCopy
from makewhole.model.verdict import Cause, Finding, Verdict

pytestmark = pytest.mark.unit

COPY = {"partition": 1, "offset": 17}


def test_order_is_hop_then_remedy_then_key_whatever_the_order_of_findings() -> None:
    findings = [
        _finding("b", Verdict.DUPLICATE, "topic→store"),
        _finding("z", Verdict.MISSING, "topic→store"),
        _finding("a", Verdict.MISSING, "topic→store"),
        _finding("k", Verdict.MISSING, "ledger→topic"),
    ]
    expected = [
        (0, Remedy.PRODUCE, "topic", "k"),
        (1, Remedy.REDELIVER, "topic", "a"),
        (2, Remedy.REDELIVER, "topic", "z"),
        (3, Remedy.QUARANTINE, "store", "b"),
    ]
    for given_order in (findings, findings[::-1]):
        actions = plan_actions(_pipeline(), given_order)
        assert [(action.seq, action.remedy, action.target, action.key) for action in actions] == expected


def test_an_action_that_sends_names_every_point_that_lacks_the_key() -> None:
    """They are asked again before it is sent. A point that has the key with another value lacks nothing."""
    pipeline = _pipeline(mismatched=Remedy.REDELIVER)
    second = replace(pipeline.points["store"], name="second")
    hop = replace(pipeline.hops[1], semantics=Semantics.UPSERT)
    pipeline = replace(
        pipeline,
        points={**pipeline.points, "second": second},
        hops=(pipeline.hops[0], hop, replace(hop, target="second")),
    )
    latest = {"latest": COPY}
    found = [
        _finding("a", Verdict.MISSING, "ledger→topic"),
        _evidence(_finding("b", Verdict.MISSING, "topic→store"), **latest),
        _evidence(_finding("b", Verdict.MISSING, "topic→second"), **latest),
        _evidence(_finding("c", Verdict.MISSING, "topic→store"), **latest),
        _evidence(_finding("c", Verdict.MISMATCHED, "topic→second"), **latest),
        _evidence(_finding("d", Verdict.MISMATCHED, "topic→store"), **latest),
    ]

    lacking = {action.key: action.before.get("lacking") for action in plan_actions(pipeline, found)}

    assert lacking == {"a": ["topic"], "b": ["second", "store"], "c": None, "d": None}


@given(st.permutations([f"k{number}" for number in range(8)]))
def test_the_digest_does_not_depend_on_the_order_of_findings(keys: list[str]) -> None:
    def digest(names: list[str]) -> str:
        findings = [_finding(name, Verdict.MISSING, "topic→store") for name in names]
        return plan_digest("p", 1, None, plan_actions(_pipeline(), findings))

    assert digest(keys) == digest(sorted(keys))


def test_what_is_not_known_or_only_reported_gives_no_action() -> None:
    findings = [
        _finding("a", Verdict.PENDING, "topic→store"),
        _finding("b", Verdict.UNDECIDABLE, "topic→store"),
        _finding("c", Verdict.UNEXPECTED, "topic→store"),
    ]
    draft = draft_plan(_pipeline(), findings, window_keys=10)
    assert (draft.drafts, draft.refusals, draft.refused_as_a_whole, draft.needs_approval) == ((), (), None, False)


@pytest.mark.parametrize(
    ("hop", "verdict", "remedy", "reason"),
    [
        (
            "ledger→topic",
            Verdict.DUPLICATE,
            Remedy.QUARANTINE,
            "records cannot be taken out of topic topic; its duplicates are contained at the stores",
        ),
        (
            "topic→store",
            Verdict.MISSING,
            Remedy.PRODUCE,
            "produce needs a ledger to take the record from; topic is a topic",
        ),
        (
            "ledger→topic",
            Verdict.MISSING,
            Remedy.REDELIVER,
            "redeliver repeats a record of a topic; ledger is a ledger",
        ),
        ("ledger→topic", Verdict.MISSING, Remedy.UPSERT, "upsert writes to a table; topic is a topic"),
        (
            "topic→store",
            Verdict.DUPLICATE,
            Remedy.UPSERT,
            "upsert answers a missing or mismatched key; this one is duplicate",
        ),
        (
            "topic→store",
            Verdict.MISSING,
            Remedy.QUARANTINE,
            "quarantine answers a duplicate or unexpected key; this one is missing",
        ),
        ("gone→hop", Verdict.MISSING, Remedy.REPORT, "the pipeline has no hop gone→hop any more"),
    ],
)
def test_what_a_remedy_cannot_do_is_refused_with_its_reason(
    hop: str, verdict: Verdict, remedy: Remedy, reason: str
) -> None:
    pipeline = _pipeline(**{verdict.value: remedy})
    draft = draft_plan(pipeline, [_finding("a", verdict, hop)], window_keys=10)
    assert draft.drafts == ()
    assert [refusal.reason for refusal in draft.refusals] == [reason]


def test_a_copy_of_an_aborted_transaction_is_never_redelivered() -> None:
    finding = _finding("a", Verdict.MISSING, "topic→store", source=[COPY | {"aborted": True}])
    assert source_position(finding) is None
    (refusal,) = draft_plan(_pipeline(), [finding], window_keys=10).refusals
    assert refusal.reason == "the evidence names no committed record to redeliver"


def test_a_replay_topic_takes_the_redelivered_records_and_is_frozen_as_the_target() -> None:
    pipeline = _pipeline()
    retry = TopicPoint(name="retry", connection="other", topic="flights-retry", key=("$.id",))
    hops = tuple(replace(hop, redeliver_to="retry") for hop in pipeline.hops)
    pipeline = replace(pipeline, points={**pipeline.points, "retry": retry}, hops=hops)
    findings = [_finding("a", Verdict.MISSING, "topic→store"), _finding("b", Verdict.MISSING, "ledger→topic")]

    steps = draft_plan(pipeline, findings, window_keys=10).drafts

    assert [(step.action.remedy, step.action.target, step.action.before, step.origin) for step in steps] == [
        (Remedy.PRODUCE, "topic", {"place": "kafka:flights", "lacking": ["topic"]}, None),
        (
            Remedy.REDELIVER,
            "retry",
            {"place": "other:flights-retry", "lacking": ["store"], "once": ["store"], "repeats": "topic"},
            (1, 17),
        ),
    ]


def test_every_extra_copy_has_a_draft_of_its_own_after_everything_else() -> None:
    repeated = _finding("r", Verdict.DUPLICATE, "ledger→topic")
    rows = _finding("s", Verdict.DUPLICATE, "topic→store")
    strangers = _finding("u", Verdict.UNEXPECTED, "topic→store")
    findings = [
        _evidence(strangers, target_copies=1),
        _evidence(rows, target_copies=3),
        _evidence(repeated, target_copies=2, repeated={"here": ["0:7", "1:2"], "elsewhere": 0}),
        _finding("m", Verdict.MISSING, "topic→store"),
    ]
    pipeline = _reversing(duplicate=Remedy.REVERSE, unexpected=Remedy.REVERSE)

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
    assert {step.action.before["place"] for step in steps if step.action.target == "back"} == {"kafka:reversals"}
    assert keys_to_reverse(pipeline, findings) == {finding.key_hash for finding in findings[:3]}


@pytest.mark.parametrize(
    ("hop", "verdict", "reason"),
    [
        ("ledger→topic", Verdict.UNEXPECTED, "reverse answers a duplicate key in a topic; this one is unexpected"),
        ("topic→store", Verdict.MISSING, "reverse answers a duplicate or unexpected key; this one is missing"),
    ],
)
def test_what_cannot_be_taken_back_is_refused_with_its_reason(hop: str, verdict: Verdict, reason: str) -> None:
    pipeline = _reversing(None, **{verdict.value: Remedy.REVERSE})
    draft = draft_plan(pipeline, [_finding("a", verdict, hop)], window_keys=10)

    assert (draft.drafts, [refusal.reason for refusal in draft.refusals]) == ((), [reason])


def test_a_template_that_was_taken_out_of_the_file_or_lacks_its_source_is_refused() -> None:
    finding = _evidence(_finding("a", Verdict.DUPLICATE, "topic→store", source=[]), target_copies=2)
    bare = _pipeline(duplicate=Remedy.REVERSE)
    with_source = _reversing(value={"of": "{{ source.value.id }}"}, duplicate=Remedy.REVERSE)

    reasons = [draft_plan(one, [finding], window_keys=10).refusals[0].reason for one in (bare, with_source)]

    assert reasons == [
        "topic→store has no template to reverse with any more",
        "the evidence names no committed record for the template's 'source'",
    ]


def test_rows_that_were_taken_back_do_not_count_against_the_limits() -> None:
    finding = _evidence(_finding("a", Verdict.DUPLICATE, "topic→store"), target_copies=4)
    pipeline = replace(
        _reversing(duplicate=Remedy.REVERSE), limits=Limits(actions=1), approval=Approval(above_actions=1)
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
    finding = _finding("a", Verdict.MISSING, "topic→store", source=[COPY, {"partition": 1, "offset": 20}])
    assert source_position(finding) == (1, 17)
    assert source_position(finding, Semantics.UPSERT) is None
    latest = {"partition": 0, "offset": 3, "version": 9}
    named = replace(finding, evidence={**finding.evidence, "latest": latest})
    assert source_position(named, Semantics.UPSERT) == (0, 3)


@pytest.mark.parametrize(
    ("version", "semantics", "refused"),
    [
        (
            None,
            Semantics.EVENT,
            ["where its loader inserts, redeliver would add a row beside the one that differs; use upsert"],
        ),
        ("v", Semantics.EVENT, []),
        (None, Semantics.UPSERT, []),
    ],
)
def test_a_mismatch_is_redelivered_only_where_the_loader_overwrites(
    version: str | None, semantics: Semantics, refused: list[str]
) -> None:
    pipeline = _pipeline(mismatched=Remedy.REDELIVER)
    store = replace(pipeline.points["store"], version=version)
    hops = tuple(replace(hop, semantics=semantics) for hop in pipeline.hops)
    pipeline = replace(pipeline, points={**pipeline.points, "store": store}, hops=hops)
    finding = _evidence(_finding("a", Verdict.MISMATCHED, "topic→store"), latest=COPY)

    draft = draft_plan(pipeline, [finding], window_keys=10)

    assert [refusal.reason for refusal in draft.refusals] == refused
    assert len(draft.drafts) == 1 - len(refused)


def test_a_record_that_two_stores_lack_is_redelivered_once() -> None:
    pipeline = _pipeline()
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    other = replace(store, name="other", table="dw.other")
    hops = (*pipeline.hops, replace(pipeline.hops[1], target="other"))
    pipeline = replace(pipeline, points={**pipeline.points, "other": other}, hops=hops)
    findings = [_finding(key, Verdict.MISSING, hop) for key in "ab" for hop in ("topic→store", "topic→other")]
    findings[2:] = [_evidence(finding, source=[{"partition": 0, "offset": 1}]) for finding in findings[2:]]

    draft = draft_plan(pipeline, findings, window_keys=10)

    assert [(step.action.seq, step.action.hop, step.action.key) for step in draft.drafts] == [
        (0, "topic→store", "a"),
        (1, "topic→store", "b"),
    ]
    assert draft.refusals == ()


@pytest.mark.parametrize("remedy", [Remedy.REDELIVER, Remedy.UPSERT])
def test_a_version_that_was_overtaken_in_the_log_is_not_written_again(remedy: Remedy) -> None:
    finding = _finding("a", Verdict.MISSING, "topic→store", source=[COPY])
    overtaken = replace(finding, evidence={**finding.evidence, "latest": COPY, "has_later": True})

    draft = draft_plan(_pipeline(missing=remedy), [overtaken], window_keys=100)

    assert [refusal.reason for refusal in draft.refusals] == [
        "stale: the log has a later version of this key; the window that holds it judges that one"
    ]


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
    findings = [_finding("k", Verdict.MISSING, hop) for hop in ("ledger→topic", "topic→store")]
    pipeline = replace(_pipeline(), limits=Limits(share=1.0))
    draft = draft_plan(pipeline, findings, window_keys=1)
    assert (len(draft.drafts), draft.refused_as_a_whole) == (2, None)


def test_approval_is_needed_above_its_limit_only() -> None:
    findings = [_finding(str(number), Verdict.MISSING, "topic→store") for number in range(3)]
    pipeline = replace(_pipeline(), approval=Approval(above_actions=3))
    assert not draft_plan(pipeline, findings, window_keys=100).needs_approval
    pipeline = replace(pipeline, approval=Approval(above_actions=2))
    assert draft_plan(pipeline, findings, window_keys=100).needs_approval


def test_a_record_that_still_stands_in_front_of_its_reader_is_not_sent_again() -> None:
    finding = replace(_finding("a", Verdict.MISSING, "topic→store"), cause=Cause.NOT_CONSUMED)
    pipeline = _pipeline()
    for remedy in (Remedy.REDELIVER, Remedy.UPSERT):
        draft = draft_plan(_grouped(_pipeline(missing=remedy)), [finding], window_keys=100)
        assert [refusal.reason for refusal in draft.refusals] == [
            "its record still stands in front of group loader, which would load it a second time when it goes on; mend "
            "the consumer, then run this window again"
        ]
        assert draft.drafts == ()
    lost = replace(finding, cause=Cause.COMMITTED_BEFORE_WRITTEN)
    assert draft_plan(_grouped(pipeline), [lost], window_keys=100).counts == {"redeliver": 1}


def test_a_row_is_written_ahead_of_the_consumer_only_where_its_loader_overwrites() -> None:
    finding = replace(_finding("a", Verdict.MISSING, "topic→store"), cause=Cause.NOT_CONSUMED)
    latest = _evidence(finding, latest=COPY)
    pipeline = _grouped(_pipeline(missing=Remedy.UPSERT))
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    versioned = replace(pipeline, points={**pipeline.points, "store": replace(store, version="revision")})
    assert draft_plan(versioned, [finding], window_keys=100).counts == {"upsert": 1}
    hops = tuple(replace(hop, semantics=Semantics.UPSERT) for hop in pipeline.hops)
    assert draft_plan(replace(pipeline, hops=hops), [latest], window_keys=100).counts == {"upsert": 1}


def test_a_record_that_may_yet_be_committed_is_not_produced_again() -> None:
    finding = replace(_finding("a", Verdict.MISSING, "ledger→topic"), cause=Cause.NOT_COMMITTED)
    draft = draft_plan(_pipeline(), [_evidence(finding, open=["0:7"])], window_keys=100)
    assert [refusal.reason for refusal in draft.refusals] == [
        "its record is in or behind an open transaction (0:7) and may yet be committed; end the transaction, then run "
        "this window again"
    ]


def _grouped(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, hops=tuple(replace(hop, consumer_group="loader") for hop in pipeline.hops))


def _finding(key: str, verdict: Verdict, hop: str, source: list[dict[str, Any]] | None = None) -> Finding:
    return Finding(
        hop=hop,
        key=key,
        key_hash=key.rjust(32, "0"),
        verdict=verdict,
        cause=Cause.NOT_IN_SOURCE,
        evidence={
            "source": [COPY] if source is None else source,
            "source_copies": 1 if source is None else len(source),
        },
    )


def _evidence(finding: Finding, **evidence: Any) -> Finding:
    return replace(finding, evidence={**finding.evidence, **evidence})


def _reversing(value: Mapping[str, Any] | None = None, **changed: Remedy) -> Pipeline:
    pipeline = _pipeline(**changed)
    back = TopicPoint(name="back", connection="kafka", topic="reversals", key=("$.id",))
    reverse = Reverse(to="back", value=value or {"id": "{{ key }}"})
    hops = tuple(replace(hop, reverse=reverse) for hop in pipeline.hops)
    return replace(pipeline, points={**pipeline.points, "back": back}, hops=hops)


def _pipeline(**changed: Remedy) -> Pipeline:
    def remedies(missing: Remedy) -> Remedies:
        chosen = {"missing": missing, "duplicate": Remedy.QUARANTINE, "mismatched": Remedy.UPSERT, **changed}
        return Remedies(**chosen)

    return Pipeline(
        name="p",
        points={
            "ledger": TablePoint(
                name="ledger", kind=PointKind.LEDGER, connection="pg", table="ops.outbox", key=("id",)
            ),
            "topic": TopicPoint(name="topic", connection="kafka", topic="flights", key=("$.id",)),
            "store": TablePoint(name="store", kind=PointKind.STORE, connection="pg", table="dw.flights", key=("id",)),
        },
        hops=(
            Hop(source="ledger", target="topic", remedies=remedies(Remedy.PRODUCE)),
            Hop(source="topic", target="store", remedies=remedies(Remedy.REDELIVER)),
        ),
    )
