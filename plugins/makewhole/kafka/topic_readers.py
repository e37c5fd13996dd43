"""Find the consumer groups that read a topic: those that have committed an offset in it, whoever they belong to.

Groups that keep their offsets elsewhere, and groups that the connection's user may not see (Describe on the cluster, or
on the group), are not among them: no broker would report them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aiokafka.protocol.admin import ListGroupsRequest

from makewhole.kafka.group_offsets import GroupOffsets, OffsetOutOfRange, hold_to_log
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import CommittedOffset, TopicLog, ask_committed, describe_topic, stable_offsets
from makewhole.kafka.wire.cluster import Cluster, NotNowError
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, MakewholeError
from makewhole.model.window import PartitionRange

_GROUP_LOG = "__consumer_offsets"
_NONE = -1
_COUNTED_MOST = 10_000
_ASKED_AT_ONCE = 100
"""Groups whose offsets are asked for before the first answer is there: a cluster may have many thousands."""


@dataclass(frozen=True, kw_only=True)
class ReadingGroup:
    """A consumer group with offsets in a topic. `lag`: the offsets between where it stands and the stable end, in the
    partitions in which it has committed; `unread`: the number of partitions in which it has not. `standing`: where it
    has committed, by partition.

    `records`: how many of these offsets hold records that it will be given; None: not counted. `out_of_range`:
    where it has committed, by partition, offsets that the log does not have: they say nothing of how far it is, and are
    in no number.
    """

    group: str
    lag: int
    unread: int
    records: int | None = None
    standing: Mapping[int, int] = field(default_factory=dict, compare=False)
    out_of_range: Mapping[int, OffsetOutOfRange] = field(default_factory=dict)


def topic_readers(
    connection: KafkaConnection, topic: str, *, patience_seconds: float | None = None
) -> tuple[ReadingGroup, ...]:
    """Return the groups that have committed an offset in any partition of a topic, by name.

    Raises:
        ConfigurationError: the topic does not exist.
        TransientError: a coordinator of groups does not answer: what it would say cannot be assumed.
        PermanentError: the brokers refuse us.
    """
    with Cluster(connection, patience_seconds=patience_seconds) as cluster:
        standing = cluster.run(cluster.retry(f"consumer groups of topic {topic}", lambda: _standing(cluster, topic)))
    if not standing:
        return ()
    with TopicLog(connection, topic) as log:
        starts, high, ends = log.starts(), log.high_watermarks(), _stable_ends(log)
        return tuple(
            _behind(group, hold_to_log(log, committed, starts, high), ends)
            for group, committed in sorted(standing.items())
        )


def reading_group(log: TopicLog, name: str, offsets: GroupOffsets) -> ReadingGroup:
    """Return a reader of a topic whose offsets were read elsewhere and held against the log, as groups are returned."""
    return _behind(name, offsets, _stable_ends(log))


def _stable_ends(log: TopicLog) -> Mapping[int, int]:
    return {partition: end.offset for partition, end in log.stable_ends().items()}


def _behind(name: str, offsets: GroupOffsets, ends: Mapping[int, int]) -> ReadingGroup:
    """Hold the offsets of a reader that the log has against the stable ends."""
    usable = {
        partition: offset
        for partition, offset in offsets.committed.items()
        if offset is not None and partition not in offsets.out_of_range
    }
    return ReadingGroup(
        group=name,
        lag=sum(max(0, ends.get(partition, 0) - offset) for partition, offset in usable.items()),
        unread=len(ends) - len(usable) - len(offsets.out_of_range),
        standing=usable,
        out_of_range=offsets.out_of_range,
    )


def with_records(connection: KafkaConnection, topic: str, groups: Sequence[ReadingGroup]) -> tuple[ReadingGroup, ...]:
    """Count the records before which groups stand that are not far behind: markers of transactions, aborted records and
    compacted offsets are nothing to read. Those of groups that are far behind, or whose log cannot be read, stay
    uncounted."""
    near = [group for group in groups if group.lag <= _COUNTED_MOST]
    try:
        counted = dict(zip((group.group for group in near), _records_behind(connection, topic, near), strict=True))
    except MakewholeError:
        counted = {}
    return tuple(replace(group, records=counted.get(group.group)) for group in groups)


def _records_behind(connection: KafkaConnection, topic: str, groups: Sequence[ReadingGroup]) -> list[int]:
    """Return how many committed records lie between each group and the stable end; each partition is read once."""
    if not any(group.lag for group in groups):
        return [0 for _ in groups]
    ends, topic_id = stable_offsets(connection, topic), describe_topic(connection, topic).topic_id
    counts = [0 for _ in groups]
    with BrokerLog(connection) as broker:
        for partition, end in ends.items():
            standing = [group.standing.get(partition, end) for group in groups]
            wanted = PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=min(standing), hi=end)
            if wanted.span <= 0:
                continue
            for batch in read_range(broker, wanted, columns=("offset",)).batches():
                offsets = batch.column("offset").to_numpy()
                counts = [count + int((offsets >= at).sum()) for count, at in zip(counts, standing, strict=True)]
    return counts


async def _standing(cluster: Cluster, topic: str) -> Mapping[str, Mapping[int, CommittedOffset | None]]:
    """Return the offsets that each group has committed in the topic, by partition."""
    partitions = list((await cluster.topic(topic)).leaders)
    standing: dict[str, Mapping[int, CommittedOffset | None]] = {}
    for node in await _coordinators(cluster):
        listed = await cluster.ask(node, ListGroupsRequest())
        cluster.raise_for_code(listed.error_code, f"groups of broker {node}")
        groups = [group for group, _ in listed.groups]
        for begin in range(0, len(groups), _ASKED_AT_ONCE):
            some = groups[begin : begin + _ASKED_AT_ONCE]
            answers = await asyncio.gather(*(ask_committed(cluster, node, group, topic, partitions) for group in some))
            standing |= {
                group: committed for group, committed in zip(some, answers, strict=True) if any(committed.values())
            }
    return standing


async def _coordinators(cluster: Cluster) -> set[int]:
    """Return the brokers that coordinate groups; none in a cluster in which no group was ever made."""
    try:
        coordinators = set((await cluster.topic(_GROUP_LOG, is_fresh=True)).leaders.values())
    except ConfigurationError:
        return set()
    if -1 in coordinators:
        raise NotNowError(f"a partition of {_GROUP_LOG} has no leader, so a coordinator is missing")
    return coordinators
