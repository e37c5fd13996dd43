"""Write random transactional histories: who writes what, in which order, and how each transaction ends.

Producers are of both kinds there are, librdkafka's and Java's: they number transactions differently (KIP-890), batch
differently and frame snappy differently. They are made once and used by all histories.
"""

import random
import string
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from confluent_kafka import Producer

from tests.world.java_clients import JavaClients

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
Headers = list[tuple[str, bytes | None]]
_TIMEOUT_SECONDS = 30


class Client(Protocol):
    """Offer what a history needs of a producer."""

    @property
    def send(self) -> Callable[..., object]: ...  # topic, value, and the rest of the record by name
    def flush(self) -> object: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


class LibrdkafkaProducer:
    """librdkafka's producer behind the same few words as Java's."""

    def __init__(self, bootstrap: str, settings: dict[str, object]) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0, **settings})
        if "transactional.id" in settings:
            self._producer.init_transactions(_TIMEOUT_SECONDS)

    def send(self, topic: str, value: bytes | None, **record: Any) -> None:
        timestamp_ms = record.pop("timestamp_ms")
        self._producer.produce(topic, value, timestamp=timestamp_ms or 0, **record)

    def flush(self) -> None:
        assert self._producer.flush(_TIMEOUT_SECONDS) == 0

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> None:
        self._producer.commit_transaction(_TIMEOUT_SECONDS)

    def abort(self) -> None:
        self._producer.abort_transaction(_TIMEOUT_SECONDS)


class Actor:
    """A producer with a part in the histories. A transactional one sends in transactions only."""

    def __init__(self, make: Callable[[], Client], *, is_transactional: bool) -> None:
        self._make = make
        self.client = make()
        self.is_transactional = is_transactional
        self.is_open = False

    def begin(self) -> None:
        self.client.begin()
        self.is_open = True

    def end(self, *, is_committed: bool) -> None:
        self.client.flush()
        if is_committed:
            self.client.commit()
        else:
            self.client.abort()
        self.is_open = False

    def replace(self) -> None:
        """Another instance with the same transactional id: it fences this one, whose transaction is aborted."""
        self.client.flush()
        self.client = self._make()
        self.is_open = False


def cast(bootstrap: str, java: JavaClients, chance: random.Random) -> list[Actor]:
    """Of each kind of client: a plain, an idempotent and two transactional producers, with any codec."""

    def librdkafka(**settings: object) -> Actor:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        named["compression.type"] = chance.choice(CODECS)
        return Actor(lambda: LibrdkafkaProducer(bootstrap, named), is_transactional="transactional_id" in settings)

    def javas(**settings: object) -> Actor:
        settings["compression_type"] = chance.choice(CODECS)

        def make() -> Client:
            producer = java.producer(bootstrap, linger_ms=0, **settings)
            if "transactional_id" in settings:
                producer.init_transactions()
            return producer

        return Actor(make, is_transactional="transactional_id" in settings)

    actors = [make(enable_idempotence=is_idempotent) for make in (librdkafka, javas) for is_idempotent in (True, False)]
    own = uuid.uuid4().hex
    for number in range(2):
        actors.append(librdkafka(transactional_id=f"{own}-c-{number}", retry_backoff_ms=5))
        actors.append(javas(transactional_id=f"{own}-java-{number}", retry_backoff_ms=5))
    return actors


def play(actors: Sequence[Actor], topic: str, partitions: int, chance: random.Random) -> None:
    """Turns in random order: begin, send, flush, commit, abort, be replaced. Transactions may stay open."""
    playing = chance.sample(list(actors), chance.randint(2, 5))
    for _ in range(chance.randint(8, 30)):
        _turn(chance.choice(playing), topic, partitions, chance)
    for actor in playing:
        actor.client.flush()


def end_all(actors: Sequence[Actor], chance: random.Random) -> None:
    """End what is open, one way or the other."""
    for actor in actors:
        if actor.is_open:
            actor.end(is_committed=chance.random() < 0.5)


def _turn(actor: Actor, topic: str, partitions: int, chance: random.Random) -> None:
    if actor.is_transactional and not actor.is_open:
        actor.begin()
    luck = chance.random()
    if actor.is_open and luck < 0.35:
        if luck < 0.03:
            actor.replace()
        else:
            actor.end(is_committed=luck < 0.2)
        return
    for _ in range(chance.randint(1, 4)):
        actor.client.send(topic, _blob(chance), **_record(partitions, chance))
    if chance.random() < 0.6:  # else what comes next may share a batch with it, or overtake it
        actor.client.flush()


def _record(partitions: int, chance: random.Random) -> dict[str, Any]:
    return {
        "key": _blob(chance, most=20),
        "partition": chance.randrange(partitions),
        "timestamp_ms": chance.choice([None, chance.randint(1, 1_700_000_000_000)]),
        "headers": [(chance.choice(string.ascii_letters), _blob(chance, most=5)) for _ in range(chance.randint(0, 2))],
    }


def _blob(chance: random.Random, most: int = 300) -> bytes | None:
    size = chance.choice([None, 0, chance.randint(1, most), 5 * most])
    return None if size is None else chance.randbytes(size)
