"""Drive the example: set it up, run the days with their mistakes, and leave a correct loader running.

The driver is the one who kills, so it is the one who writes down what a kill did: it reads what the victim noted before
its pause, makes sure that the kill fell between the two steps, and records the effect once the restart has had its way.
"""

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.flights import processes
from examples.flights.crashlog import CrashLog
from examples.flights.misdeeds import Misdeed, record
from examples.flights.outbox import load_outbox
from examples.flights.processes import Parts
from examples.flights.producer import NAME as PRODUCER
from examples.flights.schedule import (
    AFTERNOON_ENDS,
    BATCH,
    LOAD,
    MORNING_ENDS,
    TRANSACTION,
    FaultyDay,
    faulty_days,
    quiet_stretches,
)
from examples.flights.settings import (
    GROUP,
    PARTITIONS,
    TO_TOPIC,
    TO_WAREHOUSE,
    TOPIC,
    Systems,
    day_after,
    day_start,
    schema_sql,
)

Say = Callable[[str], None]
ANSWER_SECONDS = 30.0
QUIET_BATCH = 1000
LOADER = "examples.flights.consumer"


class System:
    """The example, driven from outside through its processes. `state` holds crash logs and the loader's pid."""

    def __init__(self, systems: Systems, state: Path, say: Say = print) -> None:
        self._systems = systems
        self._parts = Parts(systems)
        self._state = state
        self._say = say
        state.mkdir(parents=True, exist_ok=True)

    # -- setting up ------------------------------------------------------------------------------------------------

    def prepare(self, first: date, days: int, *, replication: int = 1) -> int:
        """Make the tables, the topic and the outbox of the days; return the number of departures."""
        self._query(schema_sql())
        if self._rows(day_start(first), day_start(day_after(first, days))):
            raise SystemExit(
                "the outbox already holds departures of these days; begin with an empty database and topic"
            )
        self._create_topic(replication)
        rows = load_outbox(self._systems, first, days)
        self._say(f"outbox: {rows} departures, days from {first}: {days}")
        return rows

    def _create_topic(self, replication: int) -> None:
        # Kafka expires by record time, and these records are of 2013: without this they are gone within minutes.
        settings = {"retention.ms": "-1", "min.insync.replicas": str(max(1, replication - 1))}
        admin = AdminClient({"bootstrap.servers": self._systems.bootstrap})
        if TOPIC in admin.list_topics(timeout=ANSWER_SECONDS).topics:
            return
        topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=replication, config=settings)
        try:
            admin.create_topics([topic])[TOPIC].result(ANSWER_SECONDS)
        except KafkaException as error:
            raise RuntimeError(f"the topic {TOPIC} could not be created: {error}") from error

    # -- the days --------------------------------------------------------------------------------------------------

    def run(self, first: date, days: int, *, seed: int, with_faults: bool = True) -> None:
        """Run the days in order: quiet stretches in one go, a faulty day mistake by mistake."""
        self.stop()
        faulty = faulty_days(first, days, seed) if with_faults else []
        stretches: list[tuple[date, date, FaultyDay | None]] = [
            *((start, end, None) for start, end in quiet_stretches(first, days, faulty)),
            *((fault.day, day_after(fault.day), fault) for fault in faulty),
        ]
        for start, end, fault in sorted(stretches, key=lambda stretch: stretch[0]):
            if fault is None:
                self._quiet(start, end)
            else:
                self._faulty(fault)

    def _quiet(self, start: date, end: date) -> None:
        self._produce(day_start(end), "--batch", str(QUIET_BATCH))
        self._consume("write-before-commit", "--batch", str(QUIET_BATCH), "--until-end")
        self._say(f"{start} up to {end}: sent and loaded, nothing went wrong")

    def _faulty(self, fault: FaultyDay) -> None:
        began, start = monotonic(), day_start(fault.day)
        morning, afternoon, evening = start + MORNING_ENDS, start + AFTERNOON_ENDS, day_start(day_after(fault.day))
        resent = self._crash_producer(start, morning, fault.morning_crash, "--idempotence")
        resent += self._crash_producer(morning, afternoon, fault.afternoon_crash, "--no-idempotence", "--acks", "1")
        self._evening(afternoon, evening, fault)
        day_size = self._rows(start, evening)
        lost = self._crash_loader("commit-before-write", day_size, fault.losing_crash)
        self._consume("commit-before-write", "--batch", str(day_size // 10), "--max-records", "1")
        doubled = self._crash_loader("write-before-commit", day_size, fault.doubling_crash)
        self._consume("write-before-commit", "--batch", str(QUIET_BATCH), "--until-end")
        self._record("loaded again after a crash", TO_WAREHOUSE, +1, doubled)
        self._say(
            f"{fault.day}: {day_size} departures; the producer was killed twice and sent {resent} again, aborted "
            f"a transaction, skipped about {fault.skipped}; the loader was killed twice, lost {len(lost)}, "
            f"doubled {len(doubled)} ({monotonic() - began:.1f} s)"
        )

    # -- the producer's mistakes -------------------------------------------------------------------------------------

    def _crash_producer(self, start: datetime, end: datetime, share: float, *options: str) -> int:
        """Kill the producer between acknowledgement and checkpoint, start it again: what was acknowledged is sent
        twice."""
        pause_at = self._place(self._rows(start, end), share)
        killed = self._parts.run_and_kill(
            "producer", [*self._producer_arguments(end), *options, "--batch", str(BATCH), "--pause-at", str(pause_at)]
        )
        sent = self._crash_log().read(killed, "acknowledged")
        self._require_stale_checkpoint([item["flight_id"] for item in sent])
        self._produce(end, *options, "--batch", str(QUIET_BATCH))
        self._record("sent again after a crash", TO_TOPIC, +1, sent, habits=" ".join(options))
        return len(sent)

    def _evening(self, start: datetime, end: datetime, fault: FaultyDay) -> None:
        """Send in transactions, one of them aborted and forgotten, through a filter that drops some records."""
        rows = self._rows(start, end)
        abort_at, skip_every = self._place(rows, fault.evening_abort), max(2, rows // fault.skipped)
        mistakes = ["--abort-at", str(abort_at), "--skip-every", str(skip_every)]
        self._produce(end, "--transactions", "--batch", str(TRANSACTION), *mistakes)

    def _require_stale_checkpoint(self, sent: list[str]) -> None:
        ahead = self._query(
            "select count(*) from ops.departures d left join ops.producer_checkpoint c on c.producer = %s"
            " where d.flight_id = any(%s)"
            " and (c.producer is null or (d.recorded_at, d.flight_id) > (c.recorded_at, c.flight_id))",
            (PRODUCER, sent),
        )[0][0]
        if ahead != len(sent):
            raise RuntimeError(f"the producer was killed too late: {len(sent) - ahead} of its batch are checkpointed")

    # -- the loader's mistakes -----------------------------------------------------------------------------------

    def _crash_loader(self, mode: str, day_size: int, share: float) -> list[dict[str, Any]]:
        """Kill the loader between its two steps; return the records in between. What was lost is recorded at once."""
        pause_at = self._place(int(day_size * 0.4), share)
        arguments = [*self._loader_arguments(mode), "--batch", str(LOAD), "--pause-at", str(pause_at), "--until-end"]
        killed = self._parts.run_and_kill("consumer", arguments)
        between = self._crash_log().read(killed, mode)
        is_committed = mode == "commit-before-write"
        self._require_committed(between, is_committed=is_committed)
        if is_committed:
            self._record("committed, never written", TO_WAREHOUSE, -1, between)
        return between

    def _require_committed(self, records: list[dict[str, Any]], *, is_committed: bool) -> None:
        consumer = Consumer({"bootstrap.servers": self._systems.bootstrap, "group.id": GROUP})
        places = consumer.committed([TopicPartition(TOPIC, p) for p in range(PARTITIONS)], timeout=ANSWER_SECONDS)
        consumer.close()
        offsets = {place.partition: place.offset for place in places}
        if any((offsets[item["partition"]] > item["offset"]) != is_committed for item in records):
            raise RuntimeError(f"the loader was killed at the wrong moment: the group's offsets are {offsets}")

    # -- the correct loader ----------------------------------------------------------------------------------------

    def live(self) -> int:
        """Start the exact loader in the background, from where the group stands; return its pid when it is ready."""
        self.stop()
        log = self._state / "loader.log"
        process = self._parts.start_detached("consumer", ["--mode", "exact"], log)
        self._pid_file.write_text(str(process.pid), encoding="utf-8")
        deadline = monotonic() + ANSWER_SECONDS
        while '"ready"' not in log.read_text(encoding="utf-8"):
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"the loader did not start; see {log}")
            sleep(0.05)
        return process.pid

    def stop(self) -> bool:
        """Stop the exact loader; return False when none was running."""
        if not self._pid_file.exists():
            return False
        was_running = processes.end(int(self._pid_file.read_text(encoding="utf-8")), LOADER)
        self._pid_file.unlink()
        return was_running

    # -- small things ----------------------------------------------------------------------------------------------

    @property
    def _pid_file(self) -> Path:
        return self._state / "loader.pid"

    def _crash_log(self) -> CrashLog:
        return CrashLog(self._state / "crash.json")

    def _crash_arguments(self) -> list[str]:
        return ["--crash-log", str(self._state / "crash.json")]

    def _producer_arguments(self, until: datetime) -> list[str]:
        return [*self._crash_arguments(), "--until", until.isoformat()]

    def _loader_arguments(self, mode: str) -> list[str]:
        return [*self._crash_arguments(), "--mode", mode]

    def _produce(self, until: datetime, *options: str) -> None:
        self._parts.run("producer", [*self._producer_arguments(until), *options])

    def _consume(self, mode: str, *options: str) -> None:
        self._parts.run("consumer", [*self._loader_arguments(mode), *options])

    @staticmethod
    def _place(rows: int, share: float) -> int:
        return max(1, int(rows * share))

    def _rows(self, start: datetime, end: datetime) -> int:
        statement = "select count(*) from ops.departures where recorded_at >= %s and recorded_at < %s"
        return int(self._query(statement, (start, end))[0][0])

    def _record(self, what: str, hop: str, effect: int, items: list[dict[str, Any]], **detail: str) -> None:
        deeds = [
            Misdeed(what=what, hop=hop, flight_id=item["flight_id"], effect=effect, detail={**item, **detail})
            for item in items
        ]
        database = self._systems.database()
        try:
            with database, database.cursor() as cursor:
                record(cursor, deeds)
        finally:
            database.close()

    def _query(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        database = self._systems.database()
        try:
            with database, database.cursor() as cursor:
                cursor.execute(statement, values or None)
                return cursor.fetchall() if cursor.description else []
        finally:
            database.close()
