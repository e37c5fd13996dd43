"""Test which points the actions on tables name, to be asked again before anything is written."""

from dataclasses import replace

import pytest

from makewhole.model.hops import Hop, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.verdict import Finding, Verdict
from tests.unit.compensation.planning.drafted import (
    finding_of,
    pipeline_of,
    plan_actions,
    reversing_pipeline,
    with_evidence,
)

pytestmark = pytest.mark.unit

HOP = "topic→store"


def test_an_upsert_names_the_topic_that_its_record_is_of() -> None:
    pipeline = pipeline_of(missing=Remedy.UPSERT)

    assert _before(pipeline, finding_of("1", Verdict.MISSING, HOP)) == {
        "place": "pg:dw.flights",
        "repeats": "topic",
        "resent_to": ("topic→store",),
    }
    assert _before(pipeline, finding_of("1", Verdict.MISMATCHED, HOP)) == {"place": "pg:dw.flights", "repeats": "topic"}


def test_rows_of_an_unexpected_key_name_the_points_that_feed_their_table() -> None:
    pipeline = _fed_by_a_table_too(None)

    asked = {"place": "pg:dw.flights", "unknown_to": ("ledger", "other", "topic")}
    assert _before(pipeline, finding_of("1", Verdict.UNEXPECTED, HOP)) == asked


def test_a_table_behind_a_filter_is_not_asked() -> None:
    """It may have the key, and not send it."""
    pipeline = _fed_by_a_table_too("cancelled = false")

    asked = {"place": "pg:dw.flights", "unknown_to": ("ledger", "topic")}
    assert _before(pipeline, finding_of("1", Verdict.UNEXPECTED, HOP)) == asked

    hops = tuple(replace(hop, where="cancelled = false") for hop in pipeline.hops)
    asked = {"place": "pg:dw.flights", "unknown_to": ("topic",)}
    assert _before(replace(pipeline, hops=hops), finding_of("1", Verdict.UNEXPECTED, HOP)) == asked


def test_reversals_of_an_unexpected_key_name_them_too() -> None:
    pipeline = reversing_pipeline(unexpected=Remedy.REVERSE)
    finding = with_evidence(finding_of("1", Verdict.UNEXPECTED, HOP), target_copies=1)

    assert _before(pipeline, finding) == {"place": "kafka:reversals", "unknown_to": ("ledger", "topic")}


def test_rows_beside_a_survivor_name_nothing() -> None:
    assert _before(pipeline_of(), finding_of("1", Verdict.DUPLICATE, HOP)) == {"place": "pg:dw.flights"}


def _fed_by_a_table_too(where: str | None) -> Pipeline:
    pipeline = pipeline_of(unexpected=Remedy.QUARANTINE)
    other = TablePoint(name="other", kind=PointKind.LEDGER, connection="pg", table="ops.other", key=("id",))
    hop = Hop(source="other", target="store", where=where, remedies=pipeline.hops[1].remedies)
    return replace(pipeline, points={**pipeline.points, "other": other}, hops=(*pipeline.hops, hop))


def _before(pipeline: Pipeline, finding: Finding) -> dict[str, object]:
    (action,) = plan_actions(pipeline, [finding])
    return {name: value for name, value in action.before.fields.items() if name not in ("disputed_by", "accepted_by")}
