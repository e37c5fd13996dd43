"""Load the topic: read it and append to the warehouse, in one of three orders.

- commit-before-write: a crash in between loses the batch, and the group shows no lag;
- write-before-commit: a crash in between loads the batch twice;
- exact: the offsets are in the warehouse, in the transaction of the rows. Kafka gets them afterwards, for the lag only.

One loader owns all partitions, so it assigns them to itself. `--pause-at` leaves a gap between the steps to be killed
in.
"""

import argparse
import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from psycopg2 import extensions
from psycopg2.extras import execute_values

from examples.flights.crashlog import CrashLog, say
from examples.flights.settings import COLUMNS, GROUP, PARTITIONS, TOPIC, Systems, add_systems, systems_of

Mode = Literal["commit-before-write", "write-before-commit", "exact"]
MODES: tuple[Mode, ...] = ("commit-before-write", "write-before-commit", "exact")
Step = Callable[[Sequence[Message]], None]
ANSWER_SECONDS = 30.0
POLL_SECONDS = 0.5
AT_START = -2
COORDINATOR_MOVES = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)

INSERT = f"insert into dw.departures (flight_id, departed_at, {', '.join(COLUMNS)}) values %s"  # noqa: S608, our own names
OFFSETS = "select partition, next_offset from dw.loader_offsets where topic = %s"
MOVE_OFFSETS = """
insert into dw.loader_offsets (topic, partition, next_offset) values %s
on conflict (topic, partition) do update set next_offset = excluded.next_offset
"""


@dataclass(frozen=True, kw_only=True)
class LoaderSettings:
    """The configuration of a loader. Counts are records of this run; 0 is never."""

    mode: Mode = "exact"
    isolation: str = "read_committed"
    batch: int = 500
    pause_at: int = 0
    pause_ms: int = 20
    max_records: int = 0
    until_end: bool = False

    def client(self, bootstrap: str) -> dict[str, str | int | bool]:
        """Return the configuration of librdkafka."""
        return {
            "bootstrap.servers": bootstrap,
            "client.id": GROUP,
            "log_level": 3,
            "group.id": GROUP,
            "isolation.level": self.isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": self.until_end,
        }


def warehouse_row(value: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row for one record's JSON: the flight's own time, never that of the loading."""
    return (value["flight_id"], value["time_hour"], *(value[column] for column in COLUMNS))


def next_offsets(batch: Sequence[Message]) -> list[TopicPartition]:
    """Return per partition the offset after the last record of the batch."""
    last: dict[int, int] = {}
    for message in batch:
        last[message.partition() or 0] = (message.offset() or 0) + 1
    return [TopicPartition(TOPIC, partition, offset) for partition, offset in sorted(last.items())]


class Loader:
    """One run of the loader."""

    def __init__(self, systems: Systems, settings: LoaderSettings, crash_log: CrashLog | None) -> None:
        self._settings = settings
        self._crash_log = crash_log
        self._database = systems.database()
        self._consumer = Consumer(settings.client(systems.bootstrap))
        self._loaded = 0
        self._ended: set[int] = set()
        self._stopping = False

    def stop(self, *_: object) -> None:
        """End after the batch in hand."""
        self._stopping = True

    def run(self) -> int:
        """Load until it is stopped, or as far as the settings say; returns the number of records."""
        start = self._start()
        self._consumer.assign(start)
        say("ready", positions={place.partition: place.offset for place in start})
        while not self._stopping and not self._is_done():
            batch = self._next_batch()
            if batch:
                self._load(batch)
        self._consumer.close()
        return self._loaded

    def _start(self) -> list[TopicPartition]:
        """Return where to begin: the group's committed offsets, or what the warehouse knows when that is further."""
        committed = self._committed([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)])
        known = {place.partition: place.offset if place.offset >= 0 else AT_START for place in committed}
        if self._settings.mode == "exact":
            with self._database, self._database.cursor() as cursor:
                cursor.execute(OFFSETS, (TOPIC,))
                stored = dict(cursor.fetchall())
            known = {partition: max(offset, stored.get(partition, AT_START)) for partition, offset in known.items()}
        return [TopicPartition(TOPIC, partition, offset) for partition, offset in sorted(known.items())]

    def _committed(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Ask the group's coordinator, again while a broker that has just started is still moving it."""
        until = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return self._consumer.committed(places, timeout=ANSWER_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in COORDINATOR_MOVES or time.monotonic() > until:
                    raise
                time.sleep(POLL_SECONDS)

    def _is_done(self) -> bool:
        if self._settings.max_records and self._loaded >= self._settings.max_records:
            return True
        return self._settings.until_end and len(self._ended) == PARTITIONS

    def _next_batch(self) -> list[Message]:
        """Return what came in; the end of a partition is noted. An offset cannot show the end: markers take offsets
        too."""
        batch = []
        for message in self._consumer.consume(self._settings.batch, timeout=POLL_SECONDS):
            error = message.error()
            if error is None:
                batch.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended.add(message.partition() or 0)
            else:
                raise SystemExit(f"the broker answered {error}")
        return batch

    def _load(self, batch: Sequence[Message]) -> None:
        before, self._loaded = self._loaded, self._loaded + len(batch)
        pause = before < self._settings.pause_at <= self._loaded
        if self._settings.mode == "commit-before-write":
            self._two_steps(batch, self._commit, self._write, pause=pause)
        elif self._settings.mode == "write-before-commit":
            self._two_steps(batch, self._write, self._commit, pause=pause)
        else:
            self._write_exactly(batch)
            self._commit(batch)

    def _two_steps(self, batch: Sequence[Message], first: Step, second: Step, *, pause: bool) -> None:
        if pause:
            self._note(batch)
        first(batch)
        if pause:
            say("pause")
            time.sleep(self._settings.pause_ms / 1000)
        second(batch)

    def _note(self, batch: Sequence[Message]) -> None:
        if self._crash_log is None:
            raise SystemExit("--pause-at needs --crash-log")
        items = [
            {
                "flight_id": (message.key() or b"").decode(),
                "partition": message.partition(),
                "offset": message.offset(),
            }
            for message in batch
        ]
        self._crash_log.write(self._settings.mode, items)

    def _commit(self, batch: Sequence[Message]) -> None:
        self._consumer.commit(offsets=next_offsets(batch), asynchronous=False)

    def _write(self, batch: Sequence[Message]) -> None:
        with self._database, self._database.cursor() as cursor:
            self._insert(cursor, batch)

    def _write_exactly(self, batch: Sequence[Message]) -> None:
        with self._database, self._database.cursor() as cursor:
            self._insert(cursor, batch)
            places = [(TOPIC, place.partition, place.offset) for place in next_offsets(batch)]
            execute_values(cursor, MOVE_OFFSETS, places)

    def _insert(self, cursor: extensions.cursor, batch: Sequence[Message]) -> None:
        rows = [warehouse_row(json.loads(message.value() or b"{}", parse_float=Decimal)) for message in batch]
        execute_values(cursor, INSERT, rows, page_size=1000)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the loader's options."""
    options = argparse.ArgumentParser(prog="python -m examples.flights.consumer", description=__doc__)
    add_systems(options)
    options.add_argument("--mode", choices=MODES, default="exact")
    options.add_argument("--isolation", choices=["read_committed", "read_uncommitted"], default="read_committed")
    options.add_argument("--batch", type=int, default=500, help="records per batch at most")
    options.add_argument("--crash-log", help="file to note intentions in")
    options.add_argument("--pause-at", type=int, default=0, help="pause between the steps of the batch with the Nth")
    options.add_argument("--pause-ms", type=int, default=20)
    options.add_argument("--max-records", type=int, default=0, help="end after so many")
    options.add_argument("--until-end", action="store_true", help="end where the topic ended at the start")
    return options


def main() -> None:
    """Run the loader and print how much it loaded."""
    arguments = parser().parse_args()
    settings = LoaderSettings(
        mode=arguments.mode,
        isolation=arguments.isolation,
        batch=arguments.batch,
        pause_at=arguments.pause_at,
        pause_ms=arguments.pause_ms,
        max_records=arguments.max_records,
        until_end=arguments.until_end,
    )
    crash_log = CrashLog(arguments.crash_log) if arguments.crash_log else None
    loader = Loader(systems_of(arguments), settings, crash_log)
    signal.signal(signal.SIGTERM, loader.stop)
    signal.signal(signal.SIGINT, loader.stop)
    say("done", loaded=loader.run())


if __name__ == "__main__":
    main()
