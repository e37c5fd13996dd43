"""Run windows whose Spark steps share an application: it goes on, meets what is wrong, and is killed in each step."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from makewhole.key_index.files import filter_path
from makewhole.stack.environment import environment
from tests.e2e.holds import held_in_snapshot, held_window, holding
from tests.e2e.scenarios.pipeline_files import ORDERS, STARTED
from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import ONCALL, Run, Stage, until, utc

SPARK_STEPS = ("snapshot", "reconcile", "validate")
_ANSWER = """\
insert into makewhole.gate_report (pipeline, number, revision, stage, answer, planned, evaluated, failures, document)
values ('{pipeline}', 1, 1, 'reconciled', 'ERROR', 0, 0, '[]', '{{}}')
"""
"""The gate's answer of a process that does not commit it."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run at its end: the states, logs and seconds of its Spark tasks, and how often each was tried."""

    states: Mapping[str, str]
    logs: Mapping[str, str]
    seconds: Mapping[str, float]
    tries: Mapping[str, int]
    window: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Two windows: one whose gate was asked again, and one whose second step failed until it was mended."""

    whole: Ended
    asked_again: Ended
    failed: Ended
    mended: Ended


def joined(stage: Stage, shop: ScenarioShop) -> Joined:
    """A file of the first window is not there when the second one is compared; then it is restored."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=6))
    shop.trade(range(1000, 1000 + 30), STARTED - timedelta(hours=1))
    stage.wait_for_dag(shop.pipeline_dag)
    first = stage.begin(shop.name, to=utc(STARTED - timedelta(hours=2)))
    stage.ended(first, "success")
    whole = _ended(stage, first)
    _clear(stage, first, task_ids=["validate"], include_downstream=True, only_failed=False)
    stage.ended(first, "success")
    asked_again = _ended(stage, first)
    files = _key_files(stage, shop)
    for file in files:
        file.rename(f"{file}.away")
    second = stage.begin(shop.name, to=utc(STARTED))
    stage.ended(second, "failed")
    failed = _ended(stage, second)
    for file in files:
        Path(f"{file}.away").rename(file)
    _clear(stage, second, only_failed=True)
    stage.ended(second, "success")
    return Joined(whole=whole, asked_again=asked_again, failed=failed, mended=_ended(stage, second))


def _clear(stage: Stage, run: Run, **which: Any) -> None:
    before = stage.state(run)
    body = {"dry_run": False, "dag_run_id": run.id, "reset_dag_runs": True, **which}
    stage.client().post(f"/dags/{ONCALL}/clearTaskInstances", json=body).raise_for_status()
    until(lambda: None if stage.state(run) == before else True, 30, lambda: "the cleared run going on")


def _key_files(stage: Stage, shop: ScenarioShop) -> list[Path]:
    """Return the files of the key index that the first window wrote, with their filters."""
    rows = stage.journal("select files from makewhole.key_run where pipeline = %s and number = 1", shop.name)
    paths = [path for (files,) in rows for path in files.values()]
    return [stage.home / "storage" / path for listed in paths for path in (listed, filter_path(listed))]


def _ended(stage: Stage, run: Run) -> Ended:
    instances = {name: stage.get(f"{run.path}/taskInstances/{name}") for name in SPARK_STEPS}
    return Ended(
        states={name: task["state"] for name, task in instances.items()},
        logs={name: stage.log(run, name) if task["try_number"] else "" for name, task in instances.items()},
        seconds={name: task["duration"] or 0.0 for name, task in instances.items()},
        tries={name: task["try_number"] for name, task in instances.items()},
        window=stage.window_of(run),
    )


@dataclass(frozen=True, kw_only=True)
class Killed:
    """A run whose applications were killed in each of the three steps; `jobs` are the jobs that had been submitted."""

    ended: Ended
    jobs: tuple[str, ...]


def killed(stage: Stage, shop: ScenarioShop) -> Killed:
    """A lock holds an application up in the middle of a step, and there it is killed."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3))
    stage.wait_for_dag(shop.pipeline_dag)
    run, journal = stage.begin(shop.name, to=utc(STARTED)), environment(stage.home)["MAKEWHOLE_JOURNAL_DSN"]
    with held_in_snapshot(stage, shop, run) as in_snapshot, held_window(shop, stage) as in_reconcile:
        jobs = [_kill(shop)]
        in_snapshot.release()
        in_reconcile.wait()
        with holding(journal, _ANSWER.format(pipeline=shop.name)) as in_validate:
            jobs.append(_kill(shop))
            in_reconcile.release()
            in_validate.wait()
            jobs.append(_kill(shop))
    stage.ended(run, "success")
    return Killed(ended=_ended(stage, run), jobs=tuple(jobs))


def _kill(shop: ScenarioShop) -> str:
    """Kill the Spark application of a shop with everything that it started. Return the name of its job."""
    [application] = _applications(shop)
    job = next(part for part in application.info["cmdline"] if part.endswith(".py"))
    for process in (*application.children(recursive=True), application):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return Path(job).stem


def _applications(shop: ScenarioShop) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if _is_application(process.info["cmdline"], shop)]


def _is_application(command: list[str] | None, shop: ScenarioShop) -> bool:
    return command is not None and Path(command[0] if command else "").name == "java" and shop.name in command
