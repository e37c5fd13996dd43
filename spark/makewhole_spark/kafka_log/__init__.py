"""The data source `kafka_log`: a topic's raw log in Spark SQL."""

from makewhole_spark.kafka_log.source import register

__all__ = ["register"]
