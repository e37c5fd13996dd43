"""Run a consumer that writes Parquet files with their offsets: the exact one of the examples, and ones that are not.

It can be killed when it has read the records of a file, has claimed their range, has published it, and is done.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message, TopicPartition

from examples.files.writer import CLAIMED, DONE, PUBLISHED, READ, ExactWriter, FileOfOffsets, partitions_of
from makewhole.config.connections import from_airflow_fields
from makewhole.file_stores.open_store import file_store
from tests.lab.processes.steps import END, At, Step, do_nothing, play, reached, work_of_process
from tests.world.consumer import committed, consumer
from tests.world.files_lake import ORDERS, FilesPlace, row_of

if TYPE_CHECKING:  # its process does not need all that the lab is made of
    from tests.lab.shop import LabShop

STEPS = (READ, CLAIMED, PUBLISHED, DONE)


class FileOrder(StrEnum):
    """What a writer does: the exact one claims and publishes; others commit the group before they publish, or between
    writing under a temporary name and the rename, or go by the group and publish under names of their own."""

    EXACT = "exact"
    COMMIT_FIRST = "commit_first"
    COMMIT_BEFORE_RENAME = "commit_before_rename"
    BY_THE_GROUP = "by_the_group"


@dataclass(frozen=True, kw_only=True)
class FileWriting:
    """How a consumer writes files of at most so many records."""

    place: FilesPlace
    order: FileOrder = FileOrder.EXACT
    most: int = 5


def write_files(
    shop: "LabShop", writing: FileWriting, *, killed_at: tuple[int, str] | None = None, at: At = do_nothing
) -> list[Step]:
    """Write what is in the shop's topic; return the steps, which note the keys of a file."""
    work = {
        "bootstrap": shop.bootstrap,
        "topic": shop.topic,
        "group": shop.group,
        "fields": dict(writing.place.fields),
        "path": writing.place.path,
        "order": writing.order,
        "most": writing.most,
    }
    return play("file_writer", work, killed_at=killed_at, at=at)


class _Steps:
    """Reports the steps of files, which are counted."""

    def __init__(self) -> None:
        self._files = -1

    def at(self, step: str, messages: Sequence[Message]) -> None:
        self._files += step == READ
        reached(self._files, step, [(message.key() or b"").decode() for message in messages])

    def end(self) -> None:
        reached(self._files + 1, END)


class OrdersWriter(ExactWriter):
    """The exact writer, with the types of orders."""

    def _row(self, message: Message) -> Mapping[str, object]:
        row = super()._row(message)
        return {**row, **row_of({name: row[name] for name in ORDERS.names})}


class CarelessWriter(OrdersWriter):
    """A writer that goes by its group, and commits that before a file has its name, or behind it."""

    commits_first = False

    def write_to_end(self) -> None:
        for partition in partitions_of(self.client, self.topic):
            [reached_by_group] = committed(self.client, [TopicPartition(self.topic, partition)])
            first: int | None = max(reached_by_group.offset, 0)
            while first is not None:
                first = self._write_file(partition, first)

    def _write_file(self, partition: int, first: int) -> int | None:
        messages = list(self._read(partition, first))
        if not messages:
            return None
        self.at(READ, messages)
        last = messages[-1].offset() or 0
        file = FileOfOffsets(topic=self.topic, partition=partition, first=first, last=last)
        for step in (PUBLISHED, DONE):
            if (step == DONE) is self.commits_first:
                self._publish(file, messages)
            else:
                self._commit(partition, last + 1)
            self.at(step, messages)
        return last + 1

    def _publish(self, file: FileOfOffsets, messages: Sequence[Message]) -> None:
        self.store.publish(f"part-{uuid.uuid4().hex[:8]}-{file.name}", self._content(messages))


class CommitFirstWriter(CarelessWriter):
    """A writer that commits its group before a file has its name."""

    commits_first = True


class TemporaryWriter(CommitFirstWriter):
    """A writer that writes a file under a temporary name, commits its group, and renames the file."""

    def _commit(self, partition: int, offset: int) -> None:
        self._temporary = f".part-{uuid.uuid4().hex[:8]}.inprogress"
        self.store.publish(self._temporary, self._content(self._held))
        super()._commit(partition, offset)

    def _publish(self, file: FileOfOffsets, messages: Sequence[Message]) -> None:
        super()._publish(file, messages)
        self.store.remove(self._temporary)

    def _read(self, partition: int, first: int, last: int | None = None) -> Iterator[Message]:
        self._held = list(super()._read(partition, first, last))
        return iter(self._held)


_WRITERS: Mapping[str, type[ExactWriter]] = {
    FileOrder.EXACT: OrdersWriter,
    FileOrder.COMMIT_FIRST: CommitFirstWriter,
    FileOrder.COMMIT_BEFORE_RENAME: TemporaryWriter,
    FileOrder.BY_THE_GROUP: CarelessWriter,
}


def main() -> None:
    """Write until the end of the topic."""
    work: dict[str, Any] = work_of_process()
    store = file_store(from_airflow_fields("lake", **work["fields"]), work["path"])
    steps = _Steps()
    with consumer(work["bootstrap"], work["group"], "read_committed") as client:
        writer = _WRITERS[work["order"]](
            client=client, store=store, topic=work["topic"], schema=ORDERS, most=work["most"], at=steps.at
        )
        writer.write_to_end()
    steps.end()


if __name__ == "__main__":
    main()
