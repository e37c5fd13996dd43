"""Name the test that reaches each entry of the runbook on tasks, refused plans and systems that are away."""

SPARK, EXECUTION = "integration/spark", "integration/compensation/execution"

REACHED: dict[str, tuple[str, str, str | None]] = {
    "`open_window` is red with a list": (
        f"{SPARK}/test_readiness.py",
        "test_every_mistake_is_named_at_once_with_what_to_write",
        "to mend before a window can be judged",
    ),
    "A Spark step is red at once: Spark could not be submitted": (
        "unit/orchestration/test_recorded_failure.py",
        "test_what_cannot_be_submitted_fails_at_once_and_is_kept",
        "Spark could not be submitted",
    ),
    "`open_window` is red because a table is gone or was replaced": (
        "integration/datasets/test_tables_gone.py",
        "test_another_table_of_the_name_is_judged_only_once_the_file_says_that_it_is_the_one",
        "is another table than the windows before read",
    ),
    "`open_window` is red or is tried again": (
        "e2e/test_runs.py",
        "test_an_interval_that_cannot_be_judged_is_red_at_once_and_says_why",
        "which is in the future",
    ),
    "`open_window` is red because of the types of keys": (
        f"{SPARK}/test_key_types.py",
        "test_a_pipeline_in_operation_is_not_silently_read_by_other_spellings",
        "the windows before compared",
    ),
    "`open_window` is red because a column cannot be what the file says": (
        f"{SPARK}/test_latest_ever.py",
        "test_a_column_that_is_no_version_is_refused_when_a_window_is_opened",
        "which is no version",
    ),
    "`open_window` is red because positions are used again or compacted": (
        f"{SPARK}/test_coordinate_keys.py",
        "test_a_compacted_topic_has_no_lasting_positions",
        "and the key of the point is a coordinate of its records",
    ),
    "`open_window` is red because rows may be hidden": (
        "integration/postgres/test_row_security.py",
        "test_rows_that_a_policy_hides_are_an_error_and_not_a_loss",
        "row security may hide rows of",
    ),
    "`open_window` is red because of a collation": (
        "integration/postgres/test_collations.py",
        "refusal",
        "which is nondeterministic",
    ),
    "`open_window` is red because of the name of a point": (
        f"{SPARK}/test_same_place.py",
        "test_a_renamed_point_is_refused_by_its_former_name",
        "is what the windows before knew as",
    ),
    "`open_window` waits for an older window": (
        "e2e/test_healing.py",
        "test_the_run_that_waits_says_for_what",
        "run's own window comes after it",
    ),
    "An older window fails again and again": (
        "e2e/test_healing.py",
        "test_a_window_that_fails_again_is_reported_plainly_and_no_later_window_is_opened",
        "No later window is compared before it",
    ),
    "A step took longer than its time limit": (
        "e2e/test_healing.py",
        "test_a_step_that_hangs_is_ended_at_its_time_limit_and_not_tried_again",
        "it took longer than",
    ),
    "`approve` is red as `plan` left no question": (
        "unit/orchestration/test_questions.py",
        "test_a_run_that_left_no_question_is_named",
        "left no question: it was marked as a success by hand",
    ),
    "`compensate` is up for rescheduling": (
        "e2e/test_approval.py",
        "test_a_paused_plan_holds_no_worker_and_goes_on_when_it_is_resumed",
        "lets it go on",
    ),
    "`settle` waits": (
        "unit/orchestration/test_steps.py",
        "test_settle_gives_its_worker_back_until_the_last_minute_and_says_until_when",
        "looking again then",
    ),
    "`snapshot` is running and its points have been read": (
        "e2e/test_one_application.py",
        "test_one_application_takes_a_window_to_the_gates_answer",
        "is committed; this application goes on with",
    ),
    "A later step did not end well in the log of `snapshot` or `reconcile`": (
        "e2e/test_one_application.py",
        "test_what_goes_wrong_in_a_later_step_is_red_in_its_own_task",
        "did not end well here",
    ),
    "`reconcile` or `validate` is green within seconds": (
        "e2e/test_one_application.py",
        "test_a_task_whose_step_is_committed_says_what_it_found_and_submits_nothing",
        "this is committed, nothing was submitted",
    ),
    "A revision was compared twice at once": (
        f"{SPARK}/test_committed_steps.py",
        "test_results_that_another_process_has_committed_meanwhile_stand",
        "another process has compared this revision meanwhile; its results stand",
    ),
    "`snapshot` is red": (
        "e2e/test_runs.py",
        "test_a_missing_column_is_red_at_once_and_says_what_to_do",
        "has no column",
    ),
    "A file of a dataset does not decode": (
        "integration/datasets/test_spoilt_data_files.py",
        "test_a_plan_stops_at_once_at_a_file_that_was_spoilt_since",
        "does not decode",
    ),
    "The files of a dataset change while they are read": (
        "integration/files/test_files_reading.py",
        "test_a_file_that_goes_or_changes_while_it_is_read_is_an_error",
        "was written again, or went, while it was read; read again",
    ),
    "A manifest of a dataset cannot be used": (
        "integration/files/test_committed_files.py",
        "test_a_manifest_that_is_no_list_is_named_and_nothing_is_concluded",
        "is no list of files: what it commits is not known",
    ),
    "A dataset has no file": (
        "integration/files/test_files_gone.py",
        "test_a_folder_that_goes_while_its_window_is_judged_leaves_no_row_missing",
        "has no file, and nothing says what its columns are",
    ),
    "A standby has not replayed enough": (
        "integration/postgres/test_standby.py",
        "test_a_standby_lags_until_it_has_replayed_what_was_committed_and_when_it_is_cut_off",
        "is a standby that has replayed",
    ),
    "A Spark step is red on a cluster": (
        "integration/cluster/test_other_code.py",
        "test_executors_with_other_code_judge_nothing",
        "have another makewhole than the driver",
    ),
    "`reconcile` is red": (
        f"{SPARK}/test_silence.py",
        "test_a_snapshot_whose_manifest_is_gone_is_an_error_and_is_taken_when_asked_again",
        "without it nothing can be judged",
    ),
    "How a copier commits its offsets is not known": (
        f"{SPARK}/test_copiers.py",
        "test_verdicts_are_the_same_where_the_log_of_commits_may_not_be_read",
        "commits its offsets is not known",
    ),
    "A key is missing by `partial_transaction`": (
        f"{SPARK}/test_partial_transactions.py",
        "test_a_key_that_one_topic_of_a_committed_transaction_lacks_is_named_and_repaired",
        "partial_transaction",
    ),
    "Nothing of some partitions has come": (
        "lab/scenarios/copiers_identity.py",
        "copied_in_part_by_an_unknown_group",
        "does its reader take all partitions",
    ),
    "A copier commits its offsets outside of its transactions": (
        f"{SPARK}/test_copiers.py",
        "test_what_was_committed_before_an_aborted_transaction_was_committed_before_it_was_written",
        "committed_before_written",
    ),
    "The key index has lost files": (
        "integration/journal/test_key_index.py",
        "test_a_window_whose_run_was_retired_and_is_in_no_merged_run_is_said",
        "no run of the key index has the keys of window",
    ),
    "What was kept long enough stays": (
        f"{SPARK}/test_keep_of_plans.py",
        "test_effects_stay_as_long_as_rows_aside_and_both_go_together",
        "effects of",
    ),
    "A plan is too old to be undone": (
        f"{SPARK}/test_keep_of_plans.py",
        "test_what_a_plan_did_goes_and_its_undo_says_so",
        "is no longer possible",
    ),
    "The key index has many runs": (
        f"{SPARK}/test_index_in_levels.py",
        "test_the_command_says_what_the_index_is_and_merges_it",
        None,
    ),
    "`validate` is red, or the gate says ERROR": (
        f"{SPARK}/test_windows.py",
        "test_a_key_in_flight_that_the_journal_did_not_take_is_an_error_of_the_gate",
        "the next window judges only these",
    ),
    "`plan` went on without a plan": (
        "e2e/test_runs.py",
        "test_a_window_without_gaps_has_no_plan_and_its_task_says_so",
        "the gate says PASS: nothing to plan",
    ),
    "Nothing is repaired: the remedy is `report`": (
        "integration/compensation/approval/test_what_to_approve.py",
        "test_the_page_says_which_line_would_answer_what_is_no_part_of_the_plan",
        "nothing is written, because the remedy is `report`",
    ),
    "`compensate` is red": (f"{EXECUTION}/test_hostile_plans.py", "test_a_changed_payload_file_is_not_written", None),
    "`certify` is red after a repair": (
        f"{SPARK}/test_rows_aside.py",
        "test_a_row_that_changed_meanwhile_stays_and_its_record_is_not_sent",
        None,
    ),
    "The last try of a repair was killed": (
        "unit/window/test_certify.py",
        "test_gaps_say_that_the_task_of_their_plan_was_killed",
        "was not ended, and its task left no reason, as when it is killed",
    ),
    "`publish` is red": (
        f"{SPARK}/test_published.py",
        "test_folder_and_topic_of_another_publication_are_refused",
        "is not empty",
    ),
    "What was published is gone": (
        f"{SPARK}/test_published.py",
        "test_published_file_that_is_gone_is_noticed_before_a_revision_names_it",
        "was published and is not there; nothing was changed",
    ),
    "What was sent into a topic is not known": (
        f"{SPARK}/test_published_killed.py",
        "test_marker_that_is_not_what_the_journal_knows_stops_the_sending",
        "chunks were sent into",
    ),
    "A published window is not proven any more": (
        f"{SPARK}/test_published_revocations.py",
        "test_list_of_what_is_published_says_what_is_revoked",
        "revoked by entry",
    ),
    "A consumer is red because data is not proven any more": (
        "e2e/test_own_dags.py",
        "test_a_consumer_is_red_when_a_certificate_is_revoked_and_computes_nothing",
        None,
    ),
    "A window is certified and not published": (
        f"{SPARK}/test_published.py",
        "test_window_waits_in_a_topic_for_the_one_before_it_and_not_in_a_folder",
        None,
    ),
    "A channel does not take its messages": (
        "integration/notices/test_notices.py",
        "test_a_channel_that_fails_keeps_no_other_from_its_message_and_is_tried_again",
        "cannot send through",
    ),
    "A pipeline is late": (
        "integration/notices/test_what_is_sent.py",
        "test_a_window_that_is_not_certified_in_time_is_late",
        "and was to be up to",
    ),
    "Another runner is at work": (
        "integration/compensation/freezing/test_overlap.py",
        "test_while_a_plan_of_an_earlier_revision_runs_the_next_one_waits",
        "is being worked on by",
    ),
    "Another runner took over": (
        "integration/compensation/freezing/test_overlap.py",
        "test_a_runner_that_was_stopped_changes_no_row_once_another_plan_took_its_place",
        "a newer runner has been at",
    ),
    "The plan was changed": (
        f"{EXECUTION}/test_hostile_plans.py",
        "changed",
        "is not the one that was frozen: its actions were changed in the journal",
    ),
    "The payload file is gone or was changed": (
        f"{EXECUTION}/test_hostile_plans.py",
        "test_a_changed_payload_file_is_not_written",
        "the payload file",
    ),
    "The target is another one now": (
        f"{EXECUTION}/test_hostile_plans.py",
        "test_a_pipeline_file_that_was_edited_since_redirects_nothing",
        "when the plan was frozen; open a new revision of the window",
    ),
    "The marker or receipts are gone": (
        f"{EXECUTION}/test_lost_marker.py",
        "test_when_the_log_begins_later_now_nothing_is_written",
        "the marker of the plan is lost, and",
    ),
    "An open transaction is in the way of a lost marker": (
        f"{EXECUTION}/test_lost_marker.py",
        "test_records_behind_an_open_transaction_are_waited_for",
        "has an open transaction, and the plan's records may stand behind it",
    ),
    "A right is missing at the target": (
        f"{SPARK}/test_roles.py",
        "test_the_detector_judges_a_topic_and_may_not_write_it",
        "then run the plan again",
    ),
    "The plan was stopped": (
        f"{EXECUTION}/test_control.py",
        "test_a_plan_that_is_stopped_while_it_is_paused_ends",
        "what was written has its receipts",
    ),
    "The journal": (
        "integration/journal/test_leases.py",
        "test_a_connection_that_breaks_in_a_transaction_is_reported_and_what_was_done_is_undone",
        "the session with the journal's PostgreSQL broke; try again",
    ),
    "Nothing says where the journal is": (
        "unit/journal/test_address.py",
        "test_a_connection_to_something_else_is_named",
        "is no connection to a PostgreSQL",
    ),
    "Another Airflow judges the pipeline": (
        "integration/journal/test_pipeline_owners.py",
        "test_the_first_airflow_that_opens_a_window_judges_the_pipeline_and_no_other_does",
        "is judged by another Airflow since",
    ),
    "The journal's schema does not fit": (
        "integration/journal/test_schema_version.py",
        "test_an_older_and_a_newer_journal_are_refused",
        "and this makewhole needs",
    ),
    "A right is missing at the journal": (
        f"{SPARK}/test_roles.py",
        "test_a_right_that_is_missing_at_the_journal_is_named_with_the_file",
        "Run as the schema's owner what docs/rights.md lists for the journal's application: psql",
    ),
    "The journal was migrated by other hands": (
        "integration/journal/test_database.py",
        "test_an_edited_migration_is_refused",
        "was edited after this journal applied it; restore the file and put the change into a new migration",
    ),
    "The storage": (
        "unit/lake/test_file_system.py",
        "test_a_name_with_a_secret_or_a_mistake_is_refused",
        "has a secret in it",
    ),
    "Kafka": (
        "integration/kafka/test_security.py",
        "test_a_wrong_password_is_refused_for_good_and_not_shown",
        "Correct the credentials or the rights",
    ),
    "A PostgreSQL refuses the session": (
        "integration/postgres/test_connect.py",
        "test_a_session_that_the_server_refuses_is_for_a_person_to_correct",
        "the server refuses the user or its password",
    ),
    "A database of a point": (
        "e2e/test_healing.py",
        "test_an_outage_of_a_database_is_outlasted_by_tries_with_growing_delays",
        "does not answer",
    ),
    "The files or the catalogue of a dataset": (
        "integration/files/test_file_stores.py",
        "test_a_name_node_that_is_away_is_an_error_within_seconds",
        "does not answer: ",
    ),
    "Airflow": (
        "unit/cli/test_airflow_token.py",
        "test_an_airflow_that_is_away_is_named_with_what_shows_its_parts",
        "does not answer; look whether",
    ),
    "Tasks stay scheduled though the scheduler is healthy": (
        "e2e/dying_parts/test_dying_parts.py",
        "test_a_scheduler_that_starts_beside_the_workers_of_a_killed_one_does_nothing_twice",
        None,
    ),
    "Airflow is away while a run is followed": (
        "e2e/dying_parts/test_dying_parts.py",
        "test_a_window_outlives_the_api_server_to_which_its_tasks_report",
        "Airflow does not answer; the run goes on without it, and this waits",
    ),
    "Airflow refuses a pipeline": (
        "unit/cli/test_pipeline_dags.py",
        "test_a_dag_file_that_airflow_refuses_is_shown_and_not_waited_for",
        "with this import error",
    ),
    "The configuration": (
        "e2e/test_runs.py",
        "test_a_missing_column_is_red_at_once_and_says_what_to_do",
        "has no column",
    ),
    "A list of files of an Iceberg table is gone": (
        "integration/datasets/test_gone_data_files.py",
        "test_a_table_without_its_list_of_manifests_or_its_metadata_is_named_at_once",
        ": nothing is known",
    ),
    "A block of HDFS cannot be read": (
        "integration/files/test_lost_blocks.py",
        "test_a_block_whose_file_is_gone_is_named_and_tried_again",
        "is there, and cannot be read: no DataNode gives",
    ),
    "`compare_faults` is red: a self-check missed or invented something": (
        "integration/self_check/test_rounds.py",
        "test_a_judge_that_loses_a_key_makes_the_check_red",
        "missed: ",
    ),
    "`compare_faults` is red: nothing was compared": (
        "unit/orchestration/test_self_checking.py",
        "test_a_round_without_a_window_is_red_and_says_so",
        "could not be compared: no window of it came to its end; the next run goes on with it",
    ),
    "`plant_faults` is red": (
        "integration/self_check/test_rounds.py",
        "test_a_topic_that_is_gone_or_made_again_is_named_and_not_made_by_itself",
        "was made again by others",
    ),
}
"""The file of the test below `tests/`, its name, and a piece of the symptom that stands in it; None where no message of
the product is the symptom. Of the lab it is the scenario, which `tests/lab` plays."""
