"""Look into the three places by plain means: how often each order is in each of them."""

import time
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from psycopg2 import sql

from examples.cdc.settings import PARTITIONS, TOPIC, Systems

_ANSWER_SECONDS, _POLL_SECONDS = 30.0, 0.2


def orders_in_topic(systems: Systems) -> Counter[str]:
    """Count the committed records of each order, from the beginning to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": systems.bootstrap,
            "group.id": "cdc-verify",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    orders, ended, last_answer = Counter[str](), set[int](), time.monotonic()
    while len(ended) < PARTITIONS:
        messages = consumer.consume(10_000, timeout=_POLL_SECONDS)
        if messages:
            last_answer = time.monotonic()
        elif time.monotonic() - last_answer > _ANSWER_SECONDS:
            raise RuntimeError(f"topic {TOPIC} stopped answering before its end")
        for message in messages:
            if (error := message.error()) is None:
                orders[(message.key() or b"").decode()] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition() or 0)
            else:
                raise RuntimeError(f"the broker answered {error}")
    consumer.close()
    return orders


def orders_in_outbox(systems: Systems) -> Counter[str]:
    """Count the rows of each order in the shop's outbox."""
    return _orders_in(systems, ("shop", "outbox"), "aggregateid")


def orders_in_warehouse(systems: Systems) -> Counter[str]:
    """Count the rows of each order in the warehouse."""
    return _orders_in(systems, ("dw", "orders"), "order_id")


def changed_orders(systems: Systems) -> set[str]:
    """Return the orders that have another customer or amount in the warehouse than in the outbox."""
    return set(
        rows_of(
            systems,
            "select o.aggregateid from shop.outbox o join dw.orders w on w.order_id = o.aggregateid "
            "where (w.customer, w.amount_cents) is distinct from (o.customer, o.amount_cents)",
        )
    )


def values_in_outbox(systems: Systems) -> dict[str, tuple[str, int, str]]:
    """Return customer, amount and time of each order, as it was placed."""
    query = "select array[aggregateid, customer, amount_cents::text, payload ->> 'placed_at'] from shop.outbox"
    return {order: (customer, int(cents), at) for order, customer, cents, at in rows_of(systems, query)}


def _orders_in(systems: Systems, table: tuple[str, str], column: str) -> Counter[str]:
    query = sql.SQL("select {column} from {table}")
    return Counter(rows_of(systems, query.format(column=sql.Identifier(column), table=sql.Identifier(*table))))


def rows_of(systems: Systems, query: str | sql.Composable, values: tuple[object, ...] = ()) -> list[Any]:
    """Return the first column of what a query answers."""
    database = systems.database()
    try:
        with database.cursor() as cursor:
            cursor.execute(query, values)
            return [row[0] for row in cursor.fetchall()]
    finally:
        database.close()
