"""Describe the slice of a table that belongs to a window by its time column, and what counting it showed."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class TimeSlice:
    """The rows of a table with times `[start, end)`: those of the window of this number. `start` None: from the
    beginning."""

    window: int
    start: datetime | None
    end: datetime


@dataclass(frozen=True, kw_only=True)
class CountedSlice:
    """A slice with the number of its rows, under the transaction snapshot `pg_snapshot`."""

    slice: TimeSlice
    rows: int
    pg_snapshot: str


@dataclass(frozen=True, kw_only=True)
class KnownSlice:
    """A slice of an earlier window as it was counted last: under `pg_snapshot`, at `counted_at`, by the window
    `counted_by`.

    `rows` None: it was never counted, and `pg_snapshot` is the one under which its window read it.
    """

    slice: TimeSlice
    rows: int | None
    pg_snapshot: str
    counted_by: int
    counted_at: datetime
