"""The Spark data source against a plain consumer."""

from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.kafka_log import register

pytestmark = pytest.mark.integration


def test_spark_reads_what_a_consumer_reads(
    spark: SparkSession, kafka: KafkaServer, connection: KafkaConnection, make_topic, kafka_tools: ModuleType
) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        kafka_tools.produce(kafka.bootstrap, topic, 2000, partition=partition, compression_type="lz4")
    register(spark)
    reading = spark.read.format("kafka_log").option("kafka.bootstrap.servers", kafka.bootstrap).option("topic", topic)
    frame = reading.option("recordsPerPartition", "1500").load()
    rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
    assert [(row.partition, row.offset, bytes(row.key), bytes(row.value)) for row in rows] == [
        (partition, *record)
        for partition in (0, 1)
        for record in kafka_tools.consume(kafka.bootstrap, topic, partition)
    ]
    assert (rows[0].leader_epoch, rows[0].producer_epoch, rows[0].sequence, rows[0].headers) == (0, -1, -1, [])
    assert rows[0].timestamp.year >= 2024
    bounded = reading.option("startingOffsets", '{"0": 10, "1": 5}').option("endingOffsets", '{"0": 20, "1": 6}').load()
    assert bounded.count() == 11
