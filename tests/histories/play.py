"""Play a history on real servers, and walk its windows by the steps that Airflow runs."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial, singledispatchmethod
from typing import Any

import psycopg2
import pytest
from confluent_kafka import Message, Producer, TopicPartition
from psycopg2 import extensions

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.journal.findings import window_findings
from makewhole.model.gate import GateAnswer
from makewhole.model.plan import Plan, PlanState
from makewhole.window.context import WindowContext, window_context
from tests.histories.events import (
    Begin,
    End,
    Erase,
    Event,
    Fulfil,
    History,
    Insert,
    Item,
    Load,
    Pass,
    Retain,
    Send,
    Step,
    Stray,
)
from tests.histories.right import HopName
from tests.histories.said import Repair, Said
from tests.histories.truth import Copy, Row, Truth
from tests.histories.watched import OF_NOTHING_COMPARED, PLAN_HEADER, Watch
from tests.world.consumer import consumer, read_to_end
from tests.world.orders import BORN, DAY, Order, milliseconds
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.topics import left_open
from tests.world.windows import ReconciledShop

_GROUP = "loader"
_BROKER_ALLOWS = 50 * 60_000
_OPEN_MILLISECONDS = 15 * 60_000  # the most that a broker allows: on a slow machine a window takes longer than a minute


class KilledError(BaseException):
    """The process died here: nothing that the product does about errors may answer it."""


@dataclass
class Player:
    """A history being played: what is true now, and what makewhole has said of each window."""

    history: History
    shop: ReconciledShop
    truth: Truth
    watch: Watch
    said: list[Said] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _touched: set[tuple[HopName, str]] = field(default_factory=set)
    _transaction: Producer | None = None
    _context: WindowContext | None = None
    _plan: Plan | None = None
    _answer: GateAnswer | None = None

    def play(self, after: Callable[[Said], None]) -> None:
        """Play all events; `after` is called when a window has come to its end."""
        try:
            for event in self.history.events:
                began = time.monotonic()
                self._happen_watched(event)
                name = event.name if isinstance(event, Step) else type(event).__name__
                self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
                if isinstance(event, Step) and event.name == "certify" and self.said:
                    after(self.said[-1])
        finally:
            if self._transaction is not None:
                self._transaction.abort_transaction(30)

    def _happen_watched(self, event: Event) -> None:
        """Make an event happen; hold what makewhole wrote until then, and by it, against what its plans name."""
        is_inside, step = self._context is not None, event.name if isinstance(event, Step) else None
        number = self._now.window.number if is_inside else 0
        if is_inside and (step is None or (step == "compensate" and self._plan is not None)):
            self.watch.expect_nothing()
        self.happen(event)
        if step == "open" or (is_inside and step is None):
            self.watch.begin()
        elif is_inside and step == "compensate" and self._plan is not None:
            self.watch.expect_what_is_named(number)
        elif is_inside and step == "certify":
            self.watch.expect_nothing()
            self.said[-1].unnamed = tuple(self.watch.found)

    # People's systems

    @singledispatchmethod
    def happen(self, event: Event) -> None:
        """Make an event happen, in the systems and in the truth. One that cannot happen now does nothing."""
        raise NotImplementedError(event)

    @happen.register
    def _(self, event: Insert) -> None:
        self.truth.ledger.append(event.item)
        self.shop.write("outbox", [{**_order(event.item), **OF_NOTHING_COMPARED}])

    @happen.register
    def _(self, event: Send) -> None:
        with self._appending(self.truth.append(event.items)) as delivered:
            client = self._idempotent if event.producer == "idempotent" else self._plain
            self._send(client, event, delivered)

    @happen.register
    def _(self, event: Begin) -> None:
        if self._transaction is None:
            name = f"tx-{self.shop.topic}-{time.monotonic_ns()}"
            client = self._producer(**{"transactional.id": name, "transaction.timeout.ms": _OPEN_MILLISECONDS})
            client.init_transactions(30)
            client.begin_transaction()
            with self._appending(self.truth.append(event.items, "open")) as delivered:
                self._send(client, event, delivered)
            self._transaction = client

    @happen.register
    def _(self, event: End) -> None:
        client, self._transaction = self._transaction, None
        if client is not None:
            client.commit_transaction(30) if event.is_committed else client.abort_transaction(30)
            assert not left_open(self.shop.bootstrap, self.shop.topic)
            self.truth.end_transaction(is_committed=event.is_committed)

    @happen.register
    def _(self, event: Load) -> None:
        before = dict(self.truth.committed)
        rows, reached = self.truth.load(event)
        self.shop.write("warehouse", [_row(row) for row in rows])
        moved = [TopicPartition(self.shop.topic, at, to) for at, to in reached.items() if before.get(at) != to]
        if moved and self.history.has_group:
            with consumer(self.shop.bootstrap, f"{_GROUP}-{self.shop.topic}") as client:
                client.commit(offsets=moved, asynchronous=False)

    @happen.register
    def _(self, event: Stray) -> None:
        row = Row(event.item.key, event.item.cents, event.item.day)
        self.truth.store.append(row)
        self.shop.write("warehouse", [_row(row)])

    @happen.register
    def _(self, event: Erase) -> None:
        self.truth.store = [row for row in self.truth.store if row.key != event.key]
        self.shop.sql("delete from warehouse where id = %s", event.key)
        if event.is_named:
            self.truth.named.add(event.key)
            self.shop.sql("insert into erasures (id) values (%s)", event.key)

    @happen.register
    def _(self, event: Fulfil) -> None:
        self._touched.add(("ledger" if event.table == "outbox" else "store", event.key))
        self.shop.sql(f"update {event.table} set status = %s where id = %s", event.status, event.key)

    @happen.register
    def _(self, event: Pass) -> None:
        if self._context is None:
            self.truth.passed += 1
            self.shop.let_pass(timedelta(days=2))

    @happen.register
    def _(self, event: Retain) -> None:
        if not self.said or self._context is not None:
            return
        before = {
            partition: min(hi + event.beyond, self.truth.stable(partition))
            for partition, (_, hi) in self.said[-1].scope.ranges.items()
        }
        self.shop.delete_records(before)
        for partition, start in before.items():
            self.truth.starts[partition] = max(start, self.truth.starts[partition])

    @cached_property
    def _plain(self) -> Producer:
        """A producer without identity: one is like another."""
        return self._producer()

    @cached_property
    def _idempotent(self) -> Producer:
        """A producer with an identity, which takes a second to get one."""
        return self._producer(**{"enable.idempotence": True})

    def _producer(self, **settings: Any) -> Producer:
        quick = {"linger.ms": 1, "socket.nagle.disable": True, "log_level": 0}
        return Producer({"bootstrap.servers": self.shop.bootstrap, **quick, **settings})

    @contextmanager
    def _appending(self, expected: Iterable[Copy]) -> Iterator[list[Message]]:
        """Check that the log has taken the records where the truth has them."""
        delivered: list[Message] = []
        yield delivered
        places = sorted((message.partition() or 0, message.offset() or 0) for message in delivered)
        assert places == sorted((copy.partition, copy.offset) for copy in expected), "the model counts offsets wrongly"

    def _send(self, client: Producer, event: Send | Begin, delivered: list[Message]) -> None:
        def keep(error: Any, message: Message) -> None:
            assert error is None
            delivered.append(message)

        for item in event.items:
            order = _order(item)
            client.produce(
                self.shop.topic,
                partition=self.truth.partition_of(item),
                key=item.key,
                value=json.dumps({**order, "status": "sent"}),
                timestamp=_record_time(order, event.minutes),
                on_delivery=keep,
            )
        assert client.flush(30) == 0

    # The steps

    @happen.register
    def _(self, event: Step) -> None:
        if event.name != "open" and self._context is None:
            return
        step = getattr(self, f"_{event.name}_step")
        if event.killed_at is not None:
            with _killing(event.killed_at), suppress(KilledError):
                step(event.window)
                return
        step(event.window)

    def _open_step(self, day: int) -> None:
        self._plan, self._answer = None, None
        # A task that is tried again is the same run, and asks for the same window.
        context = window_context(self.shop.ask(day, request=f"run of day {day}").window, self.shop.pipeline)
        self._context = context
        if len(self.said) < context.window.number:
            self.said.append(Said.of(self.history, self.said, context.window, self.truth))

    def _snapshot_step(self, day: int) -> None:
        self.said[-1].take_rows(self.truth)
        self.said[-1].scope.touched |= self._touched
        self.shop.snapshot(self._now, 1)
        self._touched.clear()
        self.said[-1].moments.append(self.truth.copy())

    def _reconcile_step(self, day: int) -> None:
        self.said[-1].scope.touched |= self._touched  # a row of the ledger that was changed just now may be a new one
        self.shop.reconcile(self._now)
        self.said[-1].moments.append(self.truth.copy())
        with connect(self.shop.journal) as journal:
            findings = [item.finding for item in window_findings.findings(journal, self._now.window)]
        hops = {LEDGER_HOP: "ledger", STORE_HOP: "store"}
        answers = ((item, (item.verdict.value, item.cause.value)) for item in findings)
        self.said[-1].found = {(hops[item.hop], item.key): answer for item, answer in answers}  # type: ignore[misc]

    def _validate_step(self, day: int) -> None:
        self._answer = self.shop.validate(self._now).answer

    def _plan_step(self, day: int) -> None:
        if self._answer is GateAnswer.FAIL:
            self._plan = plan_window(self._now).plan

    def _answer_step(self, day: int) -> None:
        plan = self._plan
        if plan is not None and plan.state is PlanState.AWAITING_APPROVAL and self.history.answer != "none":
            answer = Answer(sha256=plan.sha256, decision=Decision(self.history.answer), by="anna")
            self._plan = record_answer(self.shop.journal, plan.id, answer, self.shop.pipeline.approval)

    def _compensate_step(self, day: int) -> None:
        if self._plan is None or self._plan.state not in (PlanState.APPROVED, PlanState.FROZEN, PlanState.RUNNING):
            return
        before = self.truth.copy()
        compensate_window(self._now, lambda _: None)
        self._read_again()
        self.said[-1].repairs.append(Repair(before=before, after=self.truth.copy()))

    def _verify_step(self, day: int) -> None:
        if self._answer is GateAnswer.FAIL:
            verify_window(self._now, lambda *_: None, patience_seconds=0.0)
            self.said[-1].moments.append(self.truth.copy())

    def _certify_step(self, day: int) -> None:
        said = self.said[-1]
        closed = self.shop.certify(self._now)
        said.state, said.reason = closed.state.value, closed.reason
        with connect(self.shop.journal) as journal:
            said.incidents = tuple(incident.kind.value for incident in incidents.of(journal, self._now.window))
        said.gate, said.plan = self._answer and self._answer.value, self._plan
        self._context = None

    @property
    def _now(self) -> WindowContext:
        assert self._context is not None
        return self._context

    def _read_again(self) -> None:
        """Take into the truth what makewhole wrote: the rows of the store, and what is new in the log."""
        rows = self.shop.sql("select id, amount, at from warehouse order by id, at, amount")
        self.truth.store = [Row(key, int(amount * 100), _day_of(at)) for key, amount, at in rows]
        ends = dict(self.truth.ends)
        # A committed read would stop before an open transaction, and say nothing of what lies behind it.
        with consumer(self.shop.bootstrap, isolation="read_uncommitted") as client:
            for message in read_to_end(client, self.shop.topic, ends):
                headers = dict(message.headers() or [])
                assert PLAN_HEADER in headers, "another writer wrote into the topic"
                partition, offset = message.partition() or 0, message.offset() or 0
                self.truth.copies.append(Copy(partition, offset, _item_of(message), "committed", is_replay=True))
            for partition in ends:
                at = TopicPartition(self.shop.topic, partition)
                self.truth.ends[partition] = client.get_watermark_offsets(at, timeout=30)[1]


@contextmanager
def _killing(at: int) -> Iterator[None]:
    """Make this process die at a commit of the journal, once: before it on even numbers, after it on odd ones."""
    left = [at // 2]

    class Dying(extensions.connection):
        def _die(self, commit: Callable[[], None]) -> None:
            left[0] -= 1
            if left[0] != -1:
                return commit()
            if at % 2:
                commit()
            raise KilledError

        def commit(self) -> None:
            self._die(super().commit)

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            end = partial(super().__exit__, kind, error, trace)
            if kind is None:
                self._die(end)
            else:
                end()

    really = psycopg2.connect

    def dying(dsn: str, **options: Any) -> Any:
        options |= {"connection_factory": Dying} if "journal" in dsn else {}
        return really(dsn, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg2, "connect", dying)
        yield


def _order(item: Item) -> Order:
    at = BORN + item.day * DAY + timedelta(minutes=item.minute)
    return {
        "id": item.key,
        "number": int(item.key[1:]),
        "region": item.region,
        "amount": _text(item.cents),
        "at": at.isoformat(),
    }


def _record_time(order: Order, minutes: int) -> int:
    """Return the time that a producer's clock gives a record, in milliseconds. A broker takes none an hour ahead."""
    latest = int(time.time() * 1000) + _BROKER_ALLOWS
    return max(1, min(milliseconds(order["at"]) + minutes * 60_000, latest))


def _row(row: Row) -> Order:
    at = BORN + (row.day or 0) * DAY + timedelta(hours=23)
    return {
        "id": row.key,
        "number": int(row.key[1:]),
        "region": "EU",
        "amount": _text(row.cents),
        "at": at.isoformat(),
        **OF_NOTHING_COMPARED,
    }


def _text(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _day_of(at: datetime | None) -> int | None:
    return None if at is None else (at - BORN) // DAY


def _item_of(message: Message) -> Item:
    order = json.loads(message.value() or b"null")
    at = datetime.fromisoformat(order["at"])
    return Item(order["id"], round(float(order["amount"]) * 100), (at - BORN) // DAY, 0, order["region"])
