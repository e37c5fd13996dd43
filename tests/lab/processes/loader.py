"""Run a loader in a process of its own that is killed between the two things that it has to do for each batch: write
rows, and commit offsets."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import psycopg2
from confluent_kafka import Consumer, TopicPartition

_LOAD = "insert into warehouse select * from json_populate_recordset(null::warehouse, %s::json)"
_SECONDS = 60.0
BATCH = 5


def kill_between(bootstrap: str, dsn: str, *, topic: str, group: str, steps: Sequence[str], batches: int) -> None:
    """Load so many batches of a topic's only partition, and kill the loader with SIGKILL between its two steps
    (`write`, `commit`) for the next one."""
    settings = {"bootstrap": bootstrap, "dsn": dsn, "topic": topic, "group": group}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.lab.processes.loader", json.dumps(settings), str(batches), *steps],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        answer = process.stdout.readline()
        assert answer == "between\n", f"the loader did not come so far: {answer or 'it has ended'}"
    finally:
        process.kill()
        process.communicate()


def _loader(settings: dict[str, str]) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": settings["bootstrap"],
            "group.id": settings["group"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )


def main() -> None:
    """Load batches; stand still between the two steps of the last one until killed."""
    settings, batches, steps = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    client, session = _loader(settings), psycopg2.connect(settings["dsn"])
    client.assign([TopicPartition(settings["topic"], 0)])
    for number in range(batches + 1):
        batch: list[Any] = []
        while len(batch) < BATCH:
            batch += client.consume(BATCH - len(batch), timeout=_SECONDS)
        for at, step in enumerate(steps):
            if number == batches and at:
                print("between", flush=True)
                sys.stdin.read()
            if step == "write":
                with session, session.cursor() as cursor:
                    cursor.execute(_LOAD, (json.dumps([json.loads(message.value()) for message in batch]),))
            else:
                client.commit(message=batch[-1], asynchronous=False)


if __name__ == "__main__":
    main()
