"""Ask the brokers for offsets, leader epochs and topic identity; synchronous.

`TopicLog` asks everything about a topic over one set of connections; the functions open one for a single question. All
raise ConfigurationError when the topic does not exist, TransientError when the brokers do not answer, and
PermanentError when they refuse us.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from aiokafka.protocol.coordination import FindCoordinatorRequest

from makewhole.kafka.topics import TopicDescription, read_description
from makewhole.kafka.wire.cluster import Cluster
from makewhole.kafka.wire.committed_offsets import CommittedOffsetsRequest
from makewhole.kafka.wire.log_ends import COMMITTED, EARLIEST_MS, LATEST_MS, UNCOMMITTED, LogEndsRequest
from makewhole.kafka.wire.protocol import LeaderEpochEndRequest
from makewhole.model.closing import ClosingContext
from makewhole.model.connection import KafkaConnection

_NONE = -1
_GROUP = 0

Offsets = dict[int, int]


@dataclass(frozen=True, kw_only=True)
class TopicState:
    """A topic as it is now: its id (base64, as Kafka's tools print it) and its partition numbers, ascending."""

    topic_id: str
    partitions: tuple[int, ...]


class LogEnd(NamedTuple):
    """An offset, and the epoch of the leader that reported it: no record below has a later one."""

    offset: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """Where a leader epoch ended: the asked one, or the last one before it that the leader knows."""

    epoch: int
    end_offset: int


class CommittedOffset(NamedTuple):
    """The offset that a group reads next, and the leader epoch of the record before it, as the group's consumer had
    read it; -1: the consumer did not commit one (KIP-320)."""

    offset: int
    leader_epoch: int = _NONE


class TopicLog(ClosingContext):
    """Connections to ask about one topic. A context manager; `close` ends them."""

    def __init__(self, connection: KafkaConnection, topic: str, *, patience_seconds: float | None = None) -> None:
        self.connection = connection
        self.topic = topic
        self._cluster = Cluster(connection, patience_seconds=patience_seconds)

    def close(self) -> None:
        """End all connections. Safe to call twice."""
        self._cluster.close()

    def describe(self) -> TopicState:
        """Return the topic's id and partitions, as they are now."""
        topic = self._cluster.run(self._cluster.topic(self.topic, is_fresh=True))
        return TopicState(topic_id=topic.topic_id, partitions=tuple(topic.leaders))

    def settings(self) -> TopicDescription:
        """Return the topic's replicas and settings."""
        return self._cluster.run(read_description(self._cluster, self.topic))

    def starts(self) -> dict[int, LogEnd]:
        """Return per partition the first offset that still exists."""
        return self._ends(EARLIEST_MS, UNCOMMITTED)

    def stable_ends(self) -> dict[int, LogEnd]:
        """Return per partition the offset below which every transaction has ended (LSO)."""
        return self._ends(LATEST_MS, COMMITTED)

    def high_watermarks(self) -> dict[int, LogEnd]:
        """Return per partition the offset behind the last replicated record."""
        return self._ends(LATEST_MS, UNCOMMITTED)

    def offsets_at(self, when: datetime) -> dict[int, int | None]:
        """Return per partition the first offset whose timestamp is `when` (with a time zone) or later; None: no such
        offset.

        Timestamps need not ascend in a log: the offset does not separate earlier records from later ones.
        """
        ends = self._ends(int(when.timestamp() * 1000), UNCOMMITTED)
        return {partition: None if end.offset == _NONE else end.offset for partition, end in ends.items()}

    def end_of_leader_epoch(self, partition: int, epoch: int) -> EpochEnd | None:
        """Return where `epoch` ended, or the last one before it that the leader knows; None when it knows none."""
        return self.ends_of_leader_epochs({partition: epoch})[partition]

    def ends_of_leader_epochs(self, epochs: Mapping[int, int]) -> dict[int, EpochEnd | None]:
        """Return what `end_of_leader_epoch` does, of an epoch of each of some partitions; each broker is asked once."""
        what = f"ends of leader epochs of {self.topic}"
        return self._cluster.run(self._cluster.retry(what, _epoch_ends_attempt(self._cluster, self.topic, epochs)))

    def committed(self, group: str) -> dict[int, int | None]:
        """Return per partition the offset that the group will read next; None where it has committed nothing."""
        positions = self.committed_with_epochs(group)
        return {partition: None if position is None else position.offset for partition, position in positions.items()}

    def committed_with_epochs(self, group: str) -> dict[int, CommittedOffset | None]:
        """Return what `committed` does, with the leader epochs that the group has committed."""
        return self._cluster.run(_committed(self._cluster, group, self.topic))

    def _ends(self, timestamp_ms: int, isolation: int) -> dict[int, LogEnd]:
        attempt = _ends_attempt(self._cluster, self.topic, timestamp_ms, isolation)
        return self._cluster.run(self._cluster.retry(f"offsets of topic {self.topic}", attempt))


def describe_topic(connection: KafkaConnection, topic: str) -> TopicState:
    """Return the topic's id and partitions."""
    with TopicLog(connection, topic) as log:
        return log.describe()


def log_starts(connection: KafkaConnection, topic: str) -> Offsets:
    """Return the first offset of each partition that still exists."""
    with TopicLog(connection, topic) as log:
        return _offsets(log.starts())


def stable_offsets(connection: KafkaConnection, topic: str) -> Offsets:
    """Return per partition the offset below which every transaction has ended (LSO)."""
    with TopicLog(connection, topic) as log:
        return _offsets(log.stable_ends())


def high_watermarks(connection: KafkaConnection, topic: str) -> Offsets:
    """Return per partition the offset behind the last replicated record."""
    with TopicLog(connection, topic) as log:
        return _offsets(log.high_watermarks())


def offsets_at(connection: KafkaConnection, topic: str, when: datetime) -> dict[int, int | None]:
    """Return what `TopicLog.offsets_at` does."""
    with TopicLog(connection, topic) as log:
        return log.offsets_at(when)


def committed(connection: KafkaConnection, group: str, topic: str) -> dict[int, int | None]:
    """Return what `TopicLog.committed` does."""
    with TopicLog(connection, topic) as log:
        return log.committed(group)


def end_of_leader_epoch(connection: KafkaConnection, topic: str, partition: int, epoch: int) -> int | None:
    """Return the offset of `TopicLog.end_of_leader_epoch`."""
    with TopicLog(connection, topic) as log:
        end = log.end_of_leader_epoch(partition, epoch)
    return None if end is None else end.end_offset


def _offsets(ends: Mapping[int, LogEnd]) -> Offsets:
    return {partition: end.offset for partition, end in ends.items()}


def _ends_attempt(
    cluster: Cluster, topic: str, timestamp_ms: int, isolation: int
) -> Callable[[], Awaitable[dict[int, LogEnd]]]:
    """Return an attempt that sends one request per broker, for all the partitions that it leads."""

    async def attempt() -> dict[int, LogEnd]:
        ends: dict[int, LogEnd] = {}
        for leader, partitions in _by_leader((await cluster.topic(topic)).leaders).items():
            response = await cluster.ask(leader, LogEndsRequest(topic, partitions, timestamp_ms, isolation))
            for partition, code, _, offset, epoch in response.topics[0][1]:
                cluster.raise_for_code(code, f"{topic} partition {partition}")
                ends[partition] = LogEnd(offset, epoch)
        return dict(sorted(ends.items()))

    return attempt


def _epoch_ends_attempt(
    cluster: Cluster, topic: str, epochs: Mapping[int, int]
) -> Callable[[], Awaitable[dict[int, EpochEnd | None]]]:
    """Return an attempt that sends one request per broker, for those of the partitions that it leads."""

    async def attempt() -> dict[int, EpochEnd | None]:
        leaders = (await cluster.topic(topic)).leaders
        ends: dict[int, EpochEnd | None] = {}
        for leader, partitions in _by_leader({number: leaders.get(number, _NONE) for number in epochs}).items():
            wanted = {partition: epochs[partition] for partition in partitions}
            response = await cluster.ask(leader, LeaderEpochEndRequest(topic, wanted))
            for code, partition, epoch, end_offset in response.topics[0][1]:
                cluster.raise_for_code(code, f"{topic} partition {partition}")
                ends[partition] = None if end_offset == _NONE else EpochEnd(epoch, end_offset)
        return ends

    return attempt


def _by_leader(leaders: Mapping[int, int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for partition, leader in leaders.items():
        groups.setdefault(leader, []).append(partition)
    return groups


async def _committed(cluster: Cluster, group: str, topic: str) -> dict[int, CommittedOffset | None]:
    async def attempt() -> dict[int, CommittedOffset | None]:
        partitions = list((await cluster.topic(topic)).leaders)
        coordinator: Any = await cluster.ask_any(FindCoordinatorRequest(group, _GROUP))
        cluster.raise_for_code(coordinator.error_code, f"coordinator of group {group}")
        return await ask_committed(cluster, coordinator.coordinator_id, group, topic, partitions)

    return await cluster.retry(f"committed offsets of group {group}", attempt)


async def ask_committed(
    cluster: Cluster, coordinator: int, group: str, topic: str, partitions: Sequence[int]
) -> dict[int, CommittedOffset | None]:
    """Ask the coordinator of a group what this has committed in partitions of a topic."""
    response = await cluster.ask(coordinator, CommittedOffsetsRequest(group, topic, partitions))
    cluster.raise_for_code(response.error_code, f"group {group}")
    offsets: dict[int, CommittedOffset | None] = {}
    for partition, offset, epoch, _, code in (answer for _, answers in response.topics for answer in answers):
        cluster.raise_for_code(code, f"{topic} partition {partition} of group {group}")
        offsets[partition] = None if offset == _NONE else CommittedOffset(offset, epoch)
    return dict(sorted(offsets.items()))
