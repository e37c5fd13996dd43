"""Find the consumer groups that read a topic: those that have committed an offset in it, whoever they belong to.

Groups that keep their offsets elsewhere, and groups that the connection's user may not see (Describe on the cluster, or
on the group), are not among them: no broker would tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aiokafka.protocol.admin import ListGroupsRequest
from aiokafka.protocol.commit import OffsetFetchRequest

from makewhole.kafka.offsets import stable_offsets
from makewhole.kafka.wire.cluster import Cluster, NotNowError
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError

_GROUP_LOG = "__consumer_offsets"
_NONE = -1


@dataclass(frozen=True, kw_only=True)
class ReadingGroup:
    """A consumer group with offsets in a topic. `lag`: the offsets between where it stands and the stable end, in the
    partitions in which it has committed; `unread`: the number of partitions in which it has not."""

    group: str
    lag: int
    unread: int


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
    ends = stable_offsets(connection, topic) if standing else {}
    return tuple(
        ReadingGroup(
            group=group,
            lag=sum(max(0, ends.get(partition, 0) - offset) for partition, offset in committed.items()),
            unread=len(ends) - len(committed),
        )
        for group, committed in sorted(standing.items())
    )


async def _standing(cluster: Cluster, topic: str) -> Mapping[str, Mapping[int, int]]:
    """Return the offsets that each group has committed in the topic, by partition."""
    partitions = list((await cluster.topic(topic)).leaders)
    standing: dict[str, Mapping[int, int]] = {}
    for node in await _coordinators(cluster):
        listed = await cluster.ask(node, ListGroupsRequest())
        cluster.raise_for_code(listed.error_code, f"groups of broker {node}")
        for group, _ in listed.groups:
            committed = await _committed(cluster, node, group, (topic, partitions))
            if committed:
                standing[group] = committed
    return standing


async def _coordinators(cluster: Cluster) -> set[int]:
    """Return the brokers that coordinate groups; none in a cluster in which no group was ever made."""
    try:
        found = set((await cluster.topic(_GROUP_LOG, is_fresh=True)).leaders.values())
    except ConfigurationError:
        return set()
    if -1 in found:
        raise NotNowError(f"a partition of {_GROUP_LOG} has no leader, so a coordinator is missing")
    return found


async def _committed(cluster: Cluster, node: int, group: str, wanted: tuple[str, list[int]]) -> Mapping[int, int]:
    """Return the offsets that a group has committed in some partitions of a topic."""
    response = await cluster.ask(node, OffsetFetchRequest(group, [wanted]))
    cluster.raise_for_code(response.error_code, f"group {group}")
    found = {}
    for topic, answers in response.topics:
        for partition, offset, _, code in answers:
            cluster.raise_for_code(code, f"{topic} partition {partition} of group {group}")
            if offset != _NONE:
                found[partition] = offset
    return found
