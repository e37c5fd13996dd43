"""The log after a window, read for a few keys only: did they come later, or do they sit in an open transaction?"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH
from makewhole.compute.judge import mark_replays
from makewhole.compute.normalise import topic_frame
from makewhole.config.context import WindowContext
from makewhole.kafka.broker import BrokerLog
from makewhole.kafka.log import read_range
from makewhole.kafka.offsets import high_watermarks, stable_offsets
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole_spark.snapshot import split_range

_RECORDS_PER_TASK = 2_000_000
TAIL = ELSEWHERE | {"is_open": pl.Boolean}
"""Copies after the window. `is_open`: beyond the stable offset, so nobody can read it as committed yet."""


@dataclass(frozen=True, kw_only=True)
class TailTask:
    """Offsets after the window's end. `wanted` are the files with the hashes to look for."""

    context: WindowContext
    point: TopicPoint
    range: PartitionRange
    is_open: bool
    wanted: tuple[str, ...]
    replays: pl.DataFrame


def tail_tasks(
    context: WindowContext, point: TopicPoint, wanted: tuple[str, ...], replays: pl.DataFrame
) -> Iterator[TailTask]:
    """Everything from the window's end to the stable offset, and from there to the high watermark."""
    stable = stable_offsets(context.kafka(point), point.topic)
    high = high_watermarks(context.kafka(point), point.topic)
    for part in context.window.ranges[point.name]:
        bounds = (part.hi, max(part.hi, stable[part.partition]), max(part.hi, high[part.partition]))
        for lo, hi, is_open in ((bounds[0], bounds[1], False), (bounds[1], bounds[2], True)):
            whole = PartitionRange(topic=part.topic, topic_id=part.topic_id, partition=part.partition, lo=lo, hi=hi)
            for piece in split_range(whole, _RECORDS_PER_TASK):
                yield TailTask(
                    context=context, point=point, range=piece, is_open=is_open, wanted=wanted, replays=replays
                )


def read_tail(task: TailTask) -> list[str]:
    """Write the copies of the wanted keys in this piece of the log (`TAIL`); returns the files."""
    wanted = task.context.storage.read_parquet(task.wanted)
    assert wanted is not None
    hashes = wanted.select(HASH).unique()
    shape = task.context.value_shape(task.point)
    with closing(BrokerLog(task.context.kafka(task.point))) as broker:
        reader = read_range(broker, task.range, isolation="uncommitted" if task.is_open else "committed")
        found = [topic_frame(batch, shape)[0].join(hashes, on=HASH, how="semi") for batch in reader.batches()]
    if not any(len(frame) for frame in found):
        return []
    copies = mark_replays(pl.concat(found).filter(~pl.col("is_aborted")), task.replays)
    rows = copies.select(*HASH, "place", "is_replay", "row_hash", pl.lit(task.is_open).alias("is_open"))
    folder = f"{task.context.window.prefix}/{task.point.name}/tail"
    return [task.context.storage.write_parquet(folder, rows)]
