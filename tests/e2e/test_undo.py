"""Test an undo through Airflow: asked for on the command line, approved by who may, seen in the table."""

import pytest

from tests.e2e.scenarios.approvals import Undone
from tests.e2e.scenarios.pipeline_files import ORDERS
from tests.world.metrics import TakenMetrics

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_after_the_undo_the_table_is_what_it_was_before_the_repair(undone: Undone) -> None:
    assert undone.between != undone.before
    assert undone.after == undone.before
    assert undone.exit_code == 0
    result = undone.result
    assert (result["plan"], result["state"], result["reason"]) == (
        undone.repaired["plan"]["id"],
        "done",
        "approved by oncall",
    )
    assert (result["actions"], result["done"], result["left"], result["stays"]) == (2, 2, {}, [])


def test_a_person_was_asked_and_every_task_is_green(undone: Undone) -> None:
    assert undone.approval is not None
    assert undone.approval[:2] == ("approved", "oncall")
    assert undone.tasks == dict.fromkeys(("plan", "approve", "restore", "reopen", "report_watermark"), "success")


def test_the_first_who_asks_learns_that_undos_are_paused_and_how_to_release_them(undone: Undone) -> None:
    code, text = undone.paused
    assert code == 2
    assert (
        "makewhole_undo_undone is paused, and a run of it would wait until a person releases it: nothing was started."
        in text
    )
    assert "by `airflow dags unpause makewhole_undo_undone`, or here with --release" in text


def test_the_form_of_several_pipelines_has_none_whose_file_says_who_may_run_it(undone: Undone) -> None:
    code, text = undone.shared
    assert (code, "undone" in text) == (400, True), text


def test_airflow_sends_how_the_window_ended_and_how_far_the_pipeline_is_proven(
    undone: Undone, metrics: TakenMetrics
) -> None:
    pipeline = {"pipeline": "undone"}
    assert undone.window["state"] == "gaps"
    matched = metrics.of("airflow.makewhole.keys", **pipeline, hop="orders-warehouse", verdict="matched")
    duplicate = metrics.of("airflow.makewhole.keys", **pipeline, hop="orders-warehouse", verdict="duplicate")
    assert (matched, duplicate) == (ORDERS, 0)  # as the repair left it
    assert metrics.of("airflow.makewhole.certified", **pipeline) == 1
    assert metrics.of("airflow.makewhole.gaps", **pipeline) == 0
    assert metrics.of("airflow.makewhole.verified_window", **pipeline) == 0  # the undo has revoked its certificate


def test_the_window_is_open_and_says_why(undone: Undone) -> None:
    plan = undone.repaired["plan"]["id"]
    assert undone.repaired["state"] == "certified"
    assert (undone.window["state"], undone.result["window"]["state"]) == ("gaps", "gaps")
    assert undone.window["reason"].startswith(f"plan {plan} was undone by plan {undone.result['undo']}: ")
