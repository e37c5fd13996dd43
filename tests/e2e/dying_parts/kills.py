"""Kill parts of a stack in the middle of a window, start them again, and wait for the end of the window."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import psycopg2

from makewhole.stack.airflow_server import COMPONENTS, AirflowServer
from makewhole.stack.environment import AIRFLOW_DATABASE, environment
from makewhole.stack.ports import free_ports
from makewhole.stack.process import ServerProcess
from tests.e2e.scenarios.pipeline_files import ORDERS, STARTED
from tests.e2e.shop import Mistakes, ScenarioShop
from tests.e2e.stage import ENDED, RUN_SECONDS, Run, Stage, until, utc
from tests.world.sql import run_sql

MISTAKES = Mistakes(never_sent=(7,), never_loaded=(11,), loaded_twice=(55,))
Answer = TypeVar("Answer")
_END_SECONDS = 2 * RUN_SECONDS


class LastingShop(ScenarioShop):
    """A shop whose loader writes again what its database did not take, and counts nothing twice."""

    def _store(self, order: dict[str, Any]) -> None:
        while not self._is_over.is_set():
            with suppress(psycopg2.OperationalError, psycopg2.InterfaceError):
                super()._store(order)
                return
            time.sleep(0.5)


_built: list[LastingShop] = []


def built(stage: Stage, name: str) -> LastingShop:
    """Return a shop with orders, some of which were handled wrongly, and a loader that works well from now on."""
    shop = LastingShop(name, stage.status["kafka"]["bootstrap"], stage.status["postgres"]["dsn"])
    _built.append(shop)
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), MISTAKES)
    shop.start_loader()
    stage.wait_for_dag(shop.pipeline_dag)
    return shop


def stop_loaders() -> None:
    """End the loaders of all shops; those of tests that failed still run."""
    for shop in _built:
        shop.stop_loader()


def begun(stage: Stage, shop: ScenarioShop) -> Run:
    """Begin a run of the shop's only window."""
    return stage.begin(shop.name, to=utc(STARTED))


def task_process(stage: Stage, run: Run, task: str) -> psutil.Process:
    """Return the process of a task that runs."""
    instance = stage.get(f"{run.path}/taskInstances/{task}")["id"]
    return until(lambda: _named(f"airflow worker -- {instance}"), 30, lambda: stage.story(run))


def _named(title: str) -> psutil.Process | None:
    for process in psutil.process_iter(["cmdline"]):
        if " ".join(process.info["cmdline"] or ()).strip() == title:
            return process
    return None


def kill_task(stage: Stage, run: Run, task: str, *, with_supervisor: bool) -> None:
    """Kill the process of a task by SIGKILL, and first, where that is wanted, the worker of the executor that watches
    over it; nothing that the task has started."""
    process = task_process(stage, run, task)
    supervisor = process.parent()
    assert supervisor is not None
    assert "LocalExecutor:" in " ".join(supervisor.cmdline()), supervisor.cmdline()
    if with_supervisor:
        supervisor.kill()
    process.kill()


def kill_components(stage: Stage, *names: str) -> None:
    """Kill components of Airflow by SIGKILL."""
    server = AirflowServer(stage.home)
    assert set(names) <= set(COMPONENTS)
    for name in names:
        assert server.process(name).send(signal.SIGKILL) is not None, name


def kill_scheduler_alone(stage: Stage) -> None:
    """Kill the scheduler by SIGKILL, and end its sessions with Airflow's database, as administrators do: its workers
    live on and keep them open, and one may hold the lock without which no scheduler gives out a task."""
    scheduler = AirflowServer(stage.home).process("scheduler")
    pid = scheduler.pid()
    assert pid is not None
    ports = [connection.laddr.port for connection in psutil.Process(pid).net_connections("tcp") if connection.laddr]
    kill_components(stage, "scheduler")
    until(lambda: None if scheduler.is_running() else True, 30, lambda: "the end of the scheduler")
    run_sql(
        environment(stage.home)["MAKEWHOLE_JOURNAL_DSN"],
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and client_port = any(%s)",
        *(AIRFLOW_DATABASE, ports),
    )


def kill_database(stage: Stage) -> None:
    """Kill PostgreSQL, which has Airflow's metadata, the journal and the shops, by SIGKILL."""
    process = ServerProcess(name="postgres", directory=stage.home / "postgres")
    assert process.send(signal.SIGKILL) is not None
    until(lambda: None if process.is_running() else True, 30, lambda: "the end of PostgreSQL")


@contextmanager
def metadata_away(stage: Stage) -> Iterator[None]:
    """Keep everybody from Airflow's database, whose sessions end; the server, with the journal and the shops, stays."""
    dsn = environment(stage.home)["MAKEWHOLE_JOURNAL_DSN"]
    run_sql(dsn, f"alter database {AIRFLOW_DATABASE} allow_connections false")
    try:
        run_sql(dsn, "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", AIRFLOW_DATABASE)
        yield
    finally:
        run_sql(dsn, f"alter database {AIRFLOW_DATABASE} allow_connections true")


@contextmanager
def second_scheduler(stage: Stage) -> Iterator[None]:
    """Run a scheduler beside what a killed one left: workers at their tasks, and the port of their logs."""
    (port,) = free_ports(1)
    pid = AirflowServer(stage.home).process("dag-processor").pid()
    variables = psutil.Process(pid).environ() | {"AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(port)}
    process = ServerProcess(name="second-scheduler", directory=stage.home / "airflow")
    process.start([str(Path(sys.executable).parent / "airflow"), "scheduler"], environment=variables)
    try:
        yield
    finally:
        process.stop()


def up(stage: Stage) -> None:
    """Start what does not run, until all of it stays up; on a busy machine one `makewhole up` can be too short."""
    for _ in range(5):
        started = stage.command("up")
        time.sleep(2)
        if started.returncode == 0 and stage.command("status").returncode == 0:
            return
    raise AssertionError(started.stdout + started.stderr)


def clear(stage: Stage, run: Run, task: str) -> None:
    """Clear a task that runs, and those after it, as the button of the page does."""
    body = {"dag_run_id": run.id, "task_ids": [task], "include_downstream": True, "only_failed": False}
    stage.client().post(f"/dags/{run.dag}/clearTaskInstances", json={"dry_run": False, **body}).raise_for_status()


def end(stage: Stage, run: Run) -> str:
    """Wait for the end of a run, by an Airflow that may be starting; return its state."""

    def look() -> str | None:
        state = quietly(lambda: stage.state(run))
        return state if state in ENDED else None

    return until(look, _END_SECONDS, lambda: stage.story(run), every=2.0)


def quietly(ask: Callable[[], Answer]) -> Answer | None:
    """Ask an Airflow that may be starting; None: it does not answer."""
    try:
        return ask()
    except httpx.HTTPError:
        return None


def tries(stage: Stage, run: Run, task: str) -> int:
    """Return how often a task of a run was begun; 0 while Airflow does not answer."""
    return quietly(lambda: int(stage.get(f"{run.path}/taskInstances/{task}")["try_number"])) or 0


def run_of(stage: Stage, shop: ScenarioShop) -> Run | None:
    """Return the run that opened the shop's only window; None: it is not opened yet."""
    requests = stage.journal("select request from makewhole.window where pipeline = %s", shop.name)
    return Run(dag=stage.oncall_of(shop.name), id=requests[0][0]) if requests else None
