"""Run windows in a DAG of people's own, and one that computes from proven data alone: the example of a consumer."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from examples.flights.settings import FIRST_DAY, Systems, day_after, day_start
from examples.flights.system import System
from tests.e2e.dying_parts.kills import kill_task
from tests.e2e.holds import held_in_compensate
from tests.e2e.scenarios.pipeline_files import ORDERS, STARTED
from tests.e2e.shop import Mistakes, ScenarioShop
from tests.e2e.stage import ENDED, RUN_SECONDS, Run, Stage, until, utc
from tests.world.sql import Rows

NIGHTLY = f'''\
"""Load orders, have the window proven, and report."""

from datetime import datetime

from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.sdk import DAG, task

from makewhole.orchestration.window_group import MakewholeWindow

with DAG(
    "nightly_orders",
    schedule="{STARTED.minute} {STARTED.hour} * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
):

    @task
    def load() -> None:
        PostgresHook("local_postgres").run("insert into nightly.done values ('load', now(), 0)")

    @task
    def report() -> None:
        counted = "select 'report', now(), count(*) from nightly.warehouse"
        PostgresHook("local_postgres").run(f"insert into nightly.done {{counted}}")

    load() >> MakewholeWindow(pipeline="nightly") >> report()
'''
"""A DAG as `docs/deploy.md` has it, for a plain cron string."""
OWN_DAG = "nightly_orders"


@dataclass(frozen=True, kw_only=True)
class OwnDag:
    """A scheduled run of a DAG of people's own, the process of whose repair was killed. `done`: what its other tasks
    wrote, in their order (task, time, orders in the warehouse); `tries`: of each task; `certified_at`: when the
    certificate was issued; `chain`, `plans`: all entries of the pipeline's chain, and all its plans."""

    tasks: Mapping[str, str]
    tries: Mapping[str, int]
    window: Mapping[str, Any]
    done: Rows
    certified_at: Any
    chain: Rows
    plans: Rows


def nightly(stage: Stage, shop: ScenarioShop) -> OwnDag:
    """One order was lost on its way, and one was loaded twice. The process that repairs it is killed in the middle."""
    shop.build()
    shop.sql("create table nightly.done (task text, at timestamptz, orders bigint)")
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), Mistakes(never_loaded=(11,), loaded_twice=(55,)))
    shop.start_loader()
    stage.wait_for_dag(OWN_DAG)
    stage.unpause(OWN_DAG)

    def first() -> str | None:
        runs = stage.get(f"/dags/{OWN_DAG}/dagRuns")["dag_runs"]
        return str(runs[0]["dag_run_id"]) if runs else None

    run = Run(dag=OWN_DAG, id=until(first, 90, lambda: "a scheduled run"))
    with held_in_compensate(stage, shop, run):
        kill_task(stage, run, "compensate", with_supervisor=False)
    with stage.aside():
        stage.wait_for_task(run, "certify", "success")
    tasks = stage.ended(run, "success")
    statement = "select issued_at from makewhole.certificate where pipeline = %s"
    return OwnDag(
        tasks=tasks,
        tries={name: stage.get(f"{run.path}/taskInstances/{name}")["try_number"] for name in tasks},
        window=stage.window_of(Run(dag=OWN_DAG, id=f"{OWN_DAG}/{run.id}")),
        done=shop.sql("select task, at, orders from nightly.done order by at"),
        certified_at=stage.journal(statement, shop.name)[0][0],
        chain=stage.journal("select number, revision, kind from makewhole.certificate where pipeline = %s", shop.name),
        plans=stage.journal("select revision, state from makewhole.plan where pipeline = %s", shop.name),
    )


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The work of the consumer, once it had nothing to do any more: the states of its runs, oldest first, the table
    that it fills, and the same computed here from the data that is proven then."""

    runs: tuple[str, ...]
    table: Rows
    proven: Rows


@dataclass(frozen=True, kw_only=True)
class Consumed:
    """A consumer of proven data, after: the first day's certificate; gaps in the second day; the revocation of that
    certificate, and a new one. `revoked_log`: of the task that chooses, after the revocation; `again`: what
    that task chose in the end."""

    first: Moment
    gaps: Moment
    revoked: Moment
    revoked_log: str
    certified_again: Moment
    again: Mapping[str, Any]


EXAMPLE = Path(__file__).parents[3] / "examples" / "downstream" / "delays_of_proven_days.py"
_QUIET_SECONDS = 5.0  # longer than the scheduler takes to begin a run for an event
_CONSUMER = "delays_of_proven_days"
_BY_DAY = (
    "select departed_at::date, count(*), avg(dep_delay) from dw.departures where departed_at < %s group by 1 order by 1"
)
_TWICE = (
    "insert into dw.departures select (jsonb_populate_record(null::dw.departures, to_jsonb(d))).* from dw.departures d "
    "where departed_at >= %s order by flight_id limit 1"
)


def consumed(stage: Stage, shop: ScenarioShop) -> Consumed:
    """Two days of the flights, whose pipeline the example names. A row is loaded twice in each, one after the other."""
    systems = Systems(bootstrap=stage.status["kafka"]["bootstrap"], dsn=stage.status["postgres"]["dsn"])
    system = System(systems, stage.home / "flights", say=lambda _: None)
    system.prepare(FIRST_DAY, 2)
    system.run(FIRST_DAY, 2, seed=1, with_faults=False)
    stage.wait_for_dag("makewhole_reconcile_flights")
    stage.wait_for_dag(_CONSUMER)
    stage.unpause(_CONSUMER)
    begin, middle, end = (day_start(day_after(FIRST_DAY, days)) for days in range(3))

    def judged(start: datetime, until_moment: datetime, state: str, **form: Any) -> None:
        run = stage.begin("flights", **{"from": utc(start), "to": utc(until_moment)}, **form)
        stage.ended(run, "success" if state == "certified" else "failed")
        assert stage.window_of(run)["state"] == state, stage.story(run)

    def seen(runs: int, until_moment: datetime) -> Moment:
        states = until(lambda: _ended_runs(stage, runs), RUN_SECONDS, lambda: _states(stage))
        return Moment(
            runs=states,
            table=shop.sql("select day, flights, delay from dw.delays_by_day order by 1"),
            proven=shop.sql(_BY_DAY, until_moment),
        )

    judged(begin, middle, "certified")
    first = seen(1, middle)
    shop.sql(_TWICE, middle)
    judged(middle, end, "gaps", plan_only=True)
    gaps = seen(1, middle)
    shop.sql(_TWICE, begin)
    judged(begin, middle, "gaps", plan_only=True)
    revoked = seen(2, middle)
    revoked_log = stage.log(_runs(stage)[-1], "choose")
    judged(begin, middle, "certified")
    certified_again = seen(3, middle)
    return Consumed(
        first=first,
        gaps=gaps,
        revoked=revoked,
        revoked_log=revoked_log,
        certified_again=certified_again,
        again=stage.result_of(_runs(stage)[-1], "choose"),
    )


def _runs(stage: Stage) -> list[Run]:
    runs = stage.get(f"/dags/{_CONSUMER}/dagRuns", order_by="run_after")["dag_runs"]
    return [Run(dag=_CONSUMER, id=run["dag_run_id"]) for run in runs]


def _states(stage: Stage) -> tuple[str, ...]:
    return tuple(stage.state(run) for run in _runs(stage))


def _ended_runs(stage: Stage, number: int) -> tuple[str, ...] | None:
    """Return the states of the runs, when there are so many, all have ended, and no other has come for a while."""
    if len(_states(stage)) < number:
        return None
    time.sleep(_QUIET_SECONDS)
    states = _states(stage)
    return states if set(states) <= set(ENDED) else None


OWN_DAGS = {"nightly": NIGHTLY, "consumed": EXAMPLE.read_text(encoding="utf-8")}
"""The DAG files of people's own, by scenario."""
