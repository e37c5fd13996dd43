"""The index of every key ever seen on a topic: one sorted run per window and bucket."""

from dataclasses import dataclass

import polars as pl

from makewhole.compute.judge import committed, mark_replays
from makewhole.compute.key_runs import COPIES, build_key_run
from makewhole.model.pipeline import Pipeline, Semantics
from makewhole.window.context import WindowContext


@dataclass(frozen=True, kw_only=True)
class IndexTask:
    """One bucket of a topic's snapshot."""

    context: WindowContext
    point: str
    bucket: str
    files: tuple[str, ...]
    replays: pl.DataFrame


def write_run(task: IndexTask) -> tuple[str, int]:
    """Write the distinct committed keys of the bucket in key order, each with its first copy; returns path and keys."""
    frame = task.context.storage.read_parquet(task.files, [*COPIES, "replay_plan"])
    assert frame is not None
    run = build_key_run(
        mark_replays(committed(frame), task.replays), has_versions=has_versions(task.context.pipeline, task.point)
    )
    folder = f"{task.context.pipeline.name}/index/{task.point}/window={task.context.window.number}/bucket={task.bucket}"
    return task.context.storage.write_parquet(folder, run), len(run)


def has_versions(pipeline: Pipeline, point: str) -> bool:
    """Whether the copies of a key at this point are its versions."""
    return any(hop.semantics is Semantics.UPSERT for hop in pipeline.hops if point in (hop.source, hop.target))
