"""Windows, plans and steps that wait for a person, written into a journal."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from typer.testing import Result

from makewhole.journal import plans, step_failures, windows
from makewhole.journal.plans import StoredPlan
from makewhole.journal.results import hop_results
from makewhole.journal.results.hop_results import HopResult
from makewhole.journal.step_failures import StepPlace
from makewhole.model.plan import Plan, PlanState
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Window, WindowState
from makewhole.sql import PgConnection

NOW = datetime.now(UTC)
DAG = "makewhole_reconcile_shop"
URL = f"http://airflow.example/dags/{DAG}/runs/tonight/tasks"
Command = Callable[..., Result]


def opened(journal: PgConnection, number: int, state: WindowState, pipeline: str = "shop", **more: Any) -> Window:
    """Write a window of an hour, the number of hours ago that its number counts back from a hundred."""
    end = NOW - timedelta(hours=100 - number)
    window = Window(
        pipeline=pipeline,
        number=number,
        revision=more.get("revision", 1),
        start=end - timedelta(hours=1),
        end=end,
        opened_at=end,
        ranges={},
    )
    request = f"run {number} {window.revision}"
    windows.insert(journal, window, request=request, plan_only=more.get("plan_only", False), configuration={})
    if state is not WindowState.OPEN:
        windows.close(journal, window, state, more.get("reason"))
    return window


def judged(journal: PgConnection, window: Window, counts: HopCounts) -> None:
    result = HopResult(hop="outbox→orders", counts=counts, digest="0")
    hop_results.commit_results(journal, window, hop_results.RECONCILED, [result])


def failed(
    journal: PgConnection, step: str, error: BaseException, window: Window | None = None, run: str = "tonight"
) -> None:
    place: dict[str, Any] = {} if window is None else {"number": window.number, "revision": window.revision}
    step_failures.put(journal, StepPlace(pipeline="shop", step=step, dag=DAG, run=run, **place), error)


def planned(journal: PgConnection, window: Window, state: PlanState, name: str, **more: Any) -> str:
    plan = Plan(
        id=name,
        pipeline=window.pipeline,
        window=window.number,
        revision=window.revision,
        sha256="f" * 64,
        payload_uri=None,
        counts={"produce": 3},
        state=state,
        reason=more.get("reason"),
        undoes=more.get("undoes"),
    )
    plans.put_plan(journal, StoredPlan(plan=plan, payload_sha256=None), [])
    return name
