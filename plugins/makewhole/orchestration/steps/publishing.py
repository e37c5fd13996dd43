"""Report to the asset of what a pipeline publishes: what was published of a window, and what is not proven any more."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.steps.asset_events import update_asset
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_pipeline, opened_window
from makewhole.orchestration.task_ids import PUBLISHED_ALIAS, published_asset

logger = logging.getLogger(__name__)


def require_published_points(context: Mapping[str, Any]) -> None:
    """Skip the task where the pipeline of the run publishes nothing.

    Raises:
        AirflowSkipException: it does not.
    """
    name = opened_window(context)["pipeline"]
    if not load_pipeline(name).publish:
        raise AirflowSkipException(f"pipeline {name} publishes nothing: no topic point of its file has 'publish'")


def announce(context: Mapping[str, Any]) -> None:
    """Put what was published into the event of the asset: where a consumer finds the window of the run and older ones
    that no event has yet, and up to which window nothing is left out. No event where there is nothing of these."""
    from makewhole.journal import windows
    from makewhole.journal.database import connect
    from makewhole.publishing.published import report_published

    opened = opened_window(context)
    pipeline, ti = load_pipeline(opened["pipeline"]), context["ti"]
    with connect() as journal:
        window = windows.load(journal, opened["pipeline"], opened["window"], opened["revision"])
        points = report_published(journal, pipeline, window, f"{ti.dag_id}/{ti.run_id}")
    if not points:
        raise AirflowSkipException(
            f"{opened['label']} is not published: it waits for an older window that is not certified, or lies "
            "before the first one that was"
        )
    extra = {"pipeline": pipeline.name, "window": window.number, "revision": window.revision, "points": points}
    update_asset(context["outlet_events"], published_asset(pipeline.name), PUBLISHED_ALIAS, extra)
    for point, reported in sorted(points.items()):
        for entry in reported["published"]:
            logger.info("window %d of %s is published: %s", entry["window"], point, entry["manifest"])


@step
def report_revoked() -> None:
    """Note beside what is published which windows are not proven any more, and report it to the asset; skipped where
    nothing changed.

    Raises:
        AirflowSkipException: nothing did, or no window was opened.
    """
    context = get_current_context()
    try:
        opened = opened_window(context)
    except AirflowFailException as error:  # the run is red without this task
        raise AirflowSkipException(str(error)) from error
    if not note_revoked(load_pipeline(opened["pipeline"]), context):
        raise AirflowSkipException("no certificate of what is published was revoked, and none stands again")


def note_revoked(pipeline: Pipeline, context: Mapping[str, Any]) -> bool:
    """Note which published windows of a pipeline are not proven any more, with an event where that changed; return
    whether it did. A task that is tried again has an event of all that are revoked."""
    from makewhole.journal.database import connect
    from makewhole.lake.storage import Storage
    from makewhole.publishing.published import published_points
    from makewhole.publishing.revocations import note_revocations

    with connect() as journal:
        changed = note_revocations(journal, pipeline, Storage.from_environment())
        points = published_points(journal, pipeline.name)
    revoked = {point.publication.point: point.revoked for point in points if point.revoked}
    is_again = context["ti"].try_number > 1 and bool(revoked)
    if not changed and not is_again:
        return False
    documents = [notice.to_json_dict() for notice in changed]
    extra = {"pipeline": pipeline.name, "points": {}, "changed": documents, "revoked": revoked}
    update_asset(context["outlet_events"], published_asset(pipeline.name), PUBLISHED_ALIAS, extra)
    for notice in changed:
        if notice.revocation is not None:
            logger.warning("%s is not proven any more: %s", notice.manifest, notice.revocation["because"]["reason"])
        else:
            logger.info("%s is proven again", notice.manifest)
    return True
