"""Find the window of a schedule that should have been certified by now and is not."""

from datetime import UTC, datetime

from makewhole.config.schedules import last_end
from makewhole.journal import waiting
from makewhole.model.people.notices import Waits
from makewhole.model.pipeline import Pipeline
from makewhole.orchestration.notices.waiting_items import TodoItem
from makewhole.sql import PgConnection


def late_item(journal: PgConnection, pipeline: Pipeline, now: datetime) -> TodoItem | None:
    """Return what is late by the pipeline's `certify_by`: windows up to an end that its schedule has had, and that are
    not certified. None: nothing is, or nothing was promised, or the pipeline has had no window yet."""
    notify = pipeline.notify
    if notify is None or notify.certify_by is None or pipeline.schedule is None:
        return None
    reach = waiting.certified(journal, pipeline.name)
    due = last_end(pipeline.schedule, now - notify.certify_by)
    if not reach.windows or (reach.certified_until is not None and reach.certified_until >= due):
        return None
    if reach.certified_until is None and reach.first_open_end is not None and reach.first_open_end > due:
        return None
    if pipeline.until is not None and due > pipeline.until:
        return None
    known = reach.certified_until
    until = "not certified from its beginning on" if known is None else f"certified up to {_moment(known)}"
    return TodoItem(
        kind=Waits.LATE,
        pipeline=pipeline.name,
        subject="late",
        window=None,
        what=f"is late: {until}, and was to be up to {_moment(due)} by {_moment(due + notify.certify_by)}",
        command=f"makewhole windows {pipeline.name}",
        since=due + notify.certify_by,
    )


def _moment(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
