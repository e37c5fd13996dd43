"""Read and write how many rows a table had in the time slices of windows."""

from collections.abc import Collection, Iterable
from datetime import datetime

from makewhole.journal.statements import scope
from makewhole.model.points import TablePoint
from makewhole.model.window import CountedSlice, KnownSlice, TimeSlice, Window
from makewhole.sql import PgConnection, record, single_value, statements_of

_run = statements_of("slice_count")


def put(journal: PgConnection, window: Window, point: TablePoint, counted: Iterable[CountedSlice]) -> None:
    """Write the counts that belong to a revision's snapshot of the point, with whose manifest they are committed."""
    counts = list(counted)
    _run(
        journal,
        "put_slice_counts",
        **scope(window),
        point=point.name,
        source=_source(point),
        slices=[count.slice.window for count in counts],
        rows=[count.rows for count in counts],
    )


def bounds(journal: PgConnection, window: Window, point: TablePoint, reached: datetime) -> tuple[int, int]:
    """Return the number of the first window that read the point, and of the first one that ends after a moment; the
    window's own where there is none before it."""
    ((first, reaching),) = _run(journal, "slice_bounds", pipeline=window.pipeline, point=point.name, reached=reached)
    return min(first or window.number, window.number), min(reaching or window.number, window.number)


def counted_before(
    journal: PgConnection, window: Window, point: TablePoint, numbers: Collection[int]
) -> list[KnownSlice]:
    """Return the slices of judged windows before this one that read the point, of these numbers, each as it was counted
    last, in order."""
    rows = _run(
        journal,
        "slice_counts",
        pipeline=window.pipeline,
        point=point.name,
        number=window.number,
        source=_source(point),
        place=window.places.get(point.name),
        numbers=sorted(numbers),
    )
    return [
        KnownSlice(
            slice=record(TimeSlice, row),
            rows=row.rows,
            pg_snapshot=row.pg_snapshot,
            counted_by=row.counted_by,
            counted_at=row.counted_at,
        )
        for row in rows
    ]


def has_counted(journal: PgConnection, window: Window, point: TablePoint) -> bool:
    """Return whether this revision of a window counted its own slice of the point as the pipeline's file has it now: it
    read the same table by the same time."""
    return bool(_run(journal, "has_counted", **scope(window), point=point.name, source=_source(point)))


def written_since(journal: PgConnection, window: Window, point: TablePoint, since: datetime) -> int:
    """Return how many rows of the point compensation may have written or moved aside since a moment."""
    return int(single_value(_run(journal, "written_since", pipeline=window.pipeline, target=point.name, since=since)))


def _source(point: TablePoint) -> str:
    """Return what is counted: a point that is another table now has not been counted."""
    return f"{point.place} by {None if point.time is None else point.column_place(point.time)}"
