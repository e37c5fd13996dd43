"""Read and write windows and their ranges; PostgreSQL itself refuses ranges that overlap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg2
from psycopg2.extras import Json

from makewhole.journal.statements import scope, statements_of
from makewhole.model.errors import RefusedError
from makewhole.model.points import KeyType
from makewhole.model.value_types import ValueTypes
from makewhole.model.verdict import GAPS, Verdict
from makewhole.model.window import PartitionRange, Window, WindowState
from makewhole.sql import PgConnection, load_queries

_run = statements_of("window")

_LAST_WINDOWS = 20


@dataclass(frozen=True, kw_only=True)
class WindowBounds:
    """A window without its ranges, for finding the place of an interval. `revision` is the newest."""

    number: int
    revision: int
    start: datetime | None
    end: datetime


@dataclass(frozen=True, kw_only=True)
class OlderOpen:
    """The windows before one that no standing certificate closes, and the findings that they leave open.

    `since` is the start of the oldest, which is `first_window`; None without one, or from the beginning of time.
    """

    windows: int = 0
    findings: int = 0
    first_window: int | None = None
    since: datetime | None = None


def lock_pipeline(journal: PgConnection, pipeline: str) -> None:
    """Wait until no other transaction opens a window of this pipeline; held until the transaction ends."""
    _run(journal, "lock_pipeline", pipeline=pipeline)


def by_request(journal: PgConnection, pipeline: str, request: str) -> tuple[int, int] | None:
    """Return (number, revision) that this request opened, if it did."""
    rows = _run(journal, "by_request", pipeline=pipeline, request=request)
    return rows[0] if rows else None


def bounds_near(journal: PgConnection, pipeline: str, end: datetime) -> list[WindowBounds]:
    """Return the bounds of the last windows of the pipeline, and of the one that ends at a moment or next after it,
    oldest first."""
    values = {"pipeline": pipeline, "end": end, "most": _LAST_WINDOWS}
    with journal.cursor() as cursor:
        cursor.execute(load_queries("window_history")["bounds_near"], values)
        return [
            WindowBounds(number=number, revision=revision, start=start, end=end)
            for number, revision, start, end in cursor.fetchall()
        ]


def insert(
    journal: PgConnection, window: Window, *, request: str, plan_only: bool, configuration: Mapping[str, Any]
) -> None:
    """Write a revision; the ranges only with the first one, since they never change afterwards.

    Raises:
        RefusedError: a range overlaps one of another window.
    """
    _run(
        journal,
        "insert_window",
        **scope(window),
        start=window.start,
        end=window.end,
        opened_at=window.opened_at,
        request=request,
        plan_only=plan_only,
        configuration=Json(configuration),
    )
    if window.revision > 1:
        return
    for point, ranges in window.ranges.items():
        for part in ranges:
            lane = _run(
                journal,
                "lane",
                pipeline=window.pipeline,
                point=point,
                topic=part.topic,
                topic_id=part.topic_id,
                partition=part.partition,
                lineage=part.lineage,
            )[0][0]
            _insert_range(journal, window, lane, part)


def _insert_range(journal: PgConnection, window: Window, lane: int, part: PartitionRange) -> None:
    try:
        _run(
            journal,
            "insert_range",
            pipeline=window.pipeline,
            number=window.number,
            lane=lane,
            lo=part.lo,
            hi=part.hi,
            leader_epochs=Json(part.leader_epochs),
        )
    except psycopg2.errors.ExclusionViolation as error:
        raise RefusedError(
            f"{window.label}: offsets [{part.lo}, {part.hi}) of {part.topic}/{part.partition} belong to another window "
            "already; windows never overlap. Look at `makewhole windows` and choose an interval after the last one"
        ) from error


def ranges(journal: PgConnection, pipeline: str, number: int) -> dict[str, tuple[PartitionRange, ...]]:
    """Return the ranges of a window per topic point, partitions in order."""
    found: dict[str, list[PartitionRange]] = {}
    for point, *values in _run(journal, "ranges", pipeline=pipeline, number=number):
        found.setdefault(point, []).append(range_of(values))
    return {point: tuple(parts) for point, parts in found.items()}


def covered_ranges(journal: PgConnection, pipeline: str, point: str) -> dict[int, list[PartitionRange]]:
    """Return the first range and the last one of the topic's newest incarnation by partition: the next one follows the
    last. One where they are the same.

    The last one has the leader epochs of the log up to its end, as all ranges give them; the first one has none. Empty
    when no window has a range of the point.
    """
    with journal.cursor() as cursor:
        cursor.execute(load_queries("window_history")["covered_ranges"], {"pipeline": pipeline, "point": point})
        rows = cursor.fetchall()
    numbered: dict[int, dict[int, PartitionRange]] = {}
    for *values, number in rows:  # the first ranges, then the last ones
        part = range_of(values)
        numbered.setdefault(part.partition, {})[number] = part
    return {partition: list(parts.values()) for partition, parts in sorted(numbered.items())}


def range_of(values: Sequence[Any]) -> PartitionRange:
    """Return a range from its columns in the journal."""
    topic, topic_id, partition, lineage, lo, hi, leader_epochs = values
    return PartitionRange(
        topic=topic,
        topic_id=topic_id,
        partition=partition,
        lo=lo,
        hi=hi,
        lineage=lineage,
        leader_epochs=tuple((epoch, end) for epoch, end in leader_epochs),
    )


def load(journal: PgConnection, pipeline: str, number: int, revision: int) -> Window:
    """Return one revision with its ranges.

    Raises:
        RefusedError: there is none.
    """
    rows = _run(journal, "get", pipeline=pipeline, number=number, revision=revision)
    if not rows:
        raise RefusedError(f"pipeline {pipeline} has no window {number} revision {revision}; see `makewhole windows`")
    return window_of(pipeline, rows[0], ranges(journal, pipeline, number))


def is_plan_only(journal: PgConnection, window: Window) -> bool:
    """Return whether this revision was asked to stop after the plan."""
    rows = _run(journal, "get", **scope(window))
    return bool(rows[0][7])


def configuration(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return what was recorded of the configuration when this revision was opened."""
    return dict(_run(journal, "configuration", **scope(window))[0][0])


def compared_otherwise(
    journal: PgConnection, window: Window, compare: Mapping[str, str]
) -> tuple[datetime, dict[str, str]] | None:
    """Return until when windows before one were compared by other columns (name → type) than these, and by which; None:
    they never were, as far as it was noted."""
    rows = _run(
        journal,
        "compared_otherwise",
        pipeline=window.pipeline,
        number=window.number,
        compare=Json(dict(compare)),
    )
    return (rows[0][0], dict(rows[0][1])) if rows else None


def newest(journal: PgConnection, pipeline: str, most: int | None = None, number: int | None = None) -> list[Window]:
    """Return the newest revisions of the newest windows (None: of all), or of window `number`, newest window first."""
    rows = _run(journal, "newest", pipeline=pipeline, most=most, number=number)
    return _windows(journal, pipeline, rows)


def count(journal: PgConnection, pipeline: str) -> int:
    """Return how many windows a pipeline has."""
    return int(_run(journal, "count_numbers", pipeline=pipeline)[0][0])


def newest_judged(journal: PgConnection, pipeline: str) -> list[Window]:
    """Return the newest compared revision of every window, newest window first: what later windows build on."""
    return _windows(journal, pipeline, _run(journal, "newest_judged", pipeline=pipeline))


def last_judged(journal: PgConnection, pipeline: str, number: int | None = None) -> Window | None:
    """Return the newest compared revision of the newest window, or of window `number`; None without one."""
    rows = _run(journal, "last_judged", pipeline=pipeline, number=number)
    return window_of(pipeline, rows[0], ranges(journal, pipeline, rows[0][0])) if rows else None


def _windows(journal: PgConnection, pipeline: str, rows: Sequence[Sequence[Any]]) -> list[Window]:
    """Return windows with their ranges, which are read for all of them at once."""
    found: dict[int, dict[str, tuple[PartitionRange, ...]]] = {}
    numbers = [row[0] for row in rows]
    for number, point, *values in _run(journal, "ranges_of_all", pipeline=pipeline, numbers=numbers) if rows else ():
        of_window = found.setdefault(number, {})
        of_window[point] = (*of_window.get(point, ()), range_of(values))
    return [window_of(pipeline, row, found.get(row[0], {})) for row in rows]


def window_of(pipeline: str, row: Sequence[Any], ranges: Mapping[str, tuple[PartitionRange, ...]]) -> Window:
    """Return a window from its columns in the journal, and its ranges by point."""
    number, revision, start, end, opened_at, state, reason, _, layout, types, places, former = row
    return Window(
        pipeline=pipeline,
        number=number,
        revision=revision,
        start=start,
        end=end,
        opened_at=opened_at,
        ranges=ranges,
        state=WindowState(state),
        reason=reason,
        key_layout=_key_layout(layout),
        value_types=ValueTypes(**(types or {})),
        places=places or {},
        former_filters=former or {},
    )


def _key_layout(stored: Mapping[str, Sequence[str]] | None) -> dict[str, tuple[KeyType, ...]]:
    """Return a key layout as it is stored."""
    return {point: tuple(KeyType(kind) for kind in kinds) for point, kinds in (stored or {}).items()}


def last_types(journal: PgConnection, pipeline: str) -> tuple[dict[str, tuple[KeyType, ...]], ValueTypes]:
    """Return the key layout and the types of columns of the pipeline's newest window; none without a window."""
    rows = _run(journal, "last_types", pipeline=pipeline)
    layout, types = rows[0] if rows else (None, None)
    return _key_layout(layout), ValueTypes(**(types or {}))


def close(journal: PgConnection, window: Window, state: WindowState, reason: str | None) -> None:
    """Close a revision with its state, and the reason when it is not certified."""
    _run(
        journal,
        "close",
        pipeline=window.pipeline,
        number=window.number,
        revision=window.revision,
        state=state.value,
        reason=reason,
    )


def is_reconciled(journal: PgConnection, pipeline: str, number: int) -> bool:
    """Return whether any revision of this window was compared."""
    return bool(_run(journal, "is_reconciled", pipeline=pipeline, number=number)[0][0])


def older_open(journal: PgConnection, pipeline: str, number: int) -> OlderOpen:
    """Return what the windows before window `number` leave open: keys with a gap, and undecidable ones."""
    verdicts = [verdict.value for verdict in (*GAPS, Verdict.UNDECIDABLE)]
    rows = _run(journal, "older_open", pipeline=pipeline, number=number, verdicts=verdicts)
    found, findings, first_window, since = rows[0]
    return OlderOpen(windows=found, findings=findings, first_window=first_window, since=since)


def last_chunk(journal: PgConnection, pipeline: str, number: int) -> datetime | None:
    """Return when compensation last wrote for this window; None when it never did."""
    moment: datetime | None = _run(journal, "last_chunk", pipeline=pipeline, number=number)[0][0]
    return moment


def live_plans(journal: PgConnection, pipeline: str, number: int) -> list[str]:
    """Return the ids of this window's plans that could still write."""
    return [plan for (plan,) in _run(journal, "live_plans", pipeline=pipeline, number=number)]


def pipelines(journal: PgConnection) -> list[str]:
    """Return the names of all pipelines that ever opened a window."""
    return [name for (name,) in _run(journal, "pipelines")]
