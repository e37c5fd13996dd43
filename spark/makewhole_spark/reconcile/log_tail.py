"""Read the log around a window for some keys: did they come later, or are they in an open transaction?

Where the first window cuts into a log, the log before the cut is read, too: a key that one side stamped after the
moment of the cut may have a record from before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import polars as pl

from makewhole.compute.frames import HASH, REPLAYS, TAIL, empty
from makewhole.compute.judge.judge_copies import committed_copies, mark_replays
from makewhole.compute.normalise import topic_frame
from makewhole.kafka.lineage import divergence
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import EpochEnd, TopicLog
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.take import split_range

_RECORDS_PER_TASK = 2_000_000
FindReplays = Callable[[str, Mapping[int, int]], pl.DataFrame]
"""Find the records that compensation wrote to a topic (its id) behind offsets by partition."""


@dataclass(frozen=True, kw_only=True)
class TailTask:
    """Offsets outside the windows: after the newest one's end, or (`is_before`) before the first one's beginning.

    `is_open`: behind the stable offset. `wanted`: files of hashes to look for.
    """

    context: WindowContext
    point: TopicPoint
    range: PartitionRange
    is_open: bool
    wanted: tuple[str, ...]
    replays: pl.DataFrame
    is_before: bool = False


@dataclass(frozen=True, kw_only=True)
class TailRead:
    """Files of the copies that were found (`TAIL`). `expired`: number of offsets gone before they could be read."""

    files: tuple[str, ...]
    expired: int


def tail_tasks(
    context: WindowContext,
    point: TopicPoint,
    covered: Sequence[PartitionRange],
    wanted: tuple[str, ...],
    find_replays: FindReplays,
) -> Iterator[TailTask]:
    """Yield tasks from the end of the `covered` ranges to the stable offset, and from there to the high watermark."""
    with TopicLog(context.kafka(point), point.topic) as log:
        topic_id = log.describe().topic_id
        starts = tail_starts(log, topic_id, covered)
        stable, high = log.stable_ends(), log.high_watermarks()
    replays = find_replays(topic_id, starts)
    for partition, end in sorted(stable.items()):
        lo = starts.get(partition, 0)
        bounds = (lo, max(lo, end.offset), max(lo, end.offset, high[partition].offset))
        for first, last, is_open in ((bounds[0], bounds[1], False), (bounds[1], bounds[2], True)):
            whole = PartitionRange(topic=point.topic, topic_id=topic_id, partition=partition, lo=first, hi=last)
            for piece in split_range(whole, _RECORDS_PER_TASK):
                yield TailTask(
                    context=context, point=point, range=piece, is_open=is_open, wanted=wanted, replays=replays
                )


def head_tasks(
    context: WindowContext, point: TopicPoint, first: Sequence[PartitionRange], wanted: tuple[str, ...]
) -> Iterator[TailTask]:
    """Yield tasks from the beginning of the log to that of the first window's ranges, where offsets before them exist.

    Nothing there was written by compensation: it writes behind the first window.
    """
    with TopicLog(context.kafka(point), point.topic) as log:
        topic_id, starts = log.describe().topic_id, log.starts()
    for part in first:
        start = starts.get(part.partition)
        if start is None or part.topic_id != topic_id or start.offset >= part.lo:
            continue
        for piece in split_range(replace(part, lo=start.offset, hi=part.lo), _RECORDS_PER_TASK):
            yield TailTask(
                context=context,
                point=point,
                range=piece,
                is_open=False,
                wanted=wanted,
                replays=empty(REPLAYS),
                is_before=True,
            )


def tail_starts(log: TopicLog, topic_id: str, covered: Sequence[PartitionRange]) -> Mapping[int, int]:
    """Return the offset at which the tail of each partition begins; a partition that is not in it begins at 0.

    It is the end of the covered range, or for a truncated log the offset from which the log is another one. A topic
    that was recreated begins at 0.
    """
    starts = {}
    for part in covered:
        if part.topic_id != topic_id:
            continue
        starts[part.partition] = part.hi
        if part.leader_epochs:

            def ask(epoch: int, partition: int = part.partition) -> EpochEnd | None:
                return log.end_of_leader_epoch(partition, epoch)

            starts[part.partition] = min(part.hi, divergence(ask, part.leader_epochs, 0))
    return starts


def read_tail(task: TailTask) -> TailRead:
    """Write the copies of the wanted keys in this piece of the log."""
    wanted = task.context.storage.read_parquet(task.wanted)
    assert wanted is not None
    hashes = wanted.select(HASH).unique()
    shape = task.context.value_shape(task.point)
    with closing(BrokerLog(task.context.kafka(task.point))) as broker:
        reader = read_range(broker, task.range, isolation="uncommitted" if task.is_open else "committed")
        found = [topic_frame(batch, shape)[0].join(hashes, on=HASH, how="semi") for batch in reader.batches()]
    expired = reader.accounting.expired
    if not any(len(frame) for frame in found):
        return TailRead(files=(), expired=expired)
    copies = mark_replays(committed_copies(pl.concat(found)), task.replays).with_columns(
        pl.lit(not task.is_before).alias("is_later"), pl.lit(task.is_open).alias("is_open")
    )
    folder = f"{task.context.window.prefix}/{task.point.name}/tail"
    return TailRead(files=(task.context.storage.write_parquet(folder, copies.select(*TAIL)),), expired=expired)
