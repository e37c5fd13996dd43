"""Use the service as people do, each scenario on a shop of its own, and keep what was seen for the tests.

They run side by side, since a run mostly waits; the tests then look at what was seen. Nothing is asserted here but that
a run ends as it should.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.shop import NONE, Contents, Mistakes, ScenarioShop, shop_file
from tests.e2e.stage import CONTINUE, ONCALL, RUN_SECONDS, UNDO, Run, Stage, until, utc

ORDERS = 120
STARTED = datetime.now(UTC).replace(second=0, microsecond=0)
"""The minute in which the tests began: its daily schedule has an interval that has just ended."""
DAY = timedelta(days=1)
FIRST_DAY = datetime(2025, 3, 1, tzinfo=UTC)
MISTAKES = Mistakes(never_sent=(7, 80), sent_twice=(33,), never_loaded=(11, 12, 90), loaded_twice=(55, 56))
READING_SECONDS = 5.0
"""Nobody answers before the page is read. Until the scheduler has seen the asking process end, a resumed task can be
taken for one that died: it is tried again then, and asks again."""
ACTIONS = {"produce": 2, "redeliver": 3, "quarantine": 2}

GROUPS = "groups: {watch: [oncall], others: [viewer, admin]}"

FILES = {
    "scheduled": shop_file("scheduled", schedule=f"{STARTED.minute} {STARTED.hour} * * *"),
    "backfilled": shop_file("backfilled", schedule="0 0 * * *", until=utc(FIRST_DAY + 2 * DAY)),
    "answered": shop_file("answered", approval="above_actions: 0, by: [group:watch]"),
    "ignored": shop_file("ignored", approval="above_actions: 0, expires: 2s"),
    "broken": shop_file("broken"),
    "undone": shop_file("undone", approval="by: [oncall]"),
    "healed": shop_file("healed"),
    "observed": shop_file("observed", is_observing=True),
}


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """A run that Airflow's scheduler began, and the same window asked for again on the command line.

    `certified` is the result of its task `certify`.
    """

    run: Mapping[str, Any]
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

    def first() -> Mapping[str, Any] | None:
        runs = stage.get(f"/dags/{shop.pipeline_dag}/dagRuns")["dag_runs"]
        return runs[0] if runs else None

    found = until(first, 60, lambda: "a scheduled run")
    run = Run(dag=shop.pipeline_dag, id=found["dag_run_id"])
    stage.ended(run, "success")
    before = shop.contents()
    again = stage.run_command("run", shop.name, "--from", utc(STARTED - DAY), "--to", utc(STARTED), "--json")
    return Scheduled(
        run=found,
        certified=stage.result_of(run, "certify"),
        window=stage.window_of(run),
        before_again=before,
        exit_code=again.code,
        again=again.document,
        after_again=shop.contents(),
    )


@dataclass(frozen=True, kw_only=True)
class Backfilled:
    """Two days, the first with mistakes, the second without."""

    runs: tuple[Mapping[str, Any], ...]
    windows: tuple[Mapping[str, Any], ...]
    tasks: tuple[Mapping[str, str], ...]


def backfilled(stage: Stage, shop: ScenarioShop) -> Backfilled:
    """Its plan is small enough to need nobody."""
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
class Asked:
    """One revision of the same window: the contents before and after, and what was answered to whom."""

    run: str
    window: Mapping[str, Any]
    tasks: Mapping[str, str]
    before: Contents
    after: Contents
    answers: Mapping[str, Any]
    approval: tuple[Any, ...] | None = None
    seen: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The same window three times: only planned, rejected, approved."""

    planned: Mapping[str, Any]
    planned_exit_code: int
    planned_before: Contents
    planned_after: Contents
    rejected: Asked
    approved: Asked


def answered(stage: Stage, shop: ScenarioShop) -> Answered:
    """Every plan of this shop needs `oncall`."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), MISTAKES)
    shop.start_loader()
    stage.wait_for_dag(shop.pipeline_dag)
    before = shop.contents()
    planned = stage.run_command("run", shop.name, "--to", utc(STARTED), "--plan-only", "--json")
    return Answered(
        planned=planned.document,
        planned_exit_code=planned.code,
        planned_before=before,
        planned_after=shop.contents(),
        rejected=_asked(stage, shop, _reject, "failed"),
        approved=_asked(stage, shop, _approve, "success"),
    )


def _asked(
    stage: Stage, shop: ScenarioShop, answer: Callable[[Stage, Run], Mapping[str, Any]] | None, state: str
) -> Asked:
    before = shop.contents()
    run = stage.begin(shop.name, to=utc(STARTED))
    answers: Mapping[str, Any] = {}
    if answer is not None:
        stage.wait_for_task(run, "approve", "awaiting_input")
        time.sleep(READING_SECONDS)
        answers = answer(stage, run)
    tasks = stage.ended(run, state)
    window = stage.window_of(run)
    return Asked(
        run=run.id,
        window=window,
        tasks=tasks,
        before=before,
        after=shop.contents(),
        answers=answers,
        approval=_approval(stage, window),
        seen=_what_was_seen(stage, window),
    )


def _what_was_seen(stage: Stage, window: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the journal says that the person was shown."""
    rows = stage.journal(
        "select seen from makewhole.approval where plan = %s", window["plan"]["id"] if window["plan"] else ""
    )
    return rows[0][0] if rows else None


def _approval(stage: Stage, window: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """(decision, by, hash) of the answer in the journal."""
    statement = "select decision, by, sha256 from makewhole.approval where plan = %s"
    rows = stage.journal(statement, window["plan"]["id"]) if window["plan"] else []
    return rows[0] if rows else None


def _reject(stage: Stage, run: Run) -> Mapping[str, Any]:
    """Two who may not answer, then oncall's no, then a second thought."""
    return {
        "viewer": stage.answer(run, "Approve", "viewer").status_code,
        "admin": stage.answer(run, "Approve", "admin").status_code,
        "state after both": stage.tasks(run)["approve"],
        "oncall": stage.answer(run, "Reject", "oncall").status_code,
        "oncall again": stage.answer(run, "Approve", "oncall").status_code,
    }


def _approve(stage: Stage, run: Run) -> Mapping[str, Any]:
    """On the command line, by one who may not and one who may."""
    plan = stage.window_of(run)["plan"]["id"]
    detail = stage.get(f"{run.path}/taskInstances/approve/-1/hitlDetails")
    looked = stage.run_command("plan", "dry-run", plan, "--samples", "1", "--json")
    refused = stage.command("plan", "approve", plan, user="admin")
    accepted = stage.command("plan", "approve", plan, user="oncall")
    return {
        "page": {"subject": detail["subject"], "body": detail["body"]},
        "dry run": looked.document,
        "admin": refused.returncode,
        "admin is told": refused.stderr,
        "oncall": accepted.returncode,
        "oncall is told": accepted.stdout,
    }


def ignored(stage: Stage, shop: ScenarioShop) -> Asked:
    """Nobody answers, and the plan waits for two seconds only."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), Mistakes(never_loaded=(11,)))
    shop.start_loader()
    stage.wait_for_dag(shop.pipeline_dag)
    return _asked(stage, shop, None, "failed")


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A run over a table without a column, and the same run when somebody has made it and cleared the failed tasks."""

    tasks: Mapping[str, str]
    tries: int
    log: str
    certify_log: str
    window: Mapping[str, Any]
    mended_tasks: Mapping[str, str]
    mended: Mapping[str, Any]


def broken(stage: Stage, shop: ScenarioShop) -> Broken:
    """A column of the warehouse is not there at first."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3))
    shop.sql("alter table broken.warehouse rename column amount to elsewhere")
    stage.wait_for_dag(shop.pipeline_dag)
    run = stage.begin(shop.name, to=utc(STARTED))
    tasks = stage.ended(run, "failed")
    tries = stage.get(f"{run.path}/taskInstances/snapshot")["try_number"]
    log, certify_log, window = stage.log(run, "snapshot"), stage.log(run, "certify"), stage.window_of(run)
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
        window=window,
        mended_tasks=mended_tasks,
        mended=stage.window_of(run),
    )


@dataclass(frozen=True, kw_only=True)
class Healed:
    """Three runs: one that left its window in error, one that could not mend it, one that could.

    `told` and `waited` are the logs of the second's and the third's `open_window`; `held` the number of windows after
    the second; `ends` when the continuing run of the third ended and when the window after it was opened.
    """

    told: str
    held: int
    waited: str
    windows: tuple[Mapping[str, Any], ...]
    continuations: tuple[tuple[str, str], ...]
    order: tuple[datetime, datetime]
    steps: Mapping[str, str]


def healed(stage: Stage, shop: ScenarioShop) -> Healed:
    """A column of the warehouse is not there for two runs; then somebody makes it, and touches nothing in Airflow."""
    shop.build()
    middle = STARTED - timedelta(hours=2)
    shop.trade(range(ORDERS), STARTED - timedelta(hours=6))
    shop.trade(range(1000, 1000 + 30), STARTED - timedelta(hours=1))
    shop.sql("alter table healed.warehouse rename column amount to elsewhere")
    stage.wait_for_dag(shop.pipeline_dag)
    stage.wait_for_dag(CONTINUE)
    first = stage.begin(shop.name, to=utc(middle))
    stage.ended(first, "failed")
    second = stage.begin(shop.name, to=utc(STARTED))
    stage.ended(second, "failed")
    told, held = stage.log(second, "open_window"), len(_windows(stage, shop))
    shop.sql("alter table healed.warehouse rename column elsewhere to amount")
    third = stage.begin(shop.name, to=utc(STARTED))
    stage.ended(third, "success")
    again = Run(dag=CONTINUE, id="continue__healed__1.1__2")
    opened = stage.journal("select opened_at from makewhole.window where pipeline = 'healed' and number = 2")[0][0]
    ended = datetime.fromisoformat(stage.get(again.path)["end_date"])
    asked = stage.journal("select run, asked_by from makewhole.continuation where pipeline = 'healed' order by attempt")
    return Healed(
        told=told,
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


@dataclass(frozen=True, kw_only=True)
class Undone:
    """A repaired window whose plan was taken back, and what the table held before, between and after."""

    repaired: Mapping[str, Any]
    before: Contents
    between: Contents
    after: Contents
    exit_code: int
    told: Mapping[str, Any]
    tasks: Mapping[str, str]
    approval: tuple[Any, ...] | None
    window: Mapping[str, Any]


def undone(stage: Stage, shop: ScenarioShop) -> Undone:
    """Rows that were loaded twice are moved aside, and put back again: somebody wants to look at them first."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), Mistakes(loaded_twice=(55, 56)))
    before = shop.contents()
    stage.wait_for_dag(shop.pipeline_dag)
    repaired = _asked(stage, shop, None, "success")
    plan = repaired.window["plan"]["id"]
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(stage.run_command, "plan", "undo", plan, "--reason", "to look at them", "--json")
        run = Run(dag=UNDO, id=until(lambda: _newest_run(stage, UNDO), 60, lambda: "a run of the undo"))
        stage.wait_for_task(run, "approve", "awaiting_input")
        undo = stage.journal("select id from makewhole.plan where undoes = %s", plan)[0][0]
        accepted = stage.command("plan", "approve", undo, user="oncall")
        assert accepted.returncode == 0, accepted.stderr
        told = asked.result(RUN_SECONDS)
    window = stage.window_of(Run(dag=ONCALL, id=repaired.run))
    return Undone(
        repaired=repaired.window,
        before=before,
        between=repaired.after,
        after=shop.contents(),
        exit_code=told.code,
        told=told.document,
        tasks=stage.tasks(run),
        approval=_approval(stage, {"plan": {"id": undo}}),
        window=window,
    )


@dataclass(frozen=True, kw_only=True)
class Observed:
    """A window of a shop whose file names no remedy, for people and once more for programs."""

    before: Contents
    after: Contents
    exit_codes: tuple[int, int]
    told: str
    document: Mapping[str, Any]
    tasks: Mapping[str, str]
    plan_log: str
    certify_log: str


def observed(stage: Stage, shop: ScenarioShop) -> Observed:
    """There are mistakes, and nobody has asked for their repair."""
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
        told=people.stdout,
        document=programs.document,
        tasks=stage.tasks(run),
        plan_log=stage.log(run, "plan"),
        certify_log=stage.log(run, "certify"),
    )


def _newest_run(stage: Stage, dag: str) -> str | None:
    runs = stage.get(f"/dags/{dag}/dagRuns")["dag_runs"]
    return str(runs[0]["dag_run_id"]) if runs else None


SCENARIOS: Mapping[str, Callable[[Stage, ScenarioShop], Any]] = {
    "healed": healed,
    "answered": answered,
    "backfilled": backfilled,
    "scheduled": scheduled,
    "undone": undone,
    "observed": observed,
    "broken": broken,
    "ignored": ignored,
}
"""The longest first."""
