"""Read and write the numbers of rows that tables had in the time slices of windows."""

from collections.abc import Iterable
from datetime import datetime

from makewhole.model.pipeline import TablePoint
from makewhole.model.time_slice import CountedSlice, KnownSlice, TimeSlice
from makewhole.model.window import Window
from makewhole.sql import PgConnection, load_queries


def put(journal: PgConnection, window: Window, point: TablePoint, counted: Iterable[CountedSlice]) -> None:
    """Write the counts that belong to a revision's snapshot of the point."""
    with journal.cursor() as cursor:
        for one in counted:
            cursor.execute(
                load_queries("slice_count")["put_slice_count"],
                {
                    "pipeline": window.pipeline,
                    "point": point.name,
                    "slice": one.slice.window,
                    "number": window.number,
                    "revision": window.revision,
                    "source": _source(point),
                    "rows": one.rows,
                    "pg_snapshot": one.pg_snapshot,
                },
            )


def before(journal: PgConnection, window: Window, point: TablePoint) -> list[KnownSlice]:
    """Return the slice of every judged window before this one that read the point, as it was counted last, in order."""
    with journal.cursor() as cursor:
        cursor.execute(
            load_queries("slice_count")["slice_counts"],
            {"pipeline": window.pipeline, "point": point.name, "number": window.number, "source": _source(point)},
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
