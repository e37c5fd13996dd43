"""Find the windows before one in which records lie, when they are asked for."""

from collections.abc import Callable, Collection, Sequence

from makewhole.journal.database import connect
from makewhole.journal.history.judged import JudgedWindows
from makewhole.model.window import Window

KNOWN_BY = 5
"""The number of newest windows whose archives show how the producers of a topic spread keys."""


def find_windows_before(window: Window) -> Callable[[str, Collection[tuple[int, int]]], Sequence[Window]]:
    """Return what finds, at the journal, the judged windows before one that hold any of some (partition, offset) of a
    topic point, newest first."""

    def find(point: str, positions: Collection[tuple[int, int]]) -> Sequence[Window]:
        if not positions:
            return ()
        with connect() as journal:
            return JudgedWindows(journal=journal, pipeline=window.pipeline).holding(point, positions, window.number)

    return find
