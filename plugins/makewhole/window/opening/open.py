"""Open a window for an interval: find or make it, and freeze its offset ranges once.

Windows tile. A new one starts where the last one ended, whatever interval was requested; an interval that is covered
already gets a new revision of the window that covers it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from makewhole.compute.indexed_keys.hop_filters import KnownFilters, changed_filters, still_readable
from makewhole.compute.same_key import KeyFields, as_document, key_fields
from makewhole.journal import incidents, plans, windows
from makewhole.journal.results import handover_keys, snapshot_manifests
from makewhole.journal.windows import WindowBounds
from makewhole.kafka.offsets import TopicLog
from makewhole.model.connection import Connection
from makewhole.model.errors import RefusedError, RequestRefusedError, TransientError
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import compared_by_hop, compared_everywhere
from makewhole.model.points import TopicPoint, has_log
from makewhole.model.window import Window, WindowState
from makewhole.signing.keys import sha256_of
from makewhole.sql import PgConnection
from makewhole.window.configuration import configuration_document, judging_sha256
from makewhole.window.incidents import filter_incidents, transactions_at_window_end
from makewhole.window.opening.as_read_now import places_of, with_types
from makewhole.window.opening.coordinates import require_lasting_coordinates
from makewhole.window.opening.freeze_ranges import CoveredRanges, Interval, Ranges, freeze_ranges
from makewhole.window.opening.interval import Request, find_covering_window, interval_text, moment_text, require_past
from makewhole.window.opening.observe import (
    ObservedTopic,
    observe,
    read_topic_state,
    require_same_leaders,
    settled_at,
    topic_logs,
)
from makewhole.window.opening.readable import readable_tables
from makewhole.window.opening.same_points import require_known_keys, require_known_names
from makewhole.window.opening.same_tables import require_same_tables

__all__ = ["OpenedWindow", "Request", "open_interval"]

_RANGE_SHAPING_KINDS = (
    IncidentKind.TRUNCATED,
    IncidentKind.TOPIC_RECREATED,
    IncidentKind.PARTITIONS_ADDED,
    IncidentKind.BEGINNING_GONE,
)


@dataclass(frozen=True, kw_only=True)
class OpenedWindow:
    """An open window, the incidents of its topics, and the moment from which on an absence in it counts."""

    window: Window
    settled_at: datetime
    is_new: bool
    incidents: Sequence[Incident] = ()


@dataclass(frozen=True, kw_only=True)
class _ObservedTopics:
    """The topics of a pipeline by point: connections to their logs, and their states when they were first read (S1)."""

    logs: Mapping[str, TopicLog]
    states: Mapping[str, ObservedTopic]
    observed_at: datetime


@dataclass(frozen=True, kw_only=True)
class _NewRevision:
    """A revision of a window that is not in the journal yet."""

    window: Window
    incidents: list[Incident] = field(default_factory=list)


def open_interval(
    journal: PgConnection, pipeline: Pipeline, connections: Mapping[str, Connection], request: Request
) -> OpenedWindow:
    """Open the window of an interval, or a new revision of the one that covers it; the same one for the same request.

    Raises:
        RefusedError: the interval lies in the future, or cuts through windows, or keys would be written in another way
            than in the windows before.
        ConfigurationError: a table or a column does not exist or cannot be what the file says, or nothing says what a
            column of rows holds that would be written; all of them at once.
        TransientError: a server does not answer, or a leader changed meanwhile.
    """
    windows.lock_pipeline(journal, pipeline.name)
    known = windows.by_request(journal, pipeline.name, request.id)
    if known is not None:
        window = windows.load(journal, pipeline.name, *known)
        require_offsets(pipeline, window)
        return _opened(journal, pipeline, window, is_new=window.revision == 1)
    require_past(request)
    existing = windows.bounds_near(journal, pipeline.name, request.end)
    covering = find_covering_window(existing, request)
    if covering is None:
        _require_compared(journal, pipeline, existing)
        _require_hops_of_waiting(journal, pipeline)
    else:
        _supersede_plans(journal, pipeline, covering)
    require_same_tables(journal, pipeline, connections)
    tables = readable_tables(pipeline, connections)
    require_known_keys(journal, pipeline, tables.columns, tables.layout)
    with topic_logs(pipeline.ordered_points(), connections) as logs:
        states = {name: read_topic_state(log) for name, log in logs.items()}
        places = places_of(tables, {name: topic.state.topic_id for name, topic in states.items()})
        require_known_names(journal, pipeline, places)
        observed_at = observe(journal, pipeline, connections, states, places)
        topics = _ObservedTopics(logs=logs, states=states, observed_at=observed_at)
        draft = (
            _draft_window(journal, pipeline, existing, request, topics)
            if covering is None
            else _draft_revision(journal, pipeline, covering, topics)
        )
        require_lasting_coordinates(pipeline, connections, draft.incidents)
        draft.incidents.extend(_transaction_incidents(pipeline, draft.window, topics))
        for name, log in logs.items():
            require_same_leaders(log, states[name])
    before = _filters_before(journal, pipeline, None if covering is None else covering.number)
    former = still_readable(pipeline, before, changed_filters(pipeline, before))
    read_as = replace(draft.window, places=places, former_filters=former)
    frozen = with_types(pipeline, connections, read_as, tables)
    draft = replace(draft, window=frozen, incidents=[*draft.incidents, *filter_incidents(pipeline, before)])
    _insert_revision(journal, pipeline, request, draft, key_fields(pipeline, tables.columns.ids))
    return _opened(journal, pipeline, draft.window, is_new=covering is None)


def _opened(journal: PgConnection, pipeline: Pipeline, window: Window, *, is_new: bool) -> OpenedWindow:
    return OpenedWindow(
        window=window,
        settled_at=settled_at(journal, pipeline, window),
        is_new=is_new,
        incidents=incidents.of(journal, window),
    )


def require_offsets(pipeline: Pipeline, window: Window) -> None:
    """Refuse a window that was opened before a topic of the pipeline was in its file: it has no offsets of it.

    Raises:
        RefusedError: it cannot be judged with that topic.
    """
    unknown = [point.name for point in pipeline.ordered_points() if has_log(point) and point.name not in window.ranges]
    if unknown:
        bounds = WindowBounds(number=window.number, revision=window.revision, start=window.start, end=window.end)
        raise RefusedError(
            f"window {window.number} ({interval_text(bounds)}) of {pipeline.name} has no offsets of "
            f"{', '.join(unknown)}: it was opened before its file named that topic, and cannot be judged with it. Ask "
            "for a window that was opened since; to judge this one, take the topic out of the file until it is done"
        )


def _require_compared(journal: PgConnection, pipeline: Pipeline, existing: Sequence[WindowBounds]) -> None:
    """Refuse a new window before the last one was compared: duplicates are found against all windows before.

    Raises:
        RefusedError: the last window was never compared.
        TransientError: it is being compared.
    """
    if not existing or windows.is_reconciled(journal, pipeline.name, existing[-1].number):
        return
    last = existing[-1]
    if windows.load(journal, pipeline.name, last.number, last.revision).state is WindowState.OPEN:
        raise TransientError(
            f"window {last.number} ({interval_text(last)}) of {pipeline.name} is being compared; this one waits"
        )
    raise RefusedError(
        f"window {last.number} ({interval_text(last)}) of {pipeline.name} was never compared, and duplicates are found "
        f"against all windows before. Run it again first: `makewhole run {pipeline.name} --to {moment_text(last.end)}`"
    )


def _require_hops_of_waiting(journal: PgConnection, pipeline: Pipeline) -> None:
    """Refuse a new window while the last one has left keys to it on a hop that the file does not have any more.

    Raises:
        RefusedError: these keys would not be judged.
    """
    if (window := windows.last_judged(journal, pipeline.name)) is not None:
        left = handover_keys.handovers(journal, pipeline.name, window.number)
        hops = Counter(row.hop for piece in left for row in piece)
        gone = sorted({*hops} - {hop.name for hop in pipeline.hops})
        if gone:
            listed = ", ".join(f"{hops[hop]:,} on {hop}" for hop in gone)
            raise RefusedError(
                f"{pipeline.name}: window {window.number} left keys in flight to this one ({listed}), and the file has "
                "no such hop any more: they would not be judged. Write the points of these hops under their names "
                "again until a window without such keys is certified; or give the pipeline another name: it begins a "
                "history of its own, from `start:` on"
            )


def _filters_before(journal: PgConnection, pipeline: Pipeline, covering: int | None) -> KnownFilters:
    """Return the filters of the newest window that was compared, or of the one that is opened again (`covering`)."""
    window = windows.last_judged(journal, pipeline.name, covering)
    return KnownFilters.from_document({} if window is None else windows.configuration(journal, window))


def _supersede_plans(journal: PgConnection, pipeline: Pipeline, covering: WindowBounds) -> None:
    """End the plans of earlier revisions that wait or run: they must not write beside the plan of the new revision."""
    for plan in windows.live_plans(journal, pipeline.name, covering.number):
        plans.supersede(journal, plan, covering.revision + 1)


def _draft_window(
    journal: PgConnection,
    pipeline: Pipeline,
    existing: Sequence[WindowBounds],
    request: Request,
    topics: _ObservedTopics,
) -> _NewRevision:
    start = existing[-1].end if existing else _first_start(pipeline, request)
    interval = Interval(start=start, end=request.end, now=topics.observed_at)
    ranges: dict[str, Ranges] = {}
    changes: list[Incident] = []
    for point in pipeline.ordered_points():
        if has_log(point):
            covered = _covered_ranges(journal, pipeline, point, existing)
            frozen, incidents_of_topic = freeze_ranges(
                point, topics.logs[point.name], topics.states[point.name], covered, interval
            )
            ranges[point.name] = frozen
            changes += incidents_of_topic
    window = Window(
        pipeline=pipeline.name,
        number=existing[-1].number + 1 if existing else 1,
        revision=1,
        start=start,
        end=request.end,
        opened_at=topics.observed_at,
        ranges=ranges,
    )
    return _NewRevision(window=window, incidents=changes)


def _first_start(pipeline: Pipeline, request: Request) -> datetime | None:
    """Return where the first window starts; None: at the beginning of the logs.

    Raises:
        RequestRefusedError: the interval is over before the pipeline starts, or nothing says where `latest` begins.
    """
    if pipeline.start == "latest":
        if request.start is None:
            raise RequestRefusedError(
                f"{pipeline.name} has `start: latest`, and no window yet: nothing says where the first one begins. "
                f"Say it: `makewhole run {pipeline.name} --from TIME`, or write `start: TIME` into the pipeline's file"
            )
        return request.start
    if isinstance(pipeline.start, datetime) and pipeline.start >= request.end:
        raise RequestRefusedError(
            f"{pipeline.name} starts at {pipeline.start.isoformat()} (`start:` in its file), and the interval is over "
            f"by then: it ends at {request.end.isoformat()}. Choose a later end, or an earlier `start:`"
        )
    return pipeline.start if isinstance(pipeline.start, datetime) else None


def _covered_ranges(
    journal: PgConnection, pipeline: Pipeline, point: TopicPoint, existing: Sequence[WindowBounds]
) -> CoveredRanges:
    ranges = windows.covered_ranges(journal, pipeline.name, point.name)
    last = windows.last_judged(journal, pipeline.name) if existing else None
    manifest = {} if last is None else snapshot_manifests.snapshots(journal, last).get(point.name, {})
    read_until = {int(partition): offset for partition, offset in manifest.get("read_until", {}).items()}
    return CoveredRanges(ranges=ranges, read_until=read_until)


def _draft_revision(
    journal: PgConnection, pipeline: Pipeline, covering: WindowBounds, topics: _ObservedTopics
) -> _NewRevision:
    """Draft a revision with the ranges of the first one, and the incidents that shaped them."""
    first = windows.load(journal, pipeline.name, covering.number, 1)
    require_offsets(pipeline, first)
    window = Window(
        pipeline=pipeline.name,
        number=covering.number,
        revision=covering.revision + 1,
        start=covering.start,
        end=covering.end,
        opened_at=topics.observed_at,
        ranges=first.ranges,
    )
    shaping = [
        incident
        for incident in incidents.of(journal, first)
        if incident.kind in _RANGE_SHAPING_KINDS and not incident.detail.get("before_it_was_read")
    ]
    return _NewRevision(window=window, incidents=shaping)


def _transaction_incidents(pipeline: Pipeline, window: Window, topics: _ObservedTopics) -> list[Incident]:
    return [
        incident
        for name, parts in window.ranges.items()
        if has_log(point := pipeline.points.get(name))
        for incident in transactions_at_window_end(point, topics.logs[name], topics.states[name], parts)
    ]


def _insert_revision(
    journal: PgConnection, pipeline: Pipeline, request: Request, draft: _NewRevision, fields: KeyFields
) -> None:
    published = {copy.point: asdict(copy) for copy in pipeline.publish}
    windows.insert(
        journal,
        draft.window,
        request=request.id,
        plan_only=request.plan_only,
        read_again=request.read_again,
        configuration={
            "sha256": sha256_of(configuration_document(pipeline)),
            "judging_sha256": judging_sha256(pipeline),
            "key_layout": {point: [kind.value for kind in kinds] for point, kinds in draft.window.key_layout.items()},
            "value_types": asdict(draft.window.value_types),
            "key_fields": as_document(fields),
            "places": draft.window.places,
            **KnownFilters.of(pipeline).document,
            "former_filters": draft.window.former_filters,
            "compare": compared_everywhere(pipeline),
            **({"compare_of_hops": of_hops} if (of_hops := compared_by_hop(pipeline)) else {}),
            **({"columns": pipeline.column_places} if pipeline.column_places else {}),
            **({"publish": published} if published else {}),
            "settle_seconds": pipeline.settle.total_seconds(),
            "reason": request.reason,
            "asked_by": request.asked_by,
        },
    )
    incidents.put(journal, draft.window, draft.incidents)
