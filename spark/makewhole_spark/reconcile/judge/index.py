"""Ask the key index for keys of a bucket: which of them it may know, and what it knows of them.

A *key filter* beside a file of the index shows which keys the file cannot know; it has nothing to do with the filter
(`where`) of a hop.
"""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from makewhole.compute.frames import HASH, NUMBERS, empty
from makewhole.compute.indexed_keys.former_readings import as_read_now
from makewhole.compute.indexed_keys.hop_filters import filter_places, with_filter_of
from makewhole.compute.versions import is_moment, version_in_order
from makewhole.key_index.files import IndexFile, highest_versions, maybe_known, rows_of_keys
from makewhole.lake.storage import Storage
from makewhole.model.places.compared_columns import compared_at
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.other_windows import IndexFiles
from makewhole_spark.reconcile.bucket.task import BucketTask


def known_elsewhere(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return those of some keys (`HASHES`) that a run of another window may know, of the topics that the bucket's hop
    joins and of the other sources of its target. By the key filters alone: of the keys that no run knows, one of
    thousands is among them."""
    indexes = (
        task.source.index.copies,
        task.target.index.copies,
        *(other.end.index.copies for other in task.elsewhere.other_sources),
        *(other.end.index.rows for other in task.elsewhere.other_sources),
    )
    files = {file for index in indexes for file in index.every}
    return maybe_in(task.context.storage, sorted(files, key=lambda file: file.path), keys)


def maybe_in(storage: Storage, files: Sequence[IndexFile], keys: pl.DataFrame) -> pl.DataFrame:
    """Return those of some keys (with hashes) that any of the files may know, by the key filters alone."""
    return keys.filter(pl.Series(maybe_known(storage, files, keys), dtype=pl.Boolean))


def files_of_keys(paths: Iterable[str]) -> tuple[IndexFile, ...]:
    """Return files that hold nothing but hashes of keys, with a key filter beside each, as files of the index."""
    return tuple(IndexFile(path=path, windows=()) for path in paths)


def versions_before(context: WindowContext, point: str, index: IndexFiles, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the highest version (`NUMBERS`) that an end of the hop has of some keys (`HASHES`) from the windows
    before. Of a table none is known, and a topic without versions is not asked."""
    if context.pipeline.points[point].version is None:
        return empty(NUMBERS)
    return highest_versions(context.storage, (*index.former, *index.earlier), keys)


def overtaken_keys(task: BucketTask, ledger: str, versions: pl.DataFrame) -> pl.DataFrame:
    """Return the keys (`HASHES`) of which a ledger had a higher version in the windows before, or one that is not
    ordered with it, than the highest of `versions` (hashes, `version`). Only the ledger knows whether it stands."""
    index = task.versions_of(ledger)
    highest = versions.group_by(HASH).agg(version_in_order().max())
    before = highest_versions(task.context.storage, (*index.former, *index.earlier), highest.select(HASH))
    both = before.rename({"version": "before"}).join(highest, on=HASH, how="inner")
    is_above = (pl.col("before") > pl.col("version")) | (is_moment("before") != is_moment())
    return both.filter(is_above.fill_null(True)).select(HASH)


def keys_with_other_values(task: BucketTask, index: IndexFiles, events: pl.DataFrame) -> pl.DataFrame:
    """Return the keys (`HASHES`) of which a ledger of events had another value in another window than `events` (hashes,
    `row_hash`) have; `index`: of the ledger. Only the ledger knows whether it stands."""
    of_ledger = rows_of(task, index.every, events.select(HASH)).select(*HASH, "row_hash")
    both = of_ledger.join(events.select(*HASH, pl.col("row_hash").alias("here")), on=HASH, how="inner")
    return both.filter(pl.col("row_hash") != pl.col("here")).select(HASH).unique()


def rows_of(
    task: BucketTask, files: Sequence[IndexFile], keys: pl.DataFrame, compared: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return what runs know of some keys (`HASHES`), window by window: of their values and versions what the file of
    now can compare, and whether the filter of the task's hop excludes them. `compared`: as the file of now reads the
    compared columns there; None: as at the source of the hop."""
    rows = rows_of_keys(task.context.storage, files, keys)
    known = compared_at(task.context.pipeline, task.hop.source) if compared is None else compared
    rows = as_read_now(rows, known, is_upsert=task.is_upsert)
    pipeline = task.context.pipeline
    return with_filter_of(rows, task.hop, filter_places(pipeline, task.hop), pipeline.filter_types)
