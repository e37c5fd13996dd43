"""Report what was published of the window of a run to the asset of what its pipeline publishes."""

import logging
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowSkipException

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
    """Put what was published into the event of the asset: where a consumer finds it, and up to which window nothing is
    left out. No event where the window is not published."""
    from makewhole.journal import windows
    from makewhole.journal.database import connect
    from makewhole.publishing.published import published_of

    opened = opened_window(context)
    pipeline = load_pipeline(opened["pipeline"])
    with connect() as journal:
        window = windows.load(journal, opened["pipeline"], opened["window"], opened["revision"])
        points = published_of(journal, pipeline, window)
    if not points:
        raise AirflowSkipException(
            f"{opened['label']} is not published: it waits for an older window that is not certified, or lies "
            "before the first one that was"
        )
    name, uri = published_asset(pipeline.name)
    asset = Asset(name=name, uri=uri)
    extra = {"pipeline": pipeline.name, "window": window.number, "revision": window.revision, "points": points}
    events = context["outlet_events"]
    events[asset].extra = extra
    events[AssetAlias(name=PUBLISHED_ALIAS)].add(asset, extra=extra)
    for point, published in sorted(points.items()):
        logger.info("%s: %s is published: %s", opened["label"], point, published["manifest"])
