"""Test open and hanging transactions on a real broker."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from makewhole.kafka.open_transactions import open_transactions
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.audit.conftest import Unverified
from tests.integration.conftest import MakeTopic
from tests.lab import raw
from tests.world.topics import left_open

pytestmark = pytest.mark.integration


def transactional(kafka: KafkaServer, name: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(30)
    return producer


def test_an_open_transaction_is_found_with_its_coordinators_word_and_gone_when_it_ends(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    producer = transactional(kafka, f"{topic}-id")
    assert open_transactions(connection, topic) == ()
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, b"value", partition=1)
    producer.flush(30)
    (transaction,) = open_transactions(connection, topic)
    assert (transaction.partition, transaction.first_offset, transaction.transactional_id) == (1, 0, f"{topic}-id")
    assert (transaction.state, transaction.timeout_ms, transaction.is_hanging) == ("Ongoing", 60_000, False)
    assert transaction.started_at_ms is not None
    producer.commit_transaction(30)
    assert left_open(kafka.bootstrap, topic) == ()


def test_a_transaction_that_no_coordinator_knows_hangs(
    kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic, unverified: Unverified
) -> None:
    topic, port = make_topic(), kafka.ports[0]
    live = transactional(kafka, f"{topic}-live")
    live.begin_transaction()
    live.produce(topic, b"value", partition=0)
    live.flush(30)
    orphan = raw.init_producer_id(port)
    batch = raw.batch([(None, b"value")], producer=orphan, base_sequence=0, is_transactional=True)
    with unverified():
        offset = produce_when_let(port, topic, batch, orphan_id=f"{topic}-orphan")
    by_producer = {transaction.producer_id: transaction for transaction in open_transactions(connection, topic)}
    hanging = by_producer.pop(orphan.id)
    assert (hanging.first_offset, hanging.transactional_id, hanging.state) == (offset, None, None)
    assert hanging.is_hanging
    assert [transaction.is_hanging for transaction in by_producer.values()] == [False]
    live.abort_transaction(30)
    assert [transaction.producer_id for transaction in left_open(kafka.bootstrap, topic, 1)] == [orphan.id]


def produce_when_let(port: int, topic: str, batch: bytes, *, orphan_id: str) -> int:
    """The switch takes a moment to reach the broker."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return raw.produce(port, topic, 0, batch, transactional_id=orphan_id)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_a_topic_that_does_not_exist_is_said_so(connection: KafkaConnection, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        open_transactions(connection, f"no-{tmp_path.name}")
