"""Write a window's runs of the key index, the index of every key ever seen on a topic, or in a ledger that feeds a
table directly: one sorted run per bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from makewhole.key_index.window_run import run_of_bucket, write_bucket
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows

KeyRuns = Mapping[str, tuple[Mapping[str, str], int]]
"""By topic: the files of its runs by bucket, and their number of keys."""


@dataclass(frozen=True, kw_only=True)
class IndexTask:
    """One bucket of a point's snapshot, with the records that compensation wrote to the topic."""

    context: WindowContext
    point: str
    bucket: str
    files: tuple[str, ...]
    replays: BucketRows


@dataclass(frozen=True, kw_only=True)
class WrittenRun:
    """The run of a bucket: its file, and the number of its keys."""

    path: str
    keys: int


def index_tasks(neighbours: NeighbouringWindows) -> list[IndexTask]:
    """Return the tasks that write the runs of this window for every point that has an index."""
    context, tasks = neighbours.context, []
    for name in _indexed(context):
        replays = neighbours.replays(name)
        tasks += [
            IndexTask(context=context, point=name, bucket=bucket, files=tuple(files), replays=replays.in_bucket(bucket))
            for bucket, files in neighbours.manifests[name]["files"].items()
        ]
    return tasks


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
    replays = task.replays.read(context.storage)
    run = run_of_bucket(context.storage, task.files, replays, context.pipeline, point)
    path, keys = write_bucket(context.storage, context.window, point, task.bucket, run)
    return WrittenRun(path=path, keys=keys)


def _indexed(context: WindowContext) -> list[str]:
    return list(context.pipeline.indexed_points())
