"""Describe which columns and rows of a table are read for a window, and the rows that no window reaches."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from makewhole.compute.row_filter import TypedTerm
from makewhole.model.points import TablePoint


@dataclass(frozen=True, kw_only=True)
class TableShape:
    """The columns and filters of an export: the point, the compared columns, the filters of its hops."""

    point: TablePoint
    compare: Mapping[str, str]
    filters: Mapping[str, tuple[TypedTerm, ...]]

    @property
    def described(self) -> str:
        """The table with the columns that are read of it, for messages."""
        return f"{self.point.table} (point {self.point.name}; columns {', '.join(sorted(self.column_names()))})"

    def column_names(self) -> set[str]:
        """Return every column that the pipeline file names for this table."""
        terms = {term.column for terms in self.filters.values() for term in terms}
        return {*self.point.named_columns, *self.compare, *terms}


@dataclass(frozen=True, kw_only=True)
class EarlierRows:
    """The rows of times `[start, end)` before a window's own; `start` None has no lower bound.

    `seen_before`: only those that may not have been visible in this transaction snapshot; None: all of them.
    """

    start: datetime | None
    end: datetime
    seen_before: str | None


@dataclass(frozen=True, kw_only=True)
class TimeBounds:
    """The times `[start, end)` of the rows; `start` None has no lower bound. A row of infinite time has none that a
    window could reach.

    `earlier`: rows of earlier times that belong here as well, since they came late. `seen_before`: the transaction
    snapshot of the window before; rows without a time that it may not have seen belong here. Without one all of them
    do.
    """

    start: datetime | None
    end: datetime
    seen_before: str | None = None
    earlier: tuple[EarlierRows, ...] = ()

    @property
    def named_views(self) -> set[str]:
        """Every earlier view of the table that rows are compared with."""
        named = (self.seen_before, *(rows.seen_before for rows in self.earlier))
        return {seen for seen in named if seen is not None}


@dataclass(frozen=True, kw_only=True)
class RowsAhead:
    """The rows of a table with times more than a day after the database's clock: their number, the first and the last
    of their times as the system writes them (None without rows), and the number of rows with the time `infinity`."""

    rows: int
    oldest: str | None
    newest: str | None
    infinite: int
