"""Test when Kafka deletes a record, on a real broker."""

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from makewhole.kafka.retention import Deadline, RecordRetention, read_retention
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.conftest import MakeTopic
from tests.integration.kafka.records import produce

pytestmark = pytest.mark.integration

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_record_goes_by_age_and_is_gone_before_the_log_start(
    kafka: KafkaServer, connection: KafkaConnection, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2, retention_ms=str(3_600_000))
    produce(kafka.bootstrap, topic, 10)
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    deleted.result(10)
    retention = read_retention(connection, topic)
    assert retention.deadline(0, 3, _NOON) == Deadline(fate=RecordRetention.DELETED)
    assert retention.deadline(0, 4, _NOON) == Deadline(fate=RecordRetention.EXPIRES, at=_NOON + timedelta(hours=1))
    assert retention.deadline(0, 4, None) == Deadline(fate=RecordRetention.NOT_KNOWN)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"retention_ms": "-1"}, Deadline(fate=RecordRetention.KEPT)),
        ({"cleanup_policy": "compact", "retention_ms": "1000"}, Deadline(fate=RecordRetention.KEPT)),
        (
            {"retention_ms": "-1", "retention_bytes": "1000000"},
            Deadline(fate=RecordRetention.NOT_KNOWN, may_be_earlier=True),
        ),
        (
            {"retention_ms": "60000", "retention_bytes": "1000000"},
            Deadline(fate=RecordRetention.EXPIRES, at=_NOON + timedelta(minutes=1), may_be_earlier=True),
        ),
        (
            {"cleanup_policy": "compact,delete", "retention_ms": str(2**63 - 1)},
            Deadline(fate=RecordRetention.EXPIRES, at=datetime(9999, 1, 1, tzinfo=UTC)),
        ),
    ],
)
def test_what_the_settings_say_of_a_record(
    connection: KafkaConnection, make_topic: MakeTopic, settings: dict[str, str], expected: Deadline
) -> None:
    topic = make_topic(partitions=1, **settings)
    assert read_retention(connection, topic).deadline(0, 0, _NOON) == expected
