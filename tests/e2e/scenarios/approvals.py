"""Run windows whose plans are only looked at, or wait for a person: answered, ignored, and undone afterwards."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.e2e.scenarios.pipeline_files import MISTAKES, ORDERS, STARTED
from tests.e2e.shop import Contents, Mistakes, ScenarioShop
from tests.e2e.stage import RUN_SECONDS, Run, Stage, until, utc


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
    """The same window twice: rejected, approved."""

    rejected: Asked
    approved: Asked


def answered(stage: Stage, shop: ScenarioShop) -> Answered:
    """Every plan of this shop needs `oncall`."""
    _trade_with_mistakes(stage, shop)
    return Answered(rejected=_asked(stage, shop, _reject, "failed"), approved=_asked(stage, shop, _approve, "success"))


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A window of which only a plan was asked for, and the contents before and after."""

    window: Mapping[str, Any]
    exit_code: int
    before: Contents
    after: Contents


def planned(stage: Stage, shop: ScenarioShop) -> Planned:
    """Ask for nothing but a plan of what is wrong."""
    _trade_with_mistakes(stage, shop)
    before = shop.contents()
    result = stage.run_command("run", shop.name, "--to", utc(STARTED), "--plan-only", "--json")
    return Planned(window=result.document, exit_code=result.code, before=before, after=shop.contents())


def _trade_with_mistakes(stage: Stage, shop: ScenarioShop) -> None:
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), MISTAKES)
    shop.start_loader()
    stage.wait_for_dag(shop.pipeline_dag)


def ignored(stage: Stage, shop: ScenarioShop) -> Asked:
    """The plan is not answered, and waits for two seconds only."""
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), Mistakes(never_loaded=(11,)))
    shop.start_loader()
    stage.wait_for_dag(shop.pipeline_dag)
    return _asked(stage, shop, None, "failed")


@dataclass(frozen=True, kw_only=True)
class Undone:
    """A repaired window whose plan was taken back, and what the table held before, between and after. `shared`: the
    answer of the form for several pipelines to this one; `paused`: that to the first who asked for the undo."""

    repaired: Mapping[str, Any]
    before: Contents
    between: Contents
    after: Contents
    exit_code: int
    result: Mapping[str, Any]
    tasks: Mapping[str, str]
    approval: tuple[Any, ...] | None
    window: Mapping[str, Any]
    shared: tuple[int, str]
    paused: tuple[int, str]


def undone(stage: Stage, shop: ScenarioShop) -> Undone:
    """Rows that were loaded twice are moved aside, and put back again: a person wants to look at them first. The file
    says who may run this pipeline, so that it has DAGs of its own."""
    oncall, dag = stage.oncall_of(shop.name), f"makewhole_undo_{shop.name}"
    shop.build()
    shop.trade(range(ORDERS), STARTED - timedelta(hours=3), Mistakes(loaded_twice=(55, 56)))
    before = shop.contents()
    stage.wait_for_dag(oncall)
    shared = stage.ask({"pipeline": shop.name})
    repaired = _asked(stage, shop, None, "success")
    plan = repaired.window["plan"]["id"]
    paused = stage.command("plan", "undo", plan, "--json")
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(stage.run_command, "plan", "undo", plan, "--release", "--reason", "to look", "--json")
        run = Run(dag=dag, id=until(lambda: newest_run(stage, dag), 60, lambda: "a run of the undo"))
        stage.wait_for_question(run)
        undo = stage.journal("select id from makewhole.plan where undoes = %s", plan)[0][0]
        accepted = stage.command("plan", "approve", undo, user="oncall")
        assert accepted.returncode == 0, accepted.stderr
        result = asked.result(RUN_SECONDS)
    window = stage.window_of(Run(dag=oncall, id=repaired.run))
    return Undone(
        repaired=repaired.window,
        before=before,
        between=repaired.after,
        after=shop.contents(),
        exit_code=result.code,
        result=result.document,
        tasks=stage.tasks(run),
        approval=_approval(stage, {"plan": {"id": undo}}),
        window=window,
        shared=(shared.status_code, shared.text),
        paused=(paused.returncode, " ".join(paused.stderr.split())),
    )


def newest_run(stage: Stage, dag: str) -> str | None:
    """Return the id of the newest run of a DAG; None without one."""
    runs = stage.get(f"/dags/{dag}/dagRuns")["dag_runs"]
    return str(runs[0]["dag_run_id"]) if runs else None


def _asked(
    stage: Stage, shop: ScenarioShop, answer: Callable[[Stage, Run], Mapping[str, Any]] | None, state: str
) -> Asked:
    before = shop.contents()
    run = stage.begin(shop.name, to=utc(STARTED))
    answers: Mapping[str, Any] = {}
    if answer is not None:
        stage.wait_for_question(run)
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
    """Return what the person was shown, as the journal keeps it."""
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
    """On the command line, by one who may not and one who may; the plan is paused, and goes on later."""
    plan = stage.window_of(run)["plan"]["id"]
    detail = stage.get(f"{run.path}/taskInstances/approve/-1/hitlDetails")
    looked = stage.run_command("plan", "dry-run", plan, "--samples", "1", "--json")
    refused = stage.command("plan", "approve", plan, user="admin")
    no_right = stage.command("plan", "pause", plan, user="viewer")
    paused = stage.run_command("plan", "pause", plan, "--reason", "the warehouse is busy", "--json")
    accepted = stage.command("plan", "approve", plan, user="oncall")
    return {
        "page": {"subject": detail["subject"], "body": detail["body"]},
        "dry run": looked.document,
        "admin": refused.returncode,
        "admin's message": refused.stderr,
        "oncall": accepted.returncode,
        "oncall's message": accepted.stdout,
        "paused by a viewer": (no_right.returncode, " ".join(no_right.stderr.split())),
        "paused": paused.document,
        "while paused": _while_paused(stage, run, plan),
    }


def _while_paused(stage: Stage, run: Run, plan: str) -> Mapping[str, Any]:
    """Look at a paused plan, then let it go on, and wait until its task has ended."""
    with stage.aside():
        stage.wait_for_task(run, "compensate", "up_for_reschedule")
        seen = {
            "tasks": stage.tasks(run),
            "log": stage.log(run, "compensate"),
            "plan": stage.window_of(run)["plan"],
            "leases": stage.journal(
                "select holder from makewhole.lease where resource like %s and expires_at > now()", f"%{plan}%"
            ),
            "receipts": stage.journal("select count(*) from makewhole.chunk where plan = %s", plan)[0][0],
        }
        resumed = stage.run_command("plan", "resume", plan, "--json")
        stage.wait_for_task(run, "compensate", "success")
    return {
        **seen,
        "resumed": resumed.document,
        "tries": stage.get(f"{run.path}/taskInstances/compensate")["try_number"],
    }
