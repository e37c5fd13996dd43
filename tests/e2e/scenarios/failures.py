"""Run windows that hang, or break on a table without a column, and go on when a person has mended it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.e2e.cable import lay_cable
from tests.e2e.scenarios.pipeline_files import ORDERS, STARTED
from tests.e2e.shop import ScenarioShop
from tests.e2e.stage import ONCALL, Run, Stage, until, utc


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Hold a run over a table without a column, and that run once the column was made and the failed tasks cleared.

    `opened`: the number of windows before that. `note` and `mended_note`: of the run, before and after it.
    """

    tasks: Mapping[str, str]
    note: str
    tries: int
    log: str
    certify_log: str
    opened: int
    mended_tasks: Mapping[str, str]
    mended: Mapping[str, Any]
    mended_note: str


def broken(stage: Stage, shop: ScenarioShop) -> Broken:
    """A column of the warehouse is not there at first."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3))
    shop.sql("alter table broken.warehouse rename column amount to elsewhere")
    stage.wait_for_dag(shop.pipeline_dag)
    run = stage.begin(shop.name, to=utc(STARTED))
    tasks = stage.ended(run, "failed")
    tries = stage.get(f"{run.path}/taskInstances/open_window")["try_number"]
    log, certify_log = stage.log(run, "open_window"), stage.log(run, "certify")
    note = stage.get(run.path)["note"]
    [(opened,)] = stage.journal("select count(*) from makewhole.window where request = %s", run.id)
    shop.sql("alter table broken.warehouse rename column elsewhere to amount")
    clear = {"dry_run": False, "dag_run_id": run.id, "only_failed": True, "reset_dag_runs": True}
    stage.client().post(f"/dags/{ONCALL}/clearTaskInstances", json=clear).raise_for_status()
    until(lambda: None if stage.state(run) == "failed" else True, 30, lambda: "the cleared run going on")
    mended_tasks = stage.ended(run, "success")
    return Broken(
        tasks=tasks,
        tries=tries,
        log=log,
        certify_log=certify_log,
        opened=opened,
        note=note,
        mended_tasks=mended_tasks,
        mended=stage.window_of(run),
        mended_note=stage.get(run.path)["note"],
    )


@dataclass(frozen=True, kw_only=True)
class Healed:
    """Three runs: one that left its window in error, one that could not mend it, one that could.

    `hung` are the states of the first one's tasks, `hung_tries` and `hung_log` the tries and the log of its snapshot.
    `refusal` and `waited` are the logs of the second's and the third's `open_window`; `held` the number of windows
    after the second; `ends` when the continuing run of the third ended and when the window after it was opened.
    """

    hung: Mapping[str, str]
    hung_tries: int
    hung_log: str
    refusal: str
    held: int
    waited: str
    windows: tuple[Mapping[str, Any], ...]
    continuations: tuple[tuple[str, str], ...]
    order: tuple[datetime, datetime]
    steps: Mapping[str, str]


def healed(stage: Stage, shop: ScenarioShop) -> Healed:
    """The database falls silent in a run, and again in the next one; then a person mends it, and touches nothing in
    Airflow."""
    shop.build()
    middle = STARTED - timedelta(hours=2)
    shop.trade(range(ORDERS), STARTED - timedelta(hours=6))
    shop.trade(range(1000, 1000 + 30), STARTED - timedelta(hours=1))
    stage.wait_for_dag(shop.pipeline_dag)
    again = Run(dag="makewhole_continue_healed", id="continue__healed__1.1__2")
    stage.wait_for_dag(again.dag)
    cable = lay_cable(stage, shop.name)
    first = stage.begin(shop.name, to=utc(middle))
    stage.wait_for_task(first, "snapshot", "running")
    cable.fall_silent(b"copy (")
    with stage.aside():
        hung = stage.ended(first, "failed")
    cable.pull()
    cable.put_back()
    cable.fall_silent(b"copy (")
    second = stage.begin(shop.name, to=utc(STARTED))
    with stage.aside():
        stage.ended(second, "failed")
    cable.pull()
    cable.put_back()
    refusal, held = stage.log(second, "open_window"), len(_windows(stage, shop))
    third = stage.begin(shop.name, to=utc(STARTED))
    stage.ended(third, "success")
    cable.stop()
    opened = stage.journal("select opened_at from makewhole.window where pipeline = 'healed' and number = 2")[0][0]
    ended = datetime.fromisoformat(stage.get(again.path)["end_date"])
    asked = stage.journal("select run, asked_by from makewhole.continuation where pipeline = 'healed' order by attempt")
    return Healed(
        hung=hung,
        hung_tries=stage.get(f"{first.path}/taskInstances/snapshot")["try_number"],
        hung_log=stage.log(first, "snapshot"),
        refusal=refusal,
        held=held,
        waited=stage.log(third, "open_window"),
        windows=(stage.window_of(first), stage.window_of(third)),
        continuations=tuple(
            (run, asker.replace(second.id, "second").replace(third.id, "third")) for run, asker in asked
        ),
        order=(ended, opened),
        steps=stage.tasks(again),
    )


def _windows(stage: Stage, shop: ScenarioShop) -> list[tuple[Any, ...]]:
    return list(stage.journal("select number, revision from makewhole.window where pipeline = %s", shop.name))
