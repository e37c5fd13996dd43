"""Make the DAG that keeps the key indexes of all pipelines small, and removes what was kept long enough."""

import logging
from collections.abc import Sequence

from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException

from makewhole.model.errors import JudgedElsewhereError
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration import task_ids
from makewhole.orchestration.dags import START
from makewhole.orchestration.deployment.judged_here import require_own
from makewhole.orchestration.persistence import task_defaults
from makewhole.orchestration.steps.step import step

logger = logging.getLogger(__name__)
_AT_NIGHT = "0 4 * * *"
_DOC = """\
Merges the runs of the key index, the index of every key ever seen on a topic, so that a window asks few files however
many windows there were, drops what is older than the pipeline's `history`, and removes files that it has not used for
two days. Then it removes what was kept for as long as `keep` of the pipeline's file says. A task per pipeline; it may
be killed, and run at any time, also beside windows: `makewhole index merge PIPELINE` and `makewhole keep PIPELINE` do
the same.
"""


def housekeeping_dag(pipelines: Sequence[Pipeline]) -> DAG:
    """Make the one DAG for all pipelines: each night a task per pipeline, one after the other."""
    with DAG(
        dag_id=task_ids.HOUSEKEEPING_DAG,
        description="Keep the index of known keys small, and remove what was kept long enough",
        doc_md=_DOC,
        schedule=_AT_NIGHT,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        max_active_tasks=1,
        is_paused_upon_creation=False,
        default_args=task_defaults(pipelines),
        tags=["makewhole"],
    ) as dag:
        for pipeline in pipelines:
            task(task_id=pipeline.name)(keep_small)(pipeline.name)
    return dag


@step
def keep_small(name: str) -> None:
    """Compact the key index of a pipeline, remove what was kept for as long as its file says, and erase again what
    windows have read of keys that were erased on request.

    Raises:
        AirflowSkipException: another Airflow judges the pipeline, and keeps its house.
        PermanentError: something stays that was to go; the message has the reasons.
    """
    try:
        require_own(name)
    except JudgedElsewhereError as error:
        raise AirflowSkipException(str(error)) from error
    compact_index(name)
    try:
        remove_kept(name)
    finally:  # what stays of one has to do with the other nothing
        erase_what_came_back(name)


def compact_index(name: str) -> None:
    """Drop what is older than a pipeline's history, merge the runs of its key index and remove what is unused; nothing
    for one without an index."""
    from makewhole.config.pipeline_file import history_of
    from makewhole.journal.database import connect
    from makewhole.journal.key_index.runs import topics
    from makewhole.key_index.status import compact
    from makewhole.lake.storage import Storage
    from makewhole.orchestration.deployment.connections import export_storage_connection

    export_storage_connection()
    with connect() as journal:
        if not topics(journal, name):
            logger.info("%s has no key index yet", name)
            return
        for done in compact(journal, Storage.from_environment(), name, history=history_of(name)):
            did = (done.dropped_windows, done.merges, done.removed_files)
            logger.info("%s, %s: %s windows dropped, %s merges, %s files removed", name, done.index.point, *did)


def remove_kept(name: str) -> None:
    """Remove what a pipeline has kept long enough; nothing of one whose file is not good, or has no `keep`."""
    from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
    from makewhole.journal.database import JournalSession
    from makewhole.journal.deployment.address import journal_dsn
    from makewhole.model.errors import PermanentError
    from makewhole.orchestration.deployment.connections import export_connections
    from makewhole.retention.house import house_of
    from makewhole.retention.keep_house import keep_house

    pipelines, _ = read_pipelines(pipeline_folders())
    if name not in pipelines or not list(pipelines[name].keep):
        return
    export_connections(pipelines[name])
    stays = []
    with JournalSession(journal_dsn()) as journal:
        for outcome in keep_house(house_of(pipelines[name], journal)):
            what = f"{outcome.kind.value} of window {outcome.window}"
            logger.info("%s, %s: %s files, %s rows", name, what, outcome.amount.files, outcome.amount.rows)
            stays += [] if outcome.stays is None else [f"{what} stay: {outcome.stays}"]
    if stays:
        raise PermanentError("; ".join(stays))


def erase_what_came_back(name: str) -> None:
    """Erase again what windows of a pipeline have read of keys that were erased on request; the next night, while
    something waits."""
    from makewhole.config.pipeline_file import pipeline_folders, read_pipelines
    from makewhole.erasure.erase_again import erase_again
    from makewhole.erasure.erase_key import ErasureContext
    from makewhole.journal.database import JournalSession
    from makewhole.journal.deployment.address import journal_dsn
    from makewhole.journal.retention.erasures import erasures
    from makewhole.lake.storage import Storage
    from makewhole.model.errors import RefusedError
    from makewhole.orchestration.deployment.connections import export_connections, signing_key
    from makewhole.window.context import connections_of

    pipelines, _ = read_pipelines(pipeline_folders())
    if name not in pipelines:
        return
    with JournalSession(journal_dsn()) as journal:
        with journal.transaction() as session:
            if not erasures(session, name):
                return
        export_connections(pipelines[name])
        context = ErasureContext(
            journal=journal,
            storage=Storage.from_environment(),
            connections=connections_of(pipelines[name]),
            signing_key=signing_key(),
        )
        try:
            for done in erase_again(context, pipelines[name]):
                logger.info("%s, erasure %s: erased again what windows had read since", name, done.erasure)
        except RefusedError as error:
            logger.warning("%s: keys that were erased on request stay where windows have read them: %s", name, error)
