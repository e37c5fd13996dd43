"""Test what is said of findings that are only reported: what would answer them, and which line switches it on."""

from collections import Counter
from dataclasses import replace

import pytest

from makewhole.compensation.planning.unanswered import Unanswered, unanswered
from makewhole.config.hops.suggested import Suggestion
from makewhole.model.hops import Remedies, Remedy
from makewhole.model.pipeline import Approval, Limits, Pipeline
from makewhole.model.refusal import Refusal
from makewhole.model.verdict import Cause, Finding, Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of

pytestmark = pytest.mark.unit

OBSERVE = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
PRODUCE = Suggestion(verdict="missing", remedy=Remedy.PRODUCE, does="would send them into topic, from ledger")


def unanswered_of(pipeline: Pipeline, findings: list[Finding]) -> list[Unanswered]:
    """Ask about findings that are all there are, in a window of many keys."""
    counts = Counter((finding.hop, finding.verdict.value) for finding in findings)
    return unanswered(pipeline, findings, counts, window_keys=1000)


def observing() -> Pipeline:
    pipeline = pipeline_of()
    return replace(pipeline, hops=tuple(replace(hop, remedies=OBSERVE) for hop in pipeline.hops))


def missing(number: int, hop: str = "ledger→topic") -> list[Finding]:
    return [finding_of(f"k{key}", Verdict.MISSING, hop) for key in range(number)]


def test_the_remedy_its_actions_and_the_line_are_reported() -> None:
    (hop,) = unanswered_of(observing(), missing(3))

    assert hop == Unanswered(hop="ledger→topic", keys=3, suggestion=PRODUCE, drafted=3, actions=3)
    assert hop.sentences() == [
        "3 missing on ledger→topic: nothing is written, because the remedy is `report`",
        "`missing: produce` would send them into topic, from ledger: 3 actions at most",
        "To switch it on, write `compensation: {missing: produce}` on hop ledger→topic, or add it to what the hop has "
        "there",
    ]


def test_only_what_is_reported_and_a_gap_is_listed_in_the_order_of_hops_and_verdicts() -> None:
    pipeline = observing()
    first, second = pipeline.hops
    second = replace(second, remedies=replace(OBSERVE, missing=Remedy.UPSERT))
    findings = [
        finding_of("a", Verdict.MISMATCHED, "topic→store"),
        finding_of("b", Verdict.DUPLICATE, "topic→store"),
        finding_of("c", Verdict.MISSING, "topic→store"),
        finding_of("d", Verdict.PENDING, "topic→store"),
        finding_of("e", Verdict.UNDECIDABLE, "topic→store"),
        finding_of("f", Verdict.MISSING, "gone→hop"),
        finding_of("g", Verdict.MISSING, "ledger→topic"),
        finding_of("h", Verdict.MISMATCHED, "topic→store"),
    ]

    hops = unanswered_of(replace(pipeline, hops=(first, second)), findings)

    assert [(hop.hop, hop.suggestion.line, hop.keys, hop.actions) for hop in hops] == [
        ("ledger→topic", "missing: produce", 1, 1),
        ("topic→store", "duplicate: quarantine", 1, 1),
        ("topic→store", "mismatched: upsert", 2, 2),
    ]
    assert unanswered_of(pipeline, []) == []


def test_limits_approval_and_what_would_be_left_alone_are_reported() -> None:
    findings = missing(4, "topic→store")
    waiting = [replace(finding, cause=Cause.NOT_COMMITTED, evidence={"open": ["0:7"]}) for finding in findings[:3]]
    pipeline = replace(observing(), approval=Approval(above_actions=0))
    (some,) = unanswered_of(pipeline, [*waiting, findings[3]])
    (none,) = unanswered_of(pipeline, waiting)
    (many,) = unanswered_of(replace(pipeline, limits=Limits(actions=3)), findings)
    nothing = ": nothing is written, because the remedy is `report`"
    alone = (
        "`missing: upsert` would leave 3 keys alone: its record is in or behind an open transaction (0:7) and may yet "
        "be committed; end the transaction, then run this window again"
    )
    line = (
        "To switch it on, write `compensation: {missing: upsert}` on hop topic→store, or add it to what the hop has "
        "there"
    )

    assert some.sentences() == [
        f"4 missing on topic→store{nothing}",
        "`missing: upsert` would write their rows into store, from topic: 1 action at most; it would wait for a person",
        alone,
        line,
    ]
    assert none.sentences() == [f"3 missing on topic→store{nothing}", alone, line]
    assert many.sentences() == [
        f"4 missing on topic→store{nothing}",
        "`missing: upsert` would write their rows into store, from topic: 4 actions at most",
        "Such a plan would be refused as a whole: 4 actions are more than the limit of 3; find out what broke before "
        "repairing it, then raise compensation.limits.actions",
        line,
    ]


def test_of_very_many_keys_all_are_counted_and_the_first_are_looked_at() -> None:
    """The journal keeps so many findings of a window, and only so many of these are read."""
    keys = {("ledger→topic", "missing"): 2_000_000, ("topic→store", "missing"): 7}
    hop, unseen = unanswered(observing(), missing(3), keys, window_keys=5_000_000)

    assert (hop.keys, hop.drafted, hop.actions) == (2_000_000, 3, 3)
    assert hop.sentences()[:2] == [
        "2,000,000 missing on ledger→topic: nothing is written, because the remedy is `report`",
        "`missing: produce` would send them into topic, from ledger: 3 actions at most for the first 3 of them",
    ]
    assert unseen.sentences()[:2] == [
        "7 missing on topic→store: nothing is written, because the remedy is `report`",
        "`missing: upsert` would write their rows into store, from topic",
    ]


def test_the_most_frequent_reasons_are_reported_and_the_others_counted() -> None:
    refused = {Refusal.of_text(text): count for text, count in {"a": 1, "b": 5, "c": 1, "d": 2}.items()}
    hop = Unanswered(hop="ledger→topic", keys=9, suggestion=PRODUCE, drafted=9, refused=refused)

    assert hop.sentences()[1:-1] == [
        "`missing: produce` would leave 5 keys alone: b",
        "`missing: produce` would leave 2 keys alone: d",
        "`missing: produce` would leave 1 key alone: a",
        "1 more reason",
    ]


def test_where_no_remedy_is_suggested_the_reason_is_reported() -> None:
    (hop,) = unanswered_of(observing(), [finding_of("a", Verdict.MISMATCHED, "ledger→topic")])

    assert hop.sentences() == [
        "1 mismatched on ledger→topic: nothing is written, because the remedy is `report`. No remedy is suggested: a "
        "record can neither be changed in a topic nor taken out of it"
    ]
