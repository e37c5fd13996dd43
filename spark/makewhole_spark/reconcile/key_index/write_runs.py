"""Write a window's runs of the key index, the index of every key ever seen on a topic: one sorted run per bucket."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
from pyspark.sql import SparkSession

from makewhole.compute.judge.judge_copies import committed_copies, mark_replays
from makewhole.compute.key_index.stored_runs import stored_run
from makewhole.compute.key_runs import COPIES, build_key_run, count_keys, with_compared
from makewhole.key_index.files import write_index_file
from makewhole.model.pipeline import Pipeline, PointKind, Semantics
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
    """Write the distinct committed keys of the bucket in key order, each with its first copy; return (path, keys)."""
    frame = task.context.storage.read_parquet(task.files, [*COPIES, "replay_plan"])
    assert frame is not None
    run = build_key_run(
        mark_replays(committed_copies(frame), task.replays),
        has_versions=_has_versions(task.context.pipeline, task.point),
    )
    run = with_compared(run, task.context.pipeline.compare)
    number = task.context.window.number
    folder = f"{task.context.pipeline.name}/index/{task.point}/window={number}/bucket={task.bucket}"
    return write_index_file(task.context.storage, folder, [stored_run(run, number)]), count_keys(run)


def _has_versions(pipeline: Pipeline, point: str) -> bool:
    """Tell whether the copies of a key at this point are its versions."""
    return any(hop.semantics is Semantics.UPSERT for hop in pipeline.hops if point in (hop.source, hop.target))
