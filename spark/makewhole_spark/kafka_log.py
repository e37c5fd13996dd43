"""The `kafka_log` data source: a topic's raw log in Spark SQL, with producer identity and leader epochs.

    register(spark)
    spark.read.format("kafka_log").option("bootstrap.servers", "…").option("topic", "flights").load()

Options: `bootstrap.servers` and any other librdkafka property, plain or with the prefix `kafka.`; `topic`;
`startingOffsets` (`earliest`, or JSON `{"0": 23}`); `endingOffsets` (`latest` = the stable offset, or JSON);
`recordsPerPartition` (how many offsets one Spark task reads). Committed records only; every offset of the ranges is
accounted for, or the query fails.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from makewhole.kafka.log import BrokerLog, read_range
from makewhole.kafka.offsets import describe_topic, log_starts, stable_offsets
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.window import PartitionRange

_SCHEMA = """
    partition int, offset bigint, leader_epoch int, timestamp timestamp, timestamp_type tinyint, key binary,
    value binary, headers array<struct<key: string, value: binary>>, producer_id bigint, producer_epoch smallint,
    sequence int, is_transactional boolean, is_replayed boolean
"""
_DROPPED = ("is_aborted",)
_RECORDS_PER_PARTITION = 5_000_000
_MAX_RECORDS = 65_536
_MICROSECONDS = pa.timestamp("us", tz="UTC")
_LATEST_MS = (2**63 - 1) // 1000
# Spark hands option names over in lower case.
_OWN_OPTIONS = {"topic", "startingoffsets", "endingoffsets", "recordsperpartition", "path"}


@dataclass
class LogPartition(InputPartition):
    """The offsets that one Spark task reads."""

    topic: str
    topic_id: str
    partition: int
    lo: int
    hi: int


class KafkaLogSource(DataSource):
    """The raw log of one topic."""

    @classmethod
    def name(cls) -> str:
        return "kafka_log"

    def schema(self) -> str:
        """The columns of `makewhole.kafka.log.SCHEMA` but `is_aborted`."""
        return _SCHEMA

    def reader(self, schema: object) -> "KafkaLogReader":  # noqa: ARG002 (the schema is fixed)
        return KafkaLogReader(dict(self.options))


class KafkaLogReader(DataSourceReader):
    """Freezes the offset ranges when the query is planned, and reads them in tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self._topic = _required(given, "topic")
        self._starting = given.get("startingoffsets", "earliest")
        self._ending = given.get("endingoffsets", "latest")
        self._records_per_partition = int(given.get("recordsperpartition", _RECORDS_PER_PARTITION))
        properties = {name.removeprefix("kafka."): value for name, value in given.items() if name not in _OWN_OPTIONS}
        _required(properties, "bootstrap.servers")
        self._properties = properties

    def partitions(self) -> list[InputPartition]:
        """Ranges of at most `recordsPerPartition` offsets."""
        connection = self._connection()
        state = describe_topic(connection, self._topic)
        starts = _offsets("startingOffsets", self._starting, "earliest") or log_starts(connection, self._topic)
        ends = _offsets("endingOffsets", self._ending, "latest") or stable_offsets(connection, self._topic)
        planned: list[InputPartition] = []
        for partition in state.partitions:
            lo, hi = starts.get(partition, 0), ends.get(partition, 0)
            for start in range(lo, hi, self._records_per_partition):
                end = min(start + self._records_per_partition, hi)
                planned.append(LogPartition(self._topic, state.topic_id, partition, start, end))
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, as Arrow record batches."""
        assert isinstance(partition, LogPartition)
        wanted = PartitionRange(
            topic=partition.topic,
            topic_id=partition.topic_id,
            partition=partition.partition,
            lo=partition.lo,
            hi=partition.hi,
        )
        with BrokerLog(self._connection()) as log:
            for batch in read_range(log, wanted, max_records=_MAX_RECORDS):
                yield _for_spark(batch)

    def _connection(self) -> KafkaConnection:
        return KafkaConnection(id="kafka_log", properties=self._properties)


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("kafka_log")` known to a session."""
    spark.dataSource.register(KafkaLogSource)


def _for_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Spark's timestamps are microseconds; those beyond their range become its ends."""
    index = batch.schema.get_field_index("timestamp")
    milliseconds = batch.column(index).view(pa.int64()).to_numpy(zero_copy_only=False)
    microseconds = milliseconds.clip(-_LATEST_MS, _LATEST_MS) * 1000
    return batch.set_column(index, "timestamp", pa.array(microseconds).view(_MICROSECONDS)).drop_columns(list(_DROPPED))


def _offsets(option: str, text: str, default: str) -> dict[int, int] | None:
    if text.lower() == default:
        return None
    try:
        return {int(partition): int(offset) for partition, offset in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError) as error:
        remedy = f'Write `{default}`, or JSON like {{"0": 23}}: partition to offset'
        problem = Problem(file="kafka_log", path=option, found="cannot be read", remedy=remedy)
        raise ConfigurationError([problem]) from error


def _required(options: Mapping[str, str], name: str) -> str:
    if not options.get(name):
        problem = Problem(file="kafka_log", path=name, found="is not set", remedy=f'Add .option("{name}", …)')
        raise ConfigurationError([problem])
    return options[name]
