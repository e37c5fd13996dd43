"""Copy a topic into another one in a process of its own (consume, transform, produce), to be paused and killed.

It takes so many records at a time, writes them with their keys, values, partitions and timestamps, and commits its
group's offsets: where in that order, and with what identity, is up to `Copying`. It stops at every step until a line
comes, so that whoever kills it knows what was done.
"""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Literal, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.world.consumer import Isolation, partitions_of

Step = Literal["sent", "offsets", "committed"]
"""Records are on the brokers; the group's offsets are committed; the transaction is committed. A way of copying has
those that it does, in its own order."""

_SECONDS = 60.0
_END = "end"


@dataclass(frozen=True, kw_only=True)
class Copying:
    """A way of copying.

    `offsets`: when those of `group` are committed: `within` the transaction, `before` its commit, `after` it, or
    `auto`, by the consumer itself when it is closed. `transactional_id`: None: no transactions; `""`: another one at
    each start. `has_source`: each copy has a header `src` with the place of its record. `is_member`: its partitions are
    those that the group gives it, and Kafka refuses the offsets of who is no member any more. `only`: it reads these
    partitions alone.
    """

    source: str
    target: str
    group: str
    offsets: Literal["within", "before", "after", "auto"] = "within"
    transactional_id: str | None = ""
    isolation: Isolation = "read_committed"
    has_source: bool = False
    is_member: bool = False
    only: tuple[int, ...] = ()
    records: int = 50
    timeout_ms: int = 60_000


class Copier:
    """The process, as the lab sees it. A context manager: killed at the end. `sent`: the keys of all batches that it
    has written, be they committed or not."""

    def __init__(self, bootstrap: str, copying: Copying) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.processes.copier", bootstrap, json.dumps(asdict(copying))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._is_waiting = False
        self.sent: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def until(self, step: Step, times: int = 1) -> list[str]:
        """Let it copy until a step was done so many times more, and stands there; the keys that it is copying then."""
        done = 0
        while True:
            name, keys = self._next()
            assert name != _END, f"the copier ended before `{step}` was done {times} times: {keys}"
            done += name == step
            if done == times:
                return keys

    def finish(self) -> str:
        """Let it copy to the end of what is there; how it ended: `done`, or the name of Kafka's error."""
        while True:
            name, words = self._next()
            if name == _END:
                self._process.wait(_SECONDS)
                return words[0]

    def _next(self) -> tuple[str, list[str]]:
        """Let it go on if it stands; return the next step that was done, and the keys that it was done with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._is_waiting:
            self._process.stdin.write("go on\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline().strip()
        assert line, "the copier has died"
        self._is_waiting = True
        name, *words = line.split()
        self.sent += words if name == "sent" else []
        return name, words


def copy_all(bootstrap: str, copying: Copying) -> None:
    """Copy to the end of what is there, without being killed."""
    with Copier(bootstrap, copying) as copier:
        ended = copier.finish()
    assert ended == "done", ended


def _done(step: Step, batch: list[Message]) -> None:
    print(step, *((message.key() or b"-").decode() for message in batch), flush=True)
    sys.stdin.readline()


class _Copier:
    """What runs in the process."""

    def __init__(self, bootstrap: str, copying: Copying) -> None:
        self._copying = copying
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": copying.group,
                "isolation.level": copying.isolation,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": copying.offsets == "auto",
                "auto.commit.interval.ms": 3_600_000,  # as it is closed, and not while a test thinks
                "enable.partition.eof": True,
                "session.timeout.ms": 6_000,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        name = copying.transactional_id
        self._is_transactional = name is not None
        of_transactions = {"transactional.id": name or uuid.uuid4().hex, "transaction.timeout.ms": copying.timeout_ms}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
                **(of_transactions if self._is_transactional else {}),
            }
        )

    def run(self) -> None:
        """Copy to the end of what is there, then close the consumer."""
        if self._is_transactional:
            self._producer.init_transactions(_SECONDS)
        for batch in self._batches():
            self._copy(batch)
        self._consumer.close()

    def _batches(self) -> Iterator[list[Message]]:
        """Yield so many records at a time, to the end of every partition."""
        open_ends, batch = set(self._begin()), list[Message]()
        while open_ends:
            message = self._consumer.poll(_SECONDS)
            assert message is not None, f"no word from partitions {open_ends}"
            error = message.error()
            if error is None:
                batch.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                open_ends.discard(message.partition() or 0)
            else:
                raise KafkaException(error)
            if len(batch) == self._copying.records:
                yield batch
                batch = []
        if batch:
            yield batch

    def _begin(self) -> list[int]:
        """Begin where the group stands; the partitions that are read."""
        source = self._copying.source
        partitions = list(self._copying.only) or partitions_of(self._consumer, source)
        if self._copying.is_member:
            self._consumer.subscribe([source])
            return partitions
        standing = self._consumer.committed([TopicPartition(source, at) for at in partitions], timeout=_SECONDS)
        begin = [
            TopicPartition(source, at.partition, at.offset if at.offset >= 0 else OFFSET_BEGINNING) for at in standing
        ]
        self._consumer.assign(begin)
        return partitions

    def _copy(self, batch: list[Message]) -> None:
        if self._is_transactional:
            self._producer.begin_transaction()
        for message in batch:
            self._send(message)
        assert self._producer.flush(_SECONDS) == 0
        _done("sent", batch)
        if self._copying.offsets == "before":
            self._commit_offsets(batch)
        if self._is_transactional:
            if self._copying.offsets == "within":
                member = self._consumer.consumer_group_metadata()
                self._producer.send_offsets_to_transaction(_behind(batch), member, _SECONDS)
            self._producer.commit_transaction(_SECONDS)
            _done("committed", batch)
        if self._copying.offsets == "after":
            self._commit_offsets(batch)

    def _commit_offsets(self, batch: list[Message]) -> None:
        self._consumer.commit(offsets=_behind(batch), asynchronous=False)
        _done("offsets", batch)

    def _send(self, message: Message) -> None:
        place = f"{message.topic()}/{message.partition()}/{message.offset()}"
        self._producer.produce(
            self._copying.target,
            key=message.key(),
            value=message.value(),
            partition=message.partition() or 0,
            timestamp=message.timestamp()[1],
            headers=[("src", place.encode())] if self._copying.has_source else [],
        )


def _behind(batch: list[Message]) -> list[TopicPartition]:
    """The offsets right behind the last record of each partition."""
    last = {(message.topic() or "", message.partition() or 0): message.offset() or 0 for message in batch}
    return [TopicPartition(topic, partition, offset + 1) for (topic, partition), offset in last.items()]


def main() -> None:
    """Copy, stopping at every step until a line comes; then print how it ended."""
    bootstrap, copying = sys.argv[1], Copying(**json.loads(sys.argv[2]))
    try:
        _Copier(bootstrap, copying).run()
    except KafkaException as error:
        print(_END, error.args[0].name(), flush=True)
    else:
        print(_END, "done", flush=True)


if __name__ == "__main__":
    main()
