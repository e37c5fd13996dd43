"""Read a ledger, a topic and a store by Spark alone: its own connector, parallel JDBC reads, `from_json` or
`from_avro`.

The jobs beside makewhole's are made of it. It imports nothing of makewhole: not every environment of theirs has that.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

_FIELDS = "order_id string, amount decimal(12,2), status string"
_COLUMNS = ("order.order_id", "order.amount", "order.status")
_READERS = 4


@dataclass(frozen=True, kw_only=True)
class Points:
    """The rows of each point, with `order_id`, `amount` (`decimal(12,2)`) and `status`; nothing is read yet."""

    ledger: DataFrame
    topic: DataFrame
    store: DataFrame


def answer(compare: Callable[[Points], object]) -> None:
    """Compare the points that the arguments name, print the answer as JSON, and wait for the end of the input."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "dsn", "name", "folder", "jars", "schema"):
        parser.add_argument(f"--{name}", required=True)
    wanted = parser.parse_args()
    spark = plain_session(wanted.folder, wanted.jars)
    points = Points(
        ledger=_table(spark, wanted.dsn, f"{wanted.name}.ledger"),
        topic=_topic(spark, wanted.bootstrap, wanted.name, wanted.schema),
        store=_table(spark, wanted.dsn, f"{wanted.name}.store"),
    )
    print(json.dumps(compare(points)), flush=True)
    sys.stdin.read()
    spark.stop()


def plain_session(folder: str, jars: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session as such jobs have it, with these jars (comma-separated) and settings of its own."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.local.dir", folder)
    )
    for name, text in (settings or {}).items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _table(spark: SparkSession, dsn: str, table: str) -> DataFrame:
    url = urlsplit(dsn)
    part = f"mod(substr(order_id, 2)::bigint, {_READERS})"
    options = {
        "url": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "user": url.username or "",
        "password": url.password or "",
        "driver": "org.postgresql.Driver",
        "fetchsize": "10000",
        "dbtable": f"(table {table}) t cross join lateral (select {part} as part) p",
        "partitionColumn": "part",
        "lowerBound": "0",
        "upperBound": str(_READERS),
        "numPartitions": str(_READERS),
    }
    rows = spark.read.format("jdbc").options(**options).load()
    return rows.select("order_id", f.col("amount").cast("decimal(12,2)").alias("amount"), "status")


def _topic(spark: SparkSession, bootstrap: str, topic: str, schema: str) -> DataFrame:
    order = from_avro("value", schema) if schema else decoded_order()
    return committed_records(spark, bootstrap, topic).select(order.alias("order")).select(*_COLUMNS)


def decoded_order() -> Column:
    """Return the order that is in the value of a record, as JSON."""
    return f.from_json(f.col("value").cast("string"), _FIELDS)


def committed_records(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return the committed records of a topic, in the columns of Spark's own connector."""
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
