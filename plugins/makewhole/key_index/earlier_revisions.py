"""Add to a ledger's run of a window what earlier revisions of it read, of which rows may have been purged since.

Their snapshots are as large as the window. A merged run of the key index has the rows of many windows: it is read only
where one of these snapshots is gone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from makewhole.compute.buckets import is_in_bucket
from makewhole.compute.frames import HASH, empty
from makewhole.compute.indexed_keys.stored_runs import STORED
from makewhole.key_index.files import IndexFile, rows_in_key_order
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError


@dataclass(frozen=True, kw_only=True)
class EarlierRevision:
    """A revision of a window, whose run (`STORED`) `read` returns from its snapshot. Of one that was not
    `is_read_alike` the values are not known, nor what passed its filters."""

    read: Callable[[], pl.DataFrame]
    is_read_alike: bool = True


@dataclass(frozen=True, kw_only=True)
class StandingRun:
    """The run of the key index that has counted until now for a window, whose rows (`STORED`) `read` returns; None: the
    index does not have the window. `is_partial`: keys of an earlier revision may be missing in it. `is_merged`: it has
    rows of other windows, which reading passes over."""

    read: Callable[[], pl.DataFrame] | None = None
    is_partial: bool = False
    is_merged: bool = False

    @cached_property
    def rows(self) -> pl.DataFrame | None:
        """The rows of the window; None: they cannot be read."""
        if self.read is None:
            return None
        try:
            return self.read()
        except CorruptionError:
            return None


@dataclass(frozen=True, kw_only=True)
class RunOfRevisions:
    """The run of a window (`STORED`) with what its revisions read. `missing`: why keys of an earlier revision may be
    missing; None: it has all of them."""

    rows: pl.DataFrame
    missing: str | None = None


def with_earlier_revisions(
    run: pl.DataFrame, earlier: Sequence[EarlierRevision], standing: StandingRun
) -> RunOfRevisions:
    """Add the keys that a run lacks and earlier revisions had, each with its rows as the newest of these (they come
    first) read them.

    The standing run comes in the place of the first that is gone, whose keys it may have. It is also preferred to a
    snapshot that was read otherwise, as it has the values of then, where it has all keys and no other windows.
    """
    missing = None
    for revision in earlier:
        read, error = _read(revision)
        missing = missing or error
        knows_more = not (revision.is_read_alike or standing.is_partial or standing.is_merged)
        for rows in (standing.rows if read is None or knows_more else None, read):
            run = run if rows is None else with_rows_of_other_keys(run, rows)
    is_whole = missing is None or (standing.rows is not None and not standing.is_partial)
    return RunOfRevisions(rows=run, missing=None if is_whole else missing)


def _read(revision: EarlierRevision) -> tuple[pl.DataFrame | None, str | None]:
    """Return the rows of a revision, or why they cannot be read."""
    try:
        return revision.read(), None
    except CorruptionError as error:
        return None, str(error)


def with_rows_of_other_keys(run: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Add those of some rows (`STORED`) to a run whose keys it does not have, in key order."""
    lacked = rows.join(run, on=HASH, how="anti", maintain_order="left")
    return pl.concat([run, lacked]).sort(HASH, maintain_order=True) if len(lacked) else run


def rows_of_bucket(storage: Storage, files: Sequence[IndexFile], bucket: str) -> pl.DataFrame:
    """Return the rows of a bucket (`STORED`) that files of the index have of their windows; some row groups are in
    memory at once.

    Raises:
        CorruptionError: one of the files does not exist.
    """
    parts = (rows.filter(is_in_bucket(bucket)) for rows in rows_in_key_order(storage, files))
    return pl.concat([empty(STORED), *parts])
