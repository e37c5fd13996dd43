"""Read a topic by `kafka_log` and by Spark's own connector: the same columns, the same sink, the same answer."""

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from makewhole_spark.kafka_log.source import register

COLUMNS = ("key", "value", "partition", "offset", "timestamp")
KAFKA_LOG, CONNECTOR = "kafka_log", "Spark's connector"


def _frame(spark: SparkSession, side: str, bootstrap: str, topic: str) -> DataFrame:
    """Read committed records only, on both sides. The connector has no say in which columns it makes, `kafka_log`
    has."""
    if side == KAFKA_LOG:
        register(spark)
        reading = spark.read.format("kafka_log").option("topic", topic).option("columns", ",".join(COLUMNS))
    else:
        reading = (
            spark.read.format("kafka").option("subscribe", topic).option("kafka.isolation.level", "read_committed")
        )
    return reading.option("kafka.bootstrap.servers", bootstrap).load().select(*COLUMNS)


def read(spark: SparkSession, side: str, bootstrap: str, topic: str) -> None:
    """Copy every row, key and value into Spark's own row format, and throw it away."""
    _frame(spark, side, bootstrap, topic).write.format("noop").mode("overwrite").save()


def write(spark: SparkSession, side: str, bootstrap: str, topic: str, target: str) -> None:
    """Write every row into Parquet files."""
    _frame(spark, side, bootstrap, topic).write.mode("overwrite").parquet(target)
    shutil.rmtree(Path(target))


def checksum(spark: SparkSession, side: str, bootstrap: str, topic: str) -> tuple[int, int]:
    """Return the number of rows, and a hash over the content of all of them that does not depend on their order."""
    hashed = _frame(spark, side, bootstrap, topic).selectExpr(f"xxhash64({', '.join(COLUMNS)}) as hash")
    count, digest = hashed.selectExpr("count(hash)", "bit_xor(hash)").first() or (0, 0)
    return count, digest
