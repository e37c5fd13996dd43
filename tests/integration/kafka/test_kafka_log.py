"""The Spark data source against a plain consumer."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.kafka_log import register

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # the workers need this environment's packages
        session = _session()
        register(session)
        yield session
        session.stop()


def _session() -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def test_spark_reads_what_a_consumer_reads(
    spark: SparkSession, kafka: KafkaServer, connection: KafkaConnection, make_topic, kafka_tools: ModuleType
) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        kafka_tools.produce(kafka.bootstrap, topic, 2000, partition=partition, compression_type="lz4")
    reading = spark.read.format("kafka_log").option("kafka.bootstrap.servers", kafka.bootstrap).option("topic", topic)
    frame = reading.option("recordsPerPartition", "1500").load()
    assert frame.rdd.getNumPartitions() == 4
    found = [
        tuple(row)
        for row in frame.select("partition", "offset", "key", "value").orderBy("partition", "offset").collect()
    ]
    expected = [
        (partition, offset, bytearray(key), bytearray(value))
        for partition in (0, 1)
        for offset, key, value in kafka_tools.consume(kafka.bootstrap, topic, partition)
    ]
    assert found == expected
    bounded = reading.option("startingOffsets", '{"0": 10, "1": 5}').option("endingOffsets", '{"0": 20, "1": 6}').load()
    assert bounded.count() == 11
    first = frame.where("partition = 0 and offset = 0").first()
    assert first is not None
    assert (first.leader_epoch, first.producer_epoch, first.sequence, first.headers) == (0, -1, -1, [])
    assert first.timestamp.year >= 2024
