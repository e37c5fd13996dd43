"""Read and write windows and their ranges; PostgreSQL itself refuses ranges that overlap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg2
from psycopg2.extras import Json

from makewhole.journal.statements import scope
from makewhole.model.errors import RefusedError
from makewhole.model.points import KeyType
from makewhole.model.value_types import ValueTypes
from makewhole.model.verdict import GAPS, Verdict
from makewhole.model.window import PartitionRange, Window, WindowState
from makewhole.sql import PgConnection, record, records, single_value, statements_of

_run, _run_history = statements_of("window"), statements_of("window_history")

OPEN_VERDICTS = [verdict.value for verdict in (*GAPS, Verdict.UNDECIDABLE)]
"""The verdicts of keys that a window leaves open."""

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
    """Wait until no other transaction opens a window of this pipeline; held until the transaction ends, which the
    server sees to after twenty minutes without a statement: a process that stands still holds up no other."""
    _run(journal, "lock_pipeline", pipeline=pipeline)


def by_request(journal: PgConnection, pipeline: str, request: str) -> tuple[int, int] | None:
    """Return (number, revision) that this request opened, if it did."""
    rows = _run(journal, "by_request", pipeline=pipeline, request=request)
    return rows[0] if rows else None


def bounds_near(journal: PgConnection, pipeline: str, end: datetime) -> list[WindowBounds]:
    """Return the bounds of the last windows of the pipeline, and of the one that ends at a moment or next after it,
    oldest first."""
    rows = _run_history(journal, "bounds_near", pipeline=pipeline, end=end, most=_LAST_WINDOWS)
    return records(WindowBounds, rows)


def insert(
    journal: PgConnection,
    window: Window,
    *,
    request: str,
    plan_only: bool,
    configuration: Mapping[str, Any],
    read_again: bool = False,
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
        read_again=read_again,
        configuration=Json(configuration),
    )
    if window.revision > 1:
        return
    for point, ranges in window.ranges.items():
        for part in ranges:
            lanes = _run(
                journal,
                "lane",
                pipeline=window.pipeline,
                point=point,
                topic=part.topic,
                topic_id=part.topic_id,
                partition=part.partition,
                lineage=part.lineage,
            )
            _insert_range(journal, window, single_value(lanes), part)


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
    return _ranges(journal, pipeline, [number]).get(number, {})


def _ranges(
    journal: PgConnection, pipeline: str, numbers: Sequence[int]
) -> dict[int, dict[str, tuple[PartitionRange, ...]]]:
    by_window: dict[int, dict[str, tuple[PartitionRange, ...]]] = {}
    for row in _run(journal, "ranges", pipeline=pipeline, numbers=numbers):
        of_window = by_window.setdefault(row.number, {})
        of_window[row.point] = (*of_window.get(row.point, ()), record(PartitionRange, row))
    return by_window


def covered_ranges(journal: PgConnection, pipeline: str, point: str) -> dict[int, list[PartitionRange]]:
    """Return the first range and the last one of the topic's newest incarnation by partition: the next one follows the
    last. One where they are the same.

    The last one has the leader epochs of the log up to its end, as all ranges give them; the first one has none. Empty
    when no window has a range of the point.
    """
    numbered: dict[int, dict[int, PartitionRange]] = {}
    rows = _run_history(journal, "covered_ranges", pipeline=pipeline, point=point)
    for row in rows:  # the first ranges, then the last ones
        numbered.setdefault(row.partition, {})[row.number] = record(PartitionRange, row)
    return {partition: list(parts.values()) for partition, parts in sorted(numbered.items())}


def load(journal: PgConnection, pipeline: str, number: int, revision: int) -> Window:
    """Return one revision with its ranges.

    Raises:
        RefusedError: there is none.
    """
    rows = _run(journal, "get", pipeline=pipeline, number=number, revision=revision)
    if not rows:
        raise RefusedError(f"pipeline {pipeline} has no window {number} revision {revision}; see `makewhole windows`")
    return windows_of(journal, pipeline, rows)[0]


def is_plan_only(journal: PgConnection, window: Window) -> bool:
    """Return whether this revision was asked to stop after the plan."""
    (row,) = _run(journal, "get", **scope(window))
    return bool(row.plan_only)


def reads_again(journal: PgConnection, window: Window) -> bool:
    """Return whether this revision was asked to read every point again, whatever shows that it is the same."""
    ((read_again,),) = _run(journal, "reads_again", **scope(window))
    return bool(read_again)


def configuration(journal: PgConnection, window: Window) -> dict[str, Any]:
    """Return what was recorded of the configuration when this revision was opened."""
    return dict(single_value(_run(journal, "configuration", **scope(window))))


def compared_otherwise(
    journal: PgConnection, window: Window, hop: str, compare: Mapping[str, str]
) -> tuple[datetime, dict[str, str]] | None:
    """Return until when windows before one were compared by other columns (name → type) than these on a hop, and by
    which; None: they never were, as far as it was noted."""
    rows = _run(
        journal,
        "compared_otherwise",
        pipeline=window.pipeline,
        number=window.number,
        hop=hop,
        compare=Json(dict(compare)),
    )
    return next(((until, dict(columns)) for until, columns in rows), None)


def newest(journal: PgConnection, pipeline: str, most: int | None = None, number: int | None = None) -> list[Window]:
    """Return the newest revisions of the newest windows (None: of all), or of window `number`, newest window first."""
    rows = _run(journal, "newest", pipeline=pipeline, most=most, number=number)
    return windows_of(journal, pipeline, rows)


def count(journal: PgConnection, pipeline: str) -> int:
    """Return how many windows a pipeline has."""
    return int(single_value(_run(journal, "count_numbers", pipeline=pipeline)))


def newest_judged(journal: PgConnection, pipeline: str) -> list[Window]:
    """Return the newest compared revision of every window, newest window first: what later windows build on."""
    return windows_of(journal, pipeline, _run(journal, "newest_judged", pipeline=pipeline))


def last_judged(journal: PgConnection, pipeline: str, number: int | None = None) -> Window | None:
    """Return the newest compared revision of the newest window, or of window `number`; None without one."""
    rows = _run(journal, "last_judged", pipeline=pipeline, number=number)
    return next(iter(windows_of(journal, pipeline, rows)), None)


def windows_of(journal: PgConnection, pipeline: str, rows: Sequence[Any]) -> list[Window]:
    """Return the windows of rows, with their ranges, which are read for all of them at once."""
    by_window = _ranges(journal, pipeline, [row.number for row in rows]) if rows else {}
    return [_window(pipeline, row, by_window.get(row.number, {})) for row in rows]


def _window(pipeline: str, row: Any, ranges: Mapping[str, tuple[PartitionRange, ...]]) -> Window:
    noted = {name: getattr(row, name) or {} for name in ("key_layout", "value_types", "places", "former_filters")}
    return record(Window, row, pipeline=pipeline, ranges=ranges, **noted)


def last_types(journal: PgConnection, pipeline: str) -> tuple[dict[str, tuple[KeyType, ...]], ValueTypes]:
    """Return the key layout and the types of columns of the pipeline's newest window; none without a window."""
    rows = _run(journal, "last_types", pipeline=pipeline)
    layout, types = rows[0] if rows else (None, None)
    layout = {point: tuple(KeyType(kind) for kind in kinds) for point, kinds in (layout or {}).items()}
    return layout, ValueTypes(**(types or {}))


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
    return bool(single_value(_run(journal, "is_reconciled", pipeline=pipeline, number=number)))


def older_open(journal: PgConnection, pipeline: str, number: int) -> OlderOpen:
    """Return what the windows before window `number` leave open: keys with a gap, and undecidable ones."""
    rows = _run(journal, "older_open", pipeline=pipeline, number=number, verdicts=OPEN_VERDICTS)
    (older,) = records(OlderOpen, rows)
    return older


def last_chunk(journal: PgConnection, pipeline: str, number: int) -> datetime | None:
    """Return when compensation last wrote for this window; None when it never did."""
    moment: datetime | None = single_value(_run(journal, "last_chunk", pipeline=pipeline, number=number))
    return moment


def live_plans(journal: PgConnection, pipeline: str, number: int) -> list[str]:
    """Return the ids of this window's plans that could still write."""
    return [plan for (plan,) in _run(journal, "live_plans", pipeline=pipeline, number=number)]


def pipelines(journal: PgConnection) -> list[str]:
    """Return the names of all pipelines that ever opened a window."""
    return [name for (name,) in _run(journal, "pipelines")]
