"""Play a history of versions on real servers, and walk its windows by the steps that Airflow runs."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, singledispatchmethod
from typing import Any

from confluent_kafka import Producer, TopicPartition

from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.window.context import WindowContext
from tests.histories.upserts.describe import describe
from tests.histories.upserts.events import (
    UNNUMBERED,
    Change,
    Delete,
    Event,
    Filter,
    Fulfil,
    History,
    Load,
    Purge,
    Rewrite,
    Send,
    SendDamaged,
    Stray,
    Version,
    Window,
)
from tests.histories.upserts.held import BESIDE, Held, Record, Seen, fraction, timestamp
from tests.histories.walk import Walk
from tests.histories.watched import OF_NOTHING_COMPARED, PLAN_HEADER, Watch, table_rows
from tests.world.consumer import consumer, read_to_end
from tests.world.orders import BORN, DAY, milliseconds
from tests.world.windows import ReconciledShop

_NO_AMOUNT = -1


@dataclass
class UpsertPlayer(Walk[Seen]):
    """A history being played: the log as it was written, and what makewhole has said of each window."""

    history: History
    shop: ReconciledShop
    watch: Watch
    records: list[Record] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    region: str | None = None

    def play(self, after: Callable[[Seen], None]) -> None:
        self.region = self.history.region
        super().play(after)

    @singledispatchmethod
    def happen(self, event: Event) -> None:
        """Make an event happen. One that cannot happen now does nothing."""
        raise NotImplementedError(event)

    # The ledger and the topic

    @happen.register
    def _(self, event: Change) -> None:
        if self._is_in_ledger(event.version):
            self._write(event.version)
        elif self.history.has_ledger:
            self.shop.write("outbox", [self._order(event.version) | OF_NOTHING_COMPARED])

    def _is_in_ledger(self, version: Version) -> bool:
        """Whether a version comes to the table from a ledger, with no topic between them."""
        return self.history.is_direct or (version.is_beside and self.history.second == "ledger")

    def _is_old(self, version: Version) -> bool:
        """Whether a ledger of numbered versions gets a version once more: without numbers nothing would order it."""
        is_known = version in {record.version for record in self.records}
        return self.history.has_version and not self.history.is_in_place and not is_known

    def _write(self, version: Version) -> None:
        """Write a version into the ledger that feeds the table."""
        partition, table = (BESIDE, "archive") if version.is_beside else (0, "outbox")
        self._append(partition, version)
        if self.history.is_in_place:
            self.shop.sql(f"delete from {table} where id = %s", version.key)
        self.shop.write(table, [self._order(version) | OF_NOTHING_COMPARED])

    def _append(self, partition: int, version: Version) -> None:
        self.records.append(Record(partition, self.ends.get(partition, 0), version))
        self.ends[partition] = self.ends.get(partition, 0) + 1

    @happen.register
    def _(self, event: Purge) -> None:
        self.shop.sql("delete from outbox where at < %s", BORN + event.before * DAY)

    @happen.register
    def _(self, event: Send) -> None:
        for version in event.versions:
            if not self._is_in_ledger(version):
                order = self._order(version) | {"status": "sent"}
                self._produce(version, None if version.is_deletion else json.dumps(order))
            elif self._is_old(version):
                self._write(version)
        assert self._client.flush(30) == 0

    @happen.register
    def _(self, event: SendDamaged) -> None:
        if self._is_in_ledger(event.version):
            return
        order = self._order(event.version) | ({event.damage: "n/a"} if event.damage in ("amount", "version") else {})
        if event.damage == "unnumbered":
            del order["version"]
        value = json.dumps(order)
        self._produce(event.version, value[:-5] if event.damage == "value" else value)
        assert self._client.flush(30) == 0
        # A version whose amount is none is the latest all the same, and no row is like it.
        is_read = event.damage == "amount"
        version = replace(event.version, cents=_NO_AMOUNT) if is_read else event.version
        version = replace(version, number=UNNUMBERED) if event.damage == "unnumbered" else version
        self.records[-1] = replace(self.records[-1], version=version, damage=None if is_read else event.damage)

    @cached_property
    def _client(self) -> Producer:
        return Producer({"bootstrap.servers": self.shop.bootstrap, "linger.ms": 1, "log_level": 0})

    def _produce(self, version: Version, value: str | None) -> None:
        partition = BESIDE if version.is_beside else int(version.key[1:]) % self.history.partitions
        self._append(partition, version)
        self._client.produce(
            self.shop.more_topics[0] if version.is_beside else self.shop.topic,
            partition=partition % BESIDE,
            key=version.key,
            value=value,
            timestamp=milliseconds(self._order(version)["at"]),
        )

    # The store

    @happen.register
    def _(self, event: Load) -> None:
        mishaps = dict(event.mishaps)
        for record in self.records:
            if record.offset < self.taken.get(record.partition, 0):
                continue
            self.taken[record.partition] = record.offset + 1
            mishap = mishaps.pop(record.version.key, None)
            is_taken = record.damage is None or (record.damage == "unnumbered" and self.history.is_blind)
            is_readable = is_taken and record.version.cents != _NO_AMOUNT
            if is_readable and mishap != "lost":
                self._load(record.version, event.day, 11 if mishap == "changed" else 0)

    def _load(self, version: Version, day: int, wrong_by: int) -> None:
        is_kept = version.is_deletion or self.region not in (None, version.region)
        order = self._order(version) | {"amount": _text(version.cents + wrong_by), "at": _late_on(day)}
        number = order.get("version")
        newer = "" if self.history.is_blind or number is None else " and version > %s"
        is_ahead = newer and self.shop.sql(f"select 1 from warehouse where id = %s{newer}", version.key, number)
        if is_ahead and not version.is_deletion:
            return
        if is_kept:
            self.shop.sql("delete from warehouse where id = %s", version.key)
        elif not self._overwritten(order):
            self.shop.write("warehouse", [order | OF_NOTHING_COMPARED])

    def _overwritten(self, order: dict[str, Any]) -> bool:
        columns = [name for name in order if name != "id"]
        sets = ", ".join(f"{name} = %s" for name in columns)
        values = [order[name] for name in columns]
        return bool(self.shop.sql(f"update warehouse set {sets} where id = %s returning id", *values, order["id"]))

    @happen.register
    def _(self, event: Rewrite) -> None:
        sets = "amount = amount + %s, at = %s"
        self.shop.sql(f"update warehouse set {sets} where id = %s", event.cents / 100, _late_on(event.day), event.key)

    @happen.register
    def _(self, event: Fulfil) -> None:
        at = None if event.day is None else _late_on(event.day)
        sets = "status = 'shipped', at = coalesce(%s::timestamptz, at)"
        self.shop.sql(f"update warehouse set {sets} where id = %s", at, event.key)
        self.shop.sql("update outbox set status = 'shipped' where id = %s", event.key)

    @happen.register
    def _(self, event: Delete) -> None:
        self.shop.sql("delete from warehouse where id = %s", event.key)

    @happen.register
    def _(self, event: Stray) -> None:
        self.shop.write("warehouse", [self._order(event.version) | {"status": "strange"}])

    # The file and its windows

    @happen.register
    def _(self, event: Filter) -> None:
        self.region = event.region
        describe(self.shop, self.history, event.region)

    @happen.register
    def _(self, event: Window) -> None:
        seen = Seen(event.day)
        self.take_window(event.day, seen)
        seen.unnamed = tuple(self.watch.found)

    def begin(self, seen: Seen, context: WindowContext) -> None:
        seen.ranges = self._rows_of_day() | {
            part.partition + beside: (part.lo, part.hi)
            for point, beside in (("orders", 0), ("others", BESIDE))
            for part in context.window.ranges.get(point, ())
        }

    def found(self, context: WindowContext) -> dict[tuple[str, str], tuple[str, str]]:
        with connect(self.shop.journal) as journal:
            findings = [item.finding for item in window_findings.findings(journal, context.window)]
        return {(finding.hop, finding.key): (finding.verdict.value, finding.cause.value) for finding in findings}

    # What there is

    def held(self) -> Held:
        outbox, warehouse = (
            tuple(row.columns for row in table_rows(self.shop, table)) for table in ("outbox", "warehouse")
        )
        return Held(
            self.history.has_version, self.region, tuple(self.records), outbox, warehouse, self.history.is_direct
        )

    def read_again(self, seen: Seen) -> None:
        if not self.history.is_direct:
            self._read_topic_again()
        seen.after = self.held()

    def _read_topic_again(self) -> None:
        starts = {partition: self.ends.get(partition, 0) for partition in range(self.history.partitions)}
        with consumer(self.shop.bootstrap) as client:
            for message in read_to_end(client, self.shop.topic, starts):
                assert PLAN_HEADER in dict(message.headers() or []), "another writer wrote into the topic"
                version = _version_of(json.loads(message.value() or b"null"))
                self.records.append(Record(message.partition() or 0, message.offset() or 0, version))
            for partition in starts:
                at = TopicPartition(self.shop.topic, partition)
                self.ends[partition] = client.get_watermark_offsets(at, timeout=30)[1]

    def _rows_of_day(self) -> dict[int, tuple[int, int]]:
        """Return which rows came since the window before into the ledgers that feed the table."""
        ledgers = ([0] if self.history.is_direct else []) + ([BESIDE] if self.history.second == "ledger" else [])
        before = self.seen[-1].ranges if self.seen else {}
        return {ledger: (before.get(ledger, (0, 0))[1], self.ends.get(ledger, 0)) for ledger in ledgers}

    def _order(self, version: Version) -> dict[str, Any]:
        at = BORN + version.day * DAY + timedelta(minutes=version.minute)
        number = {"numeric": fraction, "timestamptz": timestamp}.get(self.history.version_type, int)(version.number)
        return {
            "id": version.key,
            "number": int(version.key[1:]),
            "region": version.region,
            "amount": _text(version.cents),
            "at": at.isoformat(),
            **({"version": None if version.number == UNNUMBERED else number} if self.history.has_version else {}),
        }


def _text(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _late_on(day: int) -> str:
    return (BORN + day * DAY + timedelta(hours=23)).isoformat()


def _version_of(order: dict[str, Any]) -> Version:
    number = order.get("version", 0)
    if isinstance(number, str):
        number = int(number[14:16]) * 60 + int(number[17:19])
    return Version(order["id"], int(number), round(float(order["amount"]) * 100), order["region"], 0, 0)
