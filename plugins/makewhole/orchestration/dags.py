"""Make the DAGs: one per pipeline, and one for the person on call. Parsing imports neither pyspark nor the gate."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, AssetAlias, CronDataIntervalTimetable, Param, TriggerRule, task

from makewhole.model.pipeline import Pipeline
from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration import task_ids
from makewhole.orchestration.access import access_control
from makewhole.orchestration.notices.tasks import notify_of_run
from makewhole.orchestration.operators import PlanApproval, PublishStep, SparkStep
from makewhole.orchestration.persistence import longest_limits, task_defaults
from makewhole.orchestration.steps import certifying, opening, publishing, repairing, self_checking
from makewhole.orchestration.telemetry.lineage import add_lineage
from makewhole.orchestration.ui.links import add_links
from makewhole.orchestration.watermark_task import report_watermark
from makewhole.shipped import shipped

_JOBS = shipped("spark/jobs")
START = datetime(2000, 1, 1)
# `settle` waits for a moment that is fixed when the window is opened: the wait ends by itself.
_SETTLE_TIMEOUT = timedelta(days=10_000)
_POKE_LIMIT = timedelta(minutes=10)
_DOC = """\
Compares **{name}** end to end, window by window, repairs what it may and certifies the result.

{description}

| task | what its colour means |
|---|---|
| open_window | which offsets and rows belong to this run, frozen; *rescheduled: an older window is finished first* |
| settle | waiting until an absence counts ({settle} after it was seen) |
| snapshot, reconcile, validate | reading, comparing, asking the gate; **red: the check broke**, nothing was concluded |
| plan, approve, compensate, verify | only when something is wrong; purple: a person is asked |
| certify | **green: proven whole. Red: it is not**, the reason is in the last line of its log |

Hops: {hops}
"""
_SELF_CHECK_DOC = """
**This is a self-check of makewhole.** `plant_faults` sends known records into a topic of its own and spoils a table of
its own; `compare_faults` is **red when a planted fault was not found, something else was, or something is still wrong
after the repair**: then windows of other pipelines may be wrong, too. `makewhole self-check` shows the rounds.
"""

_ONCALL_DOC = "Choose {what}. *Plan only* changes nothing: it compares, and shows what it would do."
_NO_PIPELINE = (
    "There is no pipeline file yet where MAKEWHOLE_PIPELINES, or `pipelines` of the section `[makewhole]`, says: "
    "`makewhole init` writes one"
)
_CONTINUE_DOC = """\
Goes on with a window that a run left in error, or in the middle: what its steps committed is kept. The next run of the
pipeline starts this by itself before it opens its own window, and waits for it; the tasks are those of any window.
"""


def reconcile_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG of a pipeline: on its schedule each run covers the data interval before it."""
    with DAG(
        dag_id=task_ids.reconcile_dag_id(pipeline.name),
        description=pipeline.description or f"Reconcile {pipeline.name}",
        doc_md=_DOC.format(
            name=pipeline.name,
            description=pipeline.description,
            settle=pipeline.settle,
            hops=", ".join(pipeline.judged_names),
        )
        + ("" if pipeline.self_check is None else _SELF_CHECK_DOC),
        schedule=None if pipeline.schedule is None else CronDataIntervalTimetable(pipeline.schedule, timezone="UTC"),
        start_date=START,
        end_date=pipeline.until,
        catchup=False,
        max_active_runs=1,
        default_args=task_defaults([pipeline]),
        params=_form(),
        access_control=access_control(pipeline),
        tags=["makewhole", pipeline.name],
    ) as dag:
        if pipeline.self_check is None:
            wire_window(pipeline)
        else:
            _wire_self_check(dag, pipeline)
    return dag


def _wire_self_check(dag: DAG, pipeline: Pipeline) -> None:
    """Wire the tasks of a self-check: those of any window between the one that plants faults and the one that compares
    what was found with them, whatever became of the window."""
    limits = longest_limits([pipeline])
    plant = task(task_id=task_ids.PLANT_FAULTS, execution_timeout=limits.open_window)(self_checking.plant_faults)
    planted = plant(pipeline.name)
    wire_window(pipeline, self_checking.open_window)
    compared = task(
        task_id=task_ids.COMPARE_FAULTS,
        trigger_rule=TriggerRule.ALL_DONE,
        execution_timeout=limits.certify,
        on_success_callback=notify_of_run,
        outlets=[_asset(task_ids.self_check_asset(pipeline.name), "")],
    )(self_checking.compare_faults)(pipeline.name)
    planted >> dag.get_task(task_ids.OPEN_WINDOW)
    dag.get_task(task_ids.CERTIFY) >> compared
    for wired in (planted, compared):
        add_links(wired)


def wire_window(pipeline: Pipeline, begin: Callable[..., Any] = opening.open_window) -> None:
    """Wire all tasks of a window of a pipeline into the DAG, or the group, at hand; `begin` opens it or takes it up."""
    certified = _window_tasks(longest_limits([pipeline]), begin, pipeline.name)
    _publish_task([pipeline], certified, pipeline.name)
    report_watermark(certified, [pipeline.name])


def own_oncall_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG with a form of a pipeline whose file says who may run it: any interval, now."""
    with DAG(
        dag_id=task_ids.own_oncall_dag_id(pipeline.name),
        description=f"Check and repair one window of {pipeline.name} now",
        doc_md=_ONCALL_DOC.format(what="the interval"),
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=4,
        is_paused_upon_creation=False,
        default_args=task_defaults([pipeline]),
        params=_form(),
        access_control=access_control(pipeline),
        tags=["makewhole", pipeline.name],
    ) as dag:
        wire_window(pipeline)
    return dag


def oncall_dag(pipelines: Sequence[Pipeline]) -> DAG:
    """Make the DAG with a form: any of these pipelines, any interval, now. It needs no schedule and need not be
    unpaused. Without a pipeline it is there, too: it shows that Airflow has makewhole's DAGs, and found no pipeline
    file."""
    names = [pipeline.name for pipeline in pipelines]
    choice = Param(
        names[0] if len(names) == 1 else None,
        type="string",
        enum=names,
        title="Pipeline",
        description="Which pipeline to check",
    )
    with DAG(
        dag_id=task_ids.ONCALL_DAG,
        description="Check and repair one window of a pipeline now" if names else _NO_PIPELINE,
        doc_md=_ONCALL_DOC.format(what="pipeline and interval") if names else _NO_PIPELINE,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=4,
        is_paused_upon_creation=False,
        default_args=task_defaults(pipelines),
        params={"pipeline": choice, **_form()},
        tags=["makewhole"],
    ) as dag:
        certified = _window_tasks(longest_limits(pipelines), opening.open_window, None)
        _publish_task(pipelines, certified)
        report_watermark(certified, names, is_chosen=True)
    return dag


def continue_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG that goes on with windows of a pipeline which were left unfinished. Its runs start it before their
    own windows."""
    with DAG(
        dag_id=task_ids.continue_dag_id(pipeline.name),
        description=f"Go on with a window of {pipeline.name} that was left unfinished",
        doc_md=_CONTINUE_DOC,
        schedule=None,
        start_date=START,
        catchup=False,
        is_paused_upon_creation=False,
        default_args=task_defaults([pipeline]),
        params={
            "window": Param(type="integer", minimum=1, title="Window", description="As in `makewhole windows`"),
            "revision": Param(type="integer", minimum=1, title="Revision", description="The newest of the window"),
        },
        access_control=access_control(pipeline),
        tags=["makewhole", pipeline.name],
    ) as dag:
        wire_window(pipeline, opening.continue_window)
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
        "read_again": Param(
            False,
            type="boolean",
            title="Read again",
            description="Of a window that is judged again, read every point, also one that is shown to be unchanged",
        ),
        "reason": Param(None, type=text, title="Reason", description="Why, for those who read the journal later"),
    }


def _window_tasks(limits: TimeLimits, begin: Callable[..., Any], pipeline_name: str | None) -> Any:
    """Wire the tasks of a window, the first of which opens it or takes it up: `begin`, called with the name of the
    pipeline (None: the form has it). Return the last one."""
    open_window = task(task_id=task_ids.OPEN_WINDOW, execution_timeout=limits.open_window)(begin)(pipeline_name)
    # A long interval: when a task is rescheduled within seconds, Airflow can take its first end for a failure.
    settle = task.sensor(
        task_id=task_ids.SETTLE,
        mode="reschedule",
        poke_interval=task_ids.POLL_SECONDS,
        timeout=_SETTLE_TIMEOUT.total_seconds(),
        execution_timeout=_POKE_LIMIT,
    )(opening.settle)()
    snapshot, reconcile, validate = (
        SparkStep(**_spark_job(name, _spark_limit(limits, name))) for name in task_ids.SPARK_STEPS
    )
    plan = task.branch(task_id=task_ids.PLAN, execution_timeout=limits.plan)(repairing.plan)()
    approve = PlanApproval.of_planned()
    compensate = _task_after_any(task_ids.COMPENSATE, repairing.compensate, limits.compensate)
    verify = _task_after_any(task_ids.VERIFY, repairing.verify, limits.verify)
    certify = task(
        task_id=task_ids.CERTIFY,
        trigger_rule=TriggerRule.ALL_DONE,
        execution_timeout=limits.certify,
        on_success_callback=notify_of_run,
        outlets=[_asset(_certified(pipeline_name), task_ids.CERTIFIED_ALIAS)],
    )(certifying.certify)()
    open_window >> settle >> snapshot >> reconcile >> validate >> plan
    plan >> [approve, compensate, verify, certify]
    approve >> compensate >> verify >> certify
    for wired in (open_window, settle, snapshot, reconcile, validate, plan, approve, compensate, verify, certify):
        add_links(wired)
    add_lineage(certify)
    return certify


def _publish_task(pipelines: Sequence[Pipeline], certified: Any, pipeline_name: str | None = None) -> None:
    """Wire the task that publishes the window behind its last one, where any of these pipelines publishes anything, and
    the one that reports what is not proven any more, whatever became of the window. Mostly that has nothing to report
    and is skipped: as a teardown of Airflow's it holds up nothing behind a window in a DAG of people's own, and when it
    fails the run fails, too."""
    if any(pipeline.publish for pipeline in pipelines):
        name_and_uri = None if pipeline_name is None else task_ids.published_asset(pipeline_name)
        outlets = [_asset(name_and_uri, task_ids.PUBLISHED_ALIAS)]
        limits = longest_limits(pipelines)
        publish = PublishStep(**_spark_job(task_ids.PUBLISH, limits.publish), outlets=outlets)
        report_revoked = task(
            task_id=task_ids.REPORT_REVOKED,
            execution_timeout=limits.certify,
            outlets=outlets,
        )(publishing.report_revoked)()
        certified >> [publish, report_revoked.as_teardown(on_failure_fail_dagrun=True)]
        add_links(publish)


def _spark_job(name: str, limit: timedelta) -> dict[str, Any]:
    """Return the arguments of an operator that submits the job of a step."""
    return {
        "task_id": name,
        "application": str(_JOBS / f"{name}.py"),
        "conn_id": "spark_default",
        "name": f"makewhole {name}",
        "conf": {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"},
        "execution_timeout": limit,
    }


def _spark_limit(limits: TimeLimits, name: str) -> timedelta:
    """Return the limits of a step and of those with which its application goes on, added up."""
    steps_left = task_ids.SPARK_STEPS[task_ids.SPARK_STEPS.index(name) :]
    return sum((getattr(limits, step) for step in steps_left), timedelta())


def _certified(pipeline_name: str | None) -> tuple[str, str] | None:
    """Return name and URI of the asset whose event holds the head of the chain."""
    return None if pipeline_name is None else task_ids.certified_asset(pipeline_name)


def _asset(name_and_uri: tuple[str, str] | None, alias: str) -> Asset | AssetAlias:
    """Return the asset that a task updates; an alias of it where the form names the pipeline."""
    if name_and_uri is None:
        return AssetAlias(name=alias)
    name, uri = name_and_uri
    return Asset(name=name, uri=uri)


def _task_after_any(task_id: str, function: Callable[[], Any], limit: timedelta) -> Any:
    """Make a task that runs when one task before it succeeded and none failed."""
    rule = TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    return task(task_id=task_id, trigger_rule=rule, execution_timeout=limit)(function)()
