"""Where a moment falls in a log, by the timestamps of its data records.

The broker's own answer is only a place to start from: it counts transaction markers as records, and their time is the
broker's clock when the transaction ended, whatever times the records carry.
"""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from makewhole.kafka.broker import BrokerLog
from makewhole.kafka.log import read_range
from makewhole.kafka.offsets import describe_topic, log_starts, offsets_at, stable_offsets
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import PartitionRange


def first_records_at(connection: KafkaConnection, topic: str, when: datetime) -> dict[int, int | None]:
    """Per partition the first committed data record at `when` or later; None: there is none below the stable offset.

    Raises:
        TransientError: the cluster does not answer.
    """
    candidates = offsets_at(connection, topic, when)
    stable, starts = stable_offsets(connection, topic), log_starts(connection, topic)
    topic_id = describe_topic(connection, topic).topic_id
    found: dict[int, int | None] = {}
    with BrokerLog(connection) as broker:
        for partition, candidate in candidates.items():
            lo = max(candidate if candidate is not None else stable[partition], starts[partition])
            whole = PartitionRange(
                topic=topic, topic_id=topic_id, partition=partition, lo=lo, hi=max(lo, stable[partition])
            )
            found[partition] = _first(broker, whole, when)
    return found


def _first(broker: BrokerLog, whole: PartitionRange, when: datetime) -> int | None:
    if not whole.span:
        return None
    moment = pa.scalar(when, pa.timestamp("us", "UTC"))
    for batch in read_range(broker, whole).batches():
        late = batch.filter(pc.greater_equal(batch.column("timestamp"), moment))
        if late.num_rows:
            return int(late.column("offset")[0].as_py())
    return None
