"""Read a topic's raw log in Spark SQL: the data source `kafka_log`."""

from makewhole_spark.kafka_log.source import register

__all__ = ["register"]
