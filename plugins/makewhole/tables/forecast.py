"""Describe what a chunk would do to a table."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from makewhole.model.refusal import Refusal
from makewhole.tables.row_change import RowChange

ChooseChanges = Callable[[Mapping[int, Refusal]], Iterable[int]]
"""Choose, by the refusals, the numbers of the actions to show."""


@dataclass(frozen=True, kw_only=True)
class ChunkForecast:
    """`refused` has the refusals by action number; `changes` of the actions that were chosen.

    `left_empty`: columns that nothing fills in rows that would be inserted, with the number of these rows.
    `locks_table`: other writers of the table would wait until the end of the chunk.
    """

    refused: Mapping[int, Refusal]
    changes: Mapping[int, RowChange]
    left_empty: Mapping[str, int]
    locks_table: bool
