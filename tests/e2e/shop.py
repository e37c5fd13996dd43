"""Run a small real system: orders go from an outbox table through a topic into a warehouse, by plain clients.

What is lost or repeated is planted by not sending, not writing, or doing it twice.
"""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from confluent_kafka import TopicPartition

from tests.world.consumer import Record, consumer, read_settled
from tests.world.pipeline_file import ledger, pipeline_file, store, topic
from tests.world.sql import Rows, insert_rows, run_sql
from tests.world.topics import admin_client, make_topic, producer

PARTITIONS = 2


def shop_file(
    name: str,
    *,
    approval: str = "above_actions: 50",
    is_observing: bool = False,
    database: str = "local_postgres",
    time_limits: str | None = None,
    publish: str | None = None,
    notify: str | None = None,
    access: str | None = None,
    **schedule: str,
) -> str:
    """Return the YAML of a shop's pipeline; `schedule` and `until` as given. `is_observing`: it names no remedy.
    `database`: the connection to it. `publish`: where its topic is published. `notify`: who is to know what waits.
    `access`: which roles may run it."""
    settings = {"description": f"Orders of the shop {name}"} | ({"time_limits": time_limits} if time_limits else {})
    settings |= {"notify": notify} if notify else {}
    settings |= {"access": access} if access else {}
    settings |= {key: f'"{value}"' for key, value in schedule.items()}
    settings |= {
        "start": "earliest",
        "settle": "1s",
        "compare": '{amount: "decimal(8,2)"}',
        "compensation": f"{{limits: {{share: 1.0}}, approval: {{{approval}}}}}",
    }
    published = {} if publish is None else {"publish": publish}
    points = {
        "outbox": ledger(database, f"{name}.outbox"),
        "orders": topic("local_kafka", f"{name}-orders", partitioner="crc32", **published),
        "warehouse": store(database, f"{name}.warehouse"),
    }
    hops = [{"from": "outbox", "to": "orders"}, {"from": "orders", "to": "warehouse"}]
    return pipeline_file(
        name, points=points, hops=hops, settings=settings, columns={"at": "timestamp"}, is_observing=is_observing
    )


@dataclass(frozen=True, kw_only=True)
class Mistakes:
    """Numbers of orders that were handled wrongly, by mistake."""

    never_sent: tuple[int, ...] = ()
    sent_twice: tuple[int, ...] = ()
    never_loaded: tuple[int, ...] = ()
    loaded_twice: tuple[int, ...] = ()


NONE = Mistakes()


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything in the system. Two that are equal: nothing was written in between."""

    outbox: tuple[Any, ...]
    records: tuple[Any, ...]
    warehouse: tuple[Any, ...]


class ScenarioShop:
    """The shop of a scenario, by its pipeline's name. A loader runs beside it, from when it is started."""

    def __init__(self, name: str, bootstrap: str, dsn: str) -> None:
        self.name = name
        self.topic = f"{name}-orders"
        self.pipeline_dag = f"makewhole_reconcile_{name}"
        self._bootstrap = bootstrap
        self._dsn = dsn
        self._loader: threading.Thread | None = None
        self._is_over = threading.Event()

    def build(self) -> None:
        """Make tables and topic, empty."""
        self.sql(f"create schema {self.name}")
        for table in ("outbox", "warehouse"):
            self.sql(f"create table {self.name}.{table} (id text, amount numeric(8,2), at timestamptz)")
        make_topic(admin_client(self._bootstrap), self.topic, PARTITIONS)

    def sql(self, statement: str, *parameters: Any) -> Rows:
        """Run plain SQL in the shop's database."""
        return run_sql(self._dsn, statement, *parameters)

    def trade(self, numbers: Iterable[int], begin: datetime, mistakes: Mistakes = NONE) -> None:
        """Write down, send and load orders, a minute apart from `begin` on, but for the mistakes."""
        rows = [(f"O{number}", f"{number}.50", begin + timedelta(minutes=at)) for at, number in enumerate(numbers)]
        self._insert("outbox", rows)
        self._send(_repeated(rows, mistakes.never_sent, mistakes.sent_twice))
        self._insert("warehouse", _repeated(rows, mistakes.never_sent + mistakes.never_loaded, mistakes.loaded_twice))

    def _insert(self, table: str, rows: Iterable[tuple[str, str, datetime]]) -> None:
        named = ({"id": key, "amount": amount, "at": at.isoformat()} for key, amount, at in rows)
        insert_rows(self._dsn, f"{self.name}.{table}", named)

    def _send(self, rows: Iterable[tuple[str, str, datetime]]) -> None:
        client = producer(self._bootstrap, linger_ms=20)
        for key, amount, at in rows:
            value = json.dumps({"id": key, "amount": amount, "at": at.isoformat()})
            client.produce(self.topic, key=key, value=value, timestamp=int(at.timestamp() * 1000))
        assert client.flush(30) == 0

    # The system as a person sees it

    def contents(self) -> Contents:
        """Read every row and every committed record, by plain SQL and a plain consumer."""
        outbox, warehouse = (
            tuple(self.sql(f"select id, amount, at from {self.name}.{table} order by 1, 2, 3"))
            for table in ("outbox", "warehouse")
        )
        records = tuple((r.partition, r.offset, r.key_text, (r.value or b"").decode()) for r in self._log())
        return Contents(outbox=outbox, records=records, warehouse=warehouse)

    def is_whole(self) -> bool:
        """Return whether every order of the outbox is in the topic, and once, with its amount, in the warehouse;
        nothing else is."""
        contents = self.contents()
        sent = {key for _, _, key, _ in contents.records}
        return sent == {row[0] for row in contents.outbox} and contents.outbox == contents.warehouse

    def copies(self) -> Counter[str]:
        """Count how often each order is in the topic."""
        return Counter(record.key_text for record in self._log())

    def lineage(self) -> dict[str, set[str]]:
        """Return the orders of the records that say they are replays, by the plan that they name."""
        keys: dict[str, set[str]] = {}
        for record in self._log():
            plan = dict(record.headers).get("makewhole-plan")
            if plan is not None:
                keys.setdefault(plan.decode(), set()).add(record.key_text)
        return keys

    def _log(self) -> list[Record]:
        records = read_settled(self._bootstrap, self.topic)
        return sorted(records, key=lambda record: (record.partition, record.offset))

    # The loader

    def start_loader(self) -> None:
        """Start a loader that does its work well: every new record is loaded, unless its order is there."""
        ready = threading.Event()
        self._loader = threading.Thread(target=self._load, args=(ready,), name=f"loader {self.name}")
        self._loader.start()
        assert ready.wait(30), "the loader did not start"

    def _load(self, ready: threading.Event) -> None:
        with consumer(self._bootstrap, f"loader-{uuid.uuid4().hex}") as client:
            partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
            ends = [client.get_watermark_offsets(part, timeout=20)[1] for part in partitions]
            client.assign([TopicPartition(self.topic, number, end) for number, end in enumerate(ends)])
            ready.set()
            while not self._is_over.is_set():
                message = client.poll(0.2)
                if message is not None and not message.error():
                    self._store(Record.of(message).document)

    def _store(self, order: dict[str, Any]) -> None:
        table = f"{self.name}.warehouse"
        self.sql(
            f"insert into {table} select %s, %s, %s where not exists (select from {table} where id = %s)",
            *(order["id"], order["amount"], order["at"], order["id"]),
        )

    def stop_loader(self) -> None:
        """End the loader, if there is one."""
        self._is_over.set()
        if self._loader is not None:
            self._loader.join(30)


def _repeated(
    rows: Iterable[tuple[str, str, datetime]], without: tuple[int, ...], twice: tuple[int, ...]
) -> list[tuple[str, str, datetime]]:
    """Return the rows, some left out, some two times in a row."""
    lost, repeated = ({f"O{number}" for number in numbers} for numbers in (without, twice))
    return [row for row in rows if row[0] not in lost for _ in range(2 if row[0] in repeated else 1)]


def moment_of(text: str) -> datetime:
    """Return an ISO time of a document."""
    return datetime.fromisoformat(text)
