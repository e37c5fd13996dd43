"""Test the Spark data source against a plain consumer."""

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from makewhole.kafka.log.reader import BrokerLog, SegmentWriter, read_range
from makewhole.model.connection import KafkaConnection
from makewhole.stack.environment import connection_kafka
from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.kafka_log.source import register
from tests.integration.conftest import MakeTopic
from tests.integration.kafka.records import consume, produce, range_of
from tests.world.environment import set_connection

pytestmark = pytest.mark.integration


def read(spark: SparkSession, kafka: KafkaServer, topic: str, **options: str) -> DataFrame:
    register(spark)
    reading = spark.read.format("kafka_log").option("kafka.bootstrap.servers", kafka.bootstrap).option("topic", topic)
    return reading.options(**options).load()


@pytest.mark.extended
def test_spark_reads_what_a_consumer_reads(
    spark: SparkSession, kafka: KafkaServer, connection: KafkaConnection, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        produce(kafka.bootstrap, topic, 2000, partition=partition, compression_type="lz4")
    frame = read(spark, kafka, topic, recordsPerPartition="1500")
    rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
    assert [(row.partition, row.offset, bytes(row.key), bytes(row.value)) for row in rows] == [
        (partition, *record) for partition in (0, 1) for record in consume(kafka.bootstrap, topic, partition)
    ]
    assert (rows[0].leader_epoch, rows[0].producer_epoch, rows[0].sequence, rows[0].headers) == (0, -1, -1, [])
    assert rows[0].timestamp.year >= 2024
    bounded = read(
        spark, kafka, topic, startingOffsets='{"0": 10, "1": 5}', endingOffsets='{"0": 20, "1": 6}', columns="offset"
    )
    assert sorted(row.offset for row in bounded.collect()) == [5, *range(10, 20)]


def test_a_connection_that_is_named_is_looked_up_by_planner_and_tasks(
    spark: SparkSession, kafka: KafkaServer, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes long where it is the first one on Spark, which starts."""
    topic = make_topic()
    produce(kafka.bootstrap, topic, 10)
    set_connection(monkeypatch, "raw_log", connection_kafka(kafka.bootstrap))
    register(spark)

    reading = spark.read.format("kafka_log").option("connection", "raw_log").option("topic", topic)

    assert sorted(row.offset for row in reading.option("columns", "offset").load().collect()) == list(range(10))


def test_tasks_that_part_a_batch_neither_lose_nor_double(
    spark: SparkSession, kafka: KafkaServer, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 100, linger_ms=200, enable_idempotence=True)  # one batch
    frame = read(spark, kafka, topic, recordsPerPartition="7", columns="offset,sequence")
    assert frame.rdd.getNumPartitions() == 15
    assert sorted(map(tuple, frame.collect())) == [(offset, offset) for offset in range(100)]


def test_only_the_wanted_columns_are_there(spark: SparkSession, kafka: KafkaServer, make_topic: MakeTopic) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 10)
    assert read(spark, kafka, topic, columns="value, offset").columns == ["value", "offset"]
    register(spark)
    reading = spark.read.format("kafka_log").option("bootstrap.servers", kafka.bootstrap).option("topic", topic)
    frame = reading.schema("offset bigint, headers array<struct<key: string, value: binary>>").load()
    assert sorted((row.offset, row.headers) for row in frame.collect()) == [(offset, []) for offset in range(10)]
    with pytest.raises(PySparkException, match=r"columns: has 'prize'. Choose from partition, offset"):
        read(spark, kafka, topic, columns="prize").collect()


def test_an_archive_reads_like_the_topic_it_was_taken_from(
    spark: SparkSession,
    kafka: KafkaServer,
    connection: KafkaConnection,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        produce(kafka.bootstrap, topic, 300, partition=partition, linger_ms=20)
        whole = range_of(connection, topic, 0, 300, partition)
        for lo, hi in ((0, 130), (130, 300)):
            part = replace(whole, lo=lo, hi=hi)
            writer = SegmentWriter(str(tmp_path), part, window_lo=0)
            with BrokerLog(connection) as log:
                reader = read_range(log, part, on_fetched=writer.write)
                assert sum(batch.num_rows for batch in reader) == hi - lo
            writer.finish(reader.expired, reader.aborted)
    register(spark)
    archived = spark.read.format("kafka_log").option("recordsPerPartition", "70").load(tmp_path.as_uri())
    expected = read(spark, kafka, topic)
    assert archived.schema == expected.schema
    assert sorted(archived.collect()) == sorted(expected.collect())
    other = spark.read.format("kafka_log").option("topic", "other").option("archive", str(tmp_path)).load()
    with pytest.raises(PySparkException, match=f"kafka_log: topic: the archive is of {topic}"):
        other.collect()


def test_offsets_that_are_gone_fail_the_query_unless_that_is_allowed(
    spark: SparkSession,
    kafka: KafkaServer,
    admin: AdminClient,
    make_topic: MakeTopic,
) -> None:
    topic = make_topic()
    produce(kafka.bootstrap, topic, 100)
    for future in admin.delete_records([TopicPartition(topic, 0, 23)]).values():
        future.result()
    wanted = {"columns": "offset", "startingOffsets": '{"0": 0}'}
    reason = rf"{topic} partition 0: offsets \[0, 23\) gone. Move startingOffsets past them, or set failOnDataLoss"
    with pytest.raises(PySparkException, match=reason):
        read(spark, kafka, topic, **wanted).collect()
    frame = read(spark, kafka, topic, failOnDataLoss="false", **wanted)
    assert sorted(row.offset for row in frame.collect()) == list(range(23, 100))
    assert read(spark, kafka, topic, columns="offset").count() == 77
