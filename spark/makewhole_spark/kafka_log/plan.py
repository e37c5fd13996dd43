"""Freeze the offsets that the tasks of a `kafka_log` query read, once, when the query is planned."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from makewhole.kafka.lineage import epochs_of
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.offsets import LogEnd, TopicLog
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.window import PartitionRange
from makewhole_spark.kafka_log.options import LogOptions


def plan_ranges(options: LogOptions) -> list[PartitionRange]:
    """Return the ranges of all tasks, of at most `recordsPerPartition` offsets each.

    Raises:
        ConfigurationError: the topic does not exist, or the archive does not hold what is asked for.
    """
    wholes = _archive_ranges(options) if options.archive is not None else _cluster_ranges(options)
    return [piece for whole in wholes for piece in _split(whole, options.records_per_partition)]


def _split(whole: PartitionRange, most: int) -> Iterator[PartitionRange]:
    for lo in range(whole.lo, whole.hi, most):
        yield replace(whole, lo=lo, hi=min(lo + most, whole.hi))


def _cluster_ranges(options: LogOptions) -> list[PartitionRange]:
    assert options.topic is not None
    with TopicLog(options.connection, options.topic) as log:
        state, starts = log.describe(), log.starts()
        ends = log.stable_ends() if options.ending is None else {}
        ranges = []
        for partition in state.partitions:
            end = ends.get(partition)
            whole = PartitionRange(
                topic=options.topic,
                topic_id=state.topic_id,
                partition=partition,
                lo=_at(options.starting, partition, starts[partition].offset),
                hi=_at(options.ending, partition, 0 if end is None else end.offset),
            )
            if end is not None and whole.lo < whole.hi:
                whole = replace(whole, leader_epochs=_epochs(log, starts[partition], whole, end))
            ranges.append(whole)
    return ranges


def _epochs(log: TopicLog, start: LogEnd, whole: PartitionRange, end: LogEnd) -> tuple[tuple[int, int], ...]:
    lo = max(whole.lo, start.offset)  # epochs below the log's start are forgotten
    return epochs_of(lambda epoch: log.end_of_leader_epoch(whole.partition, epoch), end.leader_epoch, lo, whole.hi)


def _archive_ranges(options: LogOptions) -> list[PartitionRange]:
    assert options.archive is not None
    ranges = []
    for whole in ArchiveLog(options.archive).ranges():
        if options.topic not in (None, whole.topic):
            remedy = "Name that topic, or leave the option out"
            problem = Problem(file="kafka_log", path="topic", found=f"the archive is of {whole.topic}", remedy=remedy)
            raise ConfigurationError([problem])
        lo = _at(options.starting, whole.partition, whole.lo)
        ranges.append(replace(whole, lo=lo, hi=_at(options.ending, whole.partition, whole.hi)))
    return ranges


def _at(given: Mapping[int, int] | None, partition: int, default: int) -> int:
    """Return the given offset of a partition (0 if it is not named), or the default where no offsets were given."""
    return default if given is None else given.get(partition, 0)
