"""Open the window of a run, or take up an unfinished one, and wait until an absence counts."""

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from makewhole.model.errors import RequestRefusedError
from makewhole.orchestration.access import requested_name
from makewhole.orchestration.steps.recorded_failure import is_by_form, recorded
from makewhole.orchestration.steps.step import step
from makewhole.orchestration.steps.window_of_run import load_ready_pipeline, opened_window
from makewhole.orchestration.task_ids import POLL_SECONDS, is_our_dag, request_id

if TYPE_CHECKING:
    from makewhole.window.opening.interval import Request
    from makewhole.window.opening.open import OpenedWindow

logger = logging.getLogger(__name__)


@step
@recorded
def open_window(pipeline_name: str | None) -> dict[str, Any]:
    """Open the window of this run: its data interval when it was scheduled or backfilled, its form otherwise.

    `pipeline_name` None: the form names the pipeline.
    """
    from makewhole.journal.database import connect
    from makewhole.orchestration.older_windows import finish_older_windows
    from makewhole.window.context import connections_of
    from makewhole.window.opening.interval import require_past
    from makewhole.window.opening.open import open_interval

    context = get_current_context()
    request = _window_request(context)
    require_past(request)
    pipeline = load_ready_pipeline(pipeline_name or requested_name(context))
    finish_older_windows(context, pipeline, request)
    with connect() as journal:
        opened = open_interval(journal, pipeline, connections_of(pipeline), request)
    return log_opened(opened, "" if opened.is_new else "; it was judged before, this is a new revision")


@step
@recorded
def continue_window(pipeline_name: str) -> dict[str, Any]:
    """Take up the unfinished window of a pipeline that the form names."""
    from makewhole.journal.database import connect
    from makewhole.window.opening.unfinished import continue_window

    form = get_current_context()["params"]
    pipeline = load_ready_pipeline(pipeline_name)
    with connect() as journal:
        opened = continue_window(journal, pipeline, int(form["window"]), int(form["revision"]))
    return log_opened(opened, "; it was left unfinished, what its steps committed is kept")


def log_opened(opened: "OpenedWindow", remark: str) -> dict[str, Any]:
    """Log what was opened; return what the later tasks of the run need."""
    from makewhole.model.incidents.sentences import incident_sentence

    window = opened.window
    logger.info(
        "%s: %s to %s, %d offsets, settled at %s%s",
        window.label,
        window.start or "the beginning",
        window.end,
        sum(part.span for parts in window.ranges.values() for part in parts),
        opened.settled_at,
        remark,
    )
    for incident in opened.incidents:
        logger.warning("%s: %s", window.label, incident_sentence(incident))
    return {
        "pipeline": window.pipeline,
        "window": window.number,
        "revision": window.revision,
        "label": window.label,
        "settled_at": opened.settled_at.isoformat(),
    }


def _window_request(context: Mapping[str, Any]) -> "Request":
    """Return the interval of a scheduled run, or the one in the form. A DAG of people's own has no form: its params are
    theirs, whatever their names.

    A run of a plain cron string is of a moment, and has an interval without length: its window reaches from where the
    last one ended to that moment.
    """
    from makewhole.window.opening.interval import Request

    run = context["dag_run"]
    form = context["params"] if is_our_dag(run.dag_id) else {}
    if not is_by_form(run):
        start, end = run.data_interval_start, run.data_interval_end
        if start == end:
            start = None
    else:
        start, end = parse_moment(form.get("from")), parse_moment(form.get("to")) or datetime.now(UTC)
    return Request(
        id=request_id(run.dag_id, run.run_id),
        start=start,
        end=end,
        plan_only=bool(form.get("plan_only")),
        read_again=bool(form.get("read_again")),
        reason=form.get("reason"),
        asked_by=run.triggering_user_name,
    )


def parse_moment(text: str | None) -> datetime | None:
    """Read a time of the form; without an offset it is UTC.

    Raises:
        RequestRefusedError: it is not a time.
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RequestRefusedError(f"{text!r} is not a time; write it like 2026-01-31T02:00:00+00:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def settle() -> bool:
    """Return whether an absence counts by now; the last minute is spent waiting here."""
    opened = opened_window(get_current_context())
    remaining = (datetime.fromisoformat(opened["settled_at"]) - datetime.now(UTC)).total_seconds()
    if remaining > POLL_SECONDS:
        logger.info("%s: an absence counts from %s on; looking again then", opened["label"], opened["settled_at"])
        return False
    if remaining > 0:
        logger.info("%s: waiting %.0f s until an absence counts", opened["label"], remaining)
        time.sleep(remaining)
    return True
