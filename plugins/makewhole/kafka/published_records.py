"""Lay the rows of a published file out for the producer, and find what was sent of them when the marker is lost."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.replay_records import Header, MessageFields
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import CorruptionError
from makewhole.model.window import PartitionRange

CHANGE_HEADER = "makewhole-published"
"""`publish` or `withdraw`: what the record says of the one at its origin."""
WINDOW_HEADER = "makewhole-published-window"
"""Window and revision of the record, `7/1`."""
ORIGIN_HEADER = "makewhole-published-from"
"""Where the record lies in the topic that is published: `partition:offset`."""
CHUNK_HEADER = "makewhole-published-chunk"
"""The publication and the number of the transaction."""

_FIRST_MILLISECOND = 1  # of 1970: librdkafka takes 0 for now
_NOW_MS = 0
_NO_TIME = -1


@dataclass(frozen=True, kw_only=True)
class PublishedRecords:
    """Rows of a published file as the records of one transaction: into as many partitions as the topic has, those of
    one partition into one, in their order. `name` and `chunk` are those of the transaction."""

    rows: pa.Table
    partitions: int
    name: str
    chunk: int

    @cached_property
    def seqs(self) -> Sequence[int]:
        """The numbers of the records in their transaction."""
        return range(self.rows.num_rows)

    def messages(self) -> Iterator[MessageFields]:
        """Yield value, key, headers, partition and timestamp of each record."""
        chunk = (CHUNK_HEADER, f"{self.name}/{self.chunk}".encode())
        times: Any = self.rows.column("timestamp").cast(pa.int64())
        stamps = times.fill_null(_NO_TIME).to_pylist()
        rows: Any = self.rows.drop_columns("timestamp").to_pylist()
        for row, stamp in zip(rows, stamps, strict=True):
            own: list[Header] = [(header["key"], header["value"]) for header in row["headers"] or ()]
            headers = [
                *own,
                (CHANGE_HEADER, row["change"].encode()),
                (WINDOW_HEADER, f"{row['window']}/{row['revision']}".encode()),
                (ORIGIN_HEADER, f"{row['partition']}:{row['offset']}".encode()),
                chunk,
            ]
            partition = row["partition"] % self.partitions
            moment = _NOW_MS if stamp < 0 else max(stamp, _FIRST_MILLISECOND)
            yield row["value"], row["record_key"], headers, partition, moment


def is_sent(connection: KafkaConnection, topic: str, name: str, chunk: int, since: Mapping[int, int]) -> bool:
    """Return whether a transaction is in a topic, by the headers of its committed records from these offsets on (by
    partition). Ask when its producers are fenced.

    Raises:
        CorruptionError: the log does not reach back so far any more.
    """
    wanted = f"{name}/{chunk}".encode()
    return any(wanted in chunks for chunks in _chunks_since(connection, topic, since))


def _chunks_since(connection: KafkaConnection, topic: str, since: Mapping[int, int]) -> Iterator[set[Any]]:
    with TopicLog(connection, topic) as log:
        topic_id, ends, starts = log.describe().topic_id, log.stable_ends(), log.starts()
    for partition, end in sorted(ends.items()):
        lo = since.get(partition, 0)
        if starts[partition].offset > lo:
            raise CorruptionError(
                f"the marker of what was sent into {topic} is lost, and its partition {partition} begins at "
                f"{starts[partition].offset} now, behind {lo}: what was sent last is not known. Nothing more is sent; "
                "publish into a new topic"
            )
        part = PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=lo, hi=end.offset)
        if part.span:
            with closing(BrokerLog(connection)) as broker:
                for batch in read_range(broker, part, columns=("headers",)).batches():
                    yield _chunks(batch)


def _chunks(batch: pa.RecordBatch) -> set[Any]:
    pairs: Any = pc.list_flatten(batch.column("headers"))
    names: Any = pc.struct_field(pairs, "key")
    is_chunk = pc.equal(names, pa.scalar(CHUNK_HEADER))
    return set(pc.struct_field(pairs.filter(is_chunk), "value").to_pylist())
