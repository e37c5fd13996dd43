"""Read the log around a window for some keys: did they come later, or are they in an open transaction?

Where the first window cuts into a log, the log before the cut is read, too: a key that one side stamped after the
moment of the cut may have a record from before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import polars as pl

from makewhole.compute.buckets import bucket_name, bucket_of
from makewhole.compute.decode.unread_keys import ComparedKeys, may_take_other_keys
from makewhole.compute.frames import HASH, HASHES, REPLAYS, TAIL, empty, with_place
from makewhole.compute.judge.judge_copies import committed_copies, mark_replays
from makewhole.compute.judge.tombstones import log_order
from makewhole.compute.keys import with_hash
from makewhole.compute.normalise import topic_records
from makewhole.compute.versions import ends_versions
from makewhole.kafka.lineage import divergence
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import EpochEnd, TopicLog
from makewhole.lake.rows_by_bucket import BucketRows, RowsByBucket
from makewhole.model.places.compared_columns import compared_sets
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.tails.tail_filters import (
    TailFilters,
    may_hold,
    same_and_compacted,
    whole_pieces,
    write_filter,
)
from makewhole_spark.snapshot.read_topics import split_range

_RECORDS_PER_TASK = 2_000_000
FindReplays = Callable[[str, str, Mapping[int, int]], RowsByBucket]
"""Find the records that compensation wrote to a topic (point and topic id) behind offsets by partition."""


@dataclass(frozen=True, kw_only=True)
class KeysOfTopic:
    """Files of hashes to look for around the windows of a topic: whose copies are `wanted`, the `late` ones of them
    before the first window, too, and those of which records and tombstones are needed in their order. They are judged
    in so many `buckets`. `compared`: the Kafka keys of the records in the window and around it with their business
    keys; None: they were not compared, and are not in the tail."""

    buckets: int
    wanted: tuple[str, ...]
    late: tuple[str, ...] = ()
    to_order: tuple[str, ...] = ()
    compared: ComparedKeys | None = None


@dataclass(frozen=True, kw_only=True)
class TailTask:
    """Offsets outside the windows: after the newest one's end, or (`is_before`) before the first one's beginning.
    `buckets`: number of those that are judged.

    `is_open`: behind the stable offset. `wanted`: files of hashes to look for; `to_order`: of those of which records
    and tombstones are needed in their order. `filter`: the file of the filter of the keys of a piece that was read
    before; `filters`: the folder in which that of a piece is left that is read whole for the first time.
    `compares_keys`: Kafka's keys with the business keys.
    """

    context: WindowContext
    point: TopicPoint
    buckets: int
    range: PartitionRange
    is_open: bool
    wanted: tuple[str, ...]
    replays: BucketRows
    to_order: tuple[str, ...] = ()
    is_before: bool = False
    filter: str | None = None
    filters: str | None = None
    compares_keys: bool = False


@dataclass(frozen=True, kw_only=True)
class TailRead:
    """Files of the copies that were found (`TAIL`), and of records and tombstones in their order (`LOG_ORDER`).
    `buckets`: those that any of them are in. `offsets`: number of those that were read, or tried; `expired`: of those
    that were gone before, or could not be read (damaged batches and holes, too), and may be of a wanted key;
    `compacted`: of those that compaction took. `compared`: the Kafka keys of the records with their business keys."""

    files: tuple[str, ...]
    offsets: int
    expired: int
    compacted: int = 0
    compared: ComparedKeys = field(default_factory=ComparedKeys)
    ordered_files: tuple[str, ...] = ()
    buckets: frozenset[str] = frozenset()


def tail_tasks(
    context: WindowContext,
    point: TopicPoint,
    covered: Sequence[PartitionRange],
    keys: KeysOfTopic,
    find_replays: FindReplays,
) -> Iterator[TailTask]:
    """Yield tasks from the end of the `covered` ranges to the stable offset, and from there to the high watermark."""
    with TopicLog(context.kafka(point), point.topic) as log:
        topic_id = log.describe().topic_id
        starts = tail_starts(log, topic_id, covered)
        stable, high = log.stable_ends(), log.high_watermarks()
        filters = TailFilters.of(context, point, topic_id, log, starts)
    replays = find_replays(point.name, topic_id, starts).whole()
    for partition, end in sorted(stable.items()):
        lo = starts.get(partition, 0)
        bounds = (lo, max(lo, end.offset), max(lo, end.offset, high[partition].offset))
        for first, last, is_open in ((bounds[0], bounds[1], False), (bounds[1], bounds[2], True)):
            whole = PartitionRange(topic=point.topic, topic_id=topic_id, partition=partition, lo=first, hi=last)
            for piece, is_whole in whole_pieces(whole, _RECORDS_PER_TASK):
                is_kept = is_whole and not is_open
                yield TailTask(
                    context=context,
                    point=point,
                    buckets=keys.buckets,
                    range=piece,
                    is_open=is_open,
                    wanted=keys.wanted,
                    replays=replays,
                    to_order=() if is_open else keys.to_order,
                    filter=filters.file_of(piece) if is_kept else None,
                    filters=filters.folder if is_kept else None,
                    compares_keys=keys.compared is not None,
                )


def head_tasks(
    context: WindowContext, point: TopicPoint, first: Sequence[PartitionRange], keys: KeysOfTopic
) -> Iterator[TailTask]:
    """Yield tasks from the beginning of the log to that of the first window's ranges, where offsets before them exist,
    for the late keys.

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
                buckets=keys.buckets,
                range=piece,
                is_open=False,
                wanted=keys.late,
                replays=BucketRows.none(REPLAYS),
                is_before=True,
                compares_keys=keys.compared is not None,
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
    """Write the copies of the wanted keys in this piece of the log, and the records of those to order."""
    wanted, to_order = (_hashes(task, files) for files in (task.wanted, task.to_order))
    storage = task.context.storage
    if task.filter is not None and not may_hold(storage, task.filter, pl.concat([wanted, to_order])):
        same, compacted = same_and_compacted(task.filter)
        return TailRead(files=(), offsets=0, expired=0, compacted=compacted, compared=ComparedKeys(same=same))
    is_new = task.filters is not None and task.filter is None
    keys = [empty(HASHES)]
    shape = task.context.value_shape(task.point)
    copies, ordered, unread, has_bad, compared = [], [], 0, False, ComparedKeys()
    with closing(BrokerLog(task.context.kafka(task.point))) as broker:
        reader = read_range(broker, task.range, isolation="uncommitted" if task.is_open else "committed")
        for batch in reader.batches():
            records = topic_records(batch, shape, compares_keys=task.compares_keys and not compared.others)
            compared += records.compared
            unread += _unread(records.undecodable, wanted, to_order)
            has_bad = has_bad or len(records.undecodable) > 0
            keys += [frame.select(HASH) for frame in (records.copies, records.tombstones) if is_new]
            copies.append(with_place(records.copies.join(wanted, on=HASH, how="semi")))
            if len(to_order):
                ordered.append(_ordered(task, records.copies, to_order))
                ordered.append(_ordered(task, records.tombstones, to_order))
    compacted = reader.accounting.compacted
    is_open = has_bad or compared.others > 0 or (compacted > 0 and may_take_other_keys(task.point, compared))
    if is_new and task.filters is not None and not is_open:
        write_filter(storage, task.filters, reader, pl.concat(keys), compared.same)
    return TailRead(
        files=_copies(task, copies),
        offsets=task.range.hi - task.range.lo,
        expired=reader.accounting.expired + reader.accounting.undecodable + unread,
        compacted=compacted,
        compared=compared,
        ordered_files=_written(task, "ordered", ordered),
        buckets=frozenset(name for frame in (*copies, *ordered) for name in _buckets(task, frame)),
    )


def _unread(bad: pl.DataFrame, *asked: pl.DataFrame) -> int:
    """Count the records without a usable key that may be of a key that is asked for."""
    named = bad.filter(pl.col("business_key").is_not_null())
    if named.is_empty():
        return len(bad)
    hashes = with_hash(named.select(pl.col("business_key").alias("key")))
    return len(bad) - len(named) + len(hashes.join(pl.concat(asked), on=HASH, how="semi"))


def _buckets(task: TailTask, frame: pl.DataFrame) -> list[str]:
    numbers = frame.select(bucket_of(task.buckets)).to_series().unique()
    return [bucket_name(number, task.buckets) for number in numbers.to_list()]


def _hashes(task: TailTask, files: tuple[str, ...]) -> pl.DataFrame:
    frame = task.context.storage.read_parquet(files) if files else None
    return empty(HASHES) if frame is None else frame.select(HASH).unique()


def _ordered(task: TailTask, records: pl.DataFrame, to_order: pl.DataFrame) -> pl.DataFrame:
    """Return the committed records of the keys to order (`LOG_ORDER`)."""
    named = committed_copies(records).join(to_order, on=HASH, how="semi")
    return log_order(named, task.point.name, task.range.topic_id)


def _copies(task: TailTask, frames: Sequence[pl.DataFrame]) -> tuple[str, ...]:
    """Write the copies that were found (`TAIL`)."""
    if not any(len(frame) for frame in frames):
        return ()
    committed = committed_copies(pl.concat(frames))
    replays = task.replays.read_keys(task.context.storage, committed)
    copies = mark_replays(committed, replays).with_columns(
        ends_versions().alias("ends_earlier"),
        pl.lit(not task.is_before).alias("is_later"),
        pl.lit(False).alias("is_former"),
        pl.lit(task.is_open).alias("is_open"),
    )
    has_own = len(compared_sets(task.context.pipeline, task.point.name)) > 1
    values = [name for name in copies.columns if name.startswith("c:")] if has_own else []
    return _written(task, "tail", [copies.select(*TAIL, *values)])


def _written(task: TailTask, folder: str, frames: Sequence[pl.DataFrame]) -> tuple[str, ...]:
    if not any(len(frame) for frame in frames):
        return ()
    prefix = f"{task.context.window.prefix}/{task.point.name}/{folder}"
    return (task.context.storage.write_parquet(prefix, pl.concat(frames)),)
