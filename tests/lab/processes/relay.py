"""Run an outbox relay in a process of its own that can be killed: it sends batches in order and keeps a checkpoint.

A batch is sent by an idempotent producer, waited for, and only then written down as done: whoever kills it in between
has it sent again by its next life.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import psycopg2
from confluent_kafka import Producer

from tests.lab.shop import LabShop
from tests.world.orders import Order

_FLUSH_SECONDS = 60


def relay(shop: LabShop, batches: Sequence[Sequence[Order]], *, killed_at: int | None = None) -> None:
    """Run it until all is sent, or until it is killed between batch `killed_at` and its checkpoint."""
    work = {
        "bootstrap": shop.bootstrap,
        "dsn": shop.dsn,
        "topic": shop.topic,
        "batches": [[_record(shop, order) for order in batch] for batch in batches],
    }
    shop.sql("create table if not exists checkpoint (batches int not null)")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.lab.processes.relay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(work) + "\n")
        process.stdin.flush()
        while (answer := process.stdout.readline().split()) != ["done"]:
            assert answer, "the relay has ended before all was sent"
            if int(answer[1]) == killed_at:
                return
            process.stdin.write("go on\n")
            process.stdin.flush()
    finally:
        process.kill()
        process.communicate()


def _record(shop: LabShop, order: Order) -> dict[str, Any]:
    record = shop.record(order)
    return {
        "key": record["key"].decode(),
        "value": record["value"].decode(),
        "partition": record["partition"],
        "timestamp": record["timestamp_ms"],
    }


def main() -> None:
    """Print which batch is acknowledged, wait for a word, write the checkpoint; then the next one."""
    work = json.loads(sys.stdin.readline())
    database = psycopg2.connect(work["dsn"])
    database.autocommit = True
    cursor = database.cursor()
    client = Producer(
        {"bootstrap.servers": work["bootstrap"], "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
    )
    cursor.execute("select count(*) from checkpoint")
    [(done,)] = cursor.fetchall()
    for number, batch in list(enumerate(work["batches"]))[done:]:
        for record in batch:
            client.produce(work["topic"], **record)
        assert client.flush(_FLUSH_SECONDS) == 0
        print("acknowledged", number, flush=True)
        sys.stdin.readline()
        cursor.execute("insert into checkpoint values (%s)", [number])
    print("done", flush=True)


if __name__ == "__main__":
    main()
