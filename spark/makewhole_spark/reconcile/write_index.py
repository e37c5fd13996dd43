"""Write a window's runs of the key index, the index of every key ever seen on a topic, or in a ledger that feeds a
table directly: one sorted run per bucket.

A ledger's rows may be purged before its window is judged again. So its run takes over the keys of the run that counted
until then, which it replaces: what an earlier revision read stays known. A topic's run takes over none: where its log
lost records to retention the fuller run counts, and what a truncation took is no record any more.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from makewhole.compute.buckets import buckets_of, names_within, shares_keys
from makewhole.compute.frames import empty
from makewhole.compute.indexed_keys.stored_runs import STORED, stored_run
from makewhole.key_index.files import IndexFile
from makewhole.key_index.window_run import run_of_bucket, with_keys_of_earlier_revisions, write_bucket
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.model.errors import CorruptionError
from makewhole.model.points import has_log
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows
from makewhole_spark.snapshot.bucket_count import BUCKETS

logger = logging.getLogger(__name__)
KeyRuns = Mapping[str, tuple[Mapping[str, str], int]]
"""By topic: the files of its runs by bucket, and their number of keys."""


@dataclass(frozen=True, kw_only=True)
class IndexTask:
    """One bucket of a point's snapshot, with the records that compensation wrote to the topic. `earlier`: the files of
    the run that has counted until now for the window, of a ledger."""

    context: WindowContext
    point: str
    bucket: str
    files: tuple[str, ...]
    replays: BucketRows
    earlier: tuple[IndexFile, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WrittenRun:
    """The run of a bucket: its file, and the number of its keys."""

    path: str
    keys: int


def index_tasks(neighbours: NeighbouringWindows) -> list[IndexTask]:
    """Return the tasks that write the runs of this window for every point that has an index."""
    context, tasks = neighbours.context, []
    for name in _indexed(context):
        replays, files, earlier = (
            neighbours.replays(name),
            _files_by_bucket(neighbours, name),
            _earlier(neighbours, name),
        )
        tasks += [
            IndexTask(
                context=context,
                point=name,
                bucket=bucket,
                files=files.get(bucket, ()),
                replays=replays.in_bucket(bucket),
                earlier=tuple(file for of, file in earlier if shares_keys(of, bucket)),
            )
            for bucket in _buckets(neighbours, name, files, [of for of, _ in earlier])
        ]
    return tasks


def _earlier(neighbours: NeighbouringWindows, point: str) -> list[tuple[str, IndexFile]]:
    """Return the files of the run that has counted until now for the window, of a ledger, each with its bucket."""
    context, number = neighbours.context, neighbours.context.window.number
    runs = () if has_log(context.pipeline.points[point]) else neighbours.standing_runs(point)
    return [
        (bucket, IndexFile(path=path, windows=(number,)))
        for run in runs
        if number in run.windows
        for bucket, path in run.files.items()
    ]


def _files_by_bucket(neighbours: NeighbouringWindows, point: str) -> dict[str, tuple[str, ...]]:
    return {bucket: tuple(files) for bucket, files in neighbours.manifests[point]["files"].items()}


def _buckets(
    neighbours: NeighbouringWindows, point: str, files: Mapping[str, Sequence[str]], earlier: Sequence[str]
) -> list[str]:
    """Return the buckets of a point's run: those of its snapshot, and of as many those of which only the run before it
    may have keys."""
    count = buckets_of(files) if files else int(neighbours.manifests[point][BUCKETS])
    return [*dict.fromkeys([*files, *(name for of in earlier for name in names_within(of, count))])]


def key_runs(neighbours: NeighbouringWindows, tasks: Sequence[IndexTask], written: Sequence[WrittenRun]) -> KeyRuns:
    """Return what the tasks wrote, by topic; of a topic without any record nothing, all the same."""
    runs: dict[str, tuple[dict[str, str], int]] = {name: ({}, 0) for name in _indexed(neighbours.context)}
    for task, run in zip(tasks, written, strict=True):
        files, total = runs[task.point]
        runs[task.point] = (files | {task.bucket: run.path}, total + run.keys)
    return runs


def write_run(task: IndexTask) -> WrittenRun:
    """Write the run of the bucket."""
    context, point = task.context, task.point
    run = _with_earlier(task, _run_of_snapshot(task))
    path, keys = write_bucket(context.storage, context.window, point, task.bucket, run)
    return WrittenRun(path=path, keys=keys)


def _run_of_snapshot(task: IndexTask) -> pl.DataFrame:
    if not task.files:
        return empty(STORED)
    context, replays = task.context, task.replays.read(task.context.storage)
    run = run_of_bucket(context.storage, task.files, replays, context.pipeline, task.point)
    return stored_run(run, context.window.number)


def _with_earlier(task: IndexTask, run: pl.DataFrame) -> pl.DataFrame:
    """Add the keys of the run before it. Where that cannot be read, the window is the only one that can be: what is run
    again replaces what was lost."""
    try:
        return with_keys_of_earlier_revisions(task.context.storage, run, task.earlier, task.bucket)
    except CorruptionError as error:
        logger.warning(
            "%s: what earlier revisions read of %s is not known any more: %s",
            task.context.window.label,
            task.point,
            error,
        )
        return run


def _indexed(context: WindowContext) -> list[str]:
    return list(context.pipeline.indexed_points())
