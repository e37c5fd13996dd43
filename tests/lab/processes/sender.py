"""Run an application that writes its outbox and sends: in every way in which people use a producer, right and wrong.

Of each batch it first writes the rows of the ledger, in a transaction of their own, and then sends their records.
So the ledger always says what should have come, whatever becomes of the process.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg2
from confluent_kafka import KafkaError, Message, Producer

from tests.lab.processes.steps import END, At, Step, do_nothing, play, reached, work_of_process
from tests.world.orders import Order
from tests.world.sql import execute
from tests.world.topics import dotted

if TYPE_CHECKING:  # its process does not need all that the lab is made of
    from tests.lab.shop import LabShop

WRITTEN, QUEUED, FAILED, UNCOMMITTED, SENT = "written", "queued", "failed", "uncommitted", "sent"
"""The steps of a batch: its rows are in the ledger; its records are with the client; some of them have failed and are
about to be sent again; of a transaction, they are on the brokers and its end is not; the program believes them sent."""

NOTICE = "notice"
"""The word for a program that is to go on when its client has noticed that a connection is broken."""

_SECONDS = 60
_INSERT = "insert into {0} select * from json_populate_recordset(null::{0}, %s::json)"


@dataclass(frozen=True, kw_only=True)
class Way:
    """How an application sends. `settings` as librdkafka names them, with `_` for `.`.

    `is_awaited`: it waits for each batch's delivery reports; otherwise it goes on, and looks at none of them.
    `is_flushed`: it waits at its end for what is still queued. `sends_again`: it sends a second time what was reported
    as failed. With a `transactional_id` each batch is a transaction; those of `aborted` are aborted. `outside`: the
    topics to which it sends by another producer, outside the transaction. `ledger`: the table that it writes; None: the
    rows are there. A `linger_ms` that is long and a flush make one request of a batch.
    """

    settings: Mapping[str, object] = field(default_factory=dict)
    is_awaited: bool = True
    is_flushed: bool = True
    sends_again: bool = False
    aborted: Sequence[int] = ()
    topics: Sequence[str] = ()
    outside: Sequence[str] = ()
    ledger: str | None = "outbox"


def send(
    shop: "LabShop",
    batches: Sequence[Sequence[Order]],
    way: Way,
    *,
    bootstrap: str | None = None,
    killed_at: tuple[int, str] | None = None,
    at: At = do_nothing,
) -> list[Step]:
    """Send batches into the shop's topic (or those of the way) from a process of its own; return its steps.

    What it notes: at `queued` the batch's keys, at `sent` and at the end how many reports were good (`delivered`) and
    the keys of those that were not (`failed`).
    """
    work = {
        "dsn": shop.dsn,
        "ledger": way.ledger,
        "settings": {"bootstrap.servers": bootstrap or shop.bootstrap, "log_level": 0, **dotted(way.settings)},
        "topics": list(way.topics or [shop.topic]),
        "outside": list(way.outside),
        "is_awaited": way.is_awaited,
        "is_flushed": way.is_flushed,
        "sends_again": way.sends_again,
        "aborted": list(way.aborted),
        "batches": [[{"row": order, **_record(shop, order)} for order in batch] for batch in batches],
    }
    return play("sender", work, killed_at=killed_at, at=at)


def _record(shop: "LabShop", order: Order) -> dict[str, Any]:
    record = shop.record(order)
    texts = {name: record[name].decode() for name in ("key", "value")}
    return {"record": {**texts, "partition": record["partition"], "timestamp": record["timestamp_ms"]}}


class _Application:
    """The application in its process."""

    def __init__(self, work: Mapping[str, Any]) -> None:
        self._work = work
        self._database = psycopg2.connect(work["dsn"])
        self._broken = 0
        self._client = Producer({**work["settings"], "statistics.interval.ms": 20, "stats_cb": self._counted})
        self._outside = Producer({"bootstrap.servers": work["settings"]["bootstrap.servers"], "log_level": 0})
        self._is_transactional = "transactional.id" in work["settings"]
        self._delivered = 0
        self._failed: list[str] = []

    def run(self) -> None:
        if self._is_transactional:
            self._client.init_transactions(_SECONDS)
        for number, batch in enumerate(self._work["batches"]):
            self._write([item["row"] for item in batch])
            reached(number, WRITTEN)
            broken = self._broken
            self._send(number, [item["record"] for item in batch])
            if reached(number, SENT, self._notes()) == NOTICE:
                self._wait_for_notice(broken)
        if self._work["is_flushed"]:
            self._client.flush(_SECONDS)
        reached(len(self._work["batches"]), END, self._notes())

    def _write(self, rows: Sequence[Order]) -> None:
        if self._work["ledger"] is None:
            return
        with self._database:
            execute(self._database, _INSERT.format(self._work["ledger"]), [json.dumps(rows)])

    def _send(self, number: int, records: Sequence[Mapping[str, Any]]) -> None:
        if self._is_transactional:
            self._client.begin_transaction()
        self._produce(records)
        reached(number, QUEUED, [record["key"] for record in records])
        self._wait(number, records)
        if self._is_transactional:
            reached(number, UNCOMMITTED, [record["key"] for record in records])
            is_aborted = number in self._work["aborted"]
            end = self._client.abort_transaction if is_aborted else self._client.commit_transaction
            end(_SECONDS)

    def _produce(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            for topic in self._work["topics"]:
                self._client.produce(topic, **record, on_delivery=self._reported)
            for topic in self._work["outside"]:
                self._outside.produce(topic, **record)

    def _wait(self, number: int, records: Sequence[Mapping[str, Any]]) -> None:
        assert self._outside.flush(_SECONDS) == 0
        if not self._work["is_awaited"]:
            self._client.poll(0)
            return
        failed = len(self._failed)
        assert self._client.flush(_SECONDS) == 0
        if self._work["sends_again"] and len(self._failed) > failed:
            keys, self._failed = set(self._failed[failed:]), self._failed[:failed]
            reached(number, FAILED, sorted(keys))
            self._produce([record for record in records if record["key"] in keys])
            assert self._client.flush(_SECONDS) == 0

    def _counted(self, statistics: str) -> None:
        self._broken = sum(broker["disconnects"] for broker in json.loads(statistics)["brokers"].values())

    def _wait_for_notice(self, before: int) -> None:
        """Wait until the client counts another broken connection: without answers it may write into that."""
        deadline = time.monotonic() + _SECONDS
        while self._broken <= before:
            self._client.poll(0.01)
            assert time.monotonic() < deadline, "the client has noticed nothing"

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._failed.append((message.key() or b"").decode())

    def _notes(self) -> dict[str, Any]:
        return {"delivered": self._delivered, "failed": self._failed, "queued": len(self._client)}


if __name__ == "__main__":
    _Application(work_of_process()).run()
