"""Find holes and repeats of an Iceberg table by the positions in it, by the Spark job that people write by hand.

Spark's own connector, Iceberg's own reader, and a full outer join: no archive, no evidence, no gate. It imports nothing
of makewhole.
"""

import argparse
import json
import sys
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.windows.plain_spark import committed_records, decoded_order, plain_session

_PLACE = ["partition", "offset"]


def compare(topic: DataFrame, table: DataFrame) -> list[tuple[str, int]]:
    """Return (verdict, positions) of everything that is no match. Both have `partition`, `offset` and `value`, a struct
    of what is compared or null; a position is in the topic once."""
    rows = table.groupBy(*_PLACE).agg(f.count("*").alias("rows"), f.first("value").alias("loaded"))
    joined = topic.withColumn("is_sent", f.lit(True)).join(rows, _PLACE, "full_outer")
    verdict = (
        f.when(f.col("is_sent").isNull(), "unexpected")
        .when(f.col("rows").isNull(), "missing")
        .when(f.col("rows") > 1, "duplicate")
        .when(~f.col("value").eqNullSafe(f.col("loaded")), "mismatched")
        .otherwise("matched")
    )
    counted = joined.select(verdict.alias("verdict")).groupBy("verdict").count().collect()
    return sorted((row["verdict"], row["count"]) for row in counted if row["verdict"] != "matched")


def main() -> None:
    """Compare what the arguments name, print the answer as JSON, and wait for the end of the input."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "dsn", "warehouse", "topic", "table", "folder", "jars"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--values", action="store_true")
    wanted = parser.parse_args()
    spark = plain_session(wanted.folder, wanted.jars, _catalog(wanted.dsn, wanted.warehouse))
    topic = _topic(spark, wanted.bootstrap, wanted.topic, has_values=wanted.values)
    table = _table(spark, wanted.table, wanted.topic, has_values=wanted.values)
    print(json.dumps(compare(topic, table)), flush=True)
    sys.stdin.read()
    spark.stop()


def _catalog(dsn: str, warehouse: str) -> dict[str, str]:
    url = urlsplit(dsn)
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        ".jdbc.user": url.username or "",
        ".jdbc.password": url.password or "",
        ".jdbc.schema-version": "V1",
        ".warehouse": warehouse,
    }
    return {f"spark.sql.catalog.default{name}": text for name, text in settings.items()}


def _topic(spark: SparkSession, bootstrap: str, topic: str, *, has_values: bool) -> DataFrame:
    order = decoded_order() if has_values else f.lit(None)
    records = committed_records(spark, bootstrap, topic)
    if not has_values:
        return records.select(*_PLACE, order.cast("string").alias("value"))
    return records.select(*_PLACE, order.alias("o")).select(*_PLACE, f.struct("o.amount", "o.status").alias("value"))


def _table(spark: SparkSession, table: str, topic: str, *, has_values: bool) -> DataFrame:
    value = f.struct("amount", "status") if has_values else f.lit(None).cast("string")
    rows = spark.table(f"default.{table}").where(f.col("_kafka_metadata.topic") == topic)
    return rows.select("_kafka_metadata.partition", "_kafka_metadata.offset", value.alias("value"))


if __name__ == "__main__":
    main()
