"""Test that what breaks at the end of a window, of its undo or of a DAG of people's own is listed, with its times."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from makewhole.journal import leases, plans, step_failures
from makewhole.journal.database import connect, transaction
from makewhole.journal.step_failures import StepPlace
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.plan import PlanState
from makewhole.model.window import WindowState
from makewhole.orchestration.steps.recorded_failure import end_tries
from tests.integration.window.waiting_rows import DAG, URL, Command, failed, opened, planned
from tests.world.sql import run_sql

pytestmark = pytest.mark.integration


def test_what_breaks_behind_a_certificate_waits_for_a_person(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        unpublished, restored = opened(session, 1, WindowState.CERTIFIED), opened(session, 2, WindowState.CERTIFIED)
        failed(session, "publish", RefusedError("something else is published there"), unpublished)
        failed(session, "compensate", RefusedError("went by before the certificate"), unpublished)
        planned(session, restored, PlanState.DONE, "shop-2-plan")
        planned(session, restored, PlanState.DONE, "shop-2-undo", undoes="shop-2-plan")
        failed(session, "reopen", RefusedError("Kafka is away"), restored)
        failed(session, "publish", TransientError("is tried again"), opened(session, 3, WindowState.CERTIFIED))

    items = [json.loads(line) for line in makewhole("todo", "--json").stdout.splitlines()]

    assert [(item["kind"], item["what"], item["command"]) for item in items] == [
        ("error", "is certified, and publish broke", "makewhole run shop --window 1"),
        (
            "repair_stopped",
            "had plan shop-2-plan taken back in part: reopen broke",
            "makewhole plan undo shop-2-plan",
        ),
    ]
    said = [line for line in makewhole("windows", "shop").stdout.splitlines() if line.startswith("window 1: ")]
    assert said == [
        f"window 1: publish did not end well in run tonight of {DAG}: something else is published there",
        f"window 1: the log of publish: {URL}/publish",
    ]


def test_an_undo_that_was_begun_and_that_no_task_carries_out_waits(journal: str, makewhole: Command) -> None:
    with connect(journal) as session:
        window = opened(session, 1, WindowState.CERTIFIED)
        planned(session, window, PlanState.DONE, "shop-1-plan")
        planned(session, window, PlanState.RUNNING, "shop-1-undo", undoes="shop-1-plan")
        leases.acquire(session, "plan shop-1-undo", "a runner", 60.0)
        session.commit()
        assert makewhole("todo").stdout == "nothing waits for a person\n", "not yet begun"
        run_sql(journal, "update makewhole.plan set began_at = now() where id = 'shop-1-undo'")
        assert makewhole("todo").stdout == "nothing waits for a person\n", "a runner is at it"
    run_sql(journal, "update makewhole.lease set expires_at = now() - interval '1 second'")
    [item] = [json.loads(line) for line in makewhole("todo", "--json").stdout.splitlines()]
    assert (item["kind"], item["what"], item["command"]) == (
        "repair_stopped",
        "has undo shop-1-undo of plan shop-1-plan (3 actions) begun, and nothing goes on with it",
        "makewhole plan undo shop-1-plan",
    )


def test_times_are_those_of_utc_whatever_the_clock_of_the_journal(journal: str, makewhole: Command) -> None:
    [(name,)] = run_sql(journal, "select current_database()")
    run_sql(journal, f"alter database {name} set timezone = 'Asia/Tokyo'")
    with connect(journal) as session:
        planned(session, opened(session, 1, WindowState.OPEN), PlanState.AWAITING_APPROVAL, "shop-1-plan")
        plans.note_question(session, "shop-1-plan", datetime(2030, 5, 6, 7, 8, tzinfo=UTC))
    assert "until 2030-05-06 07:08 UTC" in makewhole("windows", "shop").stdout
    with transaction(journal) as session, session.cursor() as cursor:
        cursor.execute("select asked_until from makewhole.plan")
        [(until,)] = cursor.fetchall()
    assert until.isoformat() == "2030-05-06T07:08:00+00:00"


def test_the_last_try_of_a_dag_of_ones_own_is_one_of_the_pipeline_whose_window_it_has(
    journal: str, makewhole: Command
) -> None:
    """Its callback knows the DAG and the run alone."""
    with connect(journal) as session:
        step_failures.put(
            session,
            StepPlace(pipeline="shop", step="open_window", dag="nightly", run="tonight"),
            TransientError("Kafka does not answer"),
        )
    assert makewhole("todo").stdout == "nothing waits for a person\n"
    ti = SimpleNamespace(task_id="open_window", dag_id="nightly", run_id="tonight", xcom_pull=lambda **_: None)
    end_tries({"ti": ti, "params": {"pipeline": "a name of their own"}})
    assert makewhole("todo").stdout.startswith("1. shop could open no window in run tonight")
