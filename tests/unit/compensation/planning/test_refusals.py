"""Test what is refused when a plan is drafted, each with its reason: what no remedy can do, and what may yet come."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.draft import draft_plan
from makewhole.compensation.planning.draft_actions import source_position
from makewhole.model.hops import Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Verdict
from tests.unit.compensation.planning.drafted import COPY, finding_of, pipeline_of, reversing_pipeline, with_evidence

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("hop", "verdict", "remedy", "refusal"),
    [
        (
            "ledger→topic",
            Verdict.DUPLICATE,
            Remedy.QUARANTINE,
            Refusal(
                RefusalCode.OTHER,
                "records cannot be taken out of topic topic; its duplicates are contained at the stores",
            ),
        ),
        (
            "topic→store",
            Verdict.MISSING,
            Remedy.PRODUCE,
            Refusal(RefusalCode.OTHER, "produce needs a ledger to take the record from; topic is a topic"),
        ),
        (
            "ledger→topic",
            Verdict.MISSING,
            Remedy.REDELIVER,
            Refusal(RefusalCode.OTHER, "redeliver repeats a record of a topic; ledger is a ledger"),
        ),
        (
            "ledger→topic",
            Verdict.MISSING,
            Remedy.UPSERT,
            Refusal(RefusalCode.OTHER, "upsert writes to a table; topic is a topic"),
        ),
        (
            "topic→store",
            Verdict.DUPLICATE,
            Remedy.UPSERT,
            Refusal(RefusalCode.OTHER, "upsert answers a missing or mismatched key; this one is duplicate"),
        ),
        (
            "topic→store",
            Verdict.MISSING,
            Remedy.QUARANTINE,
            Refusal(RefusalCode.OTHER, "quarantine answers a duplicate or unexpected key; this one is missing"),
        ),
        (
            "gone→hop",
            Verdict.MISSING,
            Remedy.REPORT,
            Refusal(RefusalCode.OTHER, "the pipeline has no hop gone→hop any more"),
        ),
    ],
)
def test_what_a_remedy_cannot_do_is_refused_with_its_reason(
    hop: str, verdict: Verdict, remedy: Remedy, refusal: Refusal
) -> None:
    pipeline = pipeline_of(**{verdict.value: remedy})
    draft = draft_plan(pipeline, [finding_of("a", verdict, hop)], window_keys=10)
    assert draft.drafts == ()
    assert [refused.refusal for refused in draft.refusals] == [refusal]


def test_a_copy_of_an_aborted_transaction_is_never_redelivered() -> None:
    finding = finding_of("a", Verdict.MISSING, "topic→store", source=[COPY | {"aborted": True}])
    assert source_position(finding) is None
    (refused,) = draft_plan(pipeline_of(), [finding], window_keys=10).refusals
    assert refused.refusal == Refusal(RefusalCode.OTHER, "the evidence names no committed record to redeliver")


@pytest.mark.parametrize(
    ("hop", "verdict", "refusal"),
    [
        (
            "ledger→topic",
            Verdict.UNEXPECTED,
            Refusal(RefusalCode.OTHER, "reverse answers a duplicate key in a topic; this one is unexpected"),
        ),
        (
            "topic→store",
            Verdict.MISSING,
            Refusal(RefusalCode.OTHER, "reverse answers a duplicate or unexpected key; this one is missing"),
        ),
    ],
)
def test_what_cannot_be_taken_back_is_refused_with_its_reason(hop: str, verdict: Verdict, refusal: Refusal) -> None:
    pipeline = reversing_pipeline(None, **{verdict.value: Remedy.REVERSE})
    draft = draft_plan(pipeline, [finding_of("a", verdict, hop)], window_keys=10)

    assert (draft.drafts, [refused.refusal for refused in draft.refusals]) == ((), [refusal])


def test_a_template_that_was_taken_out_of_the_file_or_lacks_its_source_is_refused() -> None:
    finding = with_evidence(finding_of("a", Verdict.DUPLICATE, "topic→store", source=[]), target_copies=2)
    bare = pipeline_of(duplicate=Remedy.REVERSE)
    with_source = reversing_pipeline(value={"of": "{{ source.value.id }}"}, duplicate=Remedy.REVERSE)

    refusals = [draft_plan(pipeline, [finding], window_keys=10).refusals[0].refusal for pipeline in (bare, with_source)]

    assert refusals == [
        Refusal(RefusalCode.OTHER, "topic→store has no template to reverse with any more"),
        Refusal(RefusalCode.OTHER, "the evidence names no committed record for the template's 'source'"),
    ]


@pytest.mark.parametrize(
    ("version", "semantics", "refused"),
    [
        (
            None,
            Semantics.EVENT,
            [
                Refusal(
                    RefusalCode.OTHER,
                    "where its loader inserts, redeliver would add a row beside the one that differs; use upsert",
                )
            ],
        ),
        ("v", Semantics.EVENT, []),
        (None, Semantics.UPSERT, []),
    ],
)
def test_a_mismatch_is_redelivered_only_where_the_loader_overwrites(
    version: str | None, semantics: Semantics, refused: list[Refusal]
) -> None:
    pipeline = pipeline_of(mismatched=Remedy.REDELIVER)
    store = replace(pipeline.points["store"], version=version)
    hops = tuple(replace(hop, semantics=semantics) for hop in pipeline.hops)
    pipeline = replace(pipeline, points={**pipeline.points, "store": store}, hops=hops)
    finding = with_evidence(finding_of("a", Verdict.MISMATCHED, "topic→store"), latest=COPY)

    draft = draft_plan(pipeline, [finding], window_keys=10)

    assert [refused_key.refusal for refused_key in draft.refusals] == refused
    assert len(draft.drafts) == 1 - len(refused)


@pytest.mark.parametrize("remedy", [Remedy.REDELIVER, Remedy.UPSERT])
def test_a_version_that_was_overtaken_in_the_log_is_not_written_again(remedy: Remedy) -> None:
    finding = finding_of("a", Verdict.MISSING, "topic→store", source=[COPY])
    overtaken = replace(finding, evidence={**finding.evidence, "latest": COPY, "has_later": True})

    draft = draft_plan(pipeline_of(missing=remedy), [overtaken], window_keys=100)

    assert [refused.refusal for refused in draft.refusals] == [
        Refusal(RefusalCode.STALE, "the log has a later version of this key; the window that holds it judges that one")
    ]


def test_a_record_that_still_stands_in_front_of_its_reader_is_not_sent_again() -> None:
    finding = replace(finding_of("a", Verdict.MISSING, "topic→store"), cause=Cause.NOT_CONSUMED)
    pipeline = pipeline_of()
    for remedy in (Remedy.REDELIVER, Remedy.UPSERT):
        draft = draft_plan(_grouped(pipeline_of(missing=remedy)), [finding], window_keys=100)
        assert [refused.refusal for refused in draft.refusals] == [
            Refusal(
                RefusalCode.OTHER,
                "its record still stands in front of group loader, which would load it a second time when it goes on; "
                "mend the consumer, then run this window again",
            )
        ]
        assert draft.drafts == ()
    lost = replace(finding, cause=Cause.COMMITTED_BEFORE_WRITTEN)
    assert draft_plan(_grouped(pipeline), [lost], window_keys=100).counts == {"redeliver": 1}


def test_a_row_is_written_ahead_of_the_consumer_only_where_its_loader_overwrites() -> None:
    finding = replace(finding_of("a", Verdict.MISSING, "topic→store"), cause=Cause.NOT_CONSUMED)
    latest = with_evidence(finding, latest=COPY)
    pipeline = _grouped(pipeline_of(missing=Remedy.UPSERT))
    store = pipeline.points["store"]
    assert isinstance(store, TablePoint)
    versioned = replace(pipeline, points={**pipeline.points, "store": replace(store, version="revision")})
    assert draft_plan(versioned, [finding], window_keys=100).counts == {"upsert": 1}
    hops = tuple(replace(hop, semantics=Semantics.UPSERT) for hop in pipeline.hops)
    assert draft_plan(replace(pipeline, hops=hops), [latest], window_keys=100).counts == {"upsert": 1}


def test_a_record_that_may_yet_be_committed_is_not_produced_again() -> None:
    finding = replace(finding_of("a", Verdict.MISSING, "ledger→topic"), cause=Cause.NOT_COMMITTED)
    draft = draft_plan(pipeline_of(), [with_evidence(finding, open=["0:7"])], window_keys=100)
    assert [refused.refusal for refused in draft.refusals] == [
        Refusal(
            RefusalCode.OTHER,
            "its record is in or behind an open transaction (0:7) and may yet be committed; end the transaction, then "
            "run this window again",
        )
    ]


def _grouped(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, hops=tuple(replace(hop, consumer_group="loader") for hop in pipeline.hops))
