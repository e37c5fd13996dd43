"""The first step: which window an interval is, and which offsets belong to it, frozen once.

Windows tile. A new one starts where the last one ended, whatever interval was asked for; an interval that is covered
already gets a new revision of the window that covers it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from makewhole.journal import plans, windows
from makewhole.journal.database import Journal
from makewhole.journal.windows import Bounds, Observation
from makewhole.kafka import offsets
from makewhole.kafka.moments import first_records_at
from makewhole.model.connection import Connection, KafkaConnection, PostgresConnection
from makewhole.model.errors import RefusedError, TransientError
from makewhole.model.pipeline import Pipeline, PointKind, TablePoint, TopicPoint
from makewhole.model.plan import PlanState
from makewhole.model.window import PartitionRange, Window, WindowState
from makewhole.postgres.visibility import current_snapshot

_NOT_YET = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for. `id`: the same for all tries of a DAG run. `start` None: from where the last window ended."""

    id: str
    end: datetime
    start: datetime | None = None
    plan_only: bool = False
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The window, and from when on an absence in it counts."""

    window: Window
    settled_at: datetime
    is_new: bool


def open_window(
    journal: Journal, pipeline: Pipeline, connections: Mapping[str, Connection], request: Request
) -> Opened:
    """Open the window of an interval, or a new revision of the one that covers it. Asked again: the same answer.

    Raises:
        RefusedError: the interval lies in the future, cuts through windows, or the topic was made again.
        TransientError: a server does not answer.
    """
    windows.lock_pipeline(journal, pipeline.name)
    known = windows.by_request(journal, pipeline.name, request.id)
    if known is not None:
        window = windows.load(journal, pipeline.name, *known)
        return Opened(window=window, settled_at=settled_at(journal, pipeline, window), is_new=window.revision == 1)
    _require_past(request)
    now = _observe(journal, pipeline, connections)
    there = windows.bounds(journal, pipeline.name)
    place = find_place(there, request)
    if place is None:
        _require_compared(journal, pipeline, there)
        window = _new_window(journal, pipeline, connections, request, now)
    else:
        _supersede(journal, pipeline, place)
        window = Window(
            pipeline=pipeline.name,
            number=place.number,
            revision=place.revision + 1,
            start=place.start,
            end=place.end,
            opened_at=now,
            ranges=windows.ranges(journal, pipeline.name, place.number),
        )
    windows.insert(
        journal,
        window,
        request=request.id,
        plan_only=request.plan_only,
        configuration={
            "sha256": hashlib.sha256(repr(pipeline).encode()).hexdigest(),
            "settle_seconds": pipeline.settle.total_seconds(),
            "reason": request.reason,
        },
    )
    return Opened(window=window, settled_at=settled_at(journal, pipeline, window), is_new=place is None)


def _require_past(request: Request) -> None:
    now = datetime.now(UTC)
    if request.end > now:
        raise RefusedError(
            f"the interval ends at {request.end.isoformat()}, which is in the future; a window can only be judged "
            "after its end. Choose an end before now"
        )
    if request.start is not None and request.start >= request.end:
        raise RefusedError(
            f"the interval starts at {request.start.isoformat()} and ends at {request.end.isoformat()}; "
            "the end must be later than the start"
        )


def find_place(there: Sequence[Bounds], request: Request) -> Bounds | None:
    """The window that covers the asked interval; None when it reaches beyond the last one, so that a new one is due.

    Raises:
        RefusedError: the interval covers several windows, or pieces of some.
    """
    if not there or request.end > there[-1].end:
        return None
    for window in there:
        ends_inside = request.end <= window.end and (window.start is None or request.end > window.start)
        starts_inside = request.start is None or window.start is None or request.start >= window.start
        if ends_inside and starts_inside:
            return window
    listed = "; ".join(f"{item.number}: {_label(item)}" for item in there[-10:])
    raise RefusedError(
        f"the interval {_text(request.start)} to {_text(request.end)} lies across windows that exist already; ask for "
        f"one of them ({listed}), or for an end after {_text(there[-1].end)}"
    )


def _require_compared(journal: Journal, pipeline: Pipeline, there: Sequence[Bounds]) -> None:
    """Windows are judged in order: a duplicate is found against the keys of all windows before."""
    if not there or windows.is_reconciled(journal, pipeline.name, there[-1].number):
        return
    last = there[-1]
    if windows.load(journal, pipeline.name, last.number, last.revision).state is WindowState.OPEN:
        raise TransientError(
            f"window {last.number} ({_label(last)}) of {pipeline.name} is being compared; this one waits"
        )
    raise RefusedError(
        f"window {last.number} ({_label(last)}) of {pipeline.name} was never compared, and duplicates are found "
        f"against all windows before. Run it again first: `makewhole run {pipeline.name} --to {_text(last.end)}`"
    )


def _supersede(journal: Journal, pipeline: Pipeline, place: Bounds) -> None:
    """A plan of an earlier revision that waits or runs must not write beside the one that comes."""
    for plan in windows.live_plans(journal, pipeline.name, place.number):
        plans.set_state(journal, plan, PlanState.REJECTED, f"superseded by revision {place.revision + 1}")


def _label(window: Bounds) -> str:
    return f"{_text(window.start)} to {_text(window.end)}"


def _text(moment: datetime | None) -> str:
    return "the beginning" if moment is None else moment.isoformat()


def _observe(journal: Journal, pipeline: Pipeline, connections: Mapping[str, Connection]) -> datetime:
    """Remember what exists at every point that can be a source; returns the moment when all of it did (S1)."""
    seen: list[Observation] = []
    for point in pipeline.points.values():
        connection = connections[point.connection]
        if isinstance(point, TopicPoint):
            assert isinstance(connection, KafkaConnection)
            state = offsets.describe_topic(connection, point.topic)
            stable = offsets.stable_offsets(connection, point.topic)
            seen.append(
                Observation(point=point.name, observed_at=_NOT_YET, topic_id=state.topic_id, stable_offsets=stable)
            )
        elif point.kind is PointKind.LEDGER:
            assert isinstance(connection, PostgresConnection)
            visible = current_snapshot(connection)
            seen.append(Observation(point=point.name, observed_at=_NOT_YET, pg_snapshot=visible))
    # Only now: everything seen was there by this moment, whatever came in between.
    now = datetime.now(UTC)
    for observation in seen:
        windows.observe(journal, pipeline.name, replace(observation, observed_at=now))
    return now


def _new_window(
    journal: Journal,
    pipeline: Pipeline,
    connections: Mapping[str, Connection],
    request: Request,
    now: datetime,
) -> Window:
    there = windows.bounds(journal, pipeline.name)
    start = there[-1].end if there else _baseline(pipeline, request)
    return Window(
        pipeline=pipeline.name,
        number=len(there) + 1,
        revision=1,
        start=start,
        end=request.end,
        opened_at=now,
        ranges={
            point.name: _ranges(journal, pipeline, point, connections[point.connection], start, request.end)
            for point in pipeline.points.values()
            if isinstance(point, TopicPoint)
        },
    )


def _baseline(pipeline: Pipeline, request: Request) -> datetime | None:
    """Where the first window starts: None is the beginning of everything."""
    if isinstance(pipeline.start, datetime):
        return pipeline.start
    return None if pipeline.start == "earliest" else (request.start or datetime.now(UTC))


def _ranges(
    journal: Journal,
    pipeline: Pipeline,
    point: TopicPoint,
    connection: Connection,
    start: datetime | None,
    end: datetime,
) -> tuple[PartitionRange, ...]:
    assert isinstance(connection, KafkaConnection)
    state = offsets.describe_topic(connection, point.topic)
    stable = offsets.stable_offsets(connection, point.topic)
    ends = first_records_at(connection, point.topic, end)
    begins = _begins(journal, pipeline, point, connection, state.topic_id, start, stable)
    ranges = []
    for partition in sorted(stable):
        at_end = ends.get(partition)
        hi = stable[partition] if at_end is None else min(at_end, stable[partition])
        lo = begins.get(partition, 0)
        ranges.append(
            PartitionRange(topic=point.topic, topic_id=state.topic_id, partition=partition, lo=lo, hi=max(lo, hi))
        )
    return tuple(ranges)


def _begins(
    journal: Journal,
    pipeline: Pipeline,
    point: TopicPoint,
    connection: KafkaConnection,
    topic_id: str,
    start: datetime | None,
    stable: Mapping[int, int],
) -> Mapping[int, int]:
    """Where each partition's range starts; a partition that was added since starts at 0."""
    before = windows.history(journal, pipeline.name, point.name)
    known = {parts[-1].topic_id for parts in before.values()}
    if known and topic_id not in known:
        raise RefusedError(
            f"topic {point.topic} was deleted and made again: its id is {topic_id}, the windows so far belong to "
            f"{', '.join(known)}. Its offsets mean other records now; give the pipeline a new name to start anew"
        )
    if before:
        return {partition: parts[-1].hi for partition, parts in before.items()}
    if start is None:
        return offsets.log_starts(connection, point.topic)
    found = first_records_at(connection, point.topic, start)
    return {partition: stable[partition] if at is None else at for partition, at in found.items()}


def settled_at(journal: Journal, pipeline: Pipeline, window: Window) -> datetime:
    """From when on an absence counts: everything in the window had been seen to exist for the settle time by then, and
    so had everything that compensation wrote for it."""
    moments = []
    for point in pipeline.points.values():
        if point.kind is PointKind.STORE:
            continue
        seen = windows.observations(journal, pipeline.name, point.name)
        covering = [entry.observed_at for entry in seen if _covers(entry, window, point)]
        moments.append(min(covering, default=window.opened_at))
    written = windows.last_chunk(journal, pipeline.name, window.number)
    moments += [] if written is None else [written]
    return max(moments, default=window.opened_at) + pipeline.settle


def _covers(entry: Observation, window: Window, point: TablePoint | TopicPoint) -> bool:
    """Whether everything of the window had been there when this was observed."""
    if isinstance(point, TablePoint):
        return entry.observed_at >= window.end
    stable = entry.stable_offsets or {}
    return all(
        part.topic_id == entry.topic_id and stable.get(part.partition, 0) >= part.hi
        for part in window.ranges[point.name]
    )
