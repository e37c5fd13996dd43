"""Read back what a plan wrote to a topic, for when its marker is lost.

The log is read from where it ended before the plan wrote anything up to where it ends now, and fails where
anything in between is missing.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import RangeReader, read_range
from makewhole.kafka.offsets import TopicLog
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import CorruptionError, TransientError
from makewhole.model.plan import CHUNK_HEADER, PLAN_HEADER, SEQ_HEADER
from makewhole.model.window import PartitionRange

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
_NUMBER = re.compile(rb"[0-9]{1,9}")
_READ = ("partition", "offset", "key", "value", "headers", "is_transactional", "is_aborted", "is_replayed")
_TYPES: dict[str, pa.DataType] = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "chunk": pa.int32(),
    "seq": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
}
SCHEMA = pa.schema(_TYPES)
"""The columns of `replayed_records`."""


def replayed_records(
    connection: KafkaConnection, topic: str, plan: str, since: Mapping[int, int]
) -> Iterator[pa.RecordBatch]:
    """Yield the committed records whose lineage headers name the plan, by `SCHEMA`, per partition in the log's order.

    Anybody can write such headers: the caller compares. `since`: where to begin, by partition; partitions that were
    added later are read whole. Ask when the plan's producers are fenced: what they wrote is committed or aborted then.

    Raises:
        CorruptionError: the log does not reach back to `since` any more, or some of it cannot be read.
        TransientError: a transaction of another producer is open in front of what is to be read, or the brokers are
            away.
    """
    for wanted in _ranges(connection, topic, since):
        with closing(BrokerLog(connection)) as broker:
            reader = read_range(broker, wanted, columns=_READ)
            for batch in reader.batches():
                yield _records_of_plan(batch, plan.encode())
            _require_whole(reader, wanted)


def _ranges(connection: KafkaConnection, topic: str, since: Mapping[int, int]) -> Sequence[PartitionRange]:
    with TopicLog(connection, topic) as log:
        topic_id = log.describe().topic_id
        ends = {partition: end.offset for partition, end in log.high_watermarks().items()}
        _wait_until_stable(log, ends)
        starts = {partition: start.offset for partition, start in log.starts().items()}
    for partition, begin in since.items():
        if partition not in ends or ends[partition] < begin:
            raise CorruptionError(
                f"{topic} partition {partition} ended at {begin} before the plan began and ends before that now: the "
                "log was cut off or made again. Nothing more is written; open a new revision of the window"
            )
    wanted = []
    for partition, end in ends.items():
        begin = since.get(partition, 0)
        if starts[partition] > begin:
            raise CorruptionError(_expired(topic, partition, begin, starts[partition]))
        wanted.append(PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=begin, hi=end))
    return [part for part in wanted if part.span]


def _wait_until_stable(log: TopicLog, ends: Mapping[int, int]) -> None:
    """Wait for open transactions to end: behind one, committed records of ours are not shown yet."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        stable = log.stable_ends()
        waiting = [partition for partition, end in ends.items() if stable[partition].offset < end]
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise TransientError(
                f"{log.topic} partition {waiting[0]} has an open transaction, and the plan's records may stand behind "
                "it; try again when it has ended (`makewhole audit` names its producer)"
            )
        time.sleep(_PAUSE_SECONDS)


def _require_whole(reader: RangeReader, wanted: PartitionRange) -> None:
    if reader.expired:
        raise CorruptionError(_expired(wanted.topic, wanted.partition, wanted.lo, reader.expired[-1][1]))
    if reader.undecodable:
        raise CorruptionError(
            f"{wanted.topic} partition {wanted.partition}: {len(reader.undecodable)} places between {wanted.lo} and "
            f"{wanted.hi} cannot be read, so that what the plan wrote is not known. Nothing more is written; open a "
            "new revision of the window"
        )


def _expired(topic: str, partition: int, begin: int, start: int) -> str:
    return (
        f"the marker of the plan is lost, and {topic} partition {partition} begins at {start} now: what the plan wrote "
        f"from {begin} on may be gone with the rest. Nothing more is written; open a new revision of the window"
    )


def _records_of_plan(batch: pa.RecordBatch, plan: bytes) -> pa.RecordBatch:
    is_ours = pc.and_(batch.column("is_replayed"), batch.column("is_transactional"))
    rows = [
        {**lineage, **{name: row[name] for name in ("partition", "offset", "key", "value")}}
        for row in batch.filter(pc.and_(is_ours, pc.invert(batch.column("is_aborted")))).to_pylist()
        if (lineage := _lineage(row["headers"], plan)) is not None
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _lineage(headers: Sequence[Mapping[str, Any]], plan: bytes) -> dict[str, int] | None:
    """Return chunk and number of the action; None unless the headers name this plan and are such as it writes."""
    values = {header["key"]: header["value"] for header in headers}
    texts = {"chunk": values.get(CHUNK_HEADER) or b"", "seq": values.get(SEQ_HEADER) or b""}
    if values.get(PLAN_HEADER) != plan or not all(_NUMBER.fullmatch(text) for text in texts.values()):
        return None
    return {name: int(text) for name, text in texts.items()}
