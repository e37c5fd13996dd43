"""Make the DAG that asks, with the connections that tasks have, what a machine with the command line alone cannot."""

from collections.abc import Mapping, Sequence

from airflow.sdk import DAG, Param, task

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration import task_ids
from makewhole.orchestration.access import access_control
from makewhole.orchestration.dags import START
from makewhole.orchestration.last_line import log_last_line
from makewhole.orchestration.persistence import longest_limits, task_defaults
from makewhole.orchestration.steps import asking

_DOC = """\
Asks the systems of a pipeline, and writes nothing: what weakens the delivery that it claims (`makewhole doctor`), or
what stands in the way of a window (`makewhole check --live`). The answer is in the log of `ask`; the two commands start
this with `--in-airflow`, and print what comes back.
"""


def ask_dag(pipelines: Sequence[Pipeline]) -> DAG:
    """Make the DAG for several pipelines: the form names one."""
    choice = Param(type="string", enum=[pipeline.name for pipeline in pipelines], title="Pipeline")
    return _dag(task_ids.ASK_DAG, pipelines, {"pipeline": choice})


def own_ask_dag(pipeline: Pipeline) -> DAG:
    """Make the DAG of a pipeline whose file says who may run it."""
    return _dag(task_ids.own_ask_dag_id(pipeline.name), [pipeline], {}, owner=pipeline)


def _dag(dag_id: str, pipelines: Sequence[Pipeline], choice: Mapping[str, Param], owner: Pipeline | None = None) -> DAG:
    """Make the DAG for these pipelines. `choice` is the part of the form that names one; `owner` is the only one."""
    with DAG(
        dag_id=dag_id,
        description="Ask the systems of a pipeline, and write nothing",
        doc_md=_DOC,
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=4,
        is_paused_upon_creation=False,
        default_args=task_defaults(pipelines) | {"retries": 0, "on_failure_callback": [log_last_line]},
        params={
            **choice,
            "question": Param(
                task_ids.DELIVERY,
                type="string",
                enum=[task_ids.DELIVERY, task_ids.READINESS],
                title="Question",
                description="What weakens the claimed delivery, or what stands in the way of a window",
            ),
        },
        access_control=access_control(owner) if owner else None,
        tags=["makewhole", owner.name] if owner else ["makewhole"],
    ) as dag:
        task(task_id=task_ids.ASK, execution_timeout=longest_limits(pipelines).open_window)(asking.ask)()
    return dag
