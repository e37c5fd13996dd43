"""Produce the topic: read the outbox in time order and send it, with the mistakes people make as options.

A batch is sent, acknowledged, and then the checkpoint moves. A crash between the last two sends the batch again at the
next start, under a new producer id: idempotence ends with the process. `--pause-at` leaves a gap there to be killed in.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from confluent_kafka import KafkaError, Message, Producer

from examples.flights.crashlog import CrashLog, say
from examples.flights.misdeeds import Misdeed, record
from examples.flights.settings import TO_TOPIC, TOPIC, Systems, add_systems, systems_of

NAME = "flights-producer"
DELIVERY_SECONDS = 60.0

NEXT_BATCH = """
select flight_id, recorded_at, row_to_json(d)::text
  from ops.departures d
 where (recorded_at, flight_id) > (
           coalesce((select recorded_at from ops.producer_checkpoint where producer = %(producer)s), '-infinity'),
           coalesce((select flight_id from ops.producer_checkpoint where producer = %(producer)s), ''))
   and recorded_at < %(until)s
 order by recorded_at, flight_id
 limit %(batch)s
"""
MOVE_CHECKPOINT = """
insert into ops.producer_checkpoint (producer, recorded_at, flight_id) values (%s, %s, %s)
on conflict (producer) do update set recorded_at = excluded.recorded_at, flight_id = excluded.flight_id
"""


@dataclass(frozen=True, kw_only=True)
class Departure:
    """One row of the outbox, ready to send."""

    flight_id: str
    at: datetime
    value: str


@dataclass(frozen=True, kw_only=True)
class ProducerSettings:
    """The configuration of a producer, mistakes included. Counts are records of this run; 0 is never."""

    acks: str = "all"
    idempotence: bool = True
    transactions: bool = False
    batch: int = 500
    skip_every: int = 0
    abort_at: int = 0
    pause_at: int = 0
    pause_ms: int = 20

    def client(self, bootstrap: str) -> dict[str, str | int | bool]:
        """Return the configuration of librdkafka."""
        properties: dict[str, str | int | bool] = {
            "bootstrap.servers": bootstrap,
            "client.id": NAME,
            "log_level": 3,  # a coordinator that is still loading is no news
            "acks": self.acks,
            "enable.idempotence": self.idempotence or self.transactions,
            "linger.ms": 2,
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
        }
        if self.transactions:
            properties |= {"transactional.id": NAME, "retry.backoff.ms": 5}
        return properties


class Sender:
    """A sender of batches that knows that each record was acknowledged."""

    def __init__(self, bootstrap: str, settings: ProducerSettings) -> None:
        self._settings = settings
        self._producer = Producer(settings.client(bootstrap))
        self._failures: list[str] = []
        if settings.transactions:
            self._producer.init_transactions(DELIVERY_SECONDS)

    def send(self, departures: Sequence[Departure], *, abort: bool = False) -> None:
        """Send one batch and wait for it; with transactions, one transaction, aborted after the send if asked."""
        if self._settings.transactions:
            self._producer.begin_transaction()
        for departure in departures:
            self._producer.produce(
                TOPIC,
                key=departure.flight_id.encode(),
                value=departure.value.encode(),
                timestamp=int(departure.at.timestamp() * 1000),
                on_delivery=self._delivered,
            )
        left = self._producer.flush(DELIVERY_SECONDS)
        if left or self._failures:
            raise SystemExit(f"{left} records unanswered, {len(self._failures)} refused: {self._failures[:1]}")
        if abort:
            self._producer.abort_transaction(DELIVERY_SECONDS)
        elif self._settings.transactions:
            self._producer.commit_transaction(DELIVERY_SECONDS)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(str(error))


class Shift:
    """One run of the producer: from its checkpoint up to a moment."""

    def __init__(self, systems: Systems, settings: ProducerSettings, crash_log: CrashLog) -> None:
        self._settings = settings
        self._crash_log = crash_log
        self._database = systems.database()
        self._sender = Sender(systems.bootstrap, settings)
        self._read = 0

    def run(self, until: datetime) -> int:
        """Send everything recorded before `until`; returns how many outbox rows were passed."""
        for batch in self._batches(until):
            before, self._read = self._read, self._read + len(batch)
            skipped = self._skipped(batch, before)
            aborted = before < self._settings.abort_at <= self._read
            sent = [departure for departure in batch if departure not in skipped]
            self._sender.send(sent, abort=aborted)
            if before < self._settings.pause_at <= self._read:
                self._pause(sent)
            self._checkpoint(batch[-1], [*self._confess_skips(skipped), *self._confess_abort(sent if aborted else [])])
        return self._read

    def _batches(self, until: datetime) -> Iterator[list[Departure]]:
        while True:
            with self._database, self._database.cursor() as cursor:
                cursor.execute(NEXT_BATCH, {"producer": NAME, "until": until, "batch": self._settings.batch})
                rows = cursor.fetchall()
            if not rows:
                return
            yield [Departure(flight_id=row[0], at=row[1], value=row[2]) for row in rows]

    def _skipped(self, batch: Sequence[Departure], before: int) -> list[Departure]:
        """Return the rows that the buggy filter drops: every Nth record never reaches `produce`."""
        every = self._settings.skip_every
        if not every:
            return []
        return [departure for place, departure in enumerate(batch, before + 1) if place % every == 0]

    def _pause(self, sent: Sequence[Departure]) -> None:
        """Wait between the acknowledgement and the checkpoint. Killed here, the next run sends these again."""
        self._crash_log.write("acknowledged", [{"flight_id": departure.flight_id} for departure in sent])
        say("pause")
        time.sleep(self._settings.pause_ms / 1000)

    def _checkpoint(self, last: Departure, misdeeds: Sequence[Misdeed]) -> None:
        """Move on, whatever became of the batch: what was skipped or aborted is never looked at again."""
        with self._database, self._database.cursor() as cursor:
            cursor.execute(MOVE_CHECKPOINT, (NAME, last.at, last.flight_id))
            record(cursor, misdeeds)

    def _confess_skips(self, skipped: Sequence[Departure]) -> list[Misdeed]:
        detail = {"filter": f"every {self._settings.skip_every}th record"}
        return [
            Misdeed(what="send skipped", hop=TO_TOPIC, flight_id=row.flight_id, effect=-1, detail=detail)
            for row in skipped
        ]

    def _confess_abort(self, sent: Sequence[Departure]) -> list[Misdeed]:
        return [Misdeed(what="transaction aborted", hop=TO_TOPIC, flight_id=row.flight_id, effect=-1) for row in sent]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the producer's options."""
    options = argparse.ArgumentParser(prog="python -m examples.flights.producer", description=__doc__)
    add_systems(options)
    options.add_argument("--until", type=datetime.fromisoformat, required=True, help="send what was recorded before")
    options.add_argument("--crash-log", required=True, help="file to note intentions in")
    options.add_argument("--acks", choices=["0", "1", "all"], default="all")
    options.add_argument("--idempotence", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--transactions", action="store_true", help="one transaction per batch")
    options.add_argument("--batch", type=int, default=500, help="records per batch")
    options.add_argument("--skip-every", type=int, default=0, help="a buggy filter forgets every Nth record")
    options.add_argument("--abort-at", type=int, default=0, help="abort the transaction with the Nth record")
    options.add_argument("--pause-at", type=int, default=0, help="pause before the checkpoint of the Nth record")
    options.add_argument("--pause-ms", type=int, default=20)
    return options


def main() -> None:
    """Run one shift and print what it did."""
    arguments = parser().parse_args()
    if arguments.abort_at and not arguments.transactions:
        raise SystemExit("--abort-at needs --transactions")
    settings = ProducerSettings(
        acks=arguments.acks,
        # Idempotence needs every replica's word; asking for less switches it off, as librdkafka would insist.
        idempotence=arguments.idempotence and arguments.acks == "all",
        transactions=arguments.transactions,
        batch=arguments.batch,
        skip_every=arguments.skip_every,
        abort_at=arguments.abort_at,
        pause_at=arguments.pause_at,
        pause_ms=arguments.pause_ms,
    )
    shift = Shift(systems_of(arguments), settings, CrashLog(arguments.crash_log))
    say("done", passed=shift.run(arguments.until))


if __name__ == "__main__":
    main()
