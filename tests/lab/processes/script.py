"""Replay lost records by a script as people write it: it sends what is on its list, and begins again when it fails."""

import json
import uuid
from collections.abc import Iterator, Sequence

from confluent_kafka import KafkaException, Producer

from tests.lab.naive import NaiveAnswer, compared
from tests.lab.shop import LabShop
from tests.world.consumer import read_all
from tests.world.orders import Order

_SECONDS = 30.0


def topic(shop: LabShop) -> str:
    """A topic for the script alone: what it does wrong shall not be in makewhole's way."""
    name = f"{shop.topic}-script"
    shop.cluster.create_topic(name, min_isr=2)
    return name


def attempt(shop: LabShop, name: str, orders: Sequence[Order]) -> Iterator[Order]:
    """One attempt, record by record; whoever does not go on with it has frozen it."""
    client = shop.producer(enable_idempotence=True)
    for order in orders:
        client.produce(name, key=order["id"], value=json.dumps(order))
        assert client.flush(_SECONDS) == 0
        yield order


def transaction(bootstrap: str, name: str, orders: Sequence[Order], timeout_seconds: float) -> None:
    """All of it in one transaction; begun again, by a new producer, when the commit fails."""
    for _ in range(2):
        client = Producer({"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex, "log_level": 0})
        client.init_transactions(_SECONDS)
        client.begin_transaction()
        for order in orders:
            client.produce(name, key=order["id"], value=json.dumps(order))
        assert client.flush(_SECONDS) == 0
        try:
            client.commit_transaction(timeout_seconds)
        except KafkaException:
            continue
        return


def answer(shop: LabShop, name: str, wanted: int) -> NaiveAnswer:
    """Return what a committed reader finds of it."""
    there = len(read_all(shop.bootstrap, name))
    return NaiveAnswer(
        check="a script that sends the lost records, and again when it fails",
        text=f"{there} records for {wanted} orders",
        conclusion=compared(wanted, there),
    )
