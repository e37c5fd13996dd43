"""A value that a finding disputes is carried on nowhere: pure, over the findings of a key."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.disputed import DisputedValues, OpenElsewhere
from makewhole.compensation.planning.draft import draft_batch, draft_plan
from makewhole.model.actions import DisputedBy
from makewhole.model.hops import Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import DISPUTING, Cause, Finding, Verdict
from makewhole.model.window import PartitionRange
from makewhole.sql import load_queries
from tests.unit.compensation.planning.drafted import COPY, finding_of, pipeline_of

pytestmark = pytest.mark.unit

FIRST, SECOND, LAST = "ledger→topic", "topic→store", "clean→store"
ADVICE = "settle that finding first (`makewhole explain` shows what each point holds), then run this window again"
QUIET = [Verdict.MATCHED, Verdict.MISSING, Verdict.DUPLICATE, Verdict.VANISHED, Verdict.ERASED, Verdict.PENDING]


def relayed() -> Pipeline:
    """Return ledger → topic → clean → store, beside topic → other."""
    pipeline = pipeline_of()
    first, second = pipeline.hops
    points = {
        **pipeline.points,
        "clean": TopicPoint(name="clean", connection="kafka", topic="clean", key=("$.id",)),
        "other": TablePoint(name="other", kind=PointKind.STORE, connection="pg", table="dw.other", key=("id",)),
    }
    hops = (first, replace(second, target="clean"), replace(second, source="clean"), replace(second, target="other"))
    return replace(pipeline, points=points, hops=hops)


def found(verdict: Verdict, hop: str) -> Finding:
    return replace(finding_of("a", verdict, hop), cause=Cause.VALUE_DIFFERS)


@pytest.mark.parametrize("verdict", DISPUTING)
@pytest.mark.parametrize("asked", [Verdict.MISSING, Verdict.DUPLICATE])
def test_what_a_hop_disputes_is_carried_on_nowhere_behind_it_and_the_reason_names_it(
    verdict: Verdict, asked: Verdict
) -> None:
    for pipeline, hop in ((relayed(), LAST), (pipeline_of(), SECOND)):
        draft = draft_plan(pipeline, [found(verdict, FIRST), found(asked, hop)], window_keys=10)
        source, _, target = hop.partition("→")
        assert not draft.drafts
        assert [refused.refusal for refused in draft.refusals if refused.hop == hop] == [
            Refusal(
                RefusalCode.DISPUTED,
                f"ledger→topic calls this key {verdict.value} (value_differs), and what {source} has of it is "
                f"not carried on to {target}; {ADVICE}",
            )
        ]


@pytest.mark.parametrize("verdict", QUIET)
def test_no_other_verdict_disputes_a_value(verdict: Verdict) -> None:
    disputed = DisputedValues(relayed(), [found(verdict, FIRST)], OpenElsewhere())
    hop = relayed().hop(LAST)
    assert disputed.refusal(hop, found(Verdict.MISSING, LAST), None) is None


def test_what_is_disputed_behind_a_hop_or_of_another_key_stops_it_not() -> None:
    others = [found(Verdict.MISMATCHED, "topic→other"), replace(found(Verdict.MISMATCHED, FIRST), key_hash="b" * 32)]
    draft = draft_plan(relayed(), [*others, found(Verdict.MISSING, LAST)], window_keys=10)
    assert [drafted.action.hop for drafted in draft.drafts] == [LAST, "topic→other"]


def test_a_value_is_disputed_at_every_point_of_its_place_and_behind_each_of_them() -> None:
    """The store is read on as a ledger, by another connection, into a topic and from there into a table."""
    pipeline = pipeline_of()
    store = replace(pipeline.points["store"], identity="one")
    read_on = TablePoint(
        name="read_on", kind=PointKind.LEDGER, connection="other", table="f", key=("id",), identity="one"
    )
    clean = TopicPoint(name="clean", connection="kafka", topic="clean", key=("$.id",))
    last = TablePoint(name="last", kind=PointKind.STORE, connection="pg", table="dw.last", key=("id",))
    first, second = pipeline.hops
    hops = (
        first,
        second,
        replace(first, source="read_on", target="clean"),
        replace(second, source="clean", target="last"),
    )
    points = {**pipeline.points, "store": store, "read_on": read_on, "clean": clean, "last": last}
    disputed = DisputedValues(
        replace(pipeline, points=points, hops=hops), [found(Verdict.MISMATCHED, SECOND)], OpenElsewhere()
    )

    asked = {hop.name: disputed.refusal(hop, found(Verdict.MISSING, hop.name), None) is not None for hop in hops}

    assert asked == {FIRST: False, SECOND: False, "read_on→clean": True, "clean→last": True}


def test_a_source_that_contradicts_itself_is_carried_on_by_none_of_its_hops() -> None:
    contradicted = replace(found(Verdict.CONFLICT, "topic→other"), cause=Cause.SOURCE_CONTRADICTS)
    disputed = DisputedValues(relayed(), [contradicted], OpenElsewhere())
    asked = {
        hop.name: disputed.refusal(hop, found(Verdict.MISSING, hop.name), None) is not None for hop in relayed().hops
    }
    assert asked == {FIRST: False, "topic→clean": True, LAST: True, "topic→other": False}


def test_an_unexpected_row_goes_by_nothing_that_its_source_has() -> None:
    row = found(Verdict.UNEXPECTED, LAST)
    pipeline = relayed()
    remedies = replace(pipeline.hop(LAST).remedies, unexpected=Remedy.QUARANTINE)
    hops = tuple(replace(hop, remedies=remedies) if hop.name == LAST else hop for hop in pipeline.hops)
    pipeline = replace(pipeline, hops=hops)
    for verdict, stays in ((Verdict.UNDECIDABLE, True), (Verdict.UNEXPECTED, False)):
        draft = draft_plan(pipeline, [found(verdict, FIRST), row], window_keys=10)
        assert [drafted.action.remedy for drafted in draft.drafts] == ([] if stays else [Remedy.QUARANTINE])


def test_an_open_finding_of_another_window_disputes_the_value_and_is_named_with_its_window() -> None:
    elsewhere = OpenElsewhere(findings=[(3, found(Verdict.MISMATCHED, FIRST))])
    batch = draft_batch(pipeline_of(), [found(Verdict.MISSING, SECOND)], elsewhere=elsewhere)
    assert [refused.refusal for refused in batch.refusals] == [
        Refusal(
            RefusalCode.DISPUTED,
            "ledger→topic calls this key mismatched (value_differs) in window 3, and what topic has of it is not "
            f"carried on to store; {ADVICE}",
        )
    ]


@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("window", [None, 3])
def test_another_window_that_could_not_know_if_the_key_was_there_disputes_no_value_of_it(
    window: int | None, copies: int
) -> None:
    not_known = replace(found(Verdict.UNDECIDABLE, FIRST), evidence={"target_copies": copies})
    elsewhere = OpenElsewhere(findings=[] if window is None else [(window, not_known)])
    disputed = DisputedValues(pipeline_of(), [not_known] if window is None else [], elsewhere)
    hop = pipeline_of().hop(SECOND)
    is_carried_on = disputed.refusal(hop, found(Verdict.MISSING, SECOND), None) is None
    assert is_carried_on == (window is not None and not copies)
    assert disputed.refusal(hop, found(Verdict.UNEXPECTED, SECOND), None) is not None


@pytest.mark.parametrize("offset", [17, 30])
@pytest.mark.parametrize("semantics", list(Semantics))
def test_a_version_of_this_window_is_none_that_another_window_disputed(semantics: Semantics, offset: int) -> None:
    pipeline = pipeline_of()
    first, second = (replace(hop, semantics=semantics) for hop in pipeline.hops)
    pipeline = replace(pipeline, hops=(first, second))
    part = PartitionRange(topic="flights", topic_id="t", partition=1, lo=10, hi=20, leader_epochs=())
    elsewhere = OpenElsewhere(findings=[(3, found(Verdict.MISMATCHED, FIRST))], ranges={"topic": [part]})
    missing = replace(found(Verdict.MISSING, SECOND), evidence={"source": [COPY], "latest": COPY | {"offset": offset}})
    batch = draft_batch(pipeline, [missing], elsewhere=elsewhere)
    is_carried_on = semantics is Semantics.UPSERT and offset == 17
    assert len(batch.drafts) == int(is_carried_on)


@pytest.mark.parametrize("offset", [17, 30])
@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("cause", [Cause.VALUE_DIFFERS, Cause.SOURCE_CONTRADICTS])
@pytest.mark.parametrize("verdict", DISPUTING)
def test_a_finding_that_comes_after_the_plan_disputes_what_it_would_have_disputed_before(
    verdict: Verdict, cause: Cause, copies: int, semantics: Semantics, offset: int
) -> None:
    pipeline = relayed()
    pipeline = replace(pipeline, hops=tuple(replace(hop, semantics=semantics) for hop in pipeline.hops))
    part = PartitionRange(topic="flights", topic_id="t", partition=1, lo=10, hi=20, leader_epochs=())
    ranges = {"topic": [part]}
    for hop in pipeline.hops:
        other = replace(found(verdict, hop.name), cause=cause, evidence={"target_copies": copies})
        before = DisputedValues(pipeline, [], OpenElsewhere(findings=[(3, other)], ranges=ranges))
        after = DisputedValues(pipeline, [], OpenElsewhere(ranges=ranges))
        for asked in (Verdict.MISSING, Verdict.UNEXPECTED):
            for repaired in pipeline.hops:
                finding, origin = found(asked, repaired.name), (1, offset)
                named = after.disputing_hops(repaired, finding, origin) or DisputedBy()
                is_disputed = before.refusal(repaired, finding, origin) is not None
                assert named.counts(other) == is_disputed, (hop.name, repaired.name, asked)


def test_an_action_names_the_hops_that_would_dispute_it() -> None:
    (draft,) = draft_plan(relayed(), [found(Verdict.MISSING, LAST)], window_keys=10).drafts
    assert draft.action.before.disputed_by == DisputedBy(
        ends=(FIRST, "topic→clean"), starts=(FIRST, "topic→clean", LAST, "topic→other")
    )


def test_a_table_under_two_names_hands_on_what_is_disputed() -> None:
    pipeline = relayed()
    shelf = TablePoint(name="shelf", kind=PointKind.LEDGER, connection="pg", table="dw.other", key=("id",))
    stock = TopicPoint(name="stock", connection="kafka", topic="stock", key=("$.id",))
    points = {**pipeline.points, "shelf": shelf, "stock": stock}
    onward = replace(pipeline.hops[0], source="shelf", target="stock")
    pipeline = replace(pipeline, points=points, hops=(*pipeline.hops, onward))
    disputed = DisputedValues(pipeline, [found(Verdict.MISMATCHED, FIRST)], OpenElsewhere())
    assert disputed.refusal(onward, found(Verdict.MISSING, onward.name), None) is not None


@pytest.mark.parametrize("name", ["open_disputes", "disputes_since_plan"])
def test_the_journal_is_asked_for_the_verdicts_that_dispute(name: str) -> None:
    statement = load_queries("finding")[name]
    listed = "verdict in ('mismatched', 'unexpected', 'undecidable', 'conflict')"
    assert listed in statement
    assert {verdict.value for verdict in DISPUTING} == {
        text.strip("'") for text in listed.split("(")[1].rstrip(")").split(", ")
    }
