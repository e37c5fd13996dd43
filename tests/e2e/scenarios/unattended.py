"""Run windows that are not answered for: on schedule, by backfill, and of a pipeline that only observes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

from tests.e2e.cable import Cable, lay_cable
from tests.e2e.scenarios.one_application import SPARK_STEPS
from tests.e2e.scenarios.pipeline_files import DAY, FIRST_DAY, MISTAKES, ORDERS, STARTED
from tests.e2e.shop import NONE, Contents, ScenarioShop, moment_of
from tests.e2e.stage import ONCALL, RUN_SECONDS, Run, Stage, until, utc

_LONGER_SECONDS = 27.0


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A database that could not be reached for so many seconds in the middle of a window, until `snapshot` had failed
    twice and longer than 15 s after that.

    `states`: of the task after each of the two tries; `log`: of the second. `tries`: of each Spark task in the end;
    `pauses`: when a try ended, and the next one began.
    """

    seconds: float
    states: tuple[str, ...]
    log: str
    tries: Mapping[str, int]
    pauses: tuple[tuple[datetime, datetime], ...]


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """A run that Airflow's scheduler began, and the same window asked for again on the command line.

    `certified` is the result of its task `certify`, `note` the note of the run, `links` are those of `certify`.
    """

    run: Mapping[str, Any]
    note: str | None
    links: Mapping[str, str]
    certified: Mapping[str, Any]
    window: Mapping[str, Any]
    before_again: Contents
    exit_code: int
    again: Mapping[str, Any]
    after_again: Contents


def scheduled(stage: Stage, shop: ScenarioShop) -> Scheduled:
    """Nothing is wrong here."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3))
    stage.wait_for_dag(shop.pipeline_dag)
    stage.unpause(shop.pipeline_dag)

    first = _first_run(stage, shop.pipeline_dag)
    run = Run(dag=shop.pipeline_dag, id=first["dag_run_id"])
    stage.ended(run, "success")
    before = shop.contents()
    again = stage.run_command("run", shop.name, "--from", utc(STARTED - DAY), "--to", utc(STARTED), "--json")
    return Scheduled(
        run=first,
        note=stage.get(run.path)["note"],
        links=stage.get(f"{run.path}/taskInstances/certify/links")["extra_links"],
        certified=stage.result_of(run, "certify"),
        window=stage.window_of(run),
        before_again=before,
        exit_code=again.code,
        again=again.document,
        after_again=shop.contents(),
    )


def _first_run(stage: Stage, dag: str) -> Mapping[str, Any]:
    """Wait for the run that the scheduler begins of a DAG that was unpaused."""

    def first() -> Mapping[str, Any] | None:
        runs = stage.get(f"/dags/{dag}/dagRuns")["dag_runs"]
        return runs[0] if runs else None

    return until(first, 60, lambda: "a scheduled run")


@dataclass(frozen=True, kw_only=True)
class SelfChecked:
    """A self-check that the scheduler began, on scratch objects that were not there, and what it published: the note of
    its run, the result of its last task, the newest event of its asset, what the command prints, and what waits for a
    person. `page` is the text of the page of the run."""

    tasks: Mapping[str, str]
    note: str
    result: Mapping[str, Any]
    event: Mapping[str, Any]
    exit_code: int
    shown: Mapping[str, Any]
    todo: str
    page: str


def self_checked(stage: Stage, shop: ScenarioShop) -> SelfChecked:
    """The pipeline file names two connections, and all else is made by the run."""
    dag = f"makewhole_reconcile_{shop.name}"
    stage.wait_for_dag(dag)
    stage.unpause(dag)
    run = Run(dag=dag, id=_first_run(stage, dag)["dag_run_id"])
    stage.ended(run, "success")
    shown = stage.run_command("self-check", shop.name, "--json")
    events = stage.get("/assets/events", source_dag_id=dag, source_run_id=run.id)["asset_events"]
    address = f"{stage.status['airflow']['url']}/makewhole/dags/{dag}/runs/{run.id}"
    return SelfChecked(
        tasks=stage.tasks(run),
        note=stage.get(run.path)["note"],
        result=stage.result_of(run, "compare_faults"),
        event=next(event["extra"] for event in events if event["source_task_id"] == "compare_faults"),
        exit_code=shown.code,
        shown=shown.document,
        todo=stage.command("todo").stdout,
        page=stage.client().get(address).raise_for_status().text,
    )


@dataclass(frozen=True, kw_only=True)
class Outlasted:
    """A run whose database was not there for a time."""

    outage: Outage
    window: Mapping[str, Any]


def outlasted(stage: Stage, shop: ScenarioShop) -> Outlasted:
    """Nothing is wrong here but the cable to the database, for a minute."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3))
    cable = lay_cable(stage, shop.name)
    stage.wait_for_dag(shop.pipeline_dag)
    run = stage.begin(shop.name, to=utc(STARTED))
    stage.wait_for_task(run, "snapshot", "running")
    outage = _outage(stage, run, cable)
    stage.ended(run, "success")
    cable.stop()
    return Outlasted(
        outage=replace(outage, tries=_tries(stage, run), pauses=_pauses(stage, run)), window=stage.window_of(run)
    )


def _outage(stage: Stage, run: Run, cable: Cable) -> Outage:
    """Pull the cable out until the task has failed twice, and for longer than a fixed delay of 15 s after that.

    The next try begins 30 s after the second one at the earliest.
    """
    began = time.monotonic()
    cable.pull()
    with stage.aside():
        states = []
        for number in (1, 2):
            until(partial(_failed, stage, run, number), RUN_SECONDS, lambda: stage.story(run))
            states.append(stage.tasks(run)["snapshot"])
        log = stage.log(run, "snapshot")
        time.sleep(_LONGER_SECONDS)
        cable.put_back()
        seconds = time.monotonic() - began
        stage.wait_for_task(run, "snapshot", "running")
    return Outage(seconds=seconds, states=tuple(states), log=log, tries={}, pauses=())


def _failed(stage: Stage, run: Run, number: int) -> bool | None:
    task = stage.get(f"{run.path}/taskInstances/snapshot")
    return True if (task["try_number"], task["state"]) in ((number, "up_for_retry"), (number, "failed")) else None


def _tries(stage: Stage, run: Run) -> Mapping[str, int]:
    return {name: stage.get(f"{run.path}/taskInstances/{name}")["try_number"] for name in SPARK_STEPS}


def _pauses(stage: Stage, run: Run) -> tuple[tuple[datetime, datetime], ...]:
    tries = stage.get(f"{run.path}/taskInstances/snapshot/tries")["task_instances"]
    tries = sorted(tries, key=lambda attempt: attempt["try_number"])
    return tuple(
        (moment_of(attempt["end_date"]), moment_of(following["start_date"])) for attempt, following in pairwise(tries)
    )


@dataclass(frozen=True, kw_only=True)
class Backfilled:
    """Two days, the first with mistakes, the second without."""

    runs: tuple[Mapping[str, Any], ...]
    windows: tuple[Mapping[str, Any], ...]
    tasks: tuple[Mapping[str, str], ...]


def backfilled(stage: Stage, shop: ScenarioShop) -> Backfilled:
    """Its plan is small enough to need no answer."""
    shop.build()
    shop.trade(range(ORDERS), FIRST_DAY + timedelta(hours=1), MISTAKES)
    shop.trade(range(1000, 1000 + ORDERS), FIRST_DAY + DAY + timedelta(hours=1), NONE)
    shop.start_loader()
    stage.wait_for_dag(shop.pipeline_dag)
    wanted = {"dag_id": shop.pipeline_dag, "from_date": utc(FIRST_DAY), "to_date": utc(FIRST_DAY + DAY)}
    order = {"max_active_runs": 1, "reprocess_behavior": "none"}
    stage.client().post("/backfills", json=wanted | order).raise_for_status()
    stage.unpause(shop.pipeline_dag)

    def begun() -> list[Mapping[str, Any]] | None:
        runs = stage.get(f"/dags/{shop.pipeline_dag}/dagRuns", order_by="logical_date")["dag_runs"]
        return runs if len(runs) == 2 else None

    runs = [
        Run(dag=shop.pipeline_dag, id=run["dag_run_id"]) for run in until(begun, 60, lambda: "two runs of a backfill")
    ]
    tasks = tuple(stage.ended(run, "success") for run in runs)
    ended = stage.get(f"/dags/{shop.pipeline_dag}/dagRuns", order_by="logical_date")["dag_runs"]
    return Backfilled(runs=tuple(ended), windows=tuple(stage.window_of(run) for run in runs), tasks=tasks)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A window of a shop whose file names no remedy, for people and once more for programs."""

    before: Contents
    after: Contents
    exit_codes: tuple[int, int]
    output: str
    document: Mapping[str, Any]
    tasks: Mapping[str, str]
    plan_log: str
    certify_log: str


def observed(stage: Stage, shop: ScenarioShop) -> Observed:
    """There are mistakes, and their repair was not asked for."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), MISTAKES)
    before = shop.contents()
    stage.wait_for_dag(shop.pipeline_dag)
    people = stage.command("run", shop.name, "--to", utc(STARTED))
    programs = stage.run_command("run", shop.name, "--to", utc(STARTED), "--json")
    request = stage.journal("select request from makewhole.window where pipeline = %s order by revision", shop.name)
    run = Run(dag=ONCALL, id=request[0][0])
    return Observed(
        before=before,
        after=shop.contents(),
        exit_codes=(people.returncode, programs.code),
        output=people.stdout,
        document=programs.document,
        tasks=stage.tasks(run),
        plan_log=stage.log(run, "plan"),
        certify_log=stage.log(run, "certify"),
    )
