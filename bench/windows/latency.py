"""Measure how long small windows take through a real Airflow, from the trigger to the verdict, step by step.

A stack of its own runs the tasks: what Airflow, Spark and Great Expectations need to start is most of such a window.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measuring.data_set import DataSet, millions
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.windows.orders import Orders, fill_tables, fill_topic
from makewhole.cli.airflow_api import Access, AirflowApi, airflow
from makewhole.model.connection import PostgresConnection
from makewhole.stack import local
from makewhole.stack.local import stack_state

LATENCY = "latency "
"""Marks the name of each part, at its start; the step follows."""
STEPS = ("open_window", "settle", "snapshot", "reconcile", "validate")
BETWEEN, VERDICT = "between them", "verdict"
COLUMNS = (*STEPS, BETWEEN, VERDICT)
SIDE = "makewhole"
Report = Callable[[str], None]
_ONCALL = "makewhole_oncall"
_ENDED = ("success", "failed")
_POLL_SECONDS = 0.5
_RUN_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The stack with its Airflow, and the addresses of its Kafka and of its database for people's tables."""

    api: AirflowApi
    bootstrap: str
    dsn: str


def measured(folder: Path, windows: tuple[Orders, ...], runs: int, report: Report) -> Iterator[Series]:
    """Measure so many runs of each window, after one that is not counted; each run is a revision of the window."""
    home, pipelines = folder / "home", folder / "pipelines"
    pipelines.mkdir(parents=True)
    for orders in windows:
        text = orders.pipeline_file(orders.name, kafka="local_kafka", postgres="local_postgres")
        (pipelines / f"{orders.name}.yaml").write_text(text)
    variables = {"MAKEWHOLE_HOME": str(home), "MAKEWHOLE_PIPELINES": str(pipelines)}
    _makewhole("up", variables)
    try:
        state = stack_state(home)
        where = Access(url=state.url or "", user=state.user or "", password=state.password or "")
        with airflow(where) as api:
            stack = Stack(api=api, bootstrap=state.bootstrap or "", dsn=state.dsn or "")
            for orders in windows:
                yield from _series(stack, orders, runs, report)
    finally:
        local.down(home)


def _makewhole(command: str, variables: Mapping[str, str]) -> None:
    program = str(Path(sys.executable).with_name("makewhole"))
    done = subprocess.run([program, command], env={**os.environ, **variables}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"makewhole {command} ended with {done.returncode}: {done.stdout}{done.stderr}")


def _series(stack: Stack, orders: Orders, runs: int, report: Report) -> Iterator[Series]:
    fill_tables(PostgresConnection(id="db", dsn=stack.dsn), orders)
    fill_topic(stack.bootstrap, orders)
    end = datetime.now(UTC).isoformat()
    for dag in (_ONCALL, f"makewhole_reconcile_{orders.name}"):
        stack.api.wait_for_dag(dag)
    series_by_column = {
        name: Series(part=LATENCY + name, side=SIDE, data=DataSet(records=orders.number)) for name in COLUMNS
    }
    for number in range(runs + 1):
        form = {"pipeline": orders.name, "to": end, "plan_only": True, "read_again": True}
        seconds = _window(stack.api, form)
        message = ", ".join(f"{name} {taken:.1f} s" for name, taken in seconds.items())
        report(f"latency  {millions(orders.number):18} {message}{'' if number else ' (not counted)'}")
        for name, taken in seconds.items() if number else ():
            series_by_column[name].warm.append(_wall(taken))
    yield from series_by_column.values()


def _window(api: AirflowApi, form: Mapping[str, Any]) -> dict[str, float]:
    """Run a window to its end; return the seconds of each step, those between them, and those to the verdict."""
    begun = datetime.now(UTC)
    path = f"/dags/{_ONCALL}/dagRuns/{api.trigger(_ONCALL, form)}"
    deadline = time.monotonic() + _RUN_SECONDS
    while api.get(path)["state"] not in _ENDED:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the run {path} has not ended in {_RUN_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)
    tasks = {task["task_id"]: task for task in api.get(f"{path}/taskInstances", limit=100)["task_instances"]}
    states = {name: tasks[name]["state"] for name in STEPS}
    if set(states.values()) != {"success"}:
        raise RuntimeError(f"the run {path} gave no verdict: {states}")
    seconds = {name: _moment(tasks[name], "end_date") - _moment(tasks[name], "start_date") for name in STEPS}
    verdict = _moment(tasks["validate"], "end_date") - begun.timestamp()
    return {**seconds, BETWEEN: verdict - sum(seconds.values()), VERDICT: verdict}


def _moment(task: Mapping[str, Any], name: str) -> float:
    return datetime.fromisoformat(task[name]).timestamp()


def _wall(seconds: float) -> Cost:
    return Cost(wall_seconds=seconds, python_cpu_seconds=0, jvm_cpu_seconds=0, python_bytes=0, jvm_bytes=0)
