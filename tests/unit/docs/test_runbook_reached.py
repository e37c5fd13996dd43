"""Hold each state and incident of the runbook to a test that reaches it on purpose, on real servers."""

import ast
from enum import StrEnum
from functools import cache
from pathlib import Path

import pytest

from makewhole.model.incident import IncidentKind
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parents[2]
SPARK, EXECUTION = "integration/spark", "integration/compensation/execution"
LOGS, WAITING, SINKS = f"{SPARK}/test_faults_of_logs.py", f"{SPARK}/test_waiting.py", f"{SPARK}/test_sink_progress.py"
CENSUS, TIMES = f"{SPARK}/test_census_incidents.py", f"{SPARK}/test_times_that_cannot_be.py"

REACHED: dict[StrEnum, tuple[str, str]] = {
    WindowState.OPEN: (
        f"{SPARK}/test_unfinished_windows.py",
        "test_a_window_whose_run_ended_in_the_middle_is_gone_on_with",
    ),
    WindowState.CERTIFIED: (CENSUS, "test_a_large_table_without_an_index_on_its_times_is_said_and_blocks_nothing"),
    WindowState.GAPS: (WAITING, "test_a_partition_that_stands_is_reported_and_after_a_day_what_is_behind_it_is_lost"),
    WindowState.NOT_KNOWN: (
        "integration/datasets/test_spoilt_data_files.py",
        "test_a_data_file_without_a_whole_footer_may_hold_every_key_that_is_missing",
    ),
    WindowState.ERROR: (f"{SPARK}/test_silence.py", "test_verdicts_whose_files_are_gone_make_the_gate_unable"),
    PlanState.FROZEN: (
        "integration/compensation/approval/test_plan_commands.py",
        "test_a_paused_plan_is_watched_and_goes_on_when_it_is_resumed",
    ),
    PlanState.REFUSED: (f"{EXECUTION}/test_remedies.py", "test_a_plan_over_its_share_is_refused_as_a_whole"),
    PlanState.AWAITING_APPROVAL: (
        "e2e/test_approval.py",
        "test_a_paused_plan_holds_no_worker_and_goes_on_when_it_is_resumed",
    ),
    PlanState.APPROVED: (f"{EXECUTION}/test_refusals.py", "test_a_plan_above_the_limit_waits_for_its_approval"),
    PlanState.REJECTED: ("e2e/test_approval.py", "test_a_rejected_plan_writes_nothing_and_leaves_the_window_open"),
    PlanState.RUNNING: (f"{EXECUTION}/test_control.py", "test_a_plan_that_is_stopped_while_it_is_paused_ends"),
    PlanState.DONE: ("e2e/test_approval.py", "test_an_approved_plan_is_done_and_the_journal_says_who_approved_it"),
    IncidentKind.TRUNCATED: (
        f"{SPARK}/test_what_is_gone.py",
        "test_truncated_keys_are_judged_again_once_and_their_copies_count_no_more",
    ),
    IncidentKind.TOPIC_RECREATED: (LOGS, "test_a_topic_that_was_made_again_goes_on_from_its_first_record"),
    IncidentKind.LEFT_OVER_FILES: (
        "integration/files/test_left_over_files.py",
        "test_what_no_reader_takes_for_long_is_named_and_blocks_nothing",
    ),
    IncidentKind.EXPIRED: ("lab/scenarios/cleaning.py", "expired_before"),
    IncidentKind.LEADER_CHANGED: (
        f"{SPARK}/test_reach.py",
        "test_a_change_of_leader_that_may_have_lost_something_is_not_known_until_the_file_accepts_it",
    ),
    IncidentKind.BEGINNING_GONE: (
        f"{SPARK}/test_baseline.py",
        "test_what_is_older_than_a_log_that_lost_its_beginning_is_no_gap",
    ),
    IncidentKind.BASELINE_UNKNOWN: (
        TIMES,
        "test_a_log_without_its_beginning_and_with_stamps_in_seconds_asks_for_a_start",
    ),
    IncidentKind.PARTITIONS_ADDED: (LOGS, "test_partitions_that_were_added_are_read_from_their_first_offset"),
    IncidentKind.OPEN_TRANSACTION: (LOGS, "test_an_open_transaction_ends_the_window_at_its_first_record_and_is_named"),
    IncidentKind.HANGING_TRANSACTION: ("lab/scenarios/transactions.py", "hanging_transaction"),
    IncidentKind.GROUP_UNKNOWN: (WAITING, "test_a_group_that_does_not_exist_is_no_proof_and_ends_in_a_loss"),
    IncidentKind.GROUP_OUT_OF_RANGE: (WAITING, "test_an_offset_that_the_log_does_not_have_proves_nothing"),
    IncidentKind.PROGRESS_UNKNOWN: (SINKS, "test_a_partition_that_is_not_read_is_not_known_and_the_others_are"),
    IncidentKind.PROGRESS_OUT_OF_RANGE: (SINKS, "test_a_progress_that_cannot_be_says_nothing"),
    IncidentKind.CONSUMER_STALLED: (
        WAITING,
        "test_a_partition_that_stands_is_reported_and_after_a_day_what_is_behind_it_is_lost",
    ),
    IncidentKind.SLICE_GROWN: (
        WAITING,
        "test_a_partition_that_stands_is_reported_and_after_a_day_what_is_behind_it_is_lost",
    ),
    IncidentKind.SLICE_SHRUNK: ("lab/scenarios/changed_files.py", "source_taken_out"),
    IncidentKind.SLICE_FIRST_COUNTED: (
        CENSUS,
        "test_slices_that_no_window_has_counted_are_counted_said_once_and_compared_from_then_on",
    ),
    IncidentKind.FILTER_CHANGED: (
        f"{SPARK}/test_changed_filters.py",
        "test_rows_whose_records_pass_the_new_filter_stay",
    ),
    IncidentKind.NEVER_COMPARED: (
        f"{SPARK}/test_never_compared.py",
        "test_a_name_that_is_misspelt_at_both_ends_is_said_and_the_certificate_has_it",
    ),
    IncidentKind.NO_TIME_INDEX: (CENSUS, "test_a_large_table_without_an_index_on_its_times_is_said_and_blocks_nothing"),
    IncidentKind.TIMES_AHEAD: (TIMES, "test_rows_that_no_window_will_reach_are_counted_and_said"),
    IncidentKind.REPEATED_KEYS: (
        f"{SPARK}/test_repeated_keys.py",
        "test_where_the_file_refuses_them_the_window_has_gaps_until_it_does_not",
    ),
    IncidentKind.VALUES_NOT_LOOKED_AT: (
        f"{SPARK}/test_rewritten_rows.py",
        "test_a_certificate_says_what_was_looked_at",
    ),
    IncidentKind.PREPARED_TRANSACTION: (
        f"{SPARK}/test_in_doubt.py",
        "test_an_inserted_row_in_doubt_is_pending_with_its_transaction",
    ),
    IncidentKind.UNREADABLE_FILES: (
        "integration/files/test_unreadable_files.py",
        "test_what_may_be_in_a_file_that_cannot_be_read_is_not_missing_however_long_it_waits",
    ),
}
"""The file of the test below `tests/`, and its name; of the lab the scenario, which `tests/lab` plays."""


@cache
def functions(file: str) -> dict[str, str]:
    """Return the source of every function of a file by its name."""
    text = (TESTS / file).read_text(encoding="utf-8")
    made = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return {node.name: ast.get_source_segment(text, node) or "" for node in made}


def test_every_state_and_every_incident_has_a_test_that_reaches_it() -> None:
    assert set(REACHED) == {*WindowState, *PlanState, *IncidentKind}


@pytest.mark.parametrize("name", REACHED, ids=lambda name: f"{type(name).__name__}-{name}")
def test_the_test_that_reaches_it_names_it(name: StrEnum) -> None:
    file, function = REACHED[name]
    assert function in functions(file)
    if isinstance(name, IncidentKind):
        source = functions(file)[function]
        assert f"IncidentKind.{name.name}" in source or name.value in source
