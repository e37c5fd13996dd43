"""Write what a topic has into Parquet files: each record once, wherever the writer is killed, and however many run.

The files themselves say how far they reach: `orders+3+0000001000+0000001999.parquet` holds the offsets 1000 to 1999 of
partition 3. Whoever starts goes on behind the last one; the consumer group is for people who look at its lag. A file is
made in four steps:

1. read some records behind the last file, from the offset `first` on;
2. claim `first`: a small file that is made for one of many says where the range ends. Of two writers one decides that,
   and the other one writes the same range, or nothing;
3. write the range under a name that no reader looks at, close it, and rename it: for one of many, again;
4. commit the offsets of the group.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from makewhole.file_stores.store import FileStore

READ, CLAIMED, PUBLISHED, DONE = "read", "claimed", "published", "done"
"""The steps of a file: its records are read; its range is claimed; it is there; the group's offset is committed."""
At = Callable[[str, Sequence[Message]], None]
"""The function that is called at each step, with the records of the file."""

_CLAIMS = "_claims"
_SECONDS = 10.0
_END = KafkaError._PARTITION_EOF


def do_nothing(_step: str, _messages: Sequence[Message]) -> None:
    """Do nothing at a step."""


@dataclass(frozen=True, kw_only=True)
class FileOfOffsets:
    """The name of a file, or of a claim: the offsets of a partition from `first` to `last`, both among them."""

    topic: str
    partition: int
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.topic}+{self.partition}+{self.first:010}+{self.last:010}.parquet"

    @classmethod
    def of_name(cls, name: str) -> "FileOfOffsets | None":
        """Return what a name says; None: it is that of another file."""
        parts = name.removesuffix(".parquet").rsplit("+", 3)
        if len(parts) != 4 or not all(part.isdecimal() for part in parts[1:]):
            return None
        topic, *numbers = parts
        partition, first, last = map(int, numbers)
        return cls(topic=topic, partition=partition, first=first, last=last)


@dataclass(kw_only=True)
class ExactWriter:
    """A writer of one topic. `schema` are the fields of a value that become columns; `p` and `o` are the position."""

    client: Consumer
    store: FileStore
    topic: str
    schema: pa.Schema
    most: int = 100_000
    at: At = do_nothing
    _ended: set[int] = field(default_factory=set)

    def write_to_end(self) -> None:
        """Write until the end of each partition.

        The group follows the files: a writer that was killed behind its last file had not committed that one.
        """
        for partition in partitions_of(self.client, self.topic):
            if reached := self.next_offset(partition):
                self._commit(partition, reached)
            while (first := self._write_file(partition, self.next_offset(partition))) is not None:
                assert first > 0

    def next_offset(self, partition: int) -> int:
        """Return the offset behind the last file of a partition; 0: there is none."""
        named = (FileOfOffsets.of_name(entry.name) for entry in self.store.list())
        own = [file.last for file in named if file and (file.topic, file.partition) == (self.topic, partition)]
        return max(own, default=-1) + 1

    def _write_file(self, partition: int, first: int) -> int | None:
        """Write a file from an offset on; return the offset behind it, or None at the end of the partition."""
        messages = list(self._read(partition, first))
        if not messages:
            return None
        self.at(READ, messages)
        last = self._claim(partition, first, messages[-1].offset() or 0)
        messages = [message for message in messages if (message.offset() or 0) <= last]
        if (messages[-1].offset() or 0) < last:  # another writer had read further
            messages = list(self._read(partition, first, last))
        self.at(CLAIMED, messages)
        file = FileOfOffsets(topic=self.topic, partition=partition, first=first, last=last)
        self.store.publish(file.name, self._content(messages))  # if it is there already, then with the same records
        self.at(PUBLISHED, messages)
        self._commit(partition, last + 1)
        self.at(DONE, messages)
        return last + 1

    def _commit(self, partition: int, offset: int) -> None:
        self.client.commit(offsets=[TopicPartition(self.topic, partition, offset)], asynchronous=False)

    def _claim(self, partition: int, first: int, last: int) -> int:
        """Return where the range ends that begins at an offset: as this writer says, or as another one said before."""
        name = f"{_CLAIMS}/{self.topic}+{partition}+{first:010}"
        if self.store.publish(name, str(last).encode()):
            return last
        with self.store.open(name) as claim:
            return int(claim.read())

    def _read(self, partition: int, first: int, last: int | None = None) -> Iterator[Message]:
        """Yield the records from an offset on: as far as `last`, or so many as a file has at most."""
        self.client.assign([TopicPartition(self.topic, partition, first or OFFSET_BEGINNING)])
        number = 0
        while last is not None or number < self.most:
            message = self.client.poll(_SECONDS)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.code() == _END):
                if message is None:
                    raise TimeoutError(f"{self.topic} does not answer")
                return
            if error is not None:
                raise KafkaException(error)
            if last is not None and (message.offset() or 0) > last:
                return
            number += 1
            yield message

    def _content(self, messages: Sequence[Message]) -> bytes:
        rows = [self._row(message) for message in messages]
        schema = self.schema.append(pa.field("p", pa.int32())).append(pa.field("o", pa.int64()))
        content = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), content)
        return content.getvalue()

    def _row(self, message: Message) -> Mapping[str, object]:
        value = json.loads(message.value() or b"{}")
        fields = {name: value.get(name) for name in self.schema.names}
        return {**fields, "p": message.partition(), "o": message.offset()}


def partitions_of(client: Consumer, topic: str) -> list[int]:
    """Return the partitions of a topic."""
    return sorted(client.list_topics(topic, timeout=_SECONDS).topics[topic].partitions)
