"""Test the configuration that is signed: whole, without secrets, with a digest of what judges."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from makewhole.model.gate import Gate
from makewhole.model.hops import Hop, Remedies, Remedy, Reverse, Semantics
from makewhole.model.pipeline import Limits, Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.window.configuration import configuration_document, judging_sha256, plain, reading_sha256

pytestmark = pytest.mark.unit

REMEDIES = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REVERSE, mismatched=Remedy.REPORT)
HOP = Hop(
    source="a", target="b", remedies=REMEDIES, reverse=Reverse(to="a", value={"n": Decimal("1.50"), "of": [None]})
)
PIPELINE = Pipeline(
    name="demo",
    points={
        "a": TopicPoint(name="a", connection="log", topic="orders", key=("$.id",)),
        "b": TablePoint(name="b", kind=PointKind.STORE, connection="db", table="orders", key=("id",)),
    },
    hops=(HOP,),
    compare={"amount": "decimal(10,2)"},
)


def test_the_document_is_the_same_after_it_went_through_json_and_has_no_number_that_is_not_whole() -> None:
    document = configuration_document(PIPELINE)

    assert json.loads(json.dumps(document), parse_float=lambda _: pytest.fail("a number that is not whole")) == document
    assert document["hops"][0]["reverse"]["value"] == {"n": "1.50", "of": [None]}
    assert (document["limits"]["share"], document["settle"]) == ("0.01", "300000000 µs")
    assert document["points"]["a"]["connection"] == "log"


def test_a_value_that_has_no_place_in_a_certificate_is_refused() -> None:
    with pytest.raises(TypeError, match="a object cannot be written into a certificate"):
        plain({"x": object()})


JUDGES = {
    "a filter": replace(PIPELINE, hops=(replace(HOP, where="amount > 5"),)),
    "the promise of a hop": replace(PIPELINE, hops=(replace(HOP, semantics=Semantics.UPSERT),)),
    "a compared type": replace(PIPELINE, compare={"amount": "string"}),
    "a compared column": replace(PIPELINE, compare={}),
    "a tolerance": replace(PIPELINE, gate=Gate(missing=1)),
    "the settle time": replace(PIPELINE, settle=timedelta(minutes=5, microseconds=1)),
    "where judging begins": replace(PIPELINE, start="earliest"),
    "a table": replace(PIPELINE, points={**PIPELINE.points, "b": replace(PIPELINE.points["b"], table="others")}),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", JUDGES)
def test_whatever_decides_a_verdict_changes_the_digest(what: str) -> None:
    assert judging_sha256(JUDGES[what]) != judging_sha256(PIPELINE)


JUDGES_ONLY = {"a tolerance", "the settle time", "where judging begins"}


@pytest.mark.parametrize("what", JUDGES)
def test_the_digest_of_readings_changes_with_what_reads_and_with_nothing_that_only_judges(what: str) -> None:
    assert (reading_sha256(JUDGES[what]) == reading_sha256(PIPELINE)) == (what in JUDGES_ONLY)


def test_what_only_decides_a_repair_does_not() -> None:
    others = (
        replace(PIPELINE, description="another"),
        replace(PIPELINE, limits=Limits(actions=1)),
        replace(PIPELINE, hops=(replace(HOP, remedies=replace(REMEDIES, missing=Remedy.UPSERT)),)),
    )

    assert {judging_sha256(other) for other in others} == {judging_sha256(PIPELINE)}
    assert len({json.dumps(configuration_document(other)) for other in (*others, PIPELINE)}) == 4
