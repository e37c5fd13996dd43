"""Drive the example: tables, topic and worker; orders; and the ways in which it goes wrong.

Whoever makes something go wrong writes down what it did to which orders, once plain means have shown that it did.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic
from psycopg2.extras import execute_values

from examples.cdc.connectors import all_connectors
from examples.cdc.contents import orders_in_topic, orders_in_warehouse, rows_of
from examples.cdc.offsets import (
    ANSWER_SECONDS,
    committed_offsets,
    forget_group,
    group_is_at_the_end,
    has_members,
    lake_is_noted,
    quiet_admin,
    set_group_to_the_end,
    set_offsets,
)
from examples.cdc.settings import (
    CONTROL_TOPIC,
    LAKE_COORDINATOR,
    LAKE_GROUP,
    LAKE_SINK,
    PARTITIONS,
    SINK,
    SLOT,
    SOURCE,
    TO_LAKE,
    TO_TOPIC,
    TO_WAREHOUSE,
    TOPIC,
    Systems,
)
from examples.cdc.worker import SELDOM_MS, Worker, wait_for

Say = Callable[[str], None]
_CUSTOMERS = 97


class Shop:
    """The whole pipeline, driven from outside."""

    def __init__(self, systems: Systems, *, seed: int, say: Say = print) -> None:
        self._systems = systems
        self._worker = Worker(systems, all_connectors(systems))
        self._random = random.Random(seed)
        self._say = say
        self._placed = 0
        self._lake_effects = Counter[str]()

    def run(self, orders: int, *, with_faults: bool = True) -> None:
        """Set up, and let orders go through; between them nine things happen, each to some orders of its own: one of
        them does no harm.

        The worker goes on running.
        """
        self.prepare()
        self.deliver(orders // 2)
        self._say(f"{orders // 2} orders are delivered")
        if with_faults:
            self.lose_the_slot(self._random.randint(8, 20))
            self.kill_before_the_source_notes(self._random.randint(8, 20))
            self.kill_before_the_sink_notes(self._random.randint(8, 20))
            self.skip_to_the_end(self._random.randint(8, 20))
            self.kill_between_group_and_lake(self._random.randint(8, 20))
            self.forget_the_coordinator(self._random.randint(8, 20))
            self.roll_the_lake_back(self._random.randint(8, 20))
            self.list_files_twice(self._random.randint(8, 20))
        delivered = self.deliver(orders - orders // 2)
        self._wait_for_lake()
        self._say(f"{len(delivered)} orders more are delivered")
        if with_faults:
            self.change_by_hand(self._random.sample(delivered, k=self._random.randint(3, 8)), unordered=3)

    def prepare(self) -> None:
        """Make the tables and the topics, and start the worker.

        Raises:
            SystemExit: the database cannot be read by Debezium, or has orders already.
        """
        [level] = rows_of(self._systems, "select current_setting('wal_level')")
        if level != "logical":
            raise SystemExit(
                f"Debezium needs `wal_level = logical`, and the server has {level}; set it, and restart it"
            )
        self._execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
        if rows_of(self._systems, "select 1 from shop.outbox limit 1"):
            raise SystemExit("the outbox already holds orders; begin with an empty database and topic")
        self._systems.lake.create()
        _create_topics(self._systems)
        self._worker.start()

    def stop(self) -> None:
        """End the worker. Harmless when it does not run."""
        self._worker.end()

    # -- what goes right -------------------------------------------------------------------------------------------

    def place(self, count: int) -> list[str]:
        """Place some orders: each is a row of the outbox, in a transaction of its own batch."""
        orders = list(self._new_orders(count))
        with closing(self._systems.database()) as database, database.cursor() as cursor:
            rows = [(order["order_id"], json.dumps(order)) for order in orders]
            execute_values(cursor, "insert into shop.outbox (aggregateid, payload) values %s", rows)
        return [str(order["order_id"]) for order in orders]

    def _new_orders(self, count: int) -> Iterator[dict[str, object]]:
        for _ in range(count):
            self._placed += 1
            yield {
                "order_id": f"order-{self._placed:06d}",
                "customer": f"customer-{self._random.randrange(_CUSTOMERS):02d}",
                "amount_cents": self._random.randrange(100, 100_000),
                "placed_at": f"2026-01-01T00:{self._placed // 60 % 60:02d}:{self._placed % 60:02d}Z",
            }

    def deliver(self, count: int) -> list[str]:
        """Place orders, and wait until each is in the warehouse."""
        orders = self.place(count)
        self._wait_for_warehouse(orders, 1)
        return orders

    # -- what goes wrong -------------------------------------------------------------------------------------------

    def lose_the_slot(self, count: int) -> None:
        """Lose orders between outbox and topic: a failover to a server that has no replication slot.

        The connector that is made again there does not see the orders that were placed meanwhile.
        """
        self._note_all()
        self._worker.end()
        self._execute("select pg_drop_replication_slot(%s)", (SLOT,))
        self._worker.forget_source_offsets()
        lost = self.place(count)
        self._worker.start()
        self.deliver(1)
        _require("none of the orders is in the topic", not orders_in_topic(self._systems).keys() & set(lost))
        self._record("the replication slot was lost", TO_TOPIC, "-1", lost)

    def kill_before_the_source_notes(self, count: int) -> None:
        """Send orders twice: killed when they were in the topic, before the source wrote down that they are."""
        self._note_all_and_then_seldom()
        self._worker.stop_connector(SINK)
        orders = self.place(count)
        wait_for("the orders to be in the topic", lambda: set(orders) <= orders_in_topic(self._systems).keys())
        self._worker.kill()
        self._worker.start()
        self._wait_for_topic(orders, 2)
        self._wait_for_warehouse(orders, 2)
        self._record("killed before the source noted its offsets", TO_TOPIC, "+1", orders)

    def kill_before_the_sink_notes(self, count: int) -> None:
        """Load orders twice: killed when they were in the warehouse, before the sink committed its offsets."""
        self._note_all_and_then_seldom()
        self._worker.stop_connector(SINK)
        orders = self.place(count)
        wait_for("the orders to be in the topic", lambda: set(orders) <= orders_in_topic(self._systems).keys())
        self._worker.stop_connector(SOURCE)
        self._worker.resume_connector(SINK)
        self._wait_for_warehouse(orders, 1)
        self._worker.kill()
        self._worker.start()
        self._wait_for_warehouse(orders, 2)
        self._record("killed before the sink committed its offsets", TO_WAREHOUSE, "+1", orders)

    def skip_to_the_end(self, count: int) -> None:
        """Lose orders between topic and warehouse: the sink's group is set to the end, and its lag is zero."""
        self._note_all()
        self._worker.stop_connector(SINK)
        orders = self.place(count)
        wait_for("the orders to be in the topic", lambda: set(orders) <= orders_in_topic(self._systems).keys())
        set_group_to_the_end(self._systems)
        self._worker.resume_connector(SINK)
        self.deliver(1)
        _require("none of the orders is loaded", not orders_in_warehouse(self._systems).keys() & set(orders))
        self._record("the group's offsets were set to the end", TO_WAREHOUSE, "-1", orders)

    def kill_between_group_and_lake(self, count: int) -> None:
        """Kill the lake's sink when its group is past orders and its table has none of them. Nothing is lost: its
        coordinator commits their files when it is started again."""
        orders = self._kill_before_the_lake_commits(count)
        self._worker.start()
        self._wait_for_lake()
        self._say(f"{TO_LAKE}: {len(orders)} orders, killed when the group was past them and the table was not")

    def forget_the_coordinator(self, count: int) -> None:
        """Lose orders between topic and lake: killed in the same place, and the group of its coordinator is gone before
        it is started again, so that it begins behind the events that name their files."""
        orders = self._kill_before_the_lake_commits(count)
        admin = quiet_admin(self._systems)
        wait_for("the coordinator to be gone", lambda: not has_members(admin, LAKE_COORDINATOR))
        forget_group(admin, LAKE_COORDINATOR)
        self._worker.start()
        self.deliver(1)
        self._went_wrong_in_lake("killed before the lake's commit, and its coordinator's group was deleted", -1, orders)

    def roll_the_lake_back(self, count: int) -> None:
        """Lose orders that were in the lake: its table is rolled back to the snapshot before them."""
        self._wait_for_lake()
        before = self._systems.lake.snapshot_id()
        assert before is not None
        orders = self.deliver(count)
        self._wait_for_lake()
        self._systems.lake.roll_back(before)
        self.deliver(1)
        self._went_wrong_in_lake("the lake's table was rolled back", -1, orders)

    def list_files_twice(self, count: int) -> None:
        """Load orders twice into the lake: a maintenance expires the snapshots that say how far the sink has come, and
        its coordinator is set back, so that it commits their files once more."""
        self._wait_for_lake()
        before = committed_offsets(self._systems, LAKE_COORDINATOR, CONTROL_TOPIC)
        orders = self.deliver(count)
        self._wait_for_lake()
        self._worker.stop_connector(LAKE_SINK)
        self._systems.lake.forget_summaries()
        admin = quiet_admin(self._systems)
        wait_for("the coordinator to be gone", lambda: not has_members(admin, LAKE_COORDINATOR))
        set_offsets(admin, LAKE_COORDINATOR, [TopicPartition(CONTROL_TOPIC, *at) for at in before.items()])
        self._worker.resume_connector(LAKE_SINK)
        self._went_wrong_in_lake("the coordinator was set back behind expired snapshots", +1, orders)

    def _kill_before_the_lake_commits(self, count: int) -> list[str]:
        """Kill the worker when the lake's group is past some orders, whose commit is held up until it is dead."""
        self._note_all()
        self._worker.stop_connector(LAKE_SINK)
        orders = self.deliver(count)
        self._note_source_and_warehouse()
        with self._systems.lake.commits_held():
            self._worker.resume_connector(LAKE_SINK)
            wait_for("the group of the lake to be past them", lambda: group_is_at_the_end(self._systems, LAKE_GROUP))
            _require("none of the orders is in the lake", not self._systems.lake.orders().keys() & set(orders))
            self._worker.kill()
        return orders

    def _went_wrong_in_lake(self, what: str, effect: int, orders: Sequence[str]) -> None:
        """Write down what went wrong, once the lake has exactly that."""
        self._lake_effects.update(dict.fromkeys(orders, effect))
        self._wait_for_lake()
        self._record(what, TO_LAKE, f"{effect:+}", orders)

    def change_by_hand(self, orders: Sequence[str], unordered: int) -> None:
        """Change rows of the warehouse, and add some of no order, as a hotfix by hand does."""
        self._execute("update dw.orders set amount_cents = amount_cents + 1 where order_id = any(%s)", (list(orders),))
        self._record("changed by hand", TO_WAREHOUSE, "changed", orders)
        strange = [f"by-hand-{number}" for number in range(unordered)]
        self._execute(
            "insert into dw.orders (order_id, customer, amount_cents) select unnest(%s), 'unknown', 1", (strange,)
        )
        self._record("added by hand", TO_WAREHOUSE, "unordered", strange)

    # -- by these means --------------------------------------------------------------------------------------------

    def _note_all(self) -> None:
        """Wait until all connectors have written down how far they have come.

        A lake whose coordinator has never committed an offset of its own loses what it was killed over.
        """
        self._wait_for_lake()
        self._note_source_and_warehouse()

    def _note_all_and_then_seldom(self) -> None:
        """Wait until all have, and start the worker again as one that does not write it down before it is killed."""
        self._note_all()
        self._worker.end()
        self._worker.start(SELDOM_MS)

    def _note_source_and_warehouse(self) -> None:
        """Wait until the first two have: the source does that when it is stopped. The sink does not, not even when the
        worker is ended: it loads again what it loaded since it last committed, and so it is waited for."""
        wait_for("the sink to commit its offsets", lambda: group_is_at_the_end(self._systems))
        self._worker.stop_connector(SOURCE)
        self._worker.resume_connector(SOURCE)

    def _wait_for_topic(self, orders: Sequence[str], copies: int) -> None:
        wait_for(
            f"{copies} records of each order in the topic",
            lambda: _has_each(orders_in_topic(self._systems), orders, copies),
        )

    def _wait_for_warehouse(self, orders: Sequence[str], copies: int) -> None:
        wait_for(
            f"{copies} rows of each order in the warehouse",
            lambda: _has_each(orders_in_warehouse(self._systems), orders, copies),
        )

    def _wait_for_lake(self) -> None:
        """Wait until each record of the topic has a row in the lake, but for what went wrong, and its coordinator has
        noted that."""
        lake = self._systems.lake

        def is_settled() -> bool:
            if not (group_is_at_the_end(self._systems, LAKE_GROUP) and lake_is_noted(self._systems)):
                return False
            expected = orders_in_topic(self._systems)
            expected.update(self._lake_effects)
            return lake.orders() == expected

        wait_for("each record to have one row in the lake, and its coordinator to note it", is_settled)

    def _record(self, what: str, hop: str, effect: str, orders: Sequence[str]) -> None:
        with closing(self._systems.database()) as database, database.cursor() as cursor:
            rows = [(what, hop, order, effect) for order in orders]
            execute_values(cursor, "insert into shop.misdeeds (what, hop, order_id, effect) values %s", rows)
        self._say(f"{hop}: {len(orders)} orders, {what}")

    def _execute(self, statement: str, values: tuple[object, ...] | None = None) -> None:
        with closing(self._systems.database()) as database, database.cursor() as cursor:
            cursor.execute(statement, values)


def _has_each(counted: dict[str, int], orders: Sequence[str], copies: int) -> bool:
    more = {order: counted[order] for order in orders if counted.get(order, 0) > copies}
    _require(f"no order has more than {copies} copies: {more}", not more)
    return all(counted.get(order, 0) == copies for order in orders)


def _require(what: str, holds: bool) -> None:
    if not holds:
        raise RuntimeError(f"this was to be so, and is not: {what}")


def _create_topics(systems: Systems) -> None:
    topics = [NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1), NewTopic(CONTROL_TOPIC, 1, 1)]
    admin = quiet_admin(systems)  # what it was asked for is forgotten with it
    for name, created in admin.create_topics(topics).items():
        try:
            created.result(ANSWER_SECONDS)
        except KafkaException as error:
            raise RuntimeError(f"the topic {name} could not be created: {error}") from error
