"""Make the DAG that accepts findings by a person's word: ask, approve, accept."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import DAG, AssetAlias, Param, TriggerRule, task

from makewhole.model.pipeline import Pipeline
from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration import task_ids
from makewhole.orchestration.access import access_control
from makewhole.orchestration.dags import START
from makewhole.orchestration.operators import AcceptanceApproval
from makewhole.orchestration.persistence import longest_limits, task_defaults
from makewhole.orchestration.steps import accepting
from makewhole.orchestration.watermark_task import report_watermark

_DOC = """\
Accepts findings of a judged window that cannot, or shall not, be repaired: by name, with a reason, signed into the
chain. Nothing is written to any table or topic. Who may say yes is in the pipeline's file.

| task | what its colour means |
|---|---|
| plan | which findings, frozen; **red: they cannot be accepted**, its log says why |
| approve | another person is asked, where the rules require it: never the one who asks |
| accept | keys are read again, the gate is asked. **Green: certified with what is accepted. Red: open all the same**, \
the reason is in the last line of its log |

With `revoke` it takes an acceptance back. Started by `makewhole accept PIPELINE`, too.
"""


def accept_dag(pipelines: Sequence[Pipeline]) -> DAG:
    """Make the DAG for several pipelines: the form names the pipeline and the window."""
    choice = Param(type="string", enum=[pipeline.name for pipeline in pipelines], title="Pipeline")
    return _dag(task_ids.ACCEPT_DAG, pipelines, {"pipeline": choice})


def own_accept_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG of a pipeline whose file says who may run it: the form names the window."""
    return _dag(task_ids.own_accept_dag_id(pipeline.name), [pipeline], {}, owner=pipeline)


def _dag(dag_id: str, pipelines: Sequence[Pipeline], choice: Mapping[str, Param], owner: Pipeline | None = None) -> DAG:
    """Make the DAG for these pipelines. `choice` is the part of the form that names one; `owner` is the only one."""
    text = ["null", "string"]
    with DAG(
        dag_id=dag_id,
        description="Accept findings as they are, or take an acceptance back",
        doc_md=_DOC,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=4,
        is_paused_upon_creation=False,
        default_args=task_defaults(pipelines),
        params={
            **choice,
            "window": Param(
                None, type=["null", "integer"], minimum=1, title="Window", description="As in `makewhole windows`"
            ),
            "findings": Param(
                None, type=["null", "array"], title="Findings", description="Ids, as in `makewhole findings`"
            ),
            "cause": Param(None, type=text, title="Cause", description="All open findings of this cause"),
            "all": Param(False, type="boolean", title="All", description="All open findings of the window"),
            "reason": Param(None, type=text, title="Reason", description="Why; it is signed into the certificate"),
            "until": Param(
                None,
                type=text,
                format="date-time",
                title="Until",
                description="When they are open again; empty: when their key is changed",
            ),
            "revoke": Param(None, type=text, title="Revoke", description="Id of an acceptance to take back"),
        },
        access_control=access_control(owner) if owner else None,
        tags=["makewhole", owner.name] if owner else ["makewhole"],
    ) as dag:
        accept = _tasks(longest_limits(pipelines))
        report_watermark(accept, [pipeline.name for pipeline in pipelines], is_chosen=True)
    return dag


def _tasks(limits: TimeLimits) -> Any:
    """Wire the tasks; return the last one."""
    plan = task.branch(task_id=task_ids.PLAN, execution_timeout=limits.plan)(accepting.plan)()
    approve = AcceptanceApproval.of_planned()
    rule = TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    accept = task(
        task_id=task_ids.ACCEPT,
        trigger_rule=rule,
        execution_timeout=limits.verify,
        outlets=[AssetAlias(name=task_ids.PUBLISHED_ALIAS)],
    )(accepting.accept)()
    plan >> [approve, accept]
    approve >> accept
    return accept
