"""Read a topic's raw log in Spark SQL, with producer identity and leader epochs: the data source `kafka_log`.

    register(spark)
    spark.read.format("kafka_log").option("bootstrap.servers", "…").option("topic", "flights").load()
    spark.read.format("kafka_log").load("file:///…/archive")

From a cluster: `connection`, the id of a connection that each machine knows, or `bootstrap.servers` and any other
librdkafka property, plain or with the prefix `kafka.`; and `topic`. Properties, and passwords among them, travel with
the query; of a connection only the id does.
From an archive of makewhole: `archive`, or the path of `load`.

| option | meaning |
|---|---|
| `columns` | the wanted ones, separated by commas; a schema given to the reader does the same |
| `startingOffsets` | `earliest`, or JSON `{"0": 23}`: partition to offset |
| `endingOffsets` | `latest` (the stable offset), or JSON |
| `recordsPerPartition` | how many offsets one Spark task reads: 5,000,000 when not given |
| `pageBytes` | how much a task asks for at a time: 8 MiB when not given |
| `checkCrcs` | `false` leaves the batches' checksums unchecked |
| `failOnDataLoss` | `false` lets a query go on (and warn) where offsets are gone or cannot be read |

Committed records only. Ask for few columns: Spark has no way to tell a Python source which ones a query uses.
"""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from makewhole.kafka.log.reader import ArchiveLog, BrokerLog, RangeReader, read_range
from makewhole.model.errors import PermanentError
from makewhole.model.window import PartitionRange
from makewhole_spark.kafka_log.options import COLUMNS, LogOptions
from makewhole_spark.kafka_log.plan import plan_ranges
from makewhole_spark.python_worker import shorten_next_start

logger = logging.getLogger(__name__)

_MAX_RECORDS = 65_536
_PIECE_BYTES = 2 << 20
"""Java keeps the memory of such messages. For larger ones it asks the system each time, and pays for every page."""
_MICROSECONDS = pa.timestamp("us", tz="UTC")
_LATEST_MS = (2**63 - 1) // 1000
_PLACES_NAMED = 5


@dataclass
class LogPartition(InputPartition):
    """The offsets that one Spark task reads."""

    range: PartitionRange


class KafkaLogSource(DataSource):
    """The data source of one topic's raw log."""

    @classmethod
    def name(cls) -> str:
        return "kafka_log"

    def schema(self) -> str:
        """Return the wanted columns of `makewhole.kafka.log.reader.SCHEMA`, without `is_aborted`."""
        shorten_next_start()  # each query makes its source, and its plan, in workers that are used again
        return ", ".join(f"{name} {COLUMNS[name]}" for name in LogOptions.of(self.options).columns)

    def reader(self, schema: StructType) -> "KafkaLogReader":
        return KafkaLogReader(LogOptions.of(self.options, schema))


class KafkaLogReader(DataSourceReader):
    """A reader of offset ranges that are frozen when the query is planned and read in tasks."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return ranges of at most `recordsPerPartition` offsets."""
        planned: list[InputPartition] = [LogPartition(part) for part in plan_ranges(self._options)]
        shorten_next_start()
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range as Arrow record batches."""
        assert isinstance(partition, LogPartition)
        options = self._options
        with closing(_source(options)) as source:
            reader = read_range(
                source,
                partition.range,
                max_records=_MAX_RECORDS,
                is_crc_checked=options.is_crc_checked,
                columns=options.columns,
            )
            for batch in reader:
                yield from in_pieces(_for_spark(batch))
        shorten_next_start()
        _report_missing(reader, fails=options.fails_on_data_loss)


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("kafka_log")` with a session."""
    spark.dataSource.register(KafkaLogSource)


def _source(options: LogOptions) -> ArchiveLog | BrokerLog:
    if options.archive is not None:
        return ArchiveLog(options.archive, page_bytes=options.page_bytes)
    return BrokerLog(options.connection, page_bytes=options.page_bytes)


def _report_missing(reader: RangeReader, *, fails: bool) -> None:
    """Report the offsets that the query's result lacks: raise, or log a warning.

    Raises:
        PermanentError: offsets are gone or cannot be read, and the query is to fail for that.
    """
    spans = [(start, end, "truncated" if (start, end) in reader.truncated else "gone") for start, end in reader.expired]
    spans += [(bad.offset, bad.end_offset, bad.reason) for bad in reader.undecodable]
    if not spans:
        return
    named = "; ".join(f"[{start}, {end}) {why}" for start, end, why in spans[:_PLACES_NAMED])
    more = f"; and {len(spans) - _PLACES_NAMED} more" if len(spans) > _PLACES_NAMED else ""
    thing = f"{reader.range.topic} partition {reader.range.partition}: offsets {named}{more}"
    if fails:
        raise PermanentError(f"{thing}. Move startingOffsets past them, or set failOnDataLoss to false")
    logger.warning("%s: left out of the query's result", thing)


def in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide a batch into messages of some `_PIECE_BYTES`; a record is whole, however large."""
    rows = max(1, _PIECE_BYTES * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _for_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert timestamps to Spark's microseconds; those beyond their range become its ends."""
    index = batch.schema.get_field_index("timestamp")
    if index < 0:
        return batch
    milliseconds = batch.column(index).view(pa.int64()).to_numpy(zero_copy_only=False)
    microseconds = milliseconds.clip(-_LATEST_MS, _LATEST_MS) * 1000
    return batch.set_column(index, "timestamp", pa.array(microseconds).view(_MICROSECONDS))
