"""Make the DAGs: one per pipeline, and one for the person on call. Parsing imports neither pyspark nor the gate."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, AssetAlias, CronDataIntervalTimetable, Param, TriggerRule, task

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration import steps, task_ids
from makewhole.orchestration.operators import PlanApproval, SparkStep

_JOBS = Path(__file__).resolve().parents[3] / "spark" / "jobs"
START = datetime(2000, 1, 1)
DEFAULTS = {"retries": 2, "retry_delay": timedelta(seconds=15), "owner": "makewhole"}
_DOC = """\
Compares **{name}** end to end, window by window, repairs what it may and certifies the result.

{description}

| task | what its colour means |
|---|---|
| open_window | which offsets and rows belong to this run, frozen |
| settle | waiting until an absence counts ({settle} after it was seen) |
| snapshot, reconcile, validate | reading, comparing, asking the gate; **red: the check broke**, nothing was concluded |
| plan, approve, compensate, verify | only when something is wrong; purple: a person is asked |
| certify | **green: proven whole. Red: it is not**, the reason is in the last line of its log |

Hops: {hops}
"""


def reconcile_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG of a pipeline: on its schedule each run covers the data interval before it."""
    with DAG(
        dag_id=f"makewhole_reconcile_{pipeline.name}",
        description=pipeline.description or f"Reconcile {pipeline.name}",
        doc_md=_DOC.format(
            name=pipeline.name,
            description=pipeline.description,
            settle=pipeline.settle,
            hops=", ".join(hop.name for hop in pipeline.hops),
        ),
        schedule=None if pipeline.schedule is None else CronDataIntervalTimetable(pipeline.schedule, timezone="UTC"),
        start_date=START,
        end_date=pipeline.until,
        catchup=False,
        max_active_runs=1,
        default_args=DEFAULTS,
        params=_form(),
        tags=["makewhole", pipeline.name],
    ) as dag:
        _window_tasks(pipeline.name)
    return dag


def oncall_dag(pipelines: list[str]) -> DAG:
    """Make the DAG with a form: any pipeline, any interval, now. It needs no schedule and nobody has to unpause it."""
    choice = Param(
        pipelines[0] if len(pipelines) == 1 else None,
        type="string",
        enum=pipelines,
        title="Pipeline",
        description="Which pipeline to check",
    )
    with DAG(
        dag_id="makewhole_oncall",
        description="Check and repair one window of a pipeline now",
        doc_md="Choose pipeline and interval. *Plan only* changes nothing: it compares, and shows what it would do.",
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=4,
        is_paused_upon_creation=False,
        default_args=DEFAULTS,
        params={"pipeline": choice, **_form()},
        tags=["makewhole"],
    ) as dag:
        _window_tasks(None)
    return dag


def _form() -> dict[str, Param]:
    text = ["null", "string"]
    return {
        "from": Param(
            None,
            type=text,
            format="date-time",
            title="From",
            description="Start of the interval. Empty: from where the last window ended",
        ),
        "to": Param(
            None,
            type=text,
            format="date-time",
            title="To",
            description="End of the interval, not after now. Empty: now",
        ),
        "plan_only": Param(
            False, type="boolean", title="Plan only", description="Compare and plan, and change nothing"
        ),
        "reason": Param(None, type=text, title="Reason", description="Why, for those who read the journal later"),
    }


def _window_tasks(pipeline_name: str | None) -> None:
    """Wire the tasks of a window. `pipeline_name` None: the form says which pipeline."""
    open_window = task(task_id=task_ids.OPEN_WINDOW, retries=20)(steps.open_window)(pipeline_name)
    # A long interval: when a task is rescheduled within seconds, Airflow can take its first end for a failure.
    settle = task.sensor(
        task_id=task_ids.SETTLE,
        mode="reschedule",
        poke_interval=task_ids.SETTLE_POLL_SECONDS,
        timeout=timedelta(days=1).total_seconds(),
    )(steps.settle)()
    snapshot, reconcile, validate = (
        SparkStep(
            task_id=name,
            application=str(_JOBS / f"{name}.py"),
            conn_id="spark_default",
            name=f"makewhole {name}",
            conf={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"},
        )
        for name in (task_ids.SNAPSHOT, task_ids.RECONCILE, task_ids.VALIDATE)
    )
    plan = task.branch(task_id=task_ids.PLAN)(steps.plan)()
    approve = PlanApproval.of_planned()
    compensate = _task_after_any(task_ids.COMPENSATE, steps.compensate)
    verify = _task_after_any(task_ids.VERIFY, steps.verify)
    certify = task(task_id=task_ids.CERTIFY, trigger_rule=TriggerRule.ALL_DONE, outlets=[_certified(pipeline_name)])(
        steps.certify
    )()
    open_window >> settle >> snapshot >> reconcile >> validate >> plan
    plan >> [approve, compensate, verify, certify]
    approve >> compensate >> verify >> certify


def _certified(pipeline_name: str | None) -> Asset | AssetAlias:
    """Return the asset whose event holds the head of the chain; an alias of it where the form names the pipeline."""
    if pipeline_name is None:
        return AssetAlias(name=task_ids.CERTIFIED_ALIAS)
    name, uri = task_ids.certified_asset(pipeline_name)
    return Asset(name=name, uri=uri)


def _task_after_any(task_id: str, function: Callable[[], Any]) -> Any:
    """Make a task that runs when one task before it succeeded and none failed."""
    return task(task_id=task_id, trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)(function)()
