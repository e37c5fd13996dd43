"""Read and write what was known to exist at a point, and when: an absence counts only from then on. Of tables also how
many rows they had in the time slices of windows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg2.extras import Json

from makewhole.journal.statements import statements_of
from makewhole.model.pipeline import TablePoint
from makewhole.model.window import CountedSlice, KnownSlice, TimeSlice, Window
from makewhole.sql import PgConnection, load_queries

_run = statements_of("window")


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The extent of a point at a moment: offsets below `stable_offsets`, rows visible in `pg_snapshot`."""

    point: str
    observed_at: datetime
    topic_id: str | None = None
    stable_offsets: Mapping[int, int] | None = None
    pg_snapshot: str | None = None


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A partition of one incarnation and lineage of a topic, with the first offset that is read, and since when."""

    topic_id: str
    partition: int
    lineage: int
    lo: int
    noticed_at: datetime


def put(journal: PgConnection, pipeline: str, observation: Observation) -> None:
    """Write an observation."""
    offsets = observation.stable_offsets
    _run(
        journal,
        "observe",
        pipeline=pipeline,
        point=observation.point,
        observed_at=observation.observed_at,
        topic_id=observation.topic_id,
        stable_offsets=None if offsets is None else Json({str(part): offset for part, offset in offsets.items()}),
        pg_snapshot=observation.pg_snapshot,
    )


def since(journal: PgConnection, pipeline: str, point: str, until: datetime) -> list[Observation]:
    """Return what was observed at a point last up to a moment, and everything since, oldest first, as far as it is of
    the log that exists now.

    What was seen before a truncation or a new incarnation was noticed does not hold for the records that came with it.
    """
    rows = _run(journal, "observations_since", pipeline=pipeline, point=point, until=until)
    return _observed(journal, pipeline, point, rows)


def last(journal: PgConnection, pipeline: str, point: str, until: datetime) -> Observation | None:
    """Return what was observed at a point last, up to a moment, as far as it is of the log that exists now; None
    without any."""
    rows = _run(journal, "last_observation", pipeline=pipeline, point=point, until=until)
    return next(iter(_observed(journal, pipeline, point, rows)), None)


def _observed(journal: PgConnection, pipeline: str, point: str, rows: Iterable[Sequence[Any]]) -> list[Observation]:
    lanes = [
        Lane(**dict(zip(_LANE, row, strict=True))) for row in _run(journal, "lanes", pipeline=pipeline, point=point)
    ]
    return [
        Observation(
            point=point,
            observed_at=observed_at,
            topic_id=topic_id,
            stable_offsets=None if offsets is None else still_seen(lanes, topic_id, observed_at, offsets),
            pg_snapshot=pg_snapshot,
        )
        for observed_at, topic_id, offsets, pg_snapshot in rows
    ]


_LANE = ("topic_id", "partition", "lineage", "lo", "noticed_at")


def still_seen(
    lanes: Sequence[Lane], topic_id: str | None, observed_at: datetime, offsets: Mapping[str, int]
) -> dict[int, int]:
    """Cut the stable offsets by partition that were observed once to what is still of the log that exists now."""
    if lanes and topic_id != lanes[-1].topic_id:
        newest = lanes[-1].topic_id
        if observed_at < min(lane.noticed_at for lane in lanes if lane.topic_id == newest):
            return {}
    found = {int(partition): offset for partition, offset in offsets.items()}
    for lane in lanes:
        is_later = lane.lineage > 0 and lane.topic_id == topic_id and observed_at < lane.noticed_at
        if is_later and lane.partition in found:
            found[lane.partition] = min(found[lane.partition], lane.lo)
    return found


def put_slice_counts(journal: PgConnection, window: Window, point: TablePoint, counted: Iterable[CountedSlice]) -> None:
    """Write the counts that belong to a revision's snapshot of the point."""
    ones = list(counted)
    with journal.cursor() as cursor:
        cursor.execute(
            load_queries("slice_count")["put_slice_counts"],
            {
                "pipeline": window.pipeline,
                "point": point.name,
                "number": window.number,
                "revision": window.revision,
                "source": _source(point),
                "slices": [one.slice.window for one in ones],
                "rows": [one.rows for one in ones],
                "pg_snapshots": [one.pg_snapshot for one in ones],
            },
        )


def slice_bounds(journal: PgConnection, window: Window, point: TablePoint, reached: datetime) -> tuple[int, int]:
    """Return the number of the first window that read the point, and of the first one that ends after a moment; the
    window's own where there is none before it."""
    with journal.cursor() as cursor:
        cursor.execute(
            load_queries("slice_count")["slice_bounds"],
            {"pipeline": window.pipeline, "point": point.name, "reached": reached},
        )
        ((first, reaching),) = cursor.fetchall()
    return min(first or window.number, window.number), min(reaching or window.number, window.number)


def slices_of(journal: PgConnection, window: Window, point: TablePoint, numbers: Collection[int]) -> list[KnownSlice]:
    """Return the slices of judged windows before this one that read the point, of these numbers, each as it was counted
    last, in order."""
    with journal.cursor() as cursor:
        cursor.execute(
            load_queries("slice_count")["slice_counts"],
            {
                "pipeline": window.pipeline,
                "point": point.name,
                "number": window.number,
                "source": _source(point),
                "numbers": sorted(numbers),
            },
        )
        return [
            KnownSlice(
                slice=TimeSlice(window=number, start=start, end=end),
                rows=rows,
                pg_snapshot=pg_snapshot,
                counted_by=counted_by,
                counted_at=counted_at,
            )
            for number, start, end, rows, pg_snapshot, counted_by, counted_at in cursor.fetchall()
        ]


def has_counted(journal: PgConnection, window: Window, point: TablePoint) -> bool:
    """Tell whether this revision of a window counted its own slice of the point as the pipeline's file has it now: it
    read the same table by the same time."""
    with journal.cursor() as cursor:
        cursor.execute(
            load_queries("slice_count")["has_counted"],
            {
                "pipeline": window.pipeline,
                "point": point.name,
                "number": window.number,
                "revision": window.revision,
                "source": _source(point),
            },
        )
        return bool(cursor.fetchall())


def written_since(journal: PgConnection, window: Window, point: TablePoint, since: datetime) -> int:
    """Return how many rows of the point compensation may have written or moved aside since a moment."""
    with journal.cursor() as cursor:
        cursor.execute(
            load_queries("slice_count")["written_since"],
            {"pipeline": window.pipeline, "target": point.name, "since": since},
        )
        ((count,),) = cursor.fetchall()
    return int(count)


def _source(point: TablePoint) -> str:
    """Return what is counted: a point that is another table now has not been counted."""
    return f"{point.place} by {point.time}"
