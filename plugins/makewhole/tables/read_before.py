"""Describe how a table was read before, as far as a later view of it can show that its rows are the same."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ReadBefore:
    """A reading of the rows inside some bounds of a table.

    `mark` is what the view said of the table itself (`TableView.mark`), `seen` which rows it saw; `rows` is the number
    of rows that the system sent.
    """

    mark: Any
    seen: str
    rows: int
