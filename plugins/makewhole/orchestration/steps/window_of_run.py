"""Load the window of a run, and return what its Spark steps have committed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.task_ids import OPEN_WINDOW, PUBLISH, RECONCILE, SNAPSHOT

if TYPE_CHECKING:
    from makewhole.model.window import Window
    from makewhole.window.context import WindowContext


def load_pipeline(name: str) -> Pipeline:
    """Read a pipeline and give this process its connections; refuse a journal that does not fit this makewhole."""
    from makewhole.config.pipeline_file import find_pipeline
    from makewhole.journal.deployment.schema_version import require_current
    from makewhole.orchestration.deployment.connections import export_connections

    require_current()
    pipeline = find_pipeline(name)
    export_connections(pipeline)
    return pipeline


def load_ready_pipeline(name: str) -> Pipeline:
    """Read a pipeline as `load_pipeline` does, when every system that it needs is as a window needs it.

    Raises:
        ConfigurationError: something is wrong; with all of it.
        TransientError: nothing is wrong, and something does not answer.
    """
    from makewhole.config.pipeline_file import find_pipeline
    from makewhole.orchestration.deployment.connections import export_connections
    from makewhole.orchestration.deployment.judged_here import claim
    from makewhole.orchestration.readiness import require_ready

    pipeline = find_pipeline(name)
    export_connections(pipeline)
    require_ready(pipeline)
    claim(name)
    return pipeline


def load_own_pipeline(name: str) -> Pipeline:
    """Read a pipeline as `load_pipeline` does, when no other Airflow judges it.

    Raises:
        ConfigurationError: one does; with what to do.
    """
    from makewhole.orchestration.deployment.judged_here import require_own

    pipeline = load_pipeline(name)
    require_own(name)
    return pipeline


def opened_window(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of the task `open_window` of this run: pipeline, window, revision, label, settled_at.

    Raises:
        AirflowFailException: it did not open a window.
    """
    opened = context["ti"].xcom_pull(task_ids=OPEN_WINDOW)
    if not isinstance(opened, dict):
        raise AirflowFailException("no window was opened in this run; see the task `open_window`")
    return opened


def load_context() -> "WindowContext":
    """Load the window of this run, with the connections of its pipeline."""
    from makewhole.window.context import window_context

    pipeline, window = _load_window(get_current_context())
    return window_context(window, pipeline)


def _load_window(context: Mapping[str, Any]) -> tuple[Pipeline, "Window"]:
    """Load the window of this run and its pipeline, whose connections this process has then."""
    from makewhole.journal import windows
    from makewhole.journal.database import connect

    opened = opened_window(context)
    pipeline = load_pipeline(opened["pipeline"])
    with connect() as journal:
        return pipeline, windows.load(journal, opened["pipeline"], opened["window"], opened["revision"])


def require_whole_journal(context: "WindowContext") -> None:
    """Check that the journal, which says what a plan has done already, has all that was published of its pipeline.

    Raises:
        CorruptionError: it ends before: nothing may be written by it.
    """
    from makewhole.journal import certificates
    from makewhole.journal.database import connect
    from makewhole.window.certifying.certificate_chain import require_none_ahead

    name = context.pipeline.name
    with connect() as journal:
        require_none_ahead(journal, context.storage, name, certificates.last(journal, name), "Nothing was written")


@dataclass(frozen=True, kw_only=True)
class _WindowOfRun:
    """The window of a run: what a task that finds its step committed loads, in place of all that a step needs."""

    pipeline: Pipeline
    window: "Window"


def committed_step(task_id: str, context: Mapping[str, Any]) -> str | None:
    """Return what a Spark step of this run has committed; None when it has to be run.

    The gate's answer counts for the first try of its task alone: a person who clears the task wants it asked again.
    """
    from makewhole.config.key_layout import with_layout
    from makewhole.journal.database import connect
    from makewhole.publishing.published import committed_publication
    from makewhole.window.spark_steps import committed

    pipeline, loaded = _load_window(context)
    window = _WindowOfRun(pipeline=with_layout(pipeline, loaded.key_layout, loaded.value_types), window=loaded)
    with connect() as journal:
        if task_id == SNAPSHOT:
            return committed.committed_snapshots(journal, window)
        if task_id == RECONCILE:
            return committed.committed_results(journal, window)
        if task_id == PUBLISH:
            return committed_publication(journal, pipeline, loaded)
        ti = context["ti"]
        return committed.committed_answer(journal, window, ti.run_id) if ti.try_number <= 1 else None
