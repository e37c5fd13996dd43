"""Distinguish a file that was removed from under a table from one whose snapshot was expired while it was read.

Who expires snapshots commits that first, and removes their files then. So a file that is gone while the table of now
still has the snapshot that lists it was removed by what knows nothing of the table, and trying again does not help.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pyiceberg.io import FileIO
from pyiceberg.table import Table

from makewhole.datasets.iceberg.catalog import loaded_again
from makewhole.datasets.iceberg.held_view import require_table
from makewhole.model.errors import RefusedError, TransientError

_ASKED_AT_ONCE = 16


def require_kept(table: Table, name: str, snapshots: Iterable[int]) -> None:
    """Check that a table of now still has snapshots of which a file is gone.

    Raises:
        OtherTableError: another table has the name now.
        TransientError: one of the snapshots was expired meanwhile, or the catalogue does not answer.
    """
    now = loaded_again(table, name)
    require_table(now, name, str(table.metadata.table_uuid))
    expired = sorted({*snapshots} - {snapshot.snapshot_id for snapshot in now.metadata.snapshots})
    if expired:
        raise TransientError(
            f"snapshot {expired[0]} of {name} was expired while it was read; read again, and keep snapshots for longer "
            "than a window takes"
        )


def first_gone(io: FileIO, paths: Sequence[str]) -> str | None:
    """Return the first of some files that is not there; None: each is.

    Raises:
        OSError, RuntimeError: the storage does not answer.
    """
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        there = pool.map(lambda path: io.new_input(path).exists(), paths)
        return next((path for path, is_there in zip(paths, there, strict=True) if not is_there), None)


def gone_path(error: FileNotFoundError, path: str = "a file") -> str:
    """Return the path of the file that an error is about; `path`, where it does not say."""
    return str(error.filename or path)


@contextmanager
def reading_lists(table: Table, name: str) -> Iterator[None]:
    """Read lists of files of any snapshot that a table has.

    Raises:
        RefusedError: one of them is gone, and its snapshot is not expired.
        TransientError: a snapshot was expired meanwhile.
    """
    try:
        yield
    except FileNotFoundError as error:
        require_kept(table, name, [snapshot.snapshot_id for snapshot in table.metadata.snapshots])
        raise refused_list(error, name, table.metadata.current_snapshot_id) from error


def refused_list(error: FileNotFoundError, name: str, snapshot: int | None) -> RefusedError:
    """Return the error of a list of files without which what is asked of a table cannot be known: that of a snapshot's
    manifests, or one of deletes, which may take any row away. `snapshot`: the current one."""
    return RefusedError(
        f"{gone_path(error)} is gone, a list of files of snapshot {snapshot} of {name}: nothing of the table can be "
        "judged or repaired without it. Restore it, or roll the table back to a snapshot that does not list it (what "
        "came since is missing then, and is repaired); then run this window again"
    )
