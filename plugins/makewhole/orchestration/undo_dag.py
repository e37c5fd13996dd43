"""Make the DAG that takes a plan back: plan, approve, restore, reopen."""

from typing import Any

from airflow.sdk import DAG, AssetAlias, Param, TriggerRule, task

from makewhole.model.pipeline import Pipeline
from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration import task_ids
from makewhole.orchestration.access import access_control
from makewhole.orchestration.dags import START
from makewhole.orchestration.operators import PlanApproval
from makewhole.orchestration.persistence import longest_limits, task_defaults
from makewhole.orchestration.steps import undoing
from makewhole.orchestration.watermark_task import report_watermark

_DOC = """\
Puts back every row that a plan wrote, changed or moved aside, as it was before, the last one first; then judges the
window again. Who may say yes is in the pipeline's file.

| task | what its colour means |
|---|---|
| plan | which rows go back, frozen; **red: there is nothing that could be put back**, its log says why |
| approve | a person is always asked |
| restore | putting back, each row exactly once; what changed since the plan is left alone |
| reopen | **green: every row is back. Red: some were left**, or the undo did not end: see the end of its log |

It is paused until a person releases it once, by the switch beside its name: who may take repairs back is a decision.
Records in topics stay: a log takes nothing back. Started by `makewhole plan undo PLAN`, too.
"""


def undo_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG that takes plans of a pipeline back, and of no other. It is paused until a person releases it."""
    with DAG(
        dag_id=task_ids.undo_dag_id(pipeline.name),
        description=f"Take a plan of {pipeline.name} back: rows as they were before it",
        doc_md=_DOC,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=4,
        is_paused_upon_creation=True,
        default_args=task_defaults([pipeline]),
        params={
            "plan": Param(
                type="string",
                minLength=1,
                title="Plan",
                description="Id of the plan to take back; `makewhole windows PIPELINE --json` names those of the "
                "newest windows, with `--last 0` all",
            ),
            "reverse": Param(
                False,
                type="boolean",
                title="Reverse",
                description="For what it wrote to topics, send events that take the effect back, by the `reverse` of "
                "the hop",
            ),
            "reason": Param(
                None, type=["null", "string"], title="Reason", description="Why, for those who read the run later"
            ),
        },
        access_control=access_control(pipeline),
        tags=["makewhole", pipeline.name],
    ) as dag:
        reopen = _tasks(longest_limits([pipeline]))
        report_watermark(reopen, [pipeline.name], is_chosen=True)
    return dag


def _tasks(limits: TimeLimits) -> Any:
    """Wire the tasks; return the last one."""
    plan = task.branch(task_id=task_ids.PLAN, execution_timeout=limits.plan)(undoing.plan)()
    approve = PlanApproval.of_planned()
    rule = TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    restore = task(task_id=task_ids.RESTORE, trigger_rule=rule, execution_timeout=limits.compensate)(undoing.restore)()
    reopen = task(
        task_id=task_ids.REOPEN,
        trigger_rule=TriggerRule.ALL_DONE,  # an undo that was stopped has put rows back, too
        execution_timeout=limits.verify,
        outlets=[AssetAlias(name=task_ids.PUBLISHED_ALIAS)],
    )(undoing.reopen)()
    plan >> [approve, restore]
    approve >> restore >> reopen
    return reopen
