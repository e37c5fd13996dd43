"""A small real system: orders go from an outbox table through a topic into a warehouse, written by plain clients.

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

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.e2e.stage import query

PARTITIONS = 2

_FILE = """\
version: 1
pipeline: {name}
description: Orders of the shop {name}
{schedule}settle: 1s
compare: {{amount: "decimal(8,2)"}}
points:
  outbox: {{kind: ledger, connection: local_postgres, table: {name}.outbox, key: id, time: at}}
  orders: {{kind: topic, connection: local_kafka, topic: {name}-orders, key: "$.id"}}
  warehouse: {{kind: store, connection: local_postgres, table: {name}.warehouse, key: id, time: at}}
hops:
  - {{from: outbox, to: orders}}
  - {{from: orders, to: warehouse}}
compensation:
  limits: {{share: 1.0}}
  approval: {{{approval}}}
"""


def pipeline_file(name: str, *, approval: str = "above_actions: 50", **schedule: str) -> str:
    """The YAML of a shop's pipeline; `schedule` and `until` as given."""
    lines = "".join(f'{key}: "{value}"\n' for key, value in schedule.items())
    return _FILE.format(name=name, approval=approval, schedule=lines)


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


class Shop:
    """One shop, by its pipeline's name. `loads` is the loader that runs beside it, from when it is started."""

    def __init__(self, name: str, bootstrap: str, dsn: str) -> None:
        self.name = name
        self.topic = f"{name}-orders"
        self.pipeline_dag = f"makewhole_reconcile_{name}"
        self._bootstrap = bootstrap
        self._dsn = dsn
        self._loader: threading.Thread | None = None
        self._is_over = threading.Event()

    def build(self) -> None:
        """Tables and topic, empty."""
        self.sql(f"create schema {self.name}")
        for table in ("outbox", "warehouse"):
            self.sql(f"create table {self.name}.{table} (id text, amount numeric(8,2), at timestamptz)")
        settings = {"retention.ms": "-1"}
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1, config=settings)])[self.topic].result(30)

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Plain SQL on the shop's database."""
        return query(self._dsn, statement, *parameters)

    def trade(self, numbers: Iterable[int], begin: datetime, mistakes: Mistakes = NONE) -> None:
        """Orders of a minute each from `begin` on: written down, sent, loaded, but for the mistakes."""
        rows = [(f"O{number}", f"{number}.50", begin + timedelta(minutes=at)) for at, number in enumerate(numbers)]
        self._insert("outbox", rows)
        self._send(_repeated(rows, mistakes.never_sent, mistakes.sent_twice))
        self._insert("warehouse", _repeated(rows, mistakes.never_sent + mistakes.never_loaded, mistakes.loaded_twice))

    def _insert(self, table: str, rows: Iterable[tuple[str, str, datetime]]) -> None:
        text = json.dumps([{"id": key, "amount": amount, "at": at.isoformat()} for key, amount, at in rows])
        into = f"{self.name}.{table}"
        self.sql(f"insert into {into} select * from json_populate_recordset(null::{into}, %s::json)", text)

    def _send(self, rows: Iterable[tuple[str, str, datetime]]) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20})
        for key, amount, at in rows:
            value = json.dumps({"id": key, "amount": amount, "at": at.isoformat()})
            producer.produce(self.topic, key=key, value=value, timestamp=int(at.timestamp() * 1000))
        assert producer.flush(30) == 0

    # What a person sees of it

    def contents(self) -> Contents:
        """Every row and every committed record, by plain SQL and a plain consumer."""
        outbox, warehouse = (
            tuple(self.sql(f"select id, amount, at from {self.name}.{table} order by 1, 2, 3"))
            for table in ("outbox", "warehouse")
        )
        records = tuple((r.partition(), r.offset(), _text(r.key()), _text(r.value())) for r in self._log())
        return Contents(outbox=outbox, records=records, warehouse=warehouse)

    def is_whole(self) -> bool:
        """Every order of the outbox is in the topic, and once, with its amount, in the warehouse; nothing else is."""
        contents = self.contents()
        sent = {key for _, _, key, _ in contents.records}
        return sent == {row[0] for row in contents.outbox} and contents.outbox == contents.warehouse

    def copies(self) -> Counter[str]:
        """How often each order is in the topic."""
        return Counter(_text(record.key()) for record in self._log())

    def lineage(self) -> dict[str, set[str]]:
        """The orders of the records that say they are replays, by the plan that they name."""
        found: dict[str, set[str]] = {}
        for record in self._log():
            plan = dict(record.headers() or []).get("makewhole-plan")
            if plan is not None:
                found.setdefault(_text(plan), set()).add(_text(record.key()))
        return found

    def _log(self) -> list[Message]:
        consumer = self._consumer(**{"enable.partition.eof": True})
        consumer.assign([TopicPartition(self.topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        found, ends = [], 0
        while ends < PARTITIONS:
            message = consumer.poll(20)
            assert message is not None, f"{self.topic} came to no end"
            if message.error():
                ends += 1
            else:
                found.append(message)
        consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def _consumer(self, **settings: Any) -> Consumer:
        names = {"bootstrap.servers": self._bootstrap, "group.id": f"plain-{uuid.uuid4().hex}"}
        return Consumer(names | {"isolation.level": "read_committed", "enable.auto.commit": False} | settings)

    # The loader

    def start_loader(self) -> None:
        """From now on every new record is loaded, unless its order is there: a loader that does its work well."""
        ready = threading.Event()
        self._loader = threading.Thread(target=self._load, args=(ready,), name=f"loader {self.name}")
        self._loader.start()
        assert ready.wait(30), "the loader did not start"

    def _load(self, ready: threading.Event) -> None:
        consumer = self._consumer()
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(part, timeout=20)[1] for part in partitions]
        consumer.assign([TopicPartition(self.topic, number, end) for number, end in enumerate(ends)])
        ready.set()
        while not self._is_over.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                self._store(json.loads(_text(message.value())))
        consumer.close()

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
    """The rows, some left out, some two times in a row."""
    lost, repeated = ({f"O{number}" for number in numbers} for numbers in (without, twice))
    return [row for row in rows if row[0] not in lost for _ in range(2 if row[0] in repeated else 1)]


def _text(content: str | bytes | None) -> str:
    """Keys, values and headers of this system are text."""
    assert isinstance(content, bytes)
    return content.decode()


def moment_of(text: str) -> datetime:
    """An ISO time of a document."""
    return datetime.fromisoformat(text)
