"""Prove the result independently: plain SQL and a plain consumer, nothing of any tool.

Each flight of the ledger is in the topic, nothing else is, and each is in the warehouse exactly once.
"""

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from examples.flights.settings import PARTITIONS, TO_TOPIC, TO_WAREHOUSE, TOPIC, Systems

ANSWER_SECONDS = 30.0
POLL_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Counts for people, and every flight that is not where it belongs."""

    ledger: int
    topic_records: int
    topic_flights: int
    warehouse_rows: int
    warehouse_flights: int
    wrong: list[dict[str, str]]
    repeated_in_topic: list[str]

    @property
    def holds(self) -> bool:
        """Return whether all is where it belongs; an empty ledger proves nothing."""
        return self.ledger > 0 and not self.wrong

    def document(self) -> dict[str, Any]:
        """Return the proof as JSON-able values."""
        return {"holds": self.holds, **asdict(self)}


def topic_keys(systems: Systems) -> Counter[str]:
    """Count how often each record key is in the topic, read committed, from the beginning to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": systems.bootstrap,
            "group.id": "flights-verify",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, -2) for partition in range(PARTITIONS)])
    keys: Counter[str] = Counter()
    ended: set[int] = set()
    last_answer = time.monotonic()
    while len(ended) < PARTITIONS:
        messages = consumer.consume(10_000, timeout=POLL_SECONDS)
        if messages:
            last_answer = time.monotonic()
        elif time.monotonic() - last_answer > ANSWER_SECONDS:
            raise SystemExit(f"the topic stopped answering before its end; partitions read to the end: {sorted(ended)}")
        for message in messages:
            error = message.error()
            if error is None:
                keys[(message.key() or b"").decode()] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
            else:
                raise SystemExit(f"the broker answered {error}")
    consumer.close()
    return keys


def table_keys(systems: Systems, table: str) -> Counter[str]:
    """Count how often each flight is in one of the two tables."""
    statement = {
        "ops.departures": "select flight_id, count(*) from ops.departures group by flight_id",
        "dw.departures": "select flight_id, count(*) from dw.departures group by flight_id",
    }[table]
    database = systems.database()
    try:
        with database, database.cursor() as cursor:
            cursor.execute(statement)
            return Counter(dict(cursor.fetchall()))
    finally:
        database.close()


def judge(ledger: Counter[str], topic: Counter[str], warehouse: Counter[str]) -> Proof:
    """Compare the three. A log keeps its second copies: they are listed, and are not wrong by themselves, as long as
    the warehouse has the flight once."""
    wrong = [
        *_wrong(TO_TOPIC, "missing", ledger.keys() - topic.keys()),
        *_wrong(TO_TOPIC, "unexpected", topic.keys() - ledger.keys()),
        *_wrong(TO_WAREHOUSE, "missing", topic.keys() - warehouse.keys()),
        *_wrong(TO_WAREHOUSE, "unexpected", warehouse.keys() - topic.keys()),
        *_wrong(TO_WAREHOUSE, "duplicate", {key for key, count in warehouse.items() if count > 1}),
    ]
    return Proof(
        ledger=len(ledger),
        topic_records=topic.total(),
        topic_flights=len(topic),
        warehouse_rows=warehouse.total(),
        warehouse_flights=len(warehouse),
        wrong=wrong,
        repeated_in_topic=sorted(key for key, count in topic.items() if count > 1),
    )


def _wrong(hop: str, verdict: str, keys: set[str]) -> list[dict[str, str]]:
    return [{"hop": hop, "key": key, "verdict": verdict} for key in sorted(keys)]


def prove(systems: Systems) -> Proof:
    """Read all three and judge."""
    return judge(table_keys(systems, "ops.departures"), topic_keys(systems), table_keys(systems, "dw.departures"))
