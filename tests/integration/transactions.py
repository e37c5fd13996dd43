"""The end of a transaction: its coordinator answers when it has written the end down, and the markers follow."""

import time

from makewhole.kafka.open_transactions import OpenTransaction, open_transactions
from makewhole.model.connection import KafkaConnection

_SECONDS = 30


def left_open(bootstrap: str, topic: str, expected: int = 0) -> tuple[OpenTransaction, ...]:
    """The topic's open transactions, as soon as there are no more than expected, or after a while all there are."""
    connection = KafkaConnection(id="brokers", properties={"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + _SECONDS
    while len(found := open_transactions(connection, topic)) > expected and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
