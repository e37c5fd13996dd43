"""Describe the rows of a table by their times: what is counted in slices, and what no window reaches."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RowsAhead:
    """The rows of a table with times more than a day after the database's clock: their number, the first and the last
    of their times as the system writes them (None without rows), and the number of rows with the time `infinity`."""

    rows: int
    oldest: str | None
    newest: str | None
    infinite: int
