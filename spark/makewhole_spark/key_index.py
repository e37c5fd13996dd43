"""The index of every key ever seen on a topic: one sorted run per window and bucket."""

from dataclasses import dataclass

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH
from makewhole.compute.judge import mark_replays
from makewhole.config.context import WindowContext


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
    frame = task.context.storage.read_parquet(
        task.files, [*HASH, "place", "row_hash", "partition", "offset", "is_aborted", "replay_plan"]
    )
    assert frame is not None
    run = (
        mark_replays(frame.filter(~pl.col("is_aborted")), task.replays)
        .sort(*HASH, "is_replay", "partition", "offset")
        .unique(subset=HASH, keep="first", maintain_order=True)
        .select(*ELSEWHERE)
    )
    folder = f"{task.context.pipeline.name}/index/{task.point}/window={task.context.window.number}/bucket={task.bucket}"
    return task.context.storage.write_parquet(folder, run), len(run)
