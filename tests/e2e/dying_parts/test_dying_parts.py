"""Test that a window survives whatever dies under it: its true verdict, one certificate, each record replayed once.

Each takes one to three minutes: a window, and the parts that are started again.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.e2e.dying_parts.endings import Ending, ending, require_nothing_left, require_open, todo
from tests.e2e.dying_parts.kills import (
    begun,
    built,
    clear,
    end,
    kill_components,
    kill_database,
    kill_scheduler_alone,
    kill_task,
    metadata_away,
    run_of,
    second_scheduler,
    task_process,
    tries,
    up,
)
from tests.e2e.holds import held_in_compensate, held_in_snapshot, held_window
from tests.e2e.scenarios.pipeline_files import STARTED
from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import RUN_SECONDS, Run, Stage, until, utc

pytestmark = [pytest.mark.e2e, pytest.mark.extended, pytest.mark.timeout(3600)]

END_SECONDS = 300.0
"""Within which Airflow takes for dead what is dead, on a busy machine."""
TRIES_MOST = 6
"""Each try that an API server which is away does not take counts, too."""


def require_undisturbed(stage: Stage, shop: ScenarioShop, run: Run, undisturbed: Ending) -> None:
    """Wait for the end of a run, and hold it to that of a window which nothing disturbed."""
    assert end(stage, run) == "success", stage.story(run)
    assert ending(stage, shop) == undisturbed
    require_nothing_left(stage, shop)
    begun_tasks = stage.get(f"{run.path}/taskInstances")["task_instances"]
    assert max(task["try_number"] for task in begun_tasks) <= TRIES_MOST, stage.story(run)


def test_a_scheduler_that_is_killed_and_started_again_goes_on_with_the_window(
    own_stage: Stage, undisturbed: Ending
) -> None:
    shop = built(own_stage, "restarted")
    run = begun(own_stage, shop)
    with held_in_snapshot(own_stage, shop, run):
        kill_components(own_stage, "scheduler")
        status = own_stage.run_command("status", "--json")
        assert [name for name, part in status.document["health"].items() if part["state"] == "dead"] == [
            "airflow-scheduler"
        ]
        require_open(own_stage, shop)
        up(own_stage)
    require_undisturbed(own_stage, shop, run, undisturbed)


@pytest.mark.parametrize(
    ("name", "task", "hold"),
    [("leftovers", "snapshot", held_in_snapshot), ("leftovers_late", "compensate", held_in_compensate)],
)
def test_a_scheduler_that_starts_beside_the_workers_of_a_killed_one_does_nothing_twice(
    own_stage: Stage, undisturbed: Ending, name: str, task: str, hold: Callable[..., AbstractContextManager[Any]]
) -> None:
    """The workers go on with their tasks, as under a service manager that starts the scheduler's process alone."""
    shop = built(own_stage, name)
    run = begun(own_stage, shop)
    with hold(own_stage, shop, run) as held:
        first = task_process(own_stage, run, task)
        kill_scheduler_alone(own_stage)
        assert first.is_running()
        with second_scheduler(own_stage):
            until(lambda: tries(own_stage, run, task) == 2 or None, END_SECONDS, lambda: own_stage.story(run))
            require_open(own_stage, shop)
            held.release()
            assert end(own_stage, run) == "success", own_stage.story(run)
    up(own_stage)
    require_undisturbed(own_stage, shop, run, undisturbed)


def test_a_task_that_is_killed_with_its_supervisor_in_compensate_repairs_once(
    own_stage: Stage, undisturbed: Ending
) -> None:
    shop = built(own_stage, "in_compensate")
    run = begun(own_stage, shop)
    with held_in_compensate(own_stage, shop, run):
        kill_task(own_stage, run, "compensate", with_supervisor=True)
        require_open(own_stage, shop)
    require_undisturbed(own_stage, shop, run, undisturbed)


@pytest.mark.parametrize("task", ["snapshot", "reconcile"])
def test_a_task_that_is_killed_with_its_supervisor_while_spark_works_is_done_once(
    own_stage: Stage, undisturbed: Ending, task: str
) -> None:
    """The application outlives its task, and is still at work when the task is tried again."""
    shop = built(own_stage, f"in_{task}")
    run = begun(own_stage, shop)
    with held_in_snapshot(own_stage, shop, run) as hold:
        if task == "snapshot":
            kill_task(own_stage, run, "snapshot", with_supervisor=True)
            until(lambda: tries(own_stage, run, "snapshot") == 2 or None, END_SECONDS, lambda: own_stage.story(run))
        else:
            with held_window(shop, own_stage) as reconciling:
                hold.release()
                reconciling.wait()
                kill_task(own_stage, run, "snapshot", with_supervisor=True)
    require_undisturbed(own_stage, shop, run, undisturbed)


def test_a_task_that_is_killed_in_its_last_try_leaves_what_a_person_goes_on_with(
    own_stage: Stage, undisturbed: Ending
) -> None:
    """With `retry_for: 0s` there is one try, in the DAG of the pipeline: the form has the longest time of all."""
    shop = built(own_stage, "last_try")
    own_stage.unpause(shop.pipeline_dag)
    asked = own_stage.ask({"to": utc(STARTED)}, shop.pipeline_dag)
    run = Run(dag=shop.pipeline_dag, id=asked.json()["dag_run_id"])
    with held_in_compensate(own_stage, shop, run):
        kill_task(own_stage, run, "compensate", with_supervisor=True)
        assert end(own_stage, run) == "failed", own_stage.story(run)
        waiting = todo(own_stage, shop)
        assert [item["command"] for item in waiting] == [f"makewhole run {shop.name} --window 1"], waiting
    again = own_stage.run_command("run", shop.name, "--window", "1", "--json")
    assert (again.code, again.document["state"], again.document["revision"]) == (0, "certified", 2)
    ended = ending(own_stage, shop)
    assert (ended.replays, ended.copies, ended.quarantined, ended.is_whole, ended.proof, ended.todo) == (
        undisturbed.replays,
        undisturbed.copies,
        undisturbed.quarantined,
        True,
        0,
        (),
    )
    require_nothing_left(own_stage, shop)


def test_a_process_that_is_killed_under_its_supervisor_is_tried_again_at_once(
    own_stage: Stage, undisturbed: Ending
) -> None:
    shop = built(own_stage, "child_alone")
    run = begun(own_stage, shop)
    with held_in_compensate(own_stage, shop, run):
        kill_task(own_stage, run, "compensate", with_supervisor=False)
        require_open(own_stage, shop)
    require_undisturbed(own_stage, shop, run, undisturbed)


def test_a_window_needs_no_triggerer_while_it_settles_nor_while_a_person_is_asked(
    own_stage: Stage, undisturbed: Ending
) -> None:
    """Kill it in each of these waits, and start it again between them alone."""
    shop = built(own_stage, "no_triggerer")
    run = begun(own_stage, shop)
    own_stage.wait_for_task(run, "settle", "up_for_reschedule")
    assert "looking again then" in own_stage.log(run, "settle")
    kill_components(own_stage, "triggerer")
    own_stage.wait_for_question(run)
    up(own_stage)
    kill_components(own_stage, "triggerer")
    assert [item["kind"] for item in todo(own_stage, shop)] == ["question"]
    own_stage.answer(run, "Approve", "oncall").raise_for_status()
    assert end(own_stage, run) == "success", own_stage.story(run)
    up(own_stage)
    require_undisturbed(own_stage, shop, run, undisturbed)


def test_a_window_outlives_an_absence_of_the_database_of_airflow(own_stage: Stage, undisturbed: Ending) -> None:
    """Keep it away until Airflow gives the task up, whose reports are not taken; the journal stays."""
    shop = built(own_stage, "metadata")
    run = begun(own_stage, shop)
    with held_in_snapshot(own_stage, shop, run):
        first = task_process(own_stage, run, "snapshot")
        with metadata_away(own_stage):
            until(lambda: None if first.is_running() else True, END_SECONDS, lambda: first)
            require_open(own_stage, shop)
        up(own_stage)
    require_undisturbed(own_stage, shop, run, undisturbed)


def test_a_database_that_is_killed_in_compensate_loses_nothing(own_stage: Stage, undisturbed: Ending) -> None:
    """PostgreSQL has Airflow's metadata, the journal and the tables."""
    shop = built(own_stage, "database")
    run = begun(own_stage, shop)
    with held_in_compensate(own_stage, shop, run):
        kill_database(own_stage)
    up(own_stage)
    require_undisturbed(own_stage, shop, run, undisturbed)


@pytest.mark.parametrize(
    ("name", "task", "hold"),
    [("cleared", "snapshot", held_in_snapshot), ("cleared_late", "compensate", held_in_compensate)],
)
def test_a_task_that_is_cleared_while_it_runs_is_done_once(
    own_stage: Stage, undisturbed: Ending, name: str, task: str, hold: Callable[..., AbstractContextManager[Any]]
) -> None:
    shop = built(own_stage, name)
    run = begun(own_stage, shop)
    with hold(own_stage, shop, run):
        clear(own_stage, run, task)
        until(lambda: tries(own_stage, run, task) == 2 or None, END_SECONDS, lambda: own_stage.story(run))
        require_open(own_stage, shop)
    require_undisturbed(own_stage, shop, run, undisturbed)


@pytest.mark.parametrize(("name", "away_seconds"), [("reports", 8.0), ("long_away", 45.0)])
def test_a_window_outlives_the_api_server_to_which_its_tasks_report(
    own_stage: Stage, undisturbed: Ending, name: str, away_seconds: float
) -> None:
    """Away for a short time, the report of a task comes later; for a longer one, the task is given up and done again.
    Whoever follows the run on the command line goes on following it."""
    shop = built(own_stage, name)
    with ThreadPoolExecutor(1) as beside:
        followed = beside.submit(own_stage.command, "run", shop.name, "--to", utc(STARTED), "--json")
        run = until(lambda: run_of(own_stage, shop), RUN_SECONDS, lambda: followed)
        with held_in_snapshot(own_stage, shop, run):
            kill_components(own_stage, "api-server")
            require_open(own_stage, shop)
        time.sleep(away_seconds)
        up(own_stage)
        ended = followed.result(RUN_SECONDS)
    assert (ended.returncode, json.loads(ended.stdout)["state"]) == (0, "certified"), ended.stderr
    assert "Airflow does not answer; the run goes on without it, and this waits" in " ".join(ended.stderr.split())
    require_undisturbed(own_stage, shop, run, undisturbed)


def test_two_runs_of_one_window_at_once_repair_once(own_stage: Stage, undisturbed: Ending) -> None:
    """They are two revisions, each of which may be certified; the plan of the first is done or gives way."""
    shop = built(own_stage, "twice")
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: begun(own_stage, shop), range(2)))
    ends = [end(own_stage, run) for run in runs]
    assert "success" in ends, [own_stage.story(run) for run in runs]
    ended = ending(own_stage, shop)
    assert ended.windows[-1] == (1, 2, "certified", ended.windows[-1][3])
    assert set(ended.chain) <= {(1, 1, "certificate", None), (1, 2, "certificate", None)}
    assert len(ended.chain) == len(set(ended.chain))
    assert {state for _, state, _, _ in ended.plans} <= {"done", "rejected"}
    assert (ended.replays, ended.copies, ended.quarantined) == (
        undisturbed.replays,
        undisturbed.copies,
        undisturbed.quarantined,
    )
    assert (ended.is_whole, ended.proof, ended.todo) == (True, 0, ())
    require_nothing_left(own_stage, shop)
