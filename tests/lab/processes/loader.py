"""Run a consumer that loads the store: in every order of writing and committing in which people do it.

It reads a few records at a time. Between the two things that it does with them, and before and after, it can be killed.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

import psycopg2
from confluent_kafka import Consumer, Message, TopicPartition

from tests.lab.processes.steps import END, At, Step, do_nothing, play, reached, work_of_process
from tests.world.consumer import Isolation, committed, consumer, partitions_of, read_to_end
from tests.world.sql import execute

if TYPE_CHECKING:  # its process does not need all that the lab is made of
    from tests.lab.shop import LabShop

READ, BETWEEN, DONE = "read", "between", "done"
"""The steps of a batch: its records are read; one of the two things is done; both are."""

_INSERT = "insert into warehouse select * from json_populate_recordset(null::warehouse, %s::json)"
_OVERWRITE = (
    " on conflict (id) do update set number = excluded.number, region = excluded.region, amount = excluded.amount, "
    "at = excluded.at"
)
_KEEP = (
    "insert into sink_offsets values (%s, %s, %s) on conflict (topic, part) "
    "do update set next_offset = excluded.next_offset"
)
OFFSETS_TABLE = "create table sink_offsets (topic text, part int, next_offset bigint, primary key (topic, part))"


class LoadOrder(StrEnum):
    """What comes first: the row, or the word that it was loaded; or both in one transaction of the database."""

    WRITE_FIRST = "write_first"
    COMMIT_FIRST = "commit_first"
    TOGETHER = "together"


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How a consumer loads. `keeps_offsets`: in the table of `OFFSETS_TABLE` instead of Kafka. `overwrites`: the row
    of a key that is there. `partitions`: it reads these alone. `skips_to`: it begins there, whatever was committed."""

    order: LoadOrder = LoadOrder.WRITE_FIRST
    keeps_offsets: bool = False
    overwrites: bool = False
    isolation: Isolation = "read_committed"
    partitions: Sequence[int] | None = None
    skips_to: Mapping[int, int] | None = None
    batch: int = 5


def load(
    shop: "LabShop",
    loading: Loading,
    *,
    killed_at: tuple[int, str] | None = None,
    at: At = do_nothing,
) -> list[Step]:
    """Load what is in the shop's topic from where the last one stopped; return the steps, which note their keys."""
    work = {
        "dsn": shop.dsn,
        "bootstrap": shop.bootstrap,
        "topic": shop.topic,
        "group": shop.group,
        "order": loading.order,
        "keeps_offsets": loading.keeps_offsets,
        "overwrites": loading.overwrites,
        "isolation": loading.isolation,
        "partitions": None if loading.partitions is None else list(loading.partitions),
        "skips_to": None if loading.skips_to is None else list(loading.skips_to.items()),
        "batch": loading.batch,
    }
    return play("loader", work, killed_at=killed_at, at=at)


class _Loader:
    """The consumer in its process."""

    def __init__(self, work: Mapping[str, Any], client: Consumer) -> None:
        self._work = work
        self._client = client
        self._topic = work["topic"]
        self._database = psycopg2.connect(work["dsn"])

    def run(self) -> None:
        number = 0
        for number, messages in enumerate(self._batches()):
            keys = [(message.key() or b"").decode() for message in messages]
            reached(number, READ, keys)
            self._load(number, messages, keys)
            reached(number, DONE, keys)
        reached(number, END)

    def _batches(self) -> Iterator[list[Message]]:
        partitions = self._work["partitions"] or partitions_of(self._client, self._topic)
        start = self._progress(partitions) | dict(self._work["skips_to"] or ())
        waiting = read_to_end(self._client, self._topic, start, partitions)
        while batch := list(islice(waiting, self._work["batch"])):
            yield batch

    def _progress(self, partitions: Sequence[int]) -> dict[int, int]:
        if self._work["keeps_offsets"]:
            return dict(
                execute(self._database, "select part, next_offset from sink_offsets where topic = %s", [self._topic])
            )
        asked = [TopicPartition(self._topic, at) for at in partitions]
        return {at.partition: at.offset for at in committed(self._client, asked) if at.offset >= 0}

    def _load(self, number: int, messages: Sequence[Message], keys: Sequence[str]) -> None:
        steps: list[Callable[[], None]] = [lambda: self._write(messages), lambda: self._keep(messages)]
        if self._work["order"] == LoadOrder.COMMIT_FIRST:
            steps.reverse()
        first, second = steps
        first()
        if self._work["order"] != LoadOrder.TOGETHER:
            self._database.commit()
        reached(number, BETWEEN, keys)
        second()
        self._database.commit()

    def _write(self, messages: Sequence[Message]) -> None:
        rows = [json.loads(message.value() or b"null") for message in messages]
        if self._work["overwrites"]:
            rows = list({row["id"]: row for row in rows}.values())
        execute(self._database, _INSERT + (_OVERWRITE if self._work["overwrites"] else ""), [json.dumps(rows)])

    def _keep(self, messages: Sequence[Message]) -> None:
        ends = {message.partition(): (message.offset() or 0) + 1 for message in messages}
        if self._work["keeps_offsets"]:
            for partition, offset in ends.items():
                execute(self._database, _KEEP, [self._topic, partition, offset])
        else:
            offsets = [TopicPartition(self._topic, partition or 0, offset) for partition, offset in ends.items()]
            self._client.commit(offsets=offsets, asynchronous=False)


def main() -> None:
    """Load until the end of the topic."""
    work = work_of_process()
    with consumer(work["bootstrap"], work["group"], work["isolation"]) as client:
        _Loader(work, client).run()


if __name__ == "__main__":
    main()
