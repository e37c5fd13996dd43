"""Drive Java's own Kafka clients from Python: one JVM on loopback, spoken to through py4j.

    with JavaClients() as java, java.producer(bootstrap, transactional_id="t") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("topic", b"value", key=b"key")

The JVM listens on a free port of its own choice, asks for a token, and ends when this process does.
"""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway

from makewhole.stack.kafka_jars import kafka_libs
from makewhole.stack.maven_jars import java

_JVM_OPTIONS = ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"
Headers = Iterable[tuple[str, bytes | None]]


class JavaProducer:
    """One `KafkaProducer<byte[], byte[]>`; `raw` is the object itself. A context manager: closed within a second."""

    def __init__(self, jvm: Any, settings: dict[str, object]) -> None:
        self._jvm = jvm
        properties = jvm.java.util.Properties()
        for name, value in settings.items():
            properties.setProperty(name, str(value).lower() if isinstance(value, bool) else str(value))
        self.raw = jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(seconds=1)

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = 0,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Any:
        """Hand a record over; the Java future of its `RecordMetadata` (`.get().offset()` waits). `partition` None: the
        producer's partitioner chooses."""
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord(
            topic,
            None if partition is None else self._jvm.java.lang.Integer.valueOf(partition),
            None if timestamp_ms is None else self._jvm.java.lang.Long.valueOf(timestamp_ms),
            key,
            value,
        )
        for name, content in headers:
            record.headers().add(name, content)
        return self.raw.send(record)

    def flush(self) -> None:
        self.raw.flush()

    def init_transactions(self) -> None:
        self.raw.initTransactions()

    def begin(self) -> None:
        self.raw.beginTransaction()

    def commit(self) -> None:
        self.raw.commitTransaction()

    def abort(self) -> None:
        self.raw.abortTransaction()

    @contextmanager
    def transaction(self, *, is_committed: bool = True) -> Iterator[None]:
        """One transaction around the sends inside; `is_committed=False` aborts it, after its records were flushed."""
        self.begin()
        yield
        self.flush()
        if is_committed:
            self.commit()
        else:
            self.abort()

    def close(self, *, seconds: float = 10) -> None:
        """Close within so many seconds; 0 drops what is not sent, and an open transaction stays open."""
        self.raw.close(self._jvm.java.time.Duration.ofMillis(int(seconds * 1000)))


class JavaClients:
    """A JVM with Kafka's clients. A context manager; `jvm` gives any class in it by its full name."""

    def __init__(self) -> None:
        command = [java(), *_JVM_OPTIONS, "-cp", f"{kafka_libs()}/*:{_py4j_jar()}", "py4j.GatewayServer"]
        command += ["--die-on-broken-pipe", "--enable-auth", "0"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
        )
        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().decode().strip() for _ in range(2))
        # Java's objects stay until the JVM ends: Python's garbage collector may report them too late.
        parameters = GatewayParameters(
            port=int(port), auth_token=token, auto_convert=True, enable_memory_management=False
        )
        self._gateway = JavaGateway(gateway_parameters=parameters)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def jvm(self) -> Any:
        return self._gateway.jvm

    @property
    def pid(self) -> int:
        """The JVM's, to be paused (SIGSTOP, SIGCONT) or killed with all its clients."""
        return self._process.pid

    def producer(self, bootstrap: str, **settings: object) -> JavaProducer:
        """A producer of byte arrays. Settings are Kafka's with `_` for `.`: `enable_idempotence=False`."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        fixed = {"bootstrap.servers": bootstrap, "key.serializer": _BYTES, "value.serializer": _BYTES}
        return JavaProducer(self.jvm, fixed | named)

    def kill(self) -> None:
        """End the JVM and all its clients without a word to the brokers."""
        self._process.send_signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """End the JVM. Safe to call twice."""
        self._gateway.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()


def _py4j_jar() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    [jar] = Path(spec.origin).parent.glob("jars/py4j-*.jar")
    return jar


def _environment() -> dict[str, str]:
    """Without options that make every JVM print a line first: the port is read from its output."""
    return {name: value for name, value in os.environ.items() if name not in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")}
