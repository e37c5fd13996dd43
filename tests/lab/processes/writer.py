"""Run a transactional producer in a process of its own, to be paused, resumed and killed in mid-transaction."""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Producer

_FLUSH_SECONDS = 60


class Writer:
    """The process, as the lab sees it. A context manager: killed at the end. Every call returns when it was done."""

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "log_level": 0,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.processes.writer", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self) -> None:
        self._do("begin")

    def send(self, topic: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Records (`LabShop.record`) that are on the brokers when this returns."""
        named = [{**record, **{name: _text(record[name]) for name in ("key", "value")}} for record in records]
        self._do("send", topic, named)

    def commit(self) -> None:
        self._do("commit")

    def abort(self) -> None:
        self._do("abort")

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _do(self, *command: Any) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer == "done\n", f"the writer did not {command[0]}: {answer or 'it has ended'}"


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _send(client: Producer, topic: str, records: Iterable[Mapping[str, Any]]) -> None:
    for record in records:
        client.produce(
            topic,
            key=base64.b64decode(record["key"]),
            value=base64.b64decode(record["value"]),
            partition=record["partition"],
            timestamp=record["timestamp_ms"],
        )
    assert client.flush(_FLUSH_SECONDS) == 0


def main() -> None:
    """Take commands from standard input, one JSON list a line; answer each with a line when it is done."""
    client = Producer(json.loads(sys.argv[1]))
    client.init_transactions(_FLUSH_SECONDS)
    doing: dict[str, Callable[..., object]] = {
        "begin": client.begin_transaction,
        "send": lambda topic, records: _send(client, topic, records),
        "commit": lambda: client.commit_transaction(_FLUSH_SECONDS),
        "abort": lambda: client.abort_transaction(_FLUSH_SECONDS),
    }
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        doing[name](*arguments)
        print("done", flush=True)


if __name__ == "__main__":
    main()
