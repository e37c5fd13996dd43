"""Test a partition that moves to another leader, and to another broker, while it is read."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from makewhole.kafka.log.reader import BrokerLog, read_range
from makewhole.kafka.wire.cluster import Cluster
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import Accounting
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.kafka.records import produce, range_of
from tests.world.java_clients import JavaClients

pytestmark = [pytest.mark.integration, pytest.mark.extended]

TOPIC = "moving"


@pytest.fixture(scope="module")
def two(server_folder: Path) -> Iterator[KafkaServer]:
    with KafkaServer(server_folder / "kafka-two", nodes=2) as server:
        yield server


def reassign(java: JavaClients, bootstrap: str, replicas: list[int]) -> None:
    """Only Java's own admin client can."""
    properties = java.jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", bootstrap)
    admin = java.jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    moved = java.jvm.org.apache.kafka.clients.admin.NewPartitionReassignment(replicas)
    partition = java.jvm.org.apache.kafka.common.TopicPartition(TOPIC, 0)
    admin.alterPartitionReassignments({partition: java.jvm.java.util.Optional.of(moved)}).all().get()
    admin.close()


def wait_for_leader(connection: KafkaConnection, node: int) -> int:
    """The leader epoch under which the node leads."""
    deadline = time.monotonic() + 60
    with Cluster(connection) as cluster:
        while True:
            topic = cluster.run(cluster.topic(TOPIC, is_fresh=True))
            if topic.leaders[0] == node:
                return topic.leader_epochs[0]
            assert time.monotonic() < deadline, "the partition did not move"
            time.sleep(0.1)


def test_a_read_goes_on_at_the_new_leader(two: KafkaServer, java: JavaClients) -> None:
    connection = KafkaConnection(id="two", properties={"bootstrap.servers": two.bootstrap})
    admin = AdminClient({"bootstrap.servers": two.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result()
    reassign(java, two.bootstrap, [1])
    for start in range(0, 600, 10):
        produce(two.bootstrap, TOPIC, 10, start=start)
    epochs = [wait_for_leader(connection, 1)]
    with BrokerLog(connection, page_bytes=1) as log:
        reader = read_range(log, range_of(connection, TOPIC, 0, 600), max_records=10)
        batches, seen = reader.batches(), []
        for node in (2, 1):
            seen += [offset for _ in range(15) for offset in next(batches).column("offset").to_pylist()]
            reassign(java, two.bootstrap, [node])
            epochs.append(wait_for_leader(connection, node))
        seen += [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    assert epochs == sorted(set(epochs)), "each leader has an epoch of its own"
    assert seen == list(range(600))
    assert reader.accounting == Accounting(span=600, data=600)
