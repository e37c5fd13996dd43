"""Run the tests' small shop on a cluster of three brokers, with a loader that does its work well."""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from makewhole.compensation.approval.answer import Answer, Decision, record_answer
from makewhole.compensation.execution.run_plan import compensate_window, run_window_plan
from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.undo.plan_undo import plan_undo
from makewhole.compensation.undo.reopen import reopen_window
from makewhole.compensation.verification.verify_window import verify_window
from makewhole.journal import plans
from makewhole.journal.database import connect
from makewhole.model.errors import TransientError
from makewhole.signing.key_files import signing_key_from_environment
from makewhole.window.certifying.certify import ClosedWindow
from makewhole.window.context import WindowContext, window_context
from tests.lab.judged import Judged, judged, outcomes
from tests.lab.servers.cluster import LabCluster
from tests.world.consumer import committed, consumer, partitions_of, read_to_end
from tests.world.orders import Order, milliseconds
from tests.world.topics import dotted, left_open, producer
from tests.world.windows import ReconciledShop

_PATIENCE_SECONDS = 120.0
_LOAD = "insert into warehouse select * from json_populate_recordset(null::warehouse, %s::json)"
_LOAD_LATEST = """\
insert into warehouse
select distinct on (id) * from json_populate_recordset(null::warehouse, %s::json) order by id, version desc
on conflict (id) do update set number = excluded.number, region = excluded.region, amount = excluded.amount,
    at = excluded.at, version = excluded.version where warehouse.version <= excluded.version"""


@dataclass(kw_only=True)
class LabShop(ReconciledShop):
    """A shop whose store is filled by a consumer, and whose windows answer in one piece."""

    cluster: LabCluster
    is_upsert: bool = False

    @property
    def group(self) -> str:
        return f"loader-{self.topic}"

    # Setting up

    def open_shop(self, *, partitions: int = 1, topic: Mapping[str, Any] | None = None, **pipeline: Any) -> Self:
        """Topic (settings as Kafka names them, with `_` for `.`), tables and pipeline file (`Shop.describe`)."""
        self.partitions, self.is_upsert = partitions, bool(pipeline.get("is_upsert"))
        self.make_tables(", version int" if self.is_upsert else "")
        if self.is_upsert:
            self.sql("alter table warehouse add primary key (id)")
            self.more_columns["version"] = "int"
        self.make_topic(topic)
        self.describe(**self.with_loader_named(pipeline))
        return self

    def with_loader_named(self, pipeline: Mapping[str, Any]) -> dict[str, Any]:
        """Name the loader's group as one that may read a record again, unless the pipeline says which group loads, or
        answers what is missing in another way."""
        hop = dict(pipeline.get("hop", {}))
        missing = re.search(r"missing: (\w+)", hop.get("compensation", ""))
        is_redelivered = missing is None or missing[1] == "redeliver"
        if is_redelivered and not self.is_upsert and "consumer_group" not in hop and "redeliver" not in hop:
            hop["redeliver"] = f"{{to: source, despite: [{self.group}]}}"
        return {**pipeline, "hop": hop}

    def make_topic(self, settings: Mapping[str, Any] | None = None) -> None:
        """The topic, in three copies; settings as Kafka names them, with `_` for `.`."""
        named = dotted(settings or {})
        self.cluster.create_topic(self.topic, partitions=self.partitions, min_isr=2, settings=named)

    @property
    def admin(self) -> AdminClient:
        """A client of the brokers that run."""
        return self.cluster.admin()

    # The system at work

    def record(self, order: Order) -> dict[str, Any]:
        """The order as `produce` would send it, for clients other than librdkafka's."""
        return {
            "key": order["id"].encode(),
            "value": json.dumps(order).encode(),
            "partition": order["number"] % self.partitions,
            "timestamp_ms": milliseconds(order["at"]),
        }

    def producer(self, **settings: Any) -> Producer:
        """A plain producer; settings as librdkafka names them, with `_` for `.`."""
        return producer(self.bootstrap, **{"linger_ms": 5, "log_level": 0, **settings})

    def send_in_batches(self, batches: Iterable[Iterable[Order]], client: Producer | None = None) -> None:
        """Each batch on the brokers before the next is sent."""
        sender = client or self.producer(linger_ms=60_000)  # until they are flushed
        for batch in batches:
            for order in batch:
                self.produce(sender, order)
            assert sender.flush(30) == 0

    def send_stamped(self, stamped: Iterable[tuple[Order, int]]) -> None:
        """Orders with a timestamp (milliseconds) that need not be theirs."""
        client = self.producer()
        for order, timestamp_ms in stamped:
            record = self.record(order)
            client.produce(
                self.topic,
                key=record["key"],
                value=record["value"],
                partition=record["partition"],
                timestamp=timestamp_ms,
            )
        assert client.flush(30) == 0

    def transactions(self, batches: Iterable[Iterable[Order]], is_committed: Callable[[int], bool]) -> None:
        """One transaction per batch, by one producer; `is_committed` says which (counted from 0) are not aborted."""
        client = self.producer(transactional_id=f"tx-{self.topic}", retry_backoff_ms=5)
        client.init_transactions(30)
        for number, batch in enumerate(batches):
            client.begin_transaction()
            for order in batch:
                self.produce(client, order)
            assert client.flush(30) == 0
            client.commit_transaction(30) if is_committed(number) else client.abort_transaction(30)

    def load(self, *, is_from_beginning: bool = False) -> int:
        """The loader reads committed records from where it stopped (`is_from_beginning`: all), writes them, then
        commits; how many they were."""
        with consumer(self.bootstrap, self.group) as client:
            asked = [TopicPartition(self.topic, at) for at in partitions_of(client, self.topic)]
            reached = [] if is_from_beginning else committed(client, asked)
            start = {at.partition: at.offset for at in reached if at.offset >= 0}
            rows = [json.loads(message.value() or b"null") for message in read_to_end(client, self.topic, start)]
            self.sql(_LOAD_LATEST if self.is_upsert else _LOAD, json.dumps(rows))
            reached = [at for at in client.position(asked) if at.offset >= 0]
            if reached:
                client.commit(offsets=reached, asynchronous=False)
        return len(rows)

    def count(self, table: str) -> int:
        return int(self.sql(f"select count(*) from {table}")[0][0])

    def upsert(self, table: str, rows: Iterable[Order]) -> None:
        """Write rows as a script does that knows no versions."""
        columns = ("number", "region", "amount", "at", "version")
        self.sql(
            f"insert into {table} select * from json_populate_recordset(null::{table}, %s::json) on conflict (id) do "
            f"update set {', '.join(f'{name} = excluded.{name}' for name in columns)}",
            json.dumps(list(rows)),
        )

    def rows(self, keys: list[str]) -> dict[str, tuple[int, str]]:
        """Version and amount of the store's rows of these keys."""
        rows = self.sql("select id, version, amount::text from warehouse where id = any(%s)", keys)
        return {row[0]: (row[1], row[2]) for row in rows}

    # The repair

    def judge_and_repair(self, day: int) -> WindowContext:
        """Judge a day, and repair what its plan names."""
        context = self.judge_and_ask_the_gate(day)
        plan_window(context)
        self.repair(context)
        return context

    def repair(self, context: WindowContext) -> None:
        """Compensation, tried again as Airflow does when something is away."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                compensate_window(context, lambda _: None)
            except TransientError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    def settle_transactions(self) -> None:
        """Wait until the markers of what was written are in the topic: readers of now are given all of it."""
        assert not left_open(self.bootstrap, self.topic)

    def wait_for_chunks(self, plan: str, chunks: int) -> None:
        """Until the journal has receipts of so many chunks."""
        query = "select count(*) from makewhole.chunk where plan = %s"
        self.cluster.wait(f"{chunks} chunks of plan {plan}", lambda: self.journal_sql(query, plan)[0][0] >= chunks)

    def verified(self, context: WindowContext) -> Judged:
        """Judge the gaps again, then close the window."""
        verify_window(context, lambda *_: None)
        return self.certify_and_collect(context)

    def verified_with_outcomes(self, context: WindowContext) -> Judged:
        """Judge the gaps again and close the window; return what became of its findings, too."""
        return replace(self.verified(context), messages=outcomes(self.journal, context))

    def undone(self, context: WindowContext) -> Judged:
        """Take back what the window's plan did, with a person's consent; return what is said of the window then."""
        window = context.window
        with connect(self.journal) as journal:
            done = plans.plan_of_window(journal, window.pipeline, window.number, window.revision)
        assert done is not None
        undo = plan_undo(context, done.plan.id, reverses=False)
        assert undo.plan is not None, undo.remaining
        answer = Answer(sha256=undo.plan.sha256, decision=Decision.APPROVED, by="anna")
        record_answer(self.journal, undo.plan.id, answer, context.pipeline.approval)
        run_window_plan(context, undo.plan.id, lambda _: None)
        reopened = reopen_window(context, done.plan.id, lambda *_: None, signing_key_from_environment())
        assert reopened.not_restored == {}
        result = judged(self.journal, context, ClosedWindow(state=reopened.state, reason=reopened.reason))
        return replace(result, messages=outcomes(self.journal, context))

    def all_rows(self) -> list[tuple[Any, ...]]:
        """Return every row of the store, in order."""
        return self.sql("select * from warehouse order by id")

    # The answer of makewhole

    def open_until(self, end: datetime) -> WindowContext:
        """Open a window that ends at any moment."""
        return window_context(self.ask(end=end).window)

    def close(self, context: WindowContext) -> Judged:
        """Judge an opened window to its end."""
        self.judge(context)
        self.validate(context)
        return self.certify_and_collect(context)

    def certify_and_collect(self, context: WindowContext) -> Judged:
        """Certify the window; return what became of it."""
        return judged(self.journal, context, self.certify(context))

    def day(self, day: int = 0) -> Judged:
        """A window from its opening to its end."""
        return self.close(self.open(day))
