"""Find the windows before one in which records lie, when they are asked for."""

from collections.abc import Callable, Collection, Sequence

from makewhole.journal.database import connect
from makewhole.journal.history.judged import JudgedWindows
from makewhole.journal.results import snapshot_manifests
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


def archive_of(window: Window, point: str) -> str:
    """Return the path of the archive of a topic that a revision of a window has, below the storage root: that of an
    earlier one, where it reused what that had read."""
    with connect() as journal:
        manifest = snapshot_manifests.snapshots(journal, window).get(point, {})
    return str(manifest.get("archive") or archive_path(window, point))


def archive_path(window: Window, point: str) -> str:
    """Return the path of an archive that a revision has written itself."""
    return f"{window.prefix}/{point}/archive"
