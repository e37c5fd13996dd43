"""Test which loaders must be past which records before a record is sent again, or a row is written in its place."""

from dataclasses import replace
from typing import Any

import pytest

from makewhole.compensation.planning.draft import draft_plan
from makewhole.model.hops import Hop, Remedies, Remedy, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.model.verdict import Cause, Verdict
from tests.unit.compensation.planning.drafted import COPY, finding_of, pipeline_of

pytestmark = pytest.mark.unit

HOP = "topic→store"
PROGRESS = SinkProgress(table="offsets", partition="part", offset="at")


def pipeline_with(*, remedy: Remedy = Remedy.REDELIVER, lake: Hop | None = None, **of_hop: Any) -> Pipeline:
    """Return the pipeline with these fields of the hop into the store, and another hop from the topic."""
    pipeline = pipeline_of(missing=remedy)
    ledger_hop, hop = pipeline.hops
    hops = (ledger_hop, replace(hop, **of_hop), *([] if lake is None else [lake]))
    store = TablePoint(name="lake", kind=PointKind.STORE, connection="pg", table="dw.lake", key=("id",))
    return replace(pipeline, hops=hops, points={**pipeline.points, "lake": store})


def lake(group: str | None = "lake-loader", **changed: Any) -> Hop:
    report = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)
    return Hop(source="topic", target="lake", remedies=report, consumer_group=group, **changed)


def asked(pipeline: Pipeline, source: list[dict[str, Any]] | None = None) -> tuple[tuple[str, ...], str]:
    """Return the loaders that must be past records, and these records, as the action for a missing key names them."""
    draft = draft_plan(pipeline, [finding_of("K", Verdict.MISSING, HOP, source)], window_keys=1)
    assert not draft.refusals
    (drafted,) = draft.drafts
    return drafted.action.before.passed, drafted.action.before.records


def test_a_hop_that_names_neither_progress_nor_group_has_none() -> None:
    assert asked(pipeline_with()) == ((), "")


@pytest.mark.parametrize("named", [{"progress": PROGRESS}, {"consumer_group": "dw"}])
@pytest.mark.parametrize("remedy", [Remedy.REDELIVER, Remedy.UPSERT])
def test_the_loader_of_the_hop_must_be_past_every_record_of_the_key(named: dict[str, Any], remedy: Remedy) -> None:
    copies = [COPY, {"partition": 2, "offset": 4}, {"partition": 0, "offset": 1, "aborted": True}]
    assert asked(pipeline_with(remedy=remedy, **named), copies) == ((HOP,), "1:17,2:4")


def test_so_must_the_loader_of_another_store_that_a_record_reaches_but_not_where_a_row_is_written() -> None:
    assert asked(pipeline_with(progress=PROGRESS, lake=lake()))[0] == ("topic→lake", HOP)
    assert asked(pipeline_with(progress=PROGRESS, remedy=Remedy.UPSERT, lake=lake()))[0] == (HOP,)
    assert asked(pipeline_with(lake=lake(None, progress=PROGRESS)))[0] == ("topic→lake",)


def test_what_takes_a_record_again_without_harm_is_not_asked() -> None:
    despite = pipeline_with(lake=lake(), redeliver_despite=("lake-loader",), consumer_group="dw")
    assert asked(despite)[0] == (HOP,)
    overwriting = lake(semantics=Semantics.UPSERT)
    assert asked(pipeline_with(consumer_group="dw", lake=overwriting))[0] == (HOP,)


def test_no_loader_comes_to_a_record_of_a_log_that_is_gone() -> None:
    gone = [{**COPY, "gone": True}]
    assert asked(pipeline_with(progress=PROGRESS), gone) == ((), "")


def test_a_record_that_two_stores_lack_is_sent_once_behind_both_loaders() -> None:
    both = pipeline_with(progress=PROGRESS, lake=lake())
    redelivering = replace(both.hops[2], remedies=both.hops[1].remedies)
    pipeline = replace(both, hops=(*both.hops[:2], redelivering))
    findings = [finding_of("K", Verdict.MISSING, name) for name in (HOP, "topic→lake")]
    draft = draft_plan(pipeline, findings, window_keys=1)
    assert not draft.refusals
    (drafted,) = draft.drafts
    assert (drafted.action.before.passed, drafted.action.before.records) == (("topic→lake", HOP), "1:17")


def test_a_record_that_is_still_to_come_is_refused_with_what_stands_before_it() -> None:
    waiting = replace(finding_of("K", Verdict.MISSING, HOP), cause=Cause.NOT_CONSUMED)
    (refused,) = draft_plan(pipeline_with(progress=PROGRESS), [waiting], window_keys=1).refusals
    assert refused.refusal == (
        Refusal(
            RefusalCode.OTHER,
            "its record still stands in front of the sink of store (at of offsets), which would load it a second time "
            "when it goes on; mend the consumer, then run this window again",
        )
    )


def test_what_earlier_plans_sent_is_asked_of_every_loader_that_would_add_a_row() -> None:
    def resent_to(pipeline: Pipeline) -> tuple[str, ...]:
        (drafted,) = draft_plan(pipeline, [finding_of("K", Verdict.MISSING, HOP)], window_keys=1).drafts
        return drafted.action.before.resent_to

    assert resent_to(pipeline_with()) == (HOP,)
    assert resent_to(pipeline_with(lake=lake(), redeliver_despite=("lake-loader",))) == (HOP,)
    assert resent_to(pipeline_with(remedy=Remedy.UPSERT, lake=lake())) == (HOP,)
    other = pipeline_with(lake=lake(), consumer_group="dw")
    into_store = replace(other, hops=(*other.hops[:2], replace(other.hops[2], source="again", target="store")))
    again = replace(into_store.topic("topic"), name="again", topic="flights-again")
    assert resent_to(replace(into_store, points={**into_store.points, "again": again})) == ("again→store", HOP)
    store = replace(other.table("store"), version="v")
    assert resent_to(replace(other, points={**other.points, "store": store})) == ("topic→lake",)
