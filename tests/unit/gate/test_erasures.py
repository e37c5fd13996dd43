"""Check what the gate says of tombstones that delete their keys on purpose."""

from dataclasses import replace

import pytest

from makewhole.gate import HopSummary
from makewhole.gate.suite import hop_suite
from makewhole.model.pipeline import Pipeline
from tests.unit.gate.conftest import accounting_of

pytestmark = pytest.mark.unit


def with_erasures(summary: HopSummary, *, erasures: int, span: int, data: int) -> HopSummary:
    """Return a hop from a topic with tombstones beside its records."""
    accounting = replace(accounting_of(summary.source), erasures=erasures, span=span, data=data)
    return replace(summary, source=replace(summary.source, accounting=accounting, rows_read=data))


def values(pipeline: Pipeline, summary: HopSummary) -> dict[str, int | None]:
    """Return the numbers of the hop's source."""
    numbers = hop_suite(pipeline, summary).numbers
    return {number.name: number.value for number in numbers if number.name.startswith("source_")}


def test_tombstones_that_erase_are_accounted_for(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    before, after = (
        values(pipeline, summary) for summary in (summaries[1], with_erasures(summaries[1], erasures=4, span=9, data=3))
    )

    assert "source_offsets_erasures" not in before
    assert (after["source_offsets_erasures"], after["source_offsets_unaccounted"]) == (4, 0)


def test_a_topic_with_nothing_but_tombstones_is_not_silent(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    answers = values(pipeline, with_erasures(summaries[1], erasures=2, span=4, data=0))

    assert (answers["source_rows_read"], answers["source_rows_of_offsets"]) == (2, 0)
