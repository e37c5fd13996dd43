"""Take the snapshot of a topic, as a window takes it: decoded, hashed, bucketed, written to Parquet, archived.

Its peer is the job that people write by hand: Spark's connector, `from_json`, hashes, Parquet by bucket; no archive.
"""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pyarrow import dataset
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from makewhole.config.pipeline_file import read_pipelines
from makewhole.kafka.offsets import describe_topic, log_starts, stable_offsets
from makewhole.lake.storage import Storage
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import PartitionRange, Window
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.read_piece import TopicPiece, read_piece
from makewhole_spark.snapshot.read_topics import split_range
from makewhole_spark.spark_carrier import SparkCarrier

MAKEWHOLE, BY_HAND = "makewhole", "by hand"
_RECORDS_PER_TASK = 2_000_000
_BUCKETS = 16
_FIELDS = "flight_id string, carrier string, dep_delay decimal(6,1), seats int, cancelled boolean"
CONNECTION = "log"
_PIPELINE = """\
version: 2
pipeline: bench
compare: {{carrier: string, dep_delay: "decimal(6,1)", seats: int, cancelled: boolean}}
points:
  flights: {{kind: topic, connection: log, topic: {topic}, value: json, key: "$.flight_id"}}
  warehouse: {{kind: store, connection: db, table: departures, key: flight_id}}
hops:
  - {{from: flights, to: warehouse}}
"""


def take(spark: SparkSession, bootstrap: str, topic: str, folder: str) -> tuple[int, int]:
    """Take a snapshot and remove it; return (rows, bytes written)."""
    context = _context(bootstrap, topic, Path(folder))
    pieces = list(_pieces(context))
    answers = SparkCarrier(spark.sparkContext).carry(pieces, read_piece)
    size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    shutil.rmtree(folder)
    return sum(answer.rows for answer in answers), size


def take_by_hand(spark: SparkSession, bootstrap: str, topic: str, folder: str) -> tuple[int, int]:
    """Write the same rows by Spark alone, and remove them; return (rows, bytes written)."""
    reading = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    value = f.from_json(f.col("value").cast("string"), _FIELDS)
    decoded = (
        reading.option("kafka.isolation.level", "read_committed")
        .load()
        .select(value.alias("value"), "partition", "offset", "timestamp")
        .select("value.*", "partition", "offset", "timestamp")
    )
    hashed = decoded.select(
        f.xxhash64("flight_id").alias("key_hi"),
        f.xxhash64(f.lit(1), f.col("flight_id")).alias("key_lo"),
        f.xxhash64("carrier", "dep_delay", "seats", "cancelled").alias("row_hash"),
        "flight_id",
        "partition",
        "offset",
        "timestamp",
    ).withColumn("bucket", f.pmod("key_hi", f.lit(_BUCKETS)))
    hashed.write.partitionBy("bucket").option("compression", "zstd").parquet(folder)
    rows = dataset.dataset(folder, format="parquet").count_rows()
    size = sum(file.stat().st_size for file in Path(folder).rglob("*.parquet"))
    shutil.rmtree(folder)
    return rows, size


def _context(bootstrap: str, topic: str, folder: Path) -> WindowContext:
    folder.mkdir(parents=True)
    (folder / "bench.yaml").write_text(_PIPELINE.format(topic=topic))
    pipelines, problems = read_pipelines([folder])
    if problems:
        raise RuntimeError(f"the pipeline of the benchmark is refused: {problems}")
    connection = KafkaConnection(id=CONNECTION, properties={"bootstrap.servers": bootstrap})
    now = datetime.now(UTC)
    return WindowContext(
        pipeline=pipelines["bench"],
        window=Window(
            pipeline="bench",
            number=0,
            revision=0,
            start=None,
            end=now,
            opened_at=now,
            ranges={"flights": ranges(connection, topic)},
        ),
        connections={CONNECTION: connection},
        storage=Storage(root=str(folder / "storage")),
    )


def ranges(connection: KafkaConnection, topic: str) -> tuple[PartitionRange, ...]:
    """Return the ranges of all of a topic."""
    topic_id = describe_topic(connection, topic).topic_id
    starts, ends = log_starts(connection, topic), stable_offsets(connection, topic)
    return tuple(
        PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=starts[partition], hi=end)
        for partition, end in sorted(ends.items())
    )


def _pieces(context: WindowContext) -> Iterator[TopicPiece]:
    point = context.pipeline.topic("flights")
    for whole in context.window.ranges[point.name]:
        for part in split_range(whole, _RECORDS_PER_TASK):
            yield TopicPiece(context=context, point=point, bucket_count=_BUCKETS, range=part, window_lo=whole.lo)
