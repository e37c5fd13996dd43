"""The first step: which window an interval is, and which offsets belong to it, frozen once.

Windows tile. A new one starts where the last one ended, whatever interval was asked for; an interval that is covered
already gets a new revision of the window that covers it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from makewhole.journal import evidence, incidents, plans, windows
from makewhole.journal.windows import WindowBounds
from makewhole.kafka.offsets import TopicLog
from makewhole.model.connection import Connection
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline, TopicPoint
from makewhole.model.window import Window, WindowState
from makewhole.sql import PgConnection
from makewhole.window.incidents import blocking_transactions
from makewhole.window.interval import Request, find_covering_window, interval_text, moment_text, require_past
from makewhole.window.observe import (
    ObservedTopic,
    observe,
    read_topic_state,
    require_same_leaders,
    settled_at,
    topic_logs,
)
from makewhole.window.ranges import CoveredRanges, Interval, Ranges, freeze_ranges

__all__ = ["Opened", "Request", "open_interval"]

_RANGE_SHAPING_KINDS = (IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED, IncidentKind.PARTITIONS_ADDED)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The window, what happened to its topics, and from when on an absence in it counts."""

    window: Window
    settled_at: datetime
    is_new: bool
    incidents: Sequence[Incident] = ()


@dataclass(frozen=True, kw_only=True)
class _ObservedTopics:
    """The topics of a pipeline, open for questions, and as they were when first looked at."""

    logs: Mapping[str, TopicLog]
    now: Mapping[str, ObservedTopic]
    observed_at: datetime


@dataclass(frozen=True, kw_only=True)
class _NewRevision:
    """A revision that is not written yet."""

    window: Window
    incidents: list[Incident] = field(default_factory=list)


def open_interval(
    journal: PgConnection, pipeline: Pipeline, connections: Mapping[str, Connection], request: Request
) -> Opened:
    """Open the window of an interval, or a new revision of the one that covers it. Asked again: the same answer.

    Raises:
        RefusedError: the interval lies in the future, or cuts through windows.
        TransientError: a server does not answer, or a leader changed meanwhile.
    """
    windows.lock_pipeline(journal, pipeline.name)
    known = windows.by_request(journal, pipeline.name, request.id)
    if known is not None:
        window = windows.load(journal, pipeline.name, *known)
        return _opened(journal, pipeline, window, is_new=window.revision == 1)
    require_past(request)
    there = windows.bounds(journal, pipeline.name)
    place = find_covering_window(there, request)
    if place is None:
        _require_compared(journal, pipeline, there)
    else:
        _supersede_plans(journal, pipeline, place)
    with topic_logs(pipeline.ordered_points(), connections) as logs:
        topics = {name: read_topic_state(log) for name, log in logs.items()}
        sight = _ObservedTopics(logs=logs, now=topics, observed_at=observe(journal, pipeline, connections, topics))
        draft = (
            _draft_window(journal, pipeline, there, request, sight)
            if place is None
            else _draft_revision(journal, pipeline, place, sight)
        )
        draft.incidents.extend(_transaction_incidents(pipeline, draft.window, sight))
        for name, log in logs.items():
            require_same_leaders(log, topics[name])
    _insert_revision(journal, pipeline, request, draft)
    return _opened(journal, pipeline, draft.window, is_new=place is None)


def _opened(journal: PgConnection, pipeline: Pipeline, window: Window, *, is_new: bool) -> Opened:
    return Opened(
        window=window,
        settled_at=settled_at(journal, pipeline, window),
        is_new=is_new,
        incidents=incidents.of(journal, window),
    )


def _require_compared(journal: PgConnection, pipeline: Pipeline, there: Sequence[WindowBounds]) -> None:
    """Windows are judged in order: a duplicate is found against the keys of all windows before."""
    if not there or windows.is_reconciled(journal, pipeline.name, there[-1].number):
        return
    last = there[-1]
    if windows.load(journal, pipeline.name, last.number, last.revision).state is WindowState.OPEN:
        raise TransientError(
            f"window {last.number} ({interval_text(last)}) of {pipeline.name} is being compared; this one waits"
        )
    raise RefusedError(
        f"window {last.number} ({interval_text(last)}) of {pipeline.name} was never compared, and duplicates are found "
        f"against all windows before. Run it again first: `makewhole run {pipeline.name} --to {moment_text(last.end)}`"
    )


def _supersede_plans(journal: PgConnection, pipeline: Pipeline, place: WindowBounds) -> None:
    """A plan of an earlier revision that waits or runs must not write beside the one that comes."""
    for plan in windows.live_plans(journal, pipeline.name, place.number):
        plans.supersede(journal, plan, place.revision + 1)


def _draft_window(
    journal: PgConnection, pipeline: Pipeline, there: Sequence[WindowBounds], request: Request, sight: _ObservedTopics
) -> _NewRevision:
    start = there[-1].end if there else _first_start(pipeline, request)
    interval = Interval(start=start, end=request.end, now=sight.observed_at)
    ranges: dict[str, Ranges] = {}
    found: list[Incident] = []
    for point in pipeline.ordered_points():
        if isinstance(point, TopicPoint):
            before = _covered_ranges(journal, pipeline, point, there)
            frozen, happened = freeze_ranges(point, sight.logs[point.name], sight.now[point.name], before, interval)
            ranges[point.name] = frozen
            found += happened
    window = Window(
        pipeline=pipeline.name,
        number=len(there) + 1,
        revision=1,
        start=start,
        end=request.end,
        opened_at=sight.observed_at,
        ranges=ranges,
    )
    return _NewRevision(window=window, incidents=found)


def _first_start(pipeline: Pipeline, request: Request) -> datetime | None:
    """Where the first window starts: None is the beginning of everything."""
    if isinstance(pipeline.start, datetime):
        return pipeline.start
    return None if pipeline.start == "earliest" else (request.start or datetime.now(UTC))


def _covered_ranges(
    journal: PgConnection, pipeline: Pipeline, point: TopicPoint, there: Sequence[WindowBounds]
) -> CoveredRanges:
    ranges = windows.history(journal, pipeline.name, point.name)
    last = next(iter(windows.newest_judged(journal, pipeline.name)[:1]), None) if there else None
    manifest = {} if last is None else evidence.snapshots(journal, last).get(point.name, {})
    read_until = {int(partition): offset for partition, offset in manifest.get("read_until", {}).items()}
    return CoveredRanges(ranges=ranges, read_until=read_until)


def _draft_revision(
    journal: PgConnection, pipeline: Pipeline, place: WindowBounds, sight: _ObservedTopics
) -> _NewRevision:
    """The same ranges again, with what happened when they were frozen."""
    first = windows.load(journal, pipeline.name, place.number, 1)
    window = Window(
        pipeline=pipeline.name,
        number=place.number,
        revision=place.revision + 1,
        start=place.start,
        end=place.end,
        opened_at=sight.observed_at,
        ranges=first.ranges,
    )
    shaping = [
        one
        for one in incidents.of(journal, first)
        if one.kind in _RANGE_SHAPING_KINDS and not one.detail.get("before_it_was_read")
    ]
    return _NewRevision(window=window, incidents=shaping)


def _transaction_incidents(pipeline: Pipeline, window: Window, sight: _ObservedTopics) -> list[Incident]:
    return [
        incident
        for name, parts in window.ranges.items()
        if isinstance(point := pipeline.points.get(name), TopicPoint)
        for incident in blocking_transactions(point, sight.logs[name], sight.now[name], parts)
    ]


def _insert_revision(journal: PgConnection, pipeline: Pipeline, request: Request, draft: _NewRevision) -> None:
    windows.insert(
        journal,
        draft.window,
        request=request.id,
        plan_only=request.plan_only,
        configuration={
            "sha256": hashlib.sha256(repr(pipeline).encode()).hexdigest(),
            "settle_seconds": pipeline.settle.total_seconds(),
            "reason": request.reason,
        },
    )
    incidents.put(journal, draft.window, draft.incidents)
