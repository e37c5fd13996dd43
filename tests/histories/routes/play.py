"""Play a history of routes on real servers, and walk its windows by the steps that Airflow runs."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cached_property, singledispatchmethod
from typing import Any

from confluent_kafka import Producer, TopicPartition

from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.window.context import WindowContext
from tests.histories.routes.column_types import COLUMNS, KEYS
from tests.histories.routes.describe import group_of, topics_of
from tests.histories.routes.events import (
    TABLE_OF,
    TOPICS,
    Carry,
    Event,
    Fulfil,
    History,
    Item,
    Link,
    Restore,
    Window,
    Write,
    place_of,
)
from tests.histories.routes.held import Copy, Held, Seen, held, plain
from tests.histories.walk import Walk
from tests.histories.watched import Contents, Watch
from tests.world.consumer import Record, consumer
from tests.world.orders import BORN, DAY
from tests.world.topics import commit_group, delete_records, left_open
from tests.world.windows import ReconciledShop

_PAST = 1000


@dataclass
class RoutePlayer(Walk[Seen]):
    """A history being played. `items`: each event as it was written first. `written`: what was written to ledgers and
    topics, in order; `carried`: how much of its source each hop has carried. `log`: every record that a topic ever had.
    `begins`: where the log of a topic may begin, as windows have read what is before. `again`: events of earlier days
    that came to another point since the last window. `unreached`: the hops whose group
    has an offset that its log does not have."""

    history: History
    shop: ReconciledShop
    watch: Watch
    items: dict[int, Item] = field(default_factory=dict)
    carried: dict[Link, int] = field(default_factory=dict)
    written: dict[str, list[Item]] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)
    log: dict[str, dict[tuple[int, int], Record]] = field(default_factory=dict)
    again: set[tuple[str, int]] = field(default_factory=set)
    unreached: set[Link] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    day: int = 0

    @singledispatchmethod
    def happen(self, event: Event) -> None:
        """Make an event happen."""
        raise NotImplementedError(event)

    @happen.register
    def _(self, event: Write) -> None:
        if self.items.get(event.item.number, event.item).day < event.item.day:
            self.again.add((event.point, event.item.number))
        self._write(event.point, event.item)

    def _write(self, point: str, item: Item, day: int | None = None) -> None:
        self.items.setdefault(item.number, item)
        if point in TOPICS:
            self._send(point, item)
        else:
            self._insert(TABLE_OF[point], item, day)
        self.written.setdefault(place_of(point), []).append(item)

    def _insert(self, table: str, item: Item, day: int | None) -> None:
        at = BORN + item.day * DAY + timedelta(minutes=item.minute)
        at = at if day is None else BORN + day * DAY + timedelta(hours=23)
        values = [KEYS[self.history.key].text(item.number), item.number, at, *self._samples(item), "new"]
        columns = ["id", "number", "at", *self._columns, "status"]
        places = ", ".join(["%s"] * len(values))
        self.shop.sql(f"insert into {table} ({', '.join(columns)}) values ({places})", *values)

    def _send(self, point: str, item: Item) -> None:
        at = BORN + item.day * DAY + timedelta(minutes=item.minute)
        self._client.produce(
            topics_of(self.shop)[point],
            partition=0,
            key=KEYS[self.history.key].shown(item.number),
            value=self._document(item),
            timestamp=int(at.timestamp() * 1000),
        )
        assert self._client.flush(30) == 0

    def _document(self, item: Item) -> str:
        """Return the record of an event as PostgreSQL writes it, each value by `to_json` or as a text."""
        kinds = [KEYS[self.history.key].name, *(COLUMNS[name].name for name in self.history.columns)]
        texts = [KEYS[self.history.key].text(item.number), *self._samples(item)]
        form = "::text" if self.history.are_texts else ""
        fields = ", ".join(
            f"%s::{kind}{form} as {name}" for kind, name in zip(kinds, ["id", *self._columns], strict=True)
        )
        at = (BORN + item.day * DAY + timedelta(minutes=item.minute)).isoformat()
        statement = f"select row_to_json(t)::text from (select {fields}, %s as number, %s as at, 'sent' as status) t"
        return str(self.shop.sql(statement, *texts, item.number, at)[0][0])

    def _samples(self, item: Item) -> list[str]:
        pairs = zip(self.history.columns, item.values, strict=False)
        return [COLUMNS[name].samples[value % len(COLUMNS[name].samples)] for name, value in pairs]

    @property
    def _columns(self) -> list[str]:
        return [f"c{at}" for at in range(len(self.history.columns))]

    @cached_property
    def _client(self) -> Producer:
        return Producer({"bootstrap.servers": self.shop.bootstrap, "linger.ms": 1, "log_level": 0})

    # What goes over hops

    @happen.register
    def _(self, event: Carry) -> None:
        source, target = event.link
        mishaps, waiting = dict(event.mishaps), self.written.get(place_of(source), [])
        for item in waiting[self.carried.get(event.link, 0) :]:
            mishap = mishaps.get(item.number)
            if mishap == "lost" or self._has(target, item.number):
                continue
            for _ in range(2 if mishap == "doubled" else 1):
                self._write(target, item.changed() if mishap == "changed" else item, event.day)
        self.carried[event.link] = len(waiting)
        if self.history.has_groups and source in TOPICS:
            self.unreached.discard(event.link)
            self._commit(event.link, self._end(source))

    def _has(self, point: str, number: int) -> bool:
        if point in TOPICS:
            return any(item.number == number for item in self.written.get(point, []))
        return bool(self.shop.sql(f"select 1 from {TABLE_OF[point]} where number = %s", number))

    def _commit(self, link: Link, offset: int) -> None:
        commit_group(self.shop.bootstrap, group_of(self.shop, link), topics_of(self.shop)[link[0]], offset)

    def _end(self, point: str) -> int:
        with consumer(self.shop.bootstrap) as client:
            return int(client.get_watermark_offsets(TopicPartition(topics_of(self.shop)[point], 0), timeout=30)[1])

    @happen.register
    def _(self, event: Fulfil) -> None:
        self.shop.sql(f"update {event.table} set status = 'shipped' where number %% 3 = %s", self.day % 3)

    @happen.register
    def _(self, event: Restore) -> None:
        source = event.link[0]
        begins = self.begins.get(source, 0)
        if event.where == "before" and begins:
            delete_records(self.shop.admin, topics_of(self.shop)[source], {0: begins})
        elif event.where == "before":
            return
        self._commit(event.link, 0 if event.where == "before" else self._end(source) + _PAST)
        self.unreached.add(event.link)

    # A window

    @happen.register
    def _(self, event: Window) -> None:
        self.day = event.day
        handed = self.seen[-1].pending() if self.seen else frozenset()
        handed |= {(link, number) for point, number in self.again for link in self.history.links if link[0] == point}
        self.again.clear()
        of_day = frozenset(number for number, item in self.items.items() if item.day == event.day)
        seen = Seen(event.day, of_day, handed, frozenset(self.unreached))
        self.take_window(event.day, seen)
        seen.unnamed = tuple(self.watch.found)

    def begin(self, seen: Seen, context: WindowContext) -> None:
        ranges = context.window.ranges
        seen.begins = {point: min((part.lo for part in ranges.get(point, ())), default=0) for point in TOPICS}
        for point in TOPICS:
            self.begins[point] = max((part.hi for part in ranges.get(point, ())), default=0)

    def found(self, context: WindowContext) -> dict[tuple[Link, int], tuple[str, str]]:
        links = {f"{source}→{target}": (source, target) for source, target in self.history.links}
        numbers = {KEYS[self.history.key].shown(number): number for number in self.items}
        with connect(self.shop.journal) as journal:
            findings = [item.finding for item in window_findings.findings(journal, context.window)]
        return {
            (links[finding.hop], numbers[finding.key]): (finding.verdict.value, finding.cause.value)
            for finding in findings
        }

    def read_again(self, seen: Seen) -> None:
        assert seen.before is not None
        seen.after = self.held()
        self._carry_what_was_sent(seen.before, seen.after)
        self.watch.begin()

    def _carry_what_was_sent(self, before: Held, after: Held) -> None:
        """Have what a repair sent into a topic, and the rows that it gave a key that had none, carried on, as anything
        there is."""
        for point in dict.fromkeys(place_of(source) for source, _ in self.history.links):
            known = {copy if point in TOPICS else copy.number for copy in before.copies[point]}
            sent = [copy for copy in after.copies[point] if {copy, copy.number}.isdisjoint(known)]
            self.written.setdefault(point, []).extend(self._item_of(copy) for copy in sent)
            if sent and point in TOPICS:
                left_open(self.shop.bootstrap, topics_of(self.shop)[point])
        for link in self.history.links:
            if link not in self.unreached:
                self.happen(Carry(link, self.day))

    def _item_of(self, copy: Copy) -> Item:
        item = self.items[copy.number]
        return Item(copy.number, copy.values, item.day, item.minute)

    # What there is

    def _contents(self) -> Contents:
        """Return what there is, and the records that there were."""
        now = self.watch.contents()
        for topic, records in now.topics.items():
            self.log.setdefault(topic, {}).update(records)
        return Contents(now.tables, {topic: dict(records) for topic, records in self.log.items()})

    def held(self) -> Held:
        return held(self.history, self._contents(), self._meanings, topics_of(self.shop))

    @cached_property
    def _meanings(self) -> list[dict[str, int]]:
        """Return what PostgreSQL writes for each sample of each compared column: as JSON, and as a text in JSON."""
        of_columns: list[dict[str, int]] = []
        for name in self.history.columns:
            column, of_column = COLUMNS[name], dict[str, int]()
            for number, sample in enumerate(column.samples):
                statement = f"select to_jsonb(x)::text, to_jsonb(x::text)::text from (select %s::{column.name} as x) t"
                for text in self.shop.sql(statement, sample)[0]:
                    of_column[plain(json.loads(text, parse_float=Decimal))] = number
            of_columns.append(of_column)
        return of_columns


def key_of(history: History) -> Callable[[Any], str]:
    """Return what says the key of a row or a record, as a plan names it."""
    return lambda columns: KEYS[history.key].shown(int(columns["number"]))
