"""A row in the way of its own record is put aside before the record is sent: pure, over findings."""

from dataclasses import replace

import pytest

from makewhole.compensation.planning.draft import draft_batch, draft_plan
from makewhole.compensation.planning.redelivery import Readers
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import Finding, Verdict
from tests.unit.compensation.planning.drafted import finding_of, pipeline_of

pytestmark = pytest.mark.unit

FIRST, SECOND = "ledger→topic", "topic→store"


def missing(key: str, hop: str = FIRST) -> Finding:
    return finding_of(key, Verdict.MISSING, hop)


def row(key: str, hop: str = SECOND) -> Finding:
    return finding_of(key, Verdict.UNEXPECTED, hop)


def steps(pipeline: Pipeline, *findings: Finding) -> list[tuple[str, str, str]]:
    draft = draft_plan(pipeline, findings, window_keys=10, readers=Readers(groups={"topic": ()}))
    return [(drafted.action.remedy.value, drafted.action.target, drafted.action.key) for drafted in draft.drafts]


def relayed() -> Pipeline:
    """Return ledger → topic → relay → store."""
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    first, second = pipeline.hops
    relay = TopicPoint(name="relay", connection="kafka", topic="relay", key=("$.id",))
    hops = (first, replace(second, target="relay"), replace(second, source="relay"))
    return replace(pipeline, points={**pipeline.points, "relay": relay}, hops=hops)


def test_the_row_goes_before_every_record_and_the_ledger_that_has_the_key_is_not_asked_for_it() -> None:
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    findings = [missing("a"), missing("b"), row("b"), row("c")]
    assert steps(pipeline, *findings) == [
        ("quarantine", "store", "b"),
        ("produce", "topic", "b"),
        ("produce", "topic", "a"),
        ("quarantine", "store", "c"),
    ]
    drafts = {drafted.action.key: drafted for _, drafted in draft_batch(pipeline, findings).drafts}
    (aside,) = drafts["b"].aside
    assert aside.goes_first
    assert aside.action.before.unknown_to == ("topic",)
    assert drafts["b"].action.before.puts_aside == ("store",)
    assert drafts["c"].action.before.unknown_to == ("ledger", "topic")
    assert draft_batch(pipeline, findings).actions == 4


def test_a_record_that_is_sent_again_into_a_topic_behind_puts_the_row_aside_too() -> None:
    assert steps(relayed(), missing("a", "topic→relay"), row("a", "relay→store")) == [
        ("quarantine", "store", "a"),
        ("redeliver", "topic", "a"),
    ]


def test_where_the_loader_overwrites_the_row_stays() -> None:
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    store = TablePoint(
        name="store", kind=PointKind.STORE, connection="pg", table="dw.flights", key=("id",), version="version"
    )
    pipeline = replace(pipeline, points={**pipeline.points, "store": store})
    assert steps(pipeline, missing("a"), row("a")) == [("produce", "topic", "a")]


@pytest.mark.parametrize(
    ("chosen", "hop", "line"),
    [
        ({"missing": Remedy.REPORT, "unexpected": Remedy.QUARANTINE}, SECOND, "write `missing: produce` on hop"),
        ({"missing": Remedy.PRODUCE}, FIRST, "write `unexpected: quarantine` on hop topic→store"),
    ],
)
def test_where_one_remedy_is_on_its_refusal_names_the_other(chosen: dict[str, Remedy], hop: str, line: str) -> None:
    pipeline = pipeline_of(**chosen)
    first, second = pipeline.hops
    if "unexpected" in chosen:
        first = replace(first, remedies=replace(first.remedies, missing=Remedy.REPORT))
    pipeline = replace(pipeline, hops=(first, second))
    draft = draft_plan(pipeline, [missing("a"), row("a")], window_keys=10)
    assert not draft.drafts
    (refusal,) = [refused.refusal for refused in draft.refusals if refused.hop == hop]
    assert line in refusal.text


def test_a_record_that_two_hops_miss_puts_the_rows_of_both_aside() -> None:
    """Two topics are filled from the topic, and a store from each: one record reaches both."""
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    _, hop = pipeline.hops
    hop = replace(hop, redeliver_despite=("copier",), consumer_group="copier")
    topics = {name: TopicPoint(name=name, connection="kafka", topic=name, key=("$.id",)) for name in ("left", "right")}
    stores = {
        f"{name} store": TablePoint(
            name=f"{name} store", kind=PointKind.STORE, connection="pg", table=f"dw.{name}", key=("id",)
        )
        for name in topics
    }
    hops = [
        replace(hop, source=source, target=target)
        for name in topics
        for source, target in (("topic", name), (name, f"{name} store"))
    ]
    pipeline = replace(pipeline, points={**pipeline.points, **topics, **stores}, hops=tuple(hops))
    findings = [
        *(missing("a", f"topic→{name}") for name in topics),
        *(row("a", f"{name}→{name} store") for name in topics),
    ]

    drafts = [draft for _, draft in draft_batch(pipeline, findings, readers=Readers(groups={"topic": ()})).drafts]

    assert [(drafted.action.remedy, drafted.action.target) for drafted in drafts] == [(Remedy.REDELIVER, "topic")]
    assert [aside.action.target for aside in drafts[0].aside] == ["left store", "right store"]
    assert drafts[0].action.before.puts_aside == ("left store", "right store")
    assert drafts[0].action.before.once == ("left", "left store", "right", "right store")
