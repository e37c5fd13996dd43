"""Test which findings a plan needs all of."""

from dataclasses import replace

import pytest

from makewhole.journal.findings.needed import kinds_needed
from makewhole.model.hops import Remedy
from makewhole.model.verdict import DISPUTING, Verdict
from tests.unit.compensation.planning.drafted import pipeline_of, with_lake

pytestmark = pytest.mark.unit

FIRST, SECOND = "ledger→topic", "topic→store"
REPORTED = dict.fromkeys(("missing", "duplicate", "mismatched"), Remedy.REPORT)


def test_a_pipeline_that_only_reports_answers_nothing() -> None:
    assert kinds_needed(pipeline_of(**REPORTED)) == frozenset()


def test_what_has_a_remedy_is_answered_on_its_hop() -> None:
    pipeline = pipeline_of(**REPORTED | {"missing": Remedy.UPSERT, "vanished": Remedy.UPSERT})
    verdicts = Verdict.MISSING, Verdict.VANISHED
    assert kinds_needed(pipeline) == {
        *((hop, verdict) for hop in (FIRST, SECOND) for verdict in verdicts),
        *((FIRST, verdict) for verdict in DISPUTING),
    }


@pytest.mark.parametrize("remedy", [Remedy.PRODUCE, Remedy.REDELIVER])
def test_what_a_record_meets_that_is_sent_is_said_by_the_findings_of_every_hop(remedy: Remedy) -> None:
    pipeline = pipeline_of(**REPORTED | {"mismatched": remedy})
    verdicts = Verdict.MISSING, Verdict.DUPLICATE, Verdict.CONFLICT, Verdict.MISMATCHED
    assert kinds_needed(pipeline) == {
        *((hop, verdict) for hop in (FIRST, SECOND) for verdict in verdicts),
        *((FIRST, verdict) for verdict in DISPUTING if remedy is Remedy.REDELIVER),
    }


def test_what_is_missing_anywhere_is_needed_where_unexpected_rows_are_moved_aside() -> None:
    pipeline = pipeline_of(**REPORTED | {"unexpected": Remedy.QUARANTINE})
    verdicts = Verdict.MISSING, Verdict.UNEXPECTED
    assert kinds_needed(pipeline) == {
        *((hop, verdict) for hop in (FIRST, SECOND) for verdict in verdicts),
        *((FIRST, verdict) for verdict in DISPUTING),
    }


def test_what_a_topic_that_is_filled_from_a_topic_has_alone_is_needed_where_records_are_sent() -> None:
    pipeline = pipeline_of(**REPORTED | {"missing": Remedy.PRODUCE})
    pipeline = replace(
        pipeline,
        points={**pipeline.points, "copies": replace(pipeline.points["topic"], name="copies")},
        hops=(*pipeline.hops, replace(pipeline.hops[1], target="copies")),
    )
    assert {kind for kind in kinds_needed(pipeline) if kind[1] is Verdict.UNEXPECTED} == {
        ("topic→copies", Verdict.UNEXPECTED)
    }


@pytest.mark.parametrize(("remedy", "is_needed"), [(Remedy.REDELIVER, True), (Remedy.UPSERT, False)])
def test_what_vanished_at_another_reader_is_needed_where_records_are_sent_again(
    remedy: Remedy, is_needed: bool
) -> None:
    needed = kinds_needed(with_lake(pipeline_of(**REPORTED | {"missing": remedy})))

    assert (("topic→lake", Verdict.VANISHED) in needed) is is_needed


def test_what_vanished_behind_a_topic_is_not_needed_where_that_lacks_the_record() -> None:
    needed = kinds_needed(pipeline_of(**REPORTED | {"missing": Remedy.PRODUCE}))

    assert {hop for hop, verdict in needed if verdict is Verdict.VANISHED} == set()


@pytest.mark.parametrize("remedy", [Remedy.PRODUCE, Remedy.REDELIVER, Remedy.UPSERT])
def test_what_vanished_in_a_table_by_another_hop_is_needed_where_its_rows_come_back(remedy: Remedy) -> None:
    pipeline = pipeline_of(**REPORTED | {"missing": remedy})
    direct = replace(pipeline.hops[1], source="ledger", remedies=pipeline_of(**REPORTED).hops[1].remedies)
    needed = kinds_needed(replace(pipeline, hops=(*pipeline.hops, direct)))

    assert {hop for hop, verdict in needed if verdict is Verdict.VANISHED} == {"ledger→store"}
