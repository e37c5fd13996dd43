"""Write a window's runs of the key index, the index of every key ever seen on a topic: one sorted run per bucket."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
from pyspark.sql import SparkSession

from makewhole.key_index.window_run import run_of_bucket, write_bucket
from makewhole.model.pipeline import PointKind
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import carry_released
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows

KeyRuns = Mapping[str, tuple[Mapping[str, str], int]]
"""By topic: the files of its runs by bucket, and their number of keys."""


@dataclass(frozen=True, kw_only=True)
class IndexTask:
    """One bucket of a topic's snapshot, with the records that compensation wrote to the topic."""

    context: WindowContext
    point: str
    bucket: str
    files: tuple[str, ...]
    replays: pl.DataFrame


def write_key_runs(spark: SparkSession, neighbours: NeighbouringWindows) -> KeyRuns:
    """Write the runs of this window for every topic."""
    context, manifests = neighbours.context, neighbours.manifests
    topics = [point.name for point in context.pipeline.ordered_points() if point.kind is PointKind.TOPIC]
    tasks = [
        IndexTask(
            context=context,
            point=name,
            bucket=bucket,
            files=tuple(files),
            replays=neighbours.replays(name),
        )
        for name in topics
        for bucket, files in manifests[name]["files"].items()
    ]
    runs: dict[str, tuple[dict[str, str], int]] = {name: ({}, 0) for name in topics}
    for task, (path, keys) in zip(tasks, carry_released(spark, neighbours.journal, tasks, write_run), strict=True):
        files, total = runs[task.point]
        runs[task.point] = (files | {task.bucket: path}, total + keys)
    return runs


def write_run(task: IndexTask) -> tuple[str, int]:
    """Write the run of the bucket; return its path and the number of its keys."""
    context, point = task.context, task.point
    run = run_of_bucket(context.storage, task.files, task.replays, context.pipeline, point)
    return write_bucket(context.storage, context.window, point, task.bucket, run)
