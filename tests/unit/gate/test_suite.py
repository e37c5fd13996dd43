"""The planned expectations as data: the validation library is not loaded."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from makewhole.gate import HopSummary
from makewhole.gate.planned_expectation import Number, Role
from makewhole.gate.suite import frame_suite, hop_suite
from makewhole.model.gate import Gate
from makewhole.model.hops import Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import HopCounts
from tests.unit.gate.conftest import accounting_of

pytestmark = pytest.mark.unit

# What may be asked of Spark. None of these makes a view, needs `mostly`, or asks another session.
HARMLESS = {
    "expect_table_row_count_to_equal",
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_be_in_set",
    "expect_column_unique_value_count_to_be_between",
}


def number(pipeline: Pipeline, summary: HopSummary, name: str) -> Number:
    (chosen,) = [number for number in hop_suite(pipeline, summary).numbers if number.name == name]
    return chosen


def breached(pipeline: Pipeline, summary: HopSummary) -> dict[str, str]:
    """Sentences of the numbers outside their limits, by the role they would have."""
    return {
        planned.sentence: planned.role.value
        for number in hop_suite(pipeline, summary).numbers
        if number.value is not None and not number.at_least <= number.value <= number.at_most
        for planned in number.planned(summary.hop)[1:]
    }


def test_importing_the_gate_imports_no_heavy_library() -> None:
    code = (
        "import sys, makewhole.gate, makewhole_spark.validate;"
        "print(sorted({'great_expectations', 'pandas', 'pyspark', 'airflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_window_in_which_nothing_went_wrong_breaches_nothing(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    assert [breached(pipeline, summary) for summary in summaries] == [{}, {}]


def test_every_number_is_expected_to_be_known_and_bounded_on_both_sides(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    for summary in summaries:
        suite = hop_suite(pipeline, summary)
        assert len(suite.row) == len(suite.numbers) > 20
        known, between = suite.planned[0::2], suite.planned[1::2]
        assert {expectation.type for expectation in known} == {"expect_column_values_to_not_be_null"}
        assert {expectation.type for expectation in between} == {"expect_column_values_to_be_between"}
        assert (
            [expectation.kwargs["column"] for expectation in known]
            == [expectation.kwargs["column"] for expectation in between]
            == list(suite.row)
        )
        assert all(
            isinstance(expectation.kwargs[limit], int)
            for expectation in between
            for limit in ("min_value", "max_value")
        )


def test_no_expectation_uses_mostly_spark_sql_or_a_comparison_with_another_table(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    planned = frame_suite(summaries)
    assert {expectation.type for expectation in planned} == HARMLESS
    assert all(
        "mostly" not in expectation.kwargs and "unexpected_rows_query" not in expectation.kwargs
        for expectation in planned
    )
    assert {expectation.role for expectation in planned} == {Role.EVIDENCE}


def test_the_keyed_frame_must_have_as_many_rows_and_distinct_keys_as_the_snapshots_hold(
    summaries: list[HopSummary],
) -> None:
    kwargs = {expectation.id: expectation.kwargs for expectation in frame_suite(summaries)}
    assert kwargs["verdicts rows"] == {"value": 6}
    assert kwargs["verdicts keys unique"] == {"column": "hop_key", "min_value": 6, "max_value": 6}


def test_a_table_is_counted_and_a_topic_is_accounted_for(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    names = [{number.name for number in hop_suite(pipeline, summary).numbers} for summary in summaries]
    assert {"source_rows_counted", "target_offsets_unaccounted"} <= names[0]
    assert {"source_offsets_unaccounted", "target_rows_counted"} <= names[1]
    assert not {"target_rows_counted", "source_offsets_unaccounted"} & names[0]


@pytest.mark.parametrize("verdict", ["missing", "duplicate", "mismatched", "unexpected"])
def test_a_verdict_may_be_found_as_often_as_the_pipeline_tolerates(
    with_gate: Callable[..., Pipeline], summaries: list[HopSummary], verdict: str
) -> None:
    counts = replace(summaries[0].counts, matched=1, **{verdict: 2})
    if verdict == "unexpected":
        counts = replace(counts, source_keys=1)
    summary = replace(summaries[0], counts=counts)
    assert breached(with_gate(**{verdict: 2}), summary) == {}
    assert breached(with_gate(**{verdict: 1}), summary) == {f"outbox→flights: 2 keys {verdict}, 1 allowed": "finding"}


def test_one_undecidable_key_is_one_too_many(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    summary = replace(summaries[0], counts=replace(summaries[0].counts, matched=2, undecidable=1))
    assert breached(pipeline, summary) == {"outbox→flights: 1 key undecidable, 0 allowed": "finding"}


def test_pending_keys_pass_when_others_were_judged(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    summary = replace(summaries[0], counts=replace(summaries[0].counts, matched=2, pending=1), handovers_written=1)
    assert breached(pipeline, summary) == {}


def test_more_pending_keys_than_the_pipeline_tolerates_fail(
    with_gate: Callable[..., Pipeline], summaries: list[HopSummary]
) -> None:
    summary = replace(summaries[0], counts=replace(summaries[0].counts, matched=1, pending=2), handovers_written=2)
    assert breached(with_gate(pending=2), summary) == {}
    assert breached(with_gate(pending=1), summary) == {"outbox→flights: 2 keys pending, 1 allowed": "finding"}
    assert breached(with_gate(pending=0), summary) == {"outbox→flights: 2 keys pending, 0 allowed": "finding"}


@pytest.mark.parametrize("allow_empty", [False, True])
def test_a_hop_whose_keys_are_all_pending_was_not_judged(
    with_gate: Callable[..., Pipeline], summaries: list[HopSummary], allow_empty: bool
) -> None:
    summary = replace(summaries[0], counts=replace(summaries[0].counts, matched=0, pending=3), handovers_written=3)
    assert breached(with_gate(allow_empty=allow_empty), summary) == {
        "outbox→flights: nothing was judged: 3 keys pending, 0 undecidable": "finding"
    }


def test_a_quiet_day_passes_only_where_the_pipeline_says_so(
    with_gate: Callable[..., Pipeline], summaries: list[HopSummary]
) -> None:
    summary = replace(
        summaries[0],
        counts=HopCounts(),
        expected_rows=0,
        source=replace(summaries[0].source, rows_counted=0, rows_read=0),
        target=replace(
            summaries[0].target, accounting=replace(accounting_of(summaries[1].source), span=2, data=0), rows_read=0
        ),
    )
    assert breached(with_gate(allow_empty=True), summary) == {}
    silence = "is empty in this window, and silence is not proof (gate.allow_empty permits it)"
    assert breached(with_gate(), summary) == {
        f"outbox→flights: outbox {silence}": "finding",
        f"outbox→flights: flights {silence}": "finding",
        "outbox→flights: nothing was judged: 0 keys pending, 0 undecidable": "finding",
    }


def test_an_empty_store_does_not_pass_however_much_may_be_missing(
    with_gate: Callable[..., Pipeline], summaries: list[HopSummary]
) -> None:
    counts = replace(summaries[1].counts, matched=0, missing=3, target_rows=0)
    empty = replace(summaries[1].target, rows_read=0, rows_counted=0)
    silence = "warehouse is empty in this window, and silence is not proof (gate.allow_empty permits it)"
    summary = replace(summaries[1], counts=counts, target=empty)
    assert breached(with_gate(missing=3), summary) == {f"flights→warehouse: {silence}": "finding"}


def test_a_store_that_was_empty_passes_once_its_keys_are_found_in_it(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    empty = replace(summaries[1].target, rows_read=0, rows_counted=0)
    assert breached(pipeline, replace(summaries[1], target=empty)) == {}


def test_a_snapshot_without_a_manifest_is_broken_evidence(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    summary = replace(summaries[1], target=replace(summaries[1].target, has_manifest=False))
    assert breached(pipeline, summary) == {
        "flights→warehouse: the snapshot of warehouse was never committed; take it before judging anything": "evidence"
    }


def test_a_short_read_of_a_table_is_broken_evidence(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    summary = replace(summaries[1], target=replace(summaries[1].target, rows_counted=1_003))
    assert breached(pipeline, summary) == {
        "flights→warehouse: 3 rows of warehouse were read, the database counts 1,003": "evidence"
    }


def test_an_offset_that_is_not_accounted_for_is_broken_evidence(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    short = replace(summaries[1].source, accounting=replace(accounting_of(summaries[1].source), span=6))
    assert breached(pipeline, replace(summaries[1], source=short)) == {
        "flights→warehouse: 1 offsets of flights are not accounted for, 0 allowed: the read was short or repeated": (
            "evidence"
        )
    }


def test_parts_that_cancel_do_not_balance_the_accounts(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    tricked = replace(accounting_of(summaries[1].source), control=3, compacted=-1)
    summary = replace(summaries[1], source=replace(summaries[1].source, accounting=tricked))
    assert breached(pipeline, summary) == {
        "flights→warehouse: -1 offsets of flights are counted as compacted, 5 allowed": "evidence"
    }


def test_offsets_that_could_never_be_read_are_a_finding_and_no_broken_evidence(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    expired = replace(accounting_of(summaries[1].source), span=9, expired=4)
    summary = replace(summaries[1], source=replace(summaries[1].source, accounting=expired))
    assert breached(pipeline, summary) == {
        "flights→warehouse: 4 offsets of flights were deleted before they could be read, so the window is partial: "
        "what they held is not known": "finding"
    }


def test_undecodable_records_fail_the_gate_unless_they_are_tolerated(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    kept = replace(accounting_of(summaries[1].source), span=7, undecodable=2)
    summary = replace(summaries[1], source=replace(summaries[1].source, accounting=kept))
    assert breached(pipeline, summary) == {
        "flights→warehouse: 2 records of flights have no usable key, 0 allowed; they are kept with their places in the "
        "snapshot's folder undecodable (gate.tolerance.undecodable permits some)": "finding"
    }
    assert breached(replace(pipeline, gate=Gate(undecodable=2)), summary) == {}


def test_a_lost_key_and_a_surplus_key_do_not_cancel(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    counts = replace(summaries[0].counts, matched=2, unexpected=1)
    assert "outbox→flights: 3 keys at the source, but 2 of them have a verdict" in breached(
        pipeline, replace(summaries[0], counts=counts)
    )


def test_counts_that_differ_from_the_independent_number_are_broken_evidence(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    assert breached(pipeline, replace(summaries[0], expected_rows=4)) == {
        "outbox→flights: 3 keys in the counts, the snapshots hold 4": "evidence"
    }


def test_a_number_below_zero_is_broken_evidence_whatever_its_role(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    summary = replace(summaries[0], counts=replace(summaries[0].counts, missing=-1, matched=4))
    assert breached(pipeline, summary)["outbox→flights: -1 keys missing, 0 allowed"] == "evidence"


def test_handed_over_keys_and_duplicates_beyond_the_source_keep_the_balance(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    counts = HopCounts(source_keys=4, source_rows=3, target_rows=5, matched=4, duplicate=1, extra_copies=1)
    summary = replace(summaries[0], counts=counts, expected_rows=5, handed_over=1, duplicates_without_source=1)
    assert breached(pipeline, summary) == {"outbox→flights: 1 key duplicate, 0 allowed": "finding"}


@pytest.mark.parametrize("written", [0, 1, 3])
def test_pending_keys_that_were_not_all_handed_over_are_broken_evidence(
    pipeline: Pipeline, summaries: list[HopSummary], written: int
) -> None:
    counts = replace(summaries[0].counts, matched=1, pending=2)
    summary = replace(summaries[0], counts=counts, handovers_written=written)
    assert breached(pipeline, summary) == {
        f"outbox→flights: 2 keys pending, {written} in the journal as handed over: the next window judges only these. "
        "Run the window again for a new revision": "evidence"
    }
    assert breached(pipeline, replace(summary, handovers_written=2)) == {}


def test_a_number_of_handovers_that_was_not_counted_is_not_known(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    summary = replace(summaries[0], handovers_written=None)
    evidence = number(pipeline, summary, "handovers_written")
    assert (evidence.value, evidence.role) == (None, Role.EVIDENCE)


def test_undecidable_keys_beyond_the_source_keep_the_balance(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    counts = HopCounts(source_keys=3, source_rows=3, target_rows=5, matched=2, undecidable=3)
    summary = replace(summaries[0], counts=counts, expected_rows=5, undecidable_without_source=2)
    assert breached(pipeline, summary) == {"outbox→flights: 3 keys undecidable, 0 allowed": "finding"}
    assert "evidence" in breached(pipeline, replace(summary, undecidable_without_source=0)).values()
    assert "evidence" in breached(pipeline, replace(summary, undecidable_without_source=4)).values()


def test_a_missing_accounting_is_a_number_that_is_not_known(pipeline: Pipeline, summaries: list[HopSummary]) -> None:
    summary = replace(summaries[1], source=replace(summaries[1].source, accounting=None))
    assert number(pipeline, summary, "source_offsets_unaccounted").value is None


def test_a_summary_survives_json(summaries: list[HopSummary]) -> None:
    for summary in summaries:
        assert HopSummary.from_json_dict(json.loads(json.dumps(summary.to_json_dict()))) == summary


def test_a_summary_with_a_field_left_out_is_refused(summaries: list[HopSummary]) -> None:
    document = summaries[0].to_json_dict()
    del document["expected_rows"]
    with pytest.raises(TypeError, match="expected_rows"):
        HopSummary.from_json_dict(document)


def test_a_conflict_fails_the_gate_and_what_has_vanished_or_was_erased_does_not(
    pipeline: Pipeline, summaries: list[HopSummary], with_gate: Callable[..., Pipeline]
) -> None:
    counts = HopCounts(source_keys=3, source_rows=3, target_rows=3, conflict=1, vanished=1, erased=1)
    summary = replace(summaries[1], counts=counts)

    assert breached(pipeline, summary) == {"flights→warehouse: 1 key conflict, 0 allowed": "finding"}
    assert breached(with_gate(conflict=1), summary) == {}
    assert breached(with_gate(conflict=1, vanished=0), summary) == {
        "flights→warehouse: 1 key vanished, 0 allowed": "finding"
    }


def test_what_has_vanished_fails_the_gate_where_it_is_to_be_brought_back(
    pipeline: Pipeline, summaries: list[HopSummary]
) -> None:
    summary = replace(summaries[1], counts=replace(summaries[1].counts, matched=2, vanished=1))
    hop = pipeline.hops[1]
    asked = replace(hop, remedies=replace(hop.remedies, vanished=Remedy.UPSERT))

    assert breached(pipeline, summary) == {}
    assert breached(replace(pipeline, hops=(pipeline.hops[0], asked)), summary) == {
        "flights→warehouse: 1 key vanished, 0 allowed": "finding"
    }
