"""Make the DAG that sends what waits for a person: reminders, what is late, and what could not be sent before."""

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, Param, get_current_context, task

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration import task_ids
from makewhole.orchestration.dags import START
from makewhole.orchestration.deployment.settings import export_settings
from makewhole.orchestration.notices import tasks
from makewhole.orchestration.steps.step import step

_EVERY_TEN_MINUTES = "*/10 * * * *"
_LIMIT = timedelta(minutes=9)
_DOC = """\
Sends what waits for a person through the channels of `notify` in the pipeline files: what is new, reminders, what is
late, and what could not be sent when it came up. What was sent is sent again only as a reminder. **Red: a channel did
not take its message, or a pipeline file has problems**, the log names them; the next run tries again.

With `test` a message that says that it is a test goes through every channel of a pipeline: `makewhole notify PIPELINE`
does the same.
"""


def notify_dag(pipelines: Sequence[Pipeline]) -> DAG:
    """Make the one DAG for all pipelines."""
    with DAG(
        dag_id=task_ids.NOTIFY_DAG,
        description="Send what waits for a person",
        doc_md=_DOC,
        schedule=_EVERY_TEN_MINUTES,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args={"owner": "makewhole", "pre_execute": export_settings, "retries": 0, "execution_timeout": _LIMIT},
        params={
            "test": Param(
                None,
                type=["null", "string"],
                enum=[None, *(pipeline.name for pipeline in pipelines)],
                title="Test",
                description="Send a test through every channel of this pipeline",
            )
        },
        tags=["makewhole"],
    ) as dag:
        task(task_id=task_ids.NOTIFY)(_notify)()
    return dag


@step
def _notify() -> int:
    return tasks.send_all(get_current_context()["params"].get("test"))
