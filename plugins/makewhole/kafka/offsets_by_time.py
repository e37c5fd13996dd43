"""Find the first record of a log since a moment, by the timestamps of its data records.

The broker's own answer is only where the search starts: it counts transaction markers as records, and their time is the
broker's clock when the transaction ended, whatever times the records carry. Timestamps may be anything: what is found
divides a log between two windows, and any offset divides it soundly.
"""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import TopicLog
from makewhole.model.window import PartitionRange

_FIRST_KAFKA = datetime(2011, 1, 1, tzinfo=UTC)
_AHEAD_MOST = timedelta(hours=1)


def first_records(
    log: TopicLog, within: Iterable[PartitionRange], *, since: datetime, now: datetime
) -> dict[int, int | None]:
    """Return the offset of the first committed data record of each range whose time is in `[since, now]`; None: no such
    record.

    A record that exists already and has a time after `now` is passed over: it would end every window at that record
    until the time comes.

    Raises:
        TransientError: the cluster does not answer.
    """
    candidates = log.offsets_at(since)
    offsets: dict[int, int | None] = {}
    with BrokerLog(log.connection) as broker:
        for part in within:
            candidate = candidates.get(part.partition)
            lo = part.hi if candidate is None else max(candidate, part.lo)
            offsets[part.partition] = _first(broker, part, lo, since, now) if lo < part.hi else None
    return offsets


def first_record_stamps(log: TopicLog, within: Iterable[PartitionRange]) -> dict[int, int | None]:
    """Return the timestamp of the first committed data record of each range, in milliseconds; None: no such record.

    Raises:
        TransientError: the cluster does not answer.
    """
    with BrokerLog(log.connection) as broker:
        return {part.partition: _first_stamp(broker, part) for part in within}


def _first_stamp(broker: BrokerLog, part: PartitionRange) -> int | None:
    for batch in read_range(broker, part).batches():
        if len(batch):
            return int(batch.column("timestamp").cast(pa.int64())[0].as_py())
    return None


def plausible_time(timestamp_ms: int, now: datetime) -> datetime | None:
    """Return a record's timestamp as a time, never after `now`; None: it cannot be the time of a record in Kafka.

    No topic is older than Kafka, so that a stamp from before is none in milliseconds (seconds since 1970 give January
    1970), or a time of something else. By themselves brokers take no stamp that is more than an hour ahead of their
    clock (`message.timestamp.after.max.ms`).
    """
    first, last = (int(moment.timestamp() * 1000) for moment in (_FIRST_KAFKA, now + _AHEAD_MOST))
    if not first <= timestamp_ms <= last:
        return None
    return min(datetime.fromtimestamp(timestamp_ms / 1000, UTC), now)


def _first(broker: BrokerLog, part: PartitionRange, lo: int, since: datetime, now: datetime) -> int | None:
    whole = PartitionRange(topic=part.topic, topic_id=part.topic_id, partition=part.partition, lo=lo, hi=part.hi)
    earliest, latest = math.ceil(since.timestamp() * 1000), int(now.timestamp() * 1000)
    for batch in read_range(broker, whole).batches():
        # In milliseconds: a wrong time may be outside the calendar.
        times = batch.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
        inside = np.flatnonzero((times >= earliest) & (times <= latest))
        if len(inside):
            return int(batch.column("offset")[int(inside[0])].as_py())
    return None
