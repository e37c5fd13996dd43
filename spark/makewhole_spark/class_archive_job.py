"""Run a short job that does a little of everything that our jobs do, so that Java can record the classes they load."""

import tempfile

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count

from makewhole_spark.spark_carrier import SparkCarrier, spark_context


def main() -> None:
    """Carry tasks, write and read Parquet, group and count."""
    context = spark_context("short job")
    SparkCarrier(context).carry(list(range(4)), abs)
    spark = SparkSession.builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        spark.range(100).withColumn("odd", col("id") % 2).write.parquet(f"{folder}/rows")
        spark.read.parquet(f"{folder}/rows").groupBy("odd").agg(count("*")).collect()
    spark.stop()


if __name__ == "__main__":
    main()
