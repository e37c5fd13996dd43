"""Play a history of one pipeline on real servers, and walk its windows by the steps that Airflow runs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import singledispatchmethod
from typing import Any

from confluent_kafka import Message, Producer

from makewhole.window.context import WindowContext
from tests.histories.pipelines.events import (
    Compact,
    Doubt,
    End,
    Event,
    History,
    Insert,
    Item,
    ListAgain,
    Load,
    Mishap,
    Pass,
    RollBack,
    Send,
    Settle,
    Stray,
    Window,
)
from tests.histories.pipelines.held import Copy, Held, Point, Seen
from tests.histories.pipelines.orders import FILTERS, order_of, values_of
from tests.histories.pipelines.stores import (
    Contents,
    DatasetPlace,
    TablePlace,
    TopicPlace,
    coordinates_of,
    format_of,
    key_of,
)
from tests.histories.shapes.changes import TYPES
from tests.histories.shapes.coordinates import log_rows
from tests.histories.walk import Walk
from tests.histories.watched import PLAN_HEADER, Watch
from tests.world.consumer import Record, read_settled
from tests.world.orders import BORN, DAY, Order
from tests.world.prepared import PreparedTransactions
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.sql import insert_rows
from tests.world.topics import left_open, producer
from tests.world.windows import ReconciledShop

_IN_TRANSACTION = ("committed", "aborted", "open")
_OPEN_MILLISECONDS = 15 * 60_000  # the most that a broker allows: on a slow machine a window takes longer than a minute
_NAMES = {"ledger": LEDGER_HOP, "store": STORE_HOP}


@dataclass(frozen=True)
class Sent:
    """A record of the log: where it lies, its order, and the row that it should have."""

    at: Point
    order: Order
    row: Order
    is_replay: bool = False


@dataclass(frozen=True)
class OpenBatch:
    """A transaction that is open, with its records: where each lies, and its order."""

    producer: Producer
    records: tuple[tuple[Point, Order], ...]


@dataclass
class PipelinePlayer(Walk[Seen]):
    """A history being played.

    `log`: the committed records, in order; `known`: where any record lies; `contents`: what each says. `loaded`: how
    many of the log the loader has read; `carried`: the keys that it has written. `doubts`: prepared transaction → the
    keys of the rows that it marks. `waiting`: key → how often two days had passed when it was first pending; `passed`:
    how often they have.
    """

    history: History
    shop: ReconciledShop
    place: TablePlace | DatasetPlace | TopicPlace
    prepared: PreparedTransactions
    ledger: list[Item] = field(default_factory=list)
    log: list[Sent] = field(default_factory=list)
    known: set[Point] = field(default_factory=set)
    contents: dict[Contents, Order] = field(default_factory=dict)
    loaded: int = 0
    carried: set[str] = field(default_factory=set)
    doubts: dict[str, frozenset[str]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    passed: int = 0
    open: OpenBatch | None = None
    strays: int = 0
    seen: list[Seen] = field(default_factory=list)
    watch: Watch | None = None

    @singledispatchmethod
    def happen(self, event: Event) -> None:
        """Make an event happen. One that cannot happen to such a pipeline, or not now, does nothing."""
        raise NotImplementedError(event)

    # What the application and its producers do

    @happen.register
    def _(self, event: Insert) -> None:
        if self.history.has_ledger:
            self.ledger += event.items
            insert_rows(self.shop.dsn, "outbox", map(self._order, event.items))

    @happen.register
    def _(self, event: Send) -> None:
        orders = [self._order(item) for item in event.items]
        if self.open is not None:
            return
        places = self._send(orders, event)
        self.known |= set(places)
        if event.ending == "open":
            assert self.open is not None
            self.open = replace(self.open, records=tuple(zip(places, orders, strict=True)))
        elif event.ending != "aborted":
            self._append(zip(places, orders, strict=True))

    @happen.register
    def _(self, event: End) -> None:
        ended, self.open = self.open, None
        if ended is None:
            return
        ended.producer.commit_transaction(30) if event.is_committed else ended.producer.abort_transaction(30)
        assert not left_open(self.shop.bootstrap, self.shop.topic)
        if event.is_committed:
            self._append(ended.records)

    def play(self, after: Callable[[Seen], None]) -> None:
        try:
            super().play(after)
        finally:
            if self.open is not None:
                self.open.producer.abort_transaction(30)

    def _append(self, records: Iterable[tuple[Point, Order]], *, is_replay: bool = False) -> None:
        records = list(records)
        coordinates = coordinates_of(self.history)
        numbers = log_rows(self.shop) if coordinates is not None and records else {}
        for at, order in records:
            own = coordinates.of(numbers[at]) if coordinates is not None else {}
            self.log.append(Sent(at, order, {**order, **own}, is_replay))

    def _send(self, orders: Sequence[Order], event: Send) -> list[Point]:
        delivered: dict[int, Point] = {}
        made, is_transaction = format_of(self.history), event.ending in _IN_TRANSACTION
        own: dict[str, object] = {}
        if is_transaction:
            own["transactional_id"] = f"sender-{self.shop.topic}"
        if event.ending == "open":
            own["transaction_timeout_ms"] = _OPEN_MILLISECONDS
        client = producer(self.shop.bootstrap, enable_idempotence=event.ending != "plain", linger_ms=1, **own)
        if is_transaction:
            client.init_transactions(30)
            client.begin_transaction()

        def keep(number: int) -> Callable[[Any, Message], None]:
            def kept(error: Any, message: Message) -> None:
                assert error is None
                delivered[number] = (message.partition() or 0, message.offset() or 0)

            return kept

        for number, order in enumerate(orders):
            key, value = made.record_key(order).encode(), made.value(order)
            headers = [(name, text.encode()) for name, text in made.headers(order).items()]
            self.contents[key, value, tuple(headers)] = order
            client.produce(
                self.shop.topic,
                partition=sum(order["id"].encode()) % self.shop.partitions,
                key=key,
                value=value,
                timestamp=int((BORN + (event.day + 0.5) * DAY).timestamp() * 1000),
                headers=[*headers],
                on_delivery=keep(number),
            )
        assert client.flush(30) == 0
        if event.ending == "open":
            self.open = OpenBatch(client, ())
        elif is_transaction:
            client.commit_transaction(30) if event.ending == "committed" else client.abort_transaction(30)
            assert not left_open(self.shop.bootstrap, self.shop.topic)
        return [delivered[number] for number in range(len(orders))]

    def _order(self, item: Item) -> Order:
        return order_of(self.history.seed, item, self.history.record_format)

    # What happens to the store

    @happen.register
    def _(self, event: Load) -> None:
        rows, mishaps = list[Order](), dict(event.mishaps)
        for sent in self.log[self.loaded :]:
            mishap = mishaps.get(_number(sent.order))
            key = key_of(self.history, sent.row)
            # What was sent again is loaded where it is not: its loader has it once.
            is_wanted = key not in (self._keys_there() if sent.is_replay else self.carried)
            if self._is_taken(sent.order) and is_wanted:
                self.carried.add(key)
                rows += self._rows(sent.row, mishap)
        self.loaded = len(self.log)
        if isinstance(self.place, TopicPlace):
            self.place.copy(rows, event.ending)
        elif event.gid is not None and isinstance(self.place, TablePlace):
            if rows and event.gid not in self.doubts:
                self.prepared.prepare(event.gid, *self.place.inserting(rows))
                self.doubts[event.gid] = frozenset()
        else:
            for part in _parts(rows, event.files if self.history.is_dataset else 1):
                self.place.add(part)

    def _keys_there(self) -> set[str]:
        return {key_of(self.history, row) for row in self.place.rows()}

    def _rows(self, row: Order, mishap: Mishap | None) -> list[Order]:
        if mishap == "lost":
            return []
        if mishap == "changed":
            changed = self._order(Item(_number(row), _day(row), version=9))
            return [{**row, **{name: changed[name] for name in TYPES}}]
        return [row, row] if mishap == "doubled" else [row]

    @happen.register
    def _(self, event: Stray) -> None:
        order = self._order(event.item)
        coordinates = coordinates_of(self.history)
        if coordinates is not None:
            last = list(coordinates.columns)[-1]
            order |= {**coordinates.stray, last: coordinates.stray[last] + self.strays}
            self.strays += 1
        self.place.add([order])

    @happen.register
    def _(self, event: Doubt) -> None:
        if not isinstance(self.place, TablePlace) or event.gid in self.doubts:
            return
        keys = {key_of(self.history, row) for row in self.place.rows() if row["id"] == f"O{event.number}"}
        marked = {key for unsure in self.doubts.values() for key in unsure}
        if keys and not keys & marked:  # a row that another one holds is locked
            self.prepared.prepare(event.gid, self.place.changing(f"O{event.number}", event.how))
            self.doubts[event.gid] = frozenset(keys)

    @happen.register
    def _(self, event: Settle) -> None:
        if self.doubts.pop(event.gid, None) is not None:
            self.prepared.commit(event.gid) if event.is_committed else self.prepared.roll_back(event.gid)

    @happen.register
    def _(self, event: Pass) -> None:
        self.passed += 1
        self.shop.let_pass(timedelta(days=2))

    @happen.register
    def _(self, event: Compact) -> None:
        if isinstance(self.place, DatasetPlace):
            ids = {f"O{number}" for number in event.dropped}
            keys = {key_of(self.history, row) for row in self.place.rows() if row["id"] in ids}
            self.place.compact(frozenset(keys))

    @happen.register
    def _(self, event: ListAgain) -> None:
        if isinstance(self.place, DatasetPlace):
            self.place.list_again()

    @happen.register
    def _(self, event: RollBack) -> None:
        if isinstance(self.place, DatasetPlace):
            self.place.roll_back()

    # A window

    @happen.register
    def _(self, event: Window) -> None:
        handed = {hop: self.seen[-1].pending(hop) if self.seen else frozenset() for hop in _NAMES}
        self.waiting = {key: since for key, since in self.waiting.items() if key in handed["store"]}
        self.take_window(event.day, Seen(event.day, handed=handed))

    def begin(self, seen: Seen, context: WindowContext) -> None:
        seen.ranges = {part.partition: (part.lo, part.hi) for part in context.window.ranges["orders"]}

    def found(self, context: WindowContext) -> Mapping[str, Mapping[str, tuple[str, str]]]:
        return {hop: self.shop.found(context, name) for hop, name in _NAMES.items()}

    def judged(self, seen: Seen) -> None:
        for key in seen.pending("store"):
            self.waiting.setdefault(key, self.passed)

    def read_again(self, seen: Seen) -> None:
        self._read_topic_again()
        if isinstance(self.place, TopicPlace):
            self.happen(Load())  # what was sent again is copied, as anything is
        seen.after = self.held()

    def _read_topic_again(self) -> None:
        """Take into the log what makewhole sent, in the order in which it lies there."""
        for record in read_settled(self.shop.bootstrap, self.shop.topic):
            at = record.partition, record.offset
            if at not in self.known:
                assert PLAN_HEADER in dict(record.headers), "another writer wrote into the topic"
                self.known.add(at)
                self._append([(at, self._order_of(record))], is_replay=True)

    def _order_of(self, record: Record) -> Order:
        """Return the order of a record that was sent again as it was, or that was made of a row as JSON."""
        headers = tuple(header for header in record.headers if not header[0].startswith("makewhole"))
        known = self.contents.get((record.key, record.value, headers))
        if known is not None:
            return known
        document = json.loads(record.value or b"null")
        return {name: document.get(name) for name in ("id", *TYPES)}

    # What there is

    def held(self) -> Held:
        return Held(
            self.history,
            ledger=[self._copy(self._order(item)) for item in self.ledger],
            records=[
                replace(
                    self._copy(logged.row),
                    at=logged.at,
                    is_taken=self._is_taken(logged.order),
                    is_replay=logged.is_replay,
                )
                for logged in self.log
            ],
            rows=[self._copy(row) for row in self.place.rows()],
            doubts=frozenset(self.doubts),
            marked=frozenset(key for keys in self.doubts.values() for key in keys),
            overdue=frozenset(key for key, since in self.waiting.items() if since < self.passed),
            open=self._open_keys(),
        )

    def _open_keys(self) -> frozenset[str]:
        """Return the keys of records that are open; of a ledger alone, whose keys are ids."""
        if self.open is None or not self.history.has_ledger:
            return frozenset()
        return frozenset(key_of(self.history, order) for _, order in self.open.records)

    def _copy(self, row: Order) -> Copy:
        values = values_of(row)
        return Copy(key_of(self.history, row), values, _day(row))

    def _is_taken(self, order: Order) -> bool:
        return self.history.where is None or FILTERS[self.history.where](order)


def _number(row: Order) -> int:
    return int(row["id"].removeprefix("O"))


def _day(row: Order) -> int:
    at = values_of(row)[list(TYPES).index("at")]
    return int((at - BORN) // DAY)


def _parts(rows: Sequence[Order], count: int) -> list[Sequence[Order]]:
    size = -(-len(rows) // count) or 1
    return [rows[at : at + size] for at in range(0, len(rows), size)]
