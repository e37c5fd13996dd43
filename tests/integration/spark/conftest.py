"""One Spark session, and for each test a small pipeline of its own on real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from makewhole.stack.environment import connection_kafka, connection_postgres
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.spark.world import World, make_topic


@pytest.fixture
def world(
    spark: SparkSession,
    kafka: KafkaServer,
    database: str,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """Empty tables and an empty topic; the pipeline is described with its defaults."""
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", journal)
    monkeypatch.setenv("MAKEWHOLE_STORAGE", str(tmp_path / "storage"))
    monkeypatch.setenv("MAKEWHOLE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("AIRFLOW_CONN_LOG", connection_kafka(kafka.bootstrap))
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection_postgres(database))
    made = World(spark=spark, bootstrap=kafka.bootstrap, dsn=database, journal=journal, folder=tmp_path)
    made.describe()
    made.make_tables()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    make_topic(admin, made.topic)
    yield made
    for deleted in admin.delete_topics([made.topic, *made.more_topics]).values():
        deleted.exception()
