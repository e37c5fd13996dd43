"""Check a pipeline as people do by hand, on the same system that makewhole judges.

Each check is honest work that is right on a good day. What it concludes on a bad one is compared with the truth.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka import TopicPartition

from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import describe_topic, high_watermarks, log_starts
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import PartitionRange
from tests.world.consumer import Isolation, committed, consumer, partitions_of, read_all

WELL = "all is well"


@dataclass(frozen=True, kw_only=True)
class NaiveAnswer:
    """The answer of a check: the figures (`text`), and what a reader would conclude of them: `12 lost`, `3
    repeated`, `all is well`."""

    check: str
    text: str
    conclusion: str


def compared(should: int, there: int) -> str:
    """Return what the difference of two numbers is taken for."""
    if should == there:
        return WELL
    return f"{should - there} lost" if should > there else f"{there - should} repeated"


def _watermarks(bootstrap: str, topic: str) -> dict[int, tuple[int, int]]:
    with consumer(bootstrap, isolation="read_uncommitted") as client:
        return {
            at: client.get_watermark_offsets(TopicPartition(topic, at), timeout=30, cached=False)
            for at in partitions_of(client, topic)
        }


def offsets(bootstrap: str, topic: str, rows: int) -> NaiveAnswer:
    """End minus beginning of every partition, against the rows of the store."""
    span = sum(end - beginning for beginning, end in _watermarks(bootstrap, topic).values())
    return NaiveAnswer(
        check="end offsets minus beginning offsets, against rows in the store",
        text=f"{span} offsets, {rows} rows",
        conclusion=compared(span, rows),
    )


def ends(bootstrap: str, topic: str, remembered: int, rows: int) -> NaiveAnswer:
    """How far the end offsets went since the last look, against the rows that came to the ledger since."""
    gone = sum(end for _, end in _watermarks(bootstrap, topic).values()) - remembered
    return NaiveAnswer(
        check="growth of the end offsets since the last look, against new rows in the ledger",
        text=f"{gone} offsets, {rows} rows",
        conclusion=compared(rows, gone),
    )


def records(bootstrap: str, topic: str, rows: int, isolation: Isolation = "read_committed") -> NaiveAnswer:
    """Records that a plain consumer is given, against the rows of the ledger. Java's default is read_uncommitted."""
    there = len(read_all(bootstrap, topic, isolation))
    return NaiveAnswer(
        check=f"records of a {isolation} consumer, against rows in the ledger",
        text=f"{there} records, {rows} rows",
        conclusion=compared(rows, there),
    )


def lag(bootstrap: str, topic: str, group: str) -> NaiveAnswer:
    """End offsets minus what the consumer group committed."""
    ends = {at: end for at, (_, end) in _watermarks(bootstrap, topic).items()}
    with consumer(bootstrap, group) as client:
        asked = [TopicPartition(topic, at) for at in ends]
        behind = sum(ends[at.partition] - max(at.offset, 0) for at in committed(client, asked))
    return NaiveAnswer(
        check="lag of the consumer group",
        text=f"lag {behind}",
        conclusion=WELL if behind == 0 else f"{behind} not consumed",
    )


def sequences(bootstrap: str, topic: str) -> NaiveAnswer:
    """Whether every producer id's sequence numbers go on without a hole; the epoch is looked at by few."""
    seen: dict[tuple[int, int], list[int]] = {}
    connection = KafkaConnection(id="naive", properties={"bootstrap.servers": bootstrap})
    topic_id, ends = describe_topic(connection, topic).topic_id, high_watermarks(connection, topic)
    with BrokerLog(connection) as broker:
        for at, lo in log_starts(connection, topic).items():
            whole = PartitionRange(topic=topic, topic_id=topic_id, partition=at, lo=lo, hi=ends[at])
            for batch in read_range(broker, whole, isolation="uncommitted", include_aborted=True).batches():
                for row in batch.select(["producer_id", "sequence"]).to_pylist():
                    seen.setdefault((row["producer_id"], at), []).append(row["sequence"])
    numbered = [numbers for (producer, _), numbers in seen.items() if producer >= 0]
    repeated = sum(len(numbers) - len(set(numbers)) for numbers in numbered)
    skipped = sum(max(numbers) - min(numbers) + 1 - len(set(numbers)) for numbers in numbered)
    answer = ", ".join(f"{count} {what}" for count, what in ((skipped, "lost"), (repeated, "repeated")) if count)
    return NaiveAnswer(
        check="sequence numbers per producer id and partition",
        text=f"{skipped} skipped, {repeated} seen before",
        conclusion=answer or WELL,
    )


def times(bootstrap: str, topic: str, start: datetime, end: datetime, rows: int) -> NaiveAnswer:
    """Records with a timestamp in the interval, against the rows that the ledger has of it."""
    first, last = (int(moment.timestamp() * 1000) for moment in (start, end))
    there = sum(first <= message.timestamp()[1] < last for message in read_all(bootstrap, topic))
    return NaiveAnswer(
        check="records by their timestamps in the day, against the day's rows in the ledger",
        text=f"{there} records, {rows} rows",
        conclusion=compared(rows, there),
    )


def reports(delivered: int, failed: int) -> NaiveAnswer:
    """What the delivery reports of the producer say: a report without an error is a record, one with an error none."""
    return NaiveAnswer(
        check="delivery reports of the producer",
        text=f"{delivered} delivered, {failed} failed",
        conclusion=f"{failed} lost" if failed else WELL,
    )


def rows(ledger: int, store: int) -> NaiveAnswer:
    """`count(*)` at both ends."""
    return NaiveAnswer(
        check="count(*) of the ledger against count(*) of the store",
        text=f"{ledger} rows, {store} rows",
        conclusion=compared(ledger, store),
    )


def counted(lines: int, total: int) -> NaiveAnswer:
    """Different lines in the topic, against the sum of what the rows count."""
    return NaiveAnswer(
        check="different lines in the topic against sum(lines) of the store",
        text=f"{lines} lines, {total} counted",
        conclusion=compared(lines, total),
    )


def order(bootstrap: str, topic: str) -> NaiveAnswer:
    """Whether the versions of a key ascend with the offsets."""
    newest: dict[str, int] = {}
    back: set[str] = set()
    for message in sorted(read_all(bootstrap, topic), key=lambda sent: (sent.offset() or 0, sent.partition() or 0)):
        order = json.loads(message.value() or b"{}")
        if newest.get(order["id"], 0) > order["version"]:
            back.add(order["id"])
        newest[order["id"]] = max(order["version"], newest.get(order["id"], 0))
    return NaiveAnswer(
        check="versions of a key in the order of their offsets",
        text=f"{len(back)} of {len(newest)} keys go back",
        conclusion=f"{len(back)} out of order" if back else WELL,
    )
