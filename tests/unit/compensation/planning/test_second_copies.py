"""Test that nothing is produced to a topic that fills another one which may have the record."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.draft import draft_plan
from makewhole.compensation.planning.second_copies import topics_behind
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint, TopicPoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Finding, Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of

pytestmark = pytest.mark.unit

COPIES = TopicPoint(name="copies", connection="kafka", topic="copies", key=("$.id",))


def relayed() -> Pipeline:
    """Return a pipeline whose topic fills another one, by way of a third."""
    pipeline = pipeline_of()
    relay = replace(COPIES, name="relay", topic="relay")
    hop = pipeline.hops[1]
    hops = (*pipeline.hops, replace(hop, target="relay"), replace(hop, source="relay", target="copies"))
    return replace(pipeline, points={**pipeline.points, "relay": relay, "copies": COPIES}, hops=hops)


def missing(key: str, cause: Cause) -> Finding:
    return replace(finding_of(key, Verdict.MISSING, "ledger→topic"), cause=cause)


def test_topics_behind_a_topic_are_those_at_any_distance() -> None:
    assert topics_behind(relayed(), "topic") == ("relay", "copies")
    assert topics_behind(pipeline_of(), "topic") == ()


def test_what_readers_may_have_had_before_the_topic_lost_it_is_refused() -> None:
    findings = [missing(cause.value, cause) for cause in (Cause.NEVER_PRODUCED, Cause.ABORTED, Cause.TRUNCATED)]

    draft = draft_plan(relayed(), findings, window_keys=10)

    assert [drafted.action.key for drafted in draft.drafts] == ["aborted_transaction", "never_produced"]
    assert [refused.refusal for refused in draft.refusals] == [
        Refusal(
            RefusalCode.TWICE,
            "relay is filled from topic, and may have had the record before topic lost it (truncated); look for the "
            "key there, and send the record by hand where it lacks it",
        )
    ]


def test_a_key_that_a_topic_behind_has_alone_is_refused() -> None:
    unmatched = finding_of("a", Verdict.UNEXPECTED, "relay→copies")
    findings = [missing("a", Cause.NEVER_PRODUCED), missing("b", Cause.NEVER_PRODUCED), unmatched]

    draft = draft_plan(relayed(), findings, window_keys=10)

    assert [drafted.action.key for drafted in draft.drafts] == ["b"]
    assert [refused.refusal for refused in draft.refusals] == [
        Refusal(
            RefusalCode.TWICE,
            "copies is filled from topic, holds the key without it, and would get it a second time; send the record "
            "by hand to who else lacks it",
        )
    ]


def test_a_key_that_a_table_behind_has_alone_is_refused_unless_its_loader_overwrites() -> None:
    pipeline = pipeline_of()
    findings = [missing("a", Cause.NEVER_PRODUCED), finding_of("a", Verdict.UNEXPECTED, "topic→store")]

    draft = draft_plan(pipeline, findings, window_keys=10)

    assert [refused.refusal for refused in draft.refusals] == [
        Refusal(
            RefusalCode.TWICE,
            "store holds the key, and would get it a second time; write `unexpected: quarantine` on hop "
            "topic→store, which puts the row aside before the record is sent, or name the 'version' of store if its "
            "loader overwrites",
        )
    ]
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    pipeline = replace(pipeline, points={**pipeline.points, "store": replace(store, version="version")})
    assert [drafted.action.key for drafted in draft_plan(pipeline, findings, window_keys=10).drafts] == ["a"]


def test_where_no_topic_is_behind_what_the_log_lost_is_produced() -> None:
    draft = draft_plan(pipeline_of(), [missing("a", Cause.TRUNCATED)], window_keys=10)
    assert [drafted.action.key for drafted in draft.drafts] == ["a"]
