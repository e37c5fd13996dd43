"""Send from within Airflow: when a task of a window has ended, when a person is asked, and every ten minutes."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from makewhole.config.pipeline_file import find_pipeline, pipeline_folders, read_pipelines, scheduled_pipelines
from makewhole.model.errors import JudgedElsewhereError, MakewholeError
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration import task_ids
from makewhole.orchestration.deployment.judged_here import require_own
from makewhole.orchestration.deployment.settings import export_settings
from makewhole.orchestration.ui.addresses import base_url, task_url

if TYPE_CHECKING:
    from makewhole.orchestration.notices.notify import Surroundings

logger = logging.getLogger(__name__)


def notify_of_run(context: Mapping[str, Any]) -> None:
    """Send what is new of the pipeline of a run, after one of its tasks has ended. Whatever goes wrong is logged alone:
    the DAG `makewhole_notify` tries again."""
    from makewhole.journal.step_failures import reason_of

    try:
        export_settings()
        name = pipeline_of(context)
        pipeline = None if name is None else scheduled_pipelines(pipeline_folders()).get(name)
        if pipeline is not None and pipeline.notify is not None:
            _send(pipeline)
    except Exception as error:  # of Airflow, a notifier, a driver: none may change the end of a task
        logger.warning("nothing was sent to people now; %s tries again: %s", task_ids.NOTIFY_DAG, reason_of(error))


def pipeline_of(context: Mapping[str, Any]) -> str | None:
    """Return the pipeline of a run: that of the window it opened, of its DAG, or of its form."""
    opened = context["ti"].xcom_pull(task_ids=task_ids.OPEN_WINDOW)
    if isinstance(opened, dict):
        return str(opened["pipeline"])
    dag = context["ti"].dag_id
    form = context["params"] if task_ids.is_our_dag(dag) else {}
    named = task_ids.pipeline_of_dag(dag) or form.get("pipeline")
    return None if named is None else str(named)


def send_all(test_of: str | None) -> int:
    """Send what is new of every pipeline; of `test_of` alone a message that says that it is a test. Return how many
    pipelines have channels.

    Raises:
        AirflowFailException: a channel did not take its message, or a pipeline file has problems, which may be in what
            it sends to whom; names each with the reason.
    """
    if test_of is not None:
        return _send_test(find_pipeline(test_of))
    _, problems = read_pipelines(pipeline_folders())
    pipelines = scheduled_pipelines(pipeline_folders())
    with_channels = [pipeline for pipeline in pipelines.values() if pipeline.notify is not None]
    failed: list[str] = []
    for pipeline in with_channels:
        try:
            reasons = _send(pipeline)
        except MakewholeError as error:
            failed.append(f"{pipeline.name}: {error}")
        else:
            failed += [f"{pipeline.name}, through {channel}: {reason}" for channel, reason in reasons.items()]
    failed += [str(problem) for problem in problems]
    if failed:
        raise AirflowFailException("; ".join(failed))
    return len(with_channels)


def _send(pipeline: Pipeline) -> dict[str, str]:
    from makewhole.orchestration.notices.notify import notify

    try:
        require_own(pipeline.name)
    except JudgedElsewhereError as elsewhere:
        logger.info("nothing is sent of %s from here: %s", pipeline.name, elsewhere)
        return {}
    return notify(pipeline, _surroundings(pipeline))


def _send_test(pipeline: Pipeline) -> int:
    from makewhole.orchestration.notices.compose import message_of_test
    from makewhole.orchestration.notices.notify import place_of

    around, settings = _surroundings(pipeline), pipeline.notify
    if settings is None:
        raise AirflowFailException(f"{pipeline.name} has no channel; `notify` in its file says what is sent to whom")
    for name, channel in settings.channels.items():
        around.send(channel, message_of_test(pipeline.name, link=around.link, now=datetime.now(UTC)), place_of(name))
        logger.info("%s: sent through %s", pipeline.name, name)
    return len(settings.channels)


def _surroundings(pipeline: Pipeline) -> "Surroundings":
    """Give this process the connections of a pipeline, and return what sending needs."""
    from makewhole.orchestration.deployment.connections import export_connections
    from makewhole.orchestration.notices.notify import Surroundings
    from makewhole.orchestration.notices.send import send
    from makewhole.window.context import connections_of

    def log_url(dag: str | None, run: str | None, task: str | None) -> str | None:
        return task_url(dag, run, task) if dag and run and task else None

    try:
        export_connections(pipeline)
        connections = connections_of(pipeline)
    except Exception as error:  # a connection that is not there is what is to be sent, too
        logger.info("how long Kafka keeps originals is not asked: %s", type(error).__name__)
        connections = {}
    link = f"{base_url()}/dags/{task_ids.reconcile_dag_id(pipeline.name)}"
    return Surroundings(send=send, connections=connections, log_url=log_url, link=link)
