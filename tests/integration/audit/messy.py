"""Make topics on which everything went wrong that a log can show, by real producers and by raw requests."""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

from aiokafka.errors import OutOfOrderSequenceNumber
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from makewhole.stack.kafka_server import KafkaServer
from tests.lab import raw
from tests.world.java_clients import JavaClients

EVENTS, COMPACTED, DAMAGED = "messy-events", "messy-states", "messy-disk"
_PATIENCE_SECONDS = 60
_T = TypeVar("_T")

# A broker that forgets producers at once takes gaps and repeats; one that verifies nothing takes orphaned batches.
FORGETFUL = {
    "producer.id.expiration.ms": 1000,
    "producer.id.expiration.check.interval.ms": 200,
    "transaction.partition.verification.enable": "false",
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
}


class Mess:
    """Makes the topics on one broker; `open_producer` keeps its transaction open as long as this lives."""

    def __init__(self, server: KafkaServer) -> None:
        self.server = server
        self.bootstrap = server.bootstrap
        self.port = server.ports[0]
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self._kept: list[Producer] = []

    def make(self) -> None:
        """All topics."""
        self._events()
        self._states()
        self._damaged()

    def segments(self, topic: str, partition: int) -> list[Path]:
        """The broker's own files of a partition, in offset order."""
        [folder] = self.server.directory.glob(f"node-*/data/{topic}-{partition}")
        return sorted(folder.glob("*.log"))

    def _topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        for future in self.admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
            future.result()

    def _producer(self, **settings: object) -> Producer:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20, **named})

    def _events(self) -> None:
        """Two partitions; in 0 no transaction is open at the end, in 1 one is open and one hangs."""
        self._topic(EVENTS, 2, {"segment.bytes": str(1 << 20), "retention.ms": "-1"})
        self._plain()
        self._librdkafka_transactions()
        self._java_transactions()
        self._gaps_and_repeats()
        self._wrap()
        self._delete(partition=0, before=137)
        self._unended()

    def _plain(self) -> None:
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = self._producer(compression_type=codec, enable_idempotence=False, batch_num_messages=70)
            for index in range(300):
                stamp = 1_600_000_000_000 + 60_000 * ((index * 7) % 300)
                producer.produce(EVENTS, b'{"id": %d}' % index, partition=index % 2, timestamp=stamp)
            assert producer.flush(30) == 0
        producer = self._producer(enable_idempotence=True, compression_type="lz4")
        for index in range(60_000):
            producer.produce(EVENTS, b'{"id": %d, "text": "some words to fill a segment"}' % index, partition=index % 2)
            if index % 1000 == 0:
                producer.poll(0)
        assert producer.flush(30) == 0

    def _librdkafka_transactions(self) -> None:
        producer = self._producer(transactional_id="messy-c", linger_ms=0)
        producer.init_transactions(30)
        for number in range(30):
            producer.begin_transaction()
            for index in range(number + 1):
                producer.produce(EVENTS, b"transactional %d" % index, partition=index % 2)
            producer.flush(30)
            if number % 3:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)

    def _java_transactions(self) -> None:
        with JavaClients() as java, java.producer(self.bootstrap, transactional_id="messy-java") as producer:
            producer.init_transactions()
            for number in range(40):
                with producer.transaction(is_committed=number % 4 != 0):
                    for index in range(3):
                        producer.send(EVENTS, b"from java %d" % index, partition=index % 2)

    def _gaps_and_repeats(self) -> None:
        careless = raw.init_producer_id(self.port)
        self._raw(careless, sequence=0, records=10)
        self._when_forgotten(lambda: self._raw(careless, sequence=17, records=5))
        again = self._raw(careless, sequence=22, records=4)
        self._when_forgotten(lambda: self._differs(again, self._raw(careless, sequence=22, records=4)))
        bumped = raw.ProducerId(id=careless.id, epoch=careless.epoch + 1)
        self._raw(bumped, sequence=0, records=3)

    def _wrap(self) -> None:
        old = raw.init_producer_id(self.port)
        self._raw(old, sequence=2**31 - 4, records=8)
        self._raw(old, sequence=4, records=2)

    def _raw(self, producer: raw.ProducerId, *, sequence: int, records: int, partition: int = 0) -> int:
        values = [(None, b"raw %d" % index) for index in range(records)]
        batch = raw.batch(values, producer=producer, base_sequence=sequence)
        return raw.produce(self.port, EVENTS, partition, batch)

    @staticmethod
    def _differs(before: int, after: int) -> int:
        """A broker that still knows a batch answers with where it stands."""
        if after == before:
            raise OutOfOrderSequenceNumber
        return after

    @staticmethod
    def _when_forgotten(attempt: Callable[[], _T]) -> _T:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return attempt()
            except OutOfOrderSequenceNumber:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _delete(self, *, partition: int, before: int) -> None:
        for future in self.admin.delete_records([TopicPartition(EVENTS, partition, before)]).values():
            future.result()

    def _unended(self) -> None:
        orphan = raw.init_producer_id(self.port)
        batch = raw.batch([(None, b"orphan's")] * 3, producer=orphan, base_sequence=0, is_transactional=True)
        raw.produce(self.port, EVENTS, 1, batch, transactional_id="messy-orphan")
        producer = self._producer(transactional_id="messy-open", transaction_timeout_ms=600_000)
        producer.init_transactions(30)
        producer.begin_transaction()
        for _ in range(5):
            producer.produce(EVENTS, b"not ended", partition=1)
        producer.flush(30)
        self._kept.append(producer)
        plain = self._producer()
        for _ in range(7):
            plain.produce(EVENTS, b"behind an open transaction", partition=1)
        assert plain.flush(30) == 0

    def _states(self) -> None:
        """One partition, compacted: few keys, many versions, tombstones, transactions, an idempotent producer."""
        config = {
            "cleanup.policy": "compact",
            "segment.bytes": str(1 << 20),
            "segment.ms": "1000",
            "min.cleanable.dirty.ratio": "0.001",
            "delete.retention.ms": "100",
        }
        self._topic(COMPACTED, 1, config)
        producer = self._producer(enable_idempotence=True, compression_type="lz4", batch_num_messages=50)
        for index in range(2000):
            value = None if index % 10 == 9 else b"version %d" % index
            producer.produce(COMPACTED, value, key=b"k%d" % (index % 37), partition=0)
        assert producer.flush(30) == 0
        changing = self._producer(transactional_id="messy-states", linger_ms=0)
        changing.init_transactions(30)
        for number in range(6):
            changing.begin_transaction()
            for index in range(20):
                changing.produce(COMPACTED, b"changed", key=b"k%d" % index, partition=0)
            changing.flush(30)
            if number % 2:
                changing.commit_transaction(30)
            else:
                changing.abort_transaction(30)
        self._wait_until_cleaned()

    def _damaged(self) -> None:
        """Three batches of ten records, the second with a flipped bit on the broker's disk."""
        self._topic(DAMAGED, 1, {})
        for _ in range(3):
            batch = raw.batch([(None, b"sound so far")] * 10)
            raw.produce(self.port, DAMAGED, 0, batch)
        [segment] = self.segments(DAMAGED, 0)
        content = bytearray(segment.read_bytes())
        content[len(content) // 2] ^= 1
        segment.write_bytes(content)

    def _wait_until_cleaned(self) -> None:
        """The cleaner works on closed segments; a segment closes with the first write after its time."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        producer = self._producer()
        for number in count():
            producer.produce(COMPACTED, b"push %d" % number, key=b"push%d" % (number % 3), partition=0)
            assert producer.flush(30) == 0
            if sum(path.stat().st_size for path in self.segments(COMPACTED, 0)) <= 12_000:
                return
            assert time.monotonic() < deadline, "the log was not cleaned in time"
            time.sleep(0.5)
