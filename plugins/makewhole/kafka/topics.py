"""Describe a topic: its replicas and settings, with where each setting comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from aiokafka.protocol.admin import DescribeConfigsRequest

from makewhole.kafka.wire.cluster import Cluster
from makewhole.kafka.wire.protocol import TopicMetadataRequest
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import MakewholeError

_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4
TOPIC_SETTINGS = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "flush.messages",
    "flush.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
)
BROKER_SETTINGS = (
    "offsets.retention.minutes",
    "producer.id.expiration.ms",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
)


class SettingSource(StrEnum):
    """Level on which a setting was set."""

    TOPIC = "topic"
    BROKER = "broker"
    DEFAULT = "default"
    UNKNOWN = "unknown"


_SOURCES = {
    1: SettingSource.TOPIC,
    2: SettingSource.BROKER,
    3: SettingSource.BROKER,
    4: SettingSource.BROKER,
    5: SettingSource.DEFAULT,
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value as the broker applies it; None where the broker does not show it."""

    value: str | None
    source: SettingSource


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Replicas of a partition by node id. `leader` is -1 when there is none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TopicDescription:
    """A topic as the cluster holds it now. `settings` is empty where we may not read them: `refusal` says why."""

    name: str
    topic_id: str
    brokers: int
    partitions: tuple[Replicas, ...]
    settings: Mapping[str, Setting]
    refusal: str | None = None


def describe_settings(
    connection: KafkaConnection, topic: str, *, patience_seconds: float | None = None
) -> TopicDescription:
    """Return the topic's replicas and settings.

    Raises:
        ConfigurationError: the topic does not exist.
        TransientError: the brokers do not answer.
    """
    with Cluster(connection, patience_seconds=patience_seconds) as cluster:
        return cluster.run(read_description(cluster, topic))


async def read_description(cluster: Cluster, topic: str) -> TopicDescription:
    """Return the topic's replicas and settings over existing connections; runs on the cluster's loop."""
    known = await cluster.topic(topic)
    brokers, partitions = await cluster.retry(f"replicas of topic {topic}", lambda: _replicas(cluster, topic))
    try:
        settings, refusal = await _settings(cluster, topic), None
    except MakewholeError as error:
        settings, refusal = {}, str(error)
    return TopicDescription(
        name=topic,
        topic_id=known.topic_id,
        brokers=brokers,
        partitions=partitions,
        settings=settings,
        refusal=refusal,
    )


async def _replicas(cluster: Cluster, topic: str) -> tuple[int, tuple[Replicas, ...]]:
    answer = await cluster.ask_any(TopicMetadataRequest(topic))
    code, _, _, _, partitions, *_ = answer.topics[0]
    cluster.raise_for_code(code, f"topic {topic}")
    all_replicas = [
        Replicas(
            partition=partition,
            leader=leader,
            leader_epoch=leader_epoch,
            replicas=tuple(replicas),
            in_sync=tuple(in_sync),
            offline=tuple(offline),
        )
        for _, partition, leader, leader_epoch, replicas, in_sync, offline, _ in partitions
    ]
    return len(answer.brokers), tuple(sorted(all_replicas, key=lambda replicas: replicas.partition))


async def _settings(cluster: Cluster, topic: str) -> dict[str, Setting]:
    of_topic = (_TOPIC_RESOURCE, topic, list(TOPIC_SETTINGS))
    leaders = (await cluster.topic(topic)).leaders.values()
    node = next((leader for leader in leaders if leader >= 0), -1)

    async def attempt() -> dict[str, Setting]:
        response = await cluster.ask_any(DescribeConfigsRequest([of_topic]))
        settings = _read(cluster, response.resources[0], f"settings of topic {topic}")
        if node >= 0:
            of_broker = (_BROKER_RESOURCE, str(node), list(BROKER_SETTINGS))
            resource = (await cluster.ask(node, DescribeConfigsRequest([of_broker]))).resources[0]
            if resource[0] == 0:  # few may read a broker's settings: they are left out then
                settings |= _read(cluster, resource, f"settings of broker {node}")
        return dict(sorted(settings.items()))

    return await cluster.retry(f"settings of topic {topic}", attempt)


def _read(cluster: Cluster, resource: tuple[object, ...], thing: str) -> dict[str, Setting]:
    code, _, _, _, entries = resource
    cluster.raise_for_code(int(str(code)), thing)
    assert isinstance(entries, list)
    return {
        entry[0]: Setting(value=None if entry[4] else entry[1], source=_SOURCES.get(entry[3], SettingSource.UNKNOWN))
        for entry in entries
    }
