"""Write a window's runs of the key index, the index of every key ever seen on a topic, or in a ledger that feeds a
table directly: one sorted run per bucket.

A ledger's rows may be purged before its window is judged again. So its run takes over the keys that earlier revisions
read, from their snapshots, or from the run that counted until then: what was read once stays known. A topic's run takes
over none: where its log lost records to retention the fuller run counts, and what a truncation took is no record any
more.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from makewhole.compute.buckets import buckets_of, is_in_bucket, names_within
from makewhole.compute.frames import REPLAYS, empty
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run
from makewhole.key_index.earlier_revisions import (
    EarlierRevision,
    RunOfRevisions,
    StandingRun,
    rows_of_bucket,
    with_earlier_revisions,
)
from makewhole.key_index.window_run import as_read_otherwise, run_of_bucket, write_bucket
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.gather.earlier_runs import EarlierRuns, RevisionFiles, earlier_runs
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.snapshot.bucket_count import BUCKETS

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class KeyRun:
    """A point's run of this window: its files by bucket, and their number of keys. `is_partial`: keys that earlier
    revisions read of a ledger may be missing in it."""

    files: Mapping[str, str] = field(default_factory=dict)
    keys: int = 0
    is_partial: bool = False


KeyRuns = Mapping[str, KeyRun]
"""The runs by point."""


@dataclass(frozen=True, kw_only=True)
class IndexTask:
    """One bucket of a point's snapshot, with the records that compensation wrote to the topic, and what `earlier`
    revisions of the window read of a ledger."""

    context: WindowContext
    point: str
    bucket: str
    files: tuple[str, ...]
    replays: BucketRows
    earlier: EarlierRuns = field(default_factory=EarlierRuns)


@dataclass(frozen=True, kw_only=True)
class WrittenRun:
    """The run of a bucket: its file, and the number of its keys. `is_partial`: as of a `KeyRun`."""

    path: str
    keys: int
    is_partial: bool


def index_tasks(neighbours: NeighbouringWindows) -> list[IndexTask]:
    """Return the tasks that write the runs of this window for every point that has an index."""
    context, tasks = neighbours.context, []
    for name in _indexed(context):
        replays, files, earlier = (
            neighbours.replays(name),
            _files_by_bucket(neighbours, name),
            earlier_runs(neighbours, name),
        )
        tasks += [
            IndexTask(
                context=context,
                point=name,
                bucket=bucket,
                files=files.get(bucket, ()),
                replays=replays.in_bucket(bucket),
                earlier=earlier.in_bucket(bucket),
            )
            for bucket in _buckets(neighbours, name, files, earlier.buckets)
        ]
    return tasks


def _files_by_bucket(neighbours: NeighbouringWindows, point: str) -> dict[str, tuple[str, ...]]:
    return {bucket: tuple(files) for bucket, files in neighbours.manifests[point]["files"].items()}


def _buckets(
    neighbours: NeighbouringWindows, point: str, files: Mapping[str, Sequence[str]], earlier: Sequence[str]
) -> list[str]:
    """Return the buckets of a point's run: those of its snapshot, and of as many those of which only earlier revisions
    may have keys."""
    count = buckets_of(files) if files else int(neighbours.manifests[point][BUCKETS])
    return [*dict.fromkeys([*files, *(name for of in earlier for name in names_within(of, count))])]


def key_runs(neighbours: NeighbouringWindows, tasks: Sequence[IndexTask], written: Sequence[WrittenRun]) -> KeyRuns:
    """Return what the tasks wrote, by point; of a topic without any record nothing, all the same."""
    runs = dict.fromkeys(_indexed(neighbours.context), KeyRun())
    for task, run in zip(tasks, written, strict=True):
        known = runs[task.point]
        runs[task.point] = KeyRun(
            files={**known.files, task.bucket: run.path},
            keys=known.keys + run.keys,
            is_partial=known.is_partial or run.is_partial,
        )
    return runs


def write_run(task: IndexTask) -> WrittenRun:
    """Write the run of the bucket."""
    context, point = task.context, task.point
    run = _with_earlier(task, _run_of_snapshot(task))
    path, keys = write_bucket(context.storage, context.window, point, task.bucket, run.rows)
    return WrittenRun(path=path, keys=keys, is_partial=run.missing is not None)


def _run_of_snapshot(task: IndexTask) -> pl.DataFrame:
    if not task.files:
        return empty(STORED)
    context, replays = task.context, task.replays.read(task.context.storage)
    run = run_of_bucket(context.storage, task.files, replays, context.pipeline, task.point)
    return stored_run(run, context.window.number)


def _with_earlier(task: IndexTask, run: pl.DataFrame) -> RunOfRevisions:
    """Add the keys of earlier revisions to the run. Where they cannot be read, this revision is all that is known: what
    is run again replaces what was lost."""
    earlier, storage = task.earlier, task.context.storage
    files = earlier.standing
    standing = StandingRun(
        read=None if files is None else partial(rows_of_bucket, storage, files, task.bucket),
        is_partial=earlier.is_partial,
        is_merged=earlier.is_merged,
    )
    revisions = [
        EarlierRevision(read=partial(_rows_of_snapshot, task, snapshot), is_read_alike=snapshot.is_read_alike)
        for snapshot in earlier.snapshots
    ]
    whole = with_earlier_revisions(run, revisions, standing)
    if whole.missing is not None:
        logger.warning(
            "%s: what earlier revisions read of %s is not known any more: %s",
            task.context.window.label,
            task.point,
            whole.missing,
        )
    return whole


def _rows_of_snapshot(task: IndexTask, snapshot: RevisionFiles) -> pl.DataFrame:
    """Return the rows of the bucket (`STORED`) in the snapshot of an earlier revision of a ledger.

    Raises:
        CorruptionError: a file of the snapshot does not exist.
    """
    context, paths = task.context, [path for of_bucket in snapshot.files.values() for path in of_bucket]
    if not paths:
        return empty(STORED)
    run = run_of_bucket(context.storage, paths, empty(REPLAYS), context.pipeline, task.point)
    run = run if snapshot.is_read_alike else as_read_otherwise(run)
    return stored_run(run, context.window.number).filter(is_in_bucket(task.bucket))


def _indexed(context: WindowContext) -> list[str]:
    return list(context.pipeline.indexed_points())
