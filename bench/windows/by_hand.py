"""Compare a ledger, a topic and a store by the Spark job that people write by hand.

Spark's own connector, parallel JDBC reads, `from_json`, and full outer joins: no archive, no evidence, no gate.
"""

import argparse
import json
import sys
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.jars import connector_jars, jdbc_driver
from bench.windows.orders import LEDGER_HOP, STORE_HOP

_FIELDS = "order_id string, amount decimal(12,2), status string"
_READERS = 4


def main() -> None:
    """Compare, print what is no match as JSON, and wait for the end of the input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--folder", required=True)
    wanted = parser.parse_args()
    jars = ",".join(str(jar) for jar in [*connector_jars(), jdbc_driver()])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.local.dir", wanted.folder)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps(compare(spark, wanted.bootstrap, wanted.dsn, wanted.name)), flush=True)
    sys.stdin.read()
    spark.stop()


def compare(spark: SparkSession, bootstrap: str, dsn: str, name: str) -> list[tuple[str, str, int]]:
    """Return (hop, verdict, keys) of everything that is no match."""
    ledger = _by_key(_table(spark, dsn, f"{name}.ledger"), "l")
    store = _by_key(_table(spark, dsn, f"{name}.store"), "s")
    topic = _by_key(_topic(spark, bootstrap, name), "k")
    joined = ledger.join(topic, "order_id", "full_outer").join(store, "order_id", "full_outer")
    counted = joined.select(_verdict("l", "k").alias("first"), _verdict("k", "s").alias("second"))
    rows = counted.groupBy("first", "second").count().collect()
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        for hop, verdict in ((LEDGER_HOP, row["first"]), (STORE_HOP, row["second"])):
            if verdict is not None and verdict != "matched":
                found[hop, verdict] = found.get((hop, verdict), 0) + row["count"]
    return [(hop, verdict, keys) for (hop, verdict), keys in sorted(found.items())]


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
    return spark.read.format("jdbc").options(**options).load()


def _topic(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    return records.select(f.from_json(f.col("value").cast("string"), _FIELDS).alias("j")).select("j.*")


def _by_key(rows: DataFrame, side: str) -> DataFrame:
    compared = f.struct(f.col("amount").cast("decimal(12,2)").alias("amount"), "status")
    grouped = rows.select("order_id", compared.alias("x")).groupBy("order_id")
    return grouped.agg(f.count("*").alias(f"{side}n"), f.first("x").alias(f"{side}v"))


def _verdict(source: str, target: str) -> Column:
    """Return the verdict of a key on a hop; null where neither side has it."""
    lacks_source, lacks_target = f.col(f"{source}n").isNull(), f.col(f"{target}n").isNull()
    return (
        f.when(lacks_source & lacks_target, None)
        .when(lacks_source, "unexpected")
        .when(lacks_target, "missing")
        .when(f.col(f"{target}n") > 1, "duplicate")
        .when(f.col(f"{source}v") != f.col(f"{target}v"), "mismatched")
        .otherwise("matched")
    )


if __name__ == "__main__":
    main()
