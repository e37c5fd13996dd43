"""Offsets and topic identity, asked of the brokers; synchronous, one short-lived connection per call.

Every function raises ConfigurationError when the topic does not exist, TransientError when the brokers do not answer,
and PermanentError when they refuse us.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.offset import OffsetRequest

from makewhole.kafka.protocol import LeaderEpochEndRequest
from makewhole.kafka.wire import Cluster
from makewhole.model.connection import KafkaConnection

_EARLIEST, _LATEST = -2, -1
_UNCOMMITTED, _COMMITTED = 0, 1
_NONE = -1
_GROUP = 0

Offsets = dict[int, int]


@dataclass(frozen=True, kw_only=True)
class TopicState:
    """A topic as it is now: its id (base64, as Kafka's tools print it) and its partition numbers, ascending."""

    topic_id: str
    partitions: tuple[int, ...]


def describe_topic(connection: KafkaConnection, topic: str) -> TopicState:
    """The topic's id and partitions."""
    with Cluster(connection) as cluster:
        found = cluster.run(cluster.topic(topic))
    return TopicState(topic_id=found.topic_id, partitions=tuple(found.leaders))


def log_starts(connection: KafkaConnection, topic: str) -> Offsets:
    """The first offset of each partition that still exists."""
    return _offsets(connection, topic, _EARLIEST, _UNCOMMITTED)


def stable_offsets(connection: KafkaConnection, topic: str) -> Offsets:
    """Per partition the offset below which every transaction has ended (LSO)."""
    return _offsets(connection, topic, _LATEST, _COMMITTED)


def high_watermarks(connection: KafkaConnection, topic: str) -> Offsets:
    """Per partition the offset behind the last replicated record."""
    return _offsets(connection, topic, _LATEST, _UNCOMMITTED)


def offsets_at(connection: KafkaConnection, topic: str, when: datetime) -> dict[int, int | None]:
    """Per partition the first offset whose timestamp is `when` (with a time zone) or later; None when there is none.

    Timestamps need not ascend in a log: this labels a place, it does not separate earlier records from later ones.
    """
    found = _offsets(connection, topic, int(when.timestamp() * 1000), _UNCOMMITTED)
    return {partition: None if offset == _NONE else offset for partition, offset in found.items()}


def committed(connection: KafkaConnection, group: str, topic: str) -> dict[int, int | None]:
    """Per partition the offset that the consumer group will read next; None where it has committed nothing."""
    with Cluster(connection) as cluster:
        return cluster.run(_committed(cluster, group, topic))


def end_of_leader_epoch(connection: KafkaConnection, topic: str, partition: int, epoch: int) -> int | None:
    """Where `epoch`, or the last one before it that the leader knows, ended; None when it knows none so early.

    Less than an offset once seen in that epoch means truncation: `[answer, seen)` is gone (KIP-101, KIP-320).
    """
    with Cluster(connection) as cluster:

        async def attempt() -> int | None:
            response = await cluster.ask_leader(topic, partition, LeaderEpochEndRequest(topic, partition, epoch))
            code, _, _, end_offset = response.topics[0][1][0]
            cluster.refuse(code, f"{topic} partition {partition}")
            return None if end_offset == _NONE else int(end_offset)

        return cluster.run(cluster.patiently(f"end of leader epoch {epoch} of {topic} partition {partition}", attempt))


def _offsets(connection: KafkaConnection, topic: str, timestamp_ms: int, isolation: int) -> Offsets:
    with Cluster(connection) as cluster:
        attempt = _asking(cluster, topic, timestamp_ms, isolation)
        return cluster.run(cluster.patiently(f"offsets of topic {topic}", attempt))


def _asking(cluster: Cluster, topic: str, timestamp_ms: int, isolation: int) -> Callable[[], Awaitable[Offsets]]:
    """One request per broker, for all the partitions that it leads."""

    async def attempt() -> Offsets:
        found: Offsets = {}
        for leader, partitions in _by_leader((await cluster.topic(topic)).leaders).items():
            wanted = [(partition, timestamp_ms) for partition in partitions]
            response = await cluster.ask(leader, OffsetRequest(-1, isolation, [(topic, wanted)]))
            for partition, code, _, offset in response.topics[0][1]:
                cluster.refuse(code, f"{topic} partition {partition}")
                found[partition] = offset
        return dict(sorted(found.items()))

    return attempt


def _by_leader(leaders: Mapping[int, int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for partition, leader in leaders.items():
        groups.setdefault(leader, []).append(partition)
    return groups


async def _committed(cluster: Cluster, group: str, topic: str) -> dict[int, int | None]:
    async def attempt() -> dict[int, int | None]:
        partitions = list((await cluster.topic(topic)).leaders)
        coordinator: Any = await cluster.ask_any(FindCoordinatorRequest(group, _GROUP))
        cluster.refuse(coordinator.error_code, f"coordinator of group {group}")
        request = OffsetFetchRequest(group, [(topic, partitions)])
        response = await cluster.ask(coordinator.coordinator_id, request)
        cluster.refuse(response.error_code, f"group {group}")
        found: dict[int, int | None] = {}
        for partition, offset, _, code in response.topics[0][1]:
            cluster.refuse(code, f"{topic} partition {partition} of group {group}")
            found[partition] = None if offset == _NONE else offset
        return dict(sorted(found.items()))

    return await cluster.patiently(f"committed offsets of group {group}", attempt)
