"""Run the programs by which Kafka tests itself, each in a process of its own that can be killed: they come from Maven.

`VerifiableProducer` prints a line for each record that was acknowledged: a ledger. `TransactionalMessageCopier` copies
a partition into another topic, with its group's offsets in its transactions.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from makewhole.stack.kafka_jars import KAFKA_VERSION, kafka_libs
from makewhole.stack.maven_jars import JarFolder, java

TOOLS = JarFolder(
    name=f"kafka-tools-{KAFKA_VERSION}",
    title="the jar of Kafka's tools",
    artifacts=(("org.apache.kafka", "kafka-tools", KAFKA_VERSION),),
    hashes=Path(__file__).with_suffix(".sha256"),
    has_dependencies=False,  # those are among Kafka's own jars
)
_JVM_OPTIONS = ("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Acknowledged:
    """A record whose arrival the producer was answered; with `acks=0` it has no offset (-1)."""

    value: str
    partition: int
    offset: int


@dataclass(kw_only=True)
class KafkaTool:
    """A process with one of the programs. A context manager: killed at the end. It prints one JSON object a line."""

    main_class: str
    arguments: Mapping[str, object]
    lines: list[dict[str, Any]] = field(default_factory=list)
    _process: "subprocess.Popen[str] | None" = None

    def __enter__(self) -> Self:
        options = [text for name, value in self.arguments.items() for text in _option(name, value)]
        command = [java(), *_JVM_OPTIONS, "-cp", f"{TOOLS.provide()}/*:{kafka_libs()}/*"]
        self._process = subprocess.Popen(
            [*command, f"org.apache.kafka.tools.{self.main_class}", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def until(self, name: str, count: int, *, since_ms: float = 0) -> None:
        """Wait until it has printed so many lines that have a field, or are called so; by its own clock, not
        before a moment: lines that it printed earlier may still be read."""
        left = count
        for line in self._read():
            left -= (name in line or line.get("name") == name) and line.get("timestamp", since_ms) >= since_ms
            if not left:
                return
        raise AssertionError(f"{self.main_class} ended before {count} lines of {name!r}: {self.lines[-3:]}")

    def kill(self) -> None:
        """Kill it (SIGKILL), and read what it had printed: half a line is none."""
        if self._process is not None and self._process.stdout is not None and not self._process.stdout.closed:
            self._process.kill()
            list(self._read())
            self._process.stdout.close()
            self._process.wait(_SECONDS)

    def finish(self) -> None:
        """Let it run to its own end."""
        assert self._process is not None
        list(self._read())
        assert self._process.wait(_SECONDS) == 0, self.lines[-3:]

    def _read(self) -> Iterator[dict[str, Any]]:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n") and line.startswith("{"):
                self.lines.append(json.loads(line))
                yield self.lines[-1]

    @property
    def acknowledged(self) -> list[Acknowledged]:
        """The records that a producer has reported as sent, in the order of its lines."""
        return [
            Acknowledged(value=line["value"], partition=line["partition"], offset=line["offset"])
            for line in self.lines
            if line.get("name") == "producer_send_success"
        ]


def _option(name: str, value: object) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    return [option] if value is True else [option, str(value)]


@contextmanager
def verifiable_producer(bootstrap: str, topic: str, **settings: object) -> Iterator[KafkaTool]:
    """Start a producer; settings are its options, with `_` for `-`."""
    arguments = {"bootstrap_server": bootstrap, "topic": topic, **settings}
    with KafkaTool(main_class="VerifiableProducer", arguments=arguments) as tool:
        yield tool


@contextmanager
def message_copier(bootstrap: str, source: str, target: str, group: str, **settings: object) -> Iterator[KafkaTool]:
    """Start a copier of partition 0, which ends at what is the end when it starts; settings as above."""
    arguments = {
        "broker_list": bootstrap,
        "input_topic": source,
        "input_partition": 0,
        "output_topic": target,
        "consumer_group": group,
        "transactional_id": f"copier-{group}",
        "transaction_timeout": 10_000,
        "use_group_metadata": True,
    }
    with KafkaTool(main_class="TransactionalMessageCopier", arguments=arguments | settings) as tool:
        yield tool
