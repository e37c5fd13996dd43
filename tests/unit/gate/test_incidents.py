"""Incidents of the logs are checked even where there are none, and fail the gate without breaking it."""

from collections.abc import Sequence

import pytest

from makewhole.gate.planned_expectation import Role
from makewhole.gate.suite import incident_suite
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline

pytestmark = pytest.mark.unit


def incident(kind: IncidentKind, point: str = "flights", *, is_partial: bool = False) -> Incident:
    progress = {"table": "offsets", "offset": "at", "means": "next", "rows": "part = 0", "has_topic": False}
    unknown = {"fault": "no_row", "rows": 0, "least": None, "greatest": None}
    detail = {"before_it_was_read": is_partial, "committed": 9, "log": [0, 5], "hop": "h"}
    if kind.value.startswith("progress_"):
        detail |= {"progress": progress, "unknown": unknown}
    return Incident(kind=kind, point=point, topic="f", topic_id="i", partition=0, lo=3, hi=5, detail=detail)


def breached(pipeline: Pipeline, incidents: Sequence[Incident]) -> dict[str, int | None]:
    suite = incident_suite(pipeline, incidents)
    assert {planned.role for planned in suite.planned[1::2]} == {Role.FINDING}
    return {name: value for name, value in suite.row.items() if value}


def test_every_kind_that_can_block_is_asked_about_even_when_nothing_happened(pipeline: Pipeline) -> None:
    suite = incident_suite(pipeline, ())

    assert suite.row == dict.fromkeys(
        (
            "truncated",
            "topic_recreated",
            "hanging_transaction",
            "group_unknown",
            "group_out_of_range",
            "progress_unknown",
            "progress_out_of_range",
        ),
        0,
    )
    assert len(suite.planned) == 14


@pytest.mark.parametrize("kind", list(IncidentKind))
def test_of_a_topic_that_is_fed_by_a_ledger_only_a_hanging_transaction_and_a_group_without_an_offset_block(
    pipeline: Pipeline, kind: IncidentKind
) -> None:
    of_readers = ("group_unknown", "group_out_of_range", "progress_unknown", "progress_out_of_range")
    is_blocking = kind is IncidentKind.HANGING_TRANSACTION or kind.value in of_readers
    assert breached(pipeline, [incident(kind)]) == ({kind.value: 1} if is_blocking else {})


@pytest.mark.parametrize("kind", [IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED])
def test_of_a_topic_that_nothing_feeds_what_is_gone_blocks(pipeline: Pipeline, kind: IncidentKind) -> None:
    assert breached(pipeline, [incident(kind, "outbox")] * 2) == {kind.value: 2}


@pytest.mark.parametrize("kind", [IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED, IncidentKind.EXPIRED])
def test_offsets_that_could_never_be_read_are_counted_with_their_point(pipeline: Pipeline, kind: IncidentKind) -> None:
    gone = incident(kind, is_partial=True)
    assert gone.blocks(pipeline)
    assert breached(pipeline, [gone]) == {}


def test_the_sentence_names_the_places_and_counts_the_rest(pipeline: Pipeline) -> None:
    (number, *_) = incident_suite(pipeline, [incident(IncidentKind.TRUNCATED, "outbox")] * 5).numbers

    assert number.sentence.startswith("2 offsets of f/0 ([3, 5)) that windows had read are gone")
    assert number.sentence.endswith("; and 2 more")
