"""Run Kafka in KRaft mode on loopback: brokers that are controllers too, or brokers and a controller apart."""

import base64
import json
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from makewhole.model.errors import PermanentError, TransientError
from makewhole.stack.class_archive import Program, sharing
from makewhole.stack.kafka_jars import kafka_libs
from makewhole.stack.kafka_layout import ClusterLayout, Settings, SettingsOfNode
from makewhole.stack.maven_jars import java
from makewhole.stack.ports import LOOPBACK, becomes_free, free_ports, holder, is_open
from makewhole.stack.process import ServerProcess

__all__ = ["KafkaServer", "kafka_libs"]

_JVM_OPTIONS = ["-Xms96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_HEAP_MB = 384
_START_TIMEOUT_SECONDS = 60.0
# The last node of three waits for a quorum that is gone; what it has written is safe in its log by then.
_STOP_GRACE_SECONDS = 10.0
_NOTHING: Settings = {}


class KafkaServer:
    """A Kafka cluster that lives in `directory`; data, ports and cluster id stay there between stop and start."""

    def __init__(
        self,
        directory: Path,
        nodes: int = 1,
        ports: Sequence[int] | None = None,
        *,
        settings: Settings | SettingsOfNode = _NOTHING,
        has_own_controller: bool = False,
        heap_mb: int = _HEAP_MB,
        jvm_options: Sequence[str] | None = None,
    ) -> None:
        """`nodes` are brokers; `ports` as `ClusterLayout` has them, chosen and remembered when not given.

        `settings` override ours: the same for all nodes, or a function of the node's number. They hold for the nodes
        that this object starts, as `jvm_options` do, which take the place of those that make a start quick. `nodes`,
        `ports` and `has_own_controller` matter the first time; a cluster that exists keeps its own.
        """
        self.directory = Path(directory).resolve()
        self._cluster_file = self.directory / "cluster.json"
        if self._cluster_file.exists():
            cluster = json.loads(self._cluster_file.read_text())
        else:
            wanted = list(ports or free_ports(ClusterLayout.ports_needed(nodes, has_own_controller)))
            cluster = {"id": _new_cluster_id(), "ports": wanted, "has_own_controller": has_own_controller}
        self._cluster_id: str = cluster["id"]
        self.layout = ClusterLayout(ports=cluster["ports"], has_own_controller=cluster.get("has_own_controller", False))
        self._settings = settings
        self._heap_mb = heap_mb
        self._own_jvm_options = jvm_options

    @property
    def ports(self) -> Sequence[int]:
        """Every port it holds, in the order of `ClusterLayout`."""
        return self.layout.ports

    @property
    def nodes(self) -> int:
        """Number of brokers."""
        return len(self.layout.brokers)

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, comma separated."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self._broker_ports)

    @property
    def _broker_ports(self) -> list[int]:
        return [port for node in self.layout.brokers if (port := self.layout.broker_port(node)) is not None]

    def process(self, node: int) -> ServerProcess:
        """Return the server process of a node; nodes count from 1, a controller of its own comes last."""
        return ServerProcess(name=f"kafka-{node}", directory=self.directory / f"node-{node}")

    def start(self) -> None:
        """Start all nodes and wait until they are one cluster. Harmless when they run.

        Raises:
            PermanentError: a port is taken.
            TransientError: a node did not come up; the end of its log is in the message.
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start all nodes that do not run, without waiting for them."""
        self._write_cluster()
        for node in reversed(self.layout.nodes):
            self.start_node(node)

    def wait_ready(self, timeout_seconds: float = _START_TIMEOUT_SECONDS) -> None:
        """Wait until all launched nodes answer as one cluster."""
        for node in self.layout.nodes:
            self.process(node).wait_until(self.is_healthy, timeout_seconds=timeout_seconds)

    def start_node(self, node: int) -> None:
        """Start one node, without waiting for it."""
        process = self.process(node)
        if process.is_running():
            return
        process.clear_leftovers()
        self._refuse_taken_ports(node)
        libs = kafka_libs()
        process.directory.mkdir(parents=True, exist_ok=True)
        configuration = self._write_configuration(node)
        self._format(node, libs, configuration)
        command = [
            java(),
            f"-Xmx{self._heap_mb}m",
            *_JVM_OPTIONS,
            *(sharing(Program.KAFKA) if self._own_jvm_options is None else self._own_jvm_options),
            "-cp",
            f"{libs}/*",
            "kafka.Kafka",
            str(configuration),
        ]
        process.start(command, environment={})

    def stop(self) -> None:
        """End all nodes, paused ones too; the data stays. The brokers first, while a controller can still hear them."""
        brokers = [self.process(node) for node in self.layout.brokers]
        others = [self.process(node) for node in self.layout.nodes if node not in self.layout.brokers]
        for group in (brokers, others):
            for process in group:
                process.ask_to_end()
            for process in group:
                process.stop(grace_seconds=_STOP_GRACE_SECONDS)

    def is_healthy(self) -> bool:
        """Return whether all nodes answer as one cluster."""
        if not all(is_open(port) for port in self._broker_ports):
            return False
        # A client of its own each time: one that has given up on a dead broker is slow to come back.
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        with suppress(KafkaException):
            return len(client.list_topics(timeout=2).brokers) == self.nodes
        return False

    def exists(self) -> bool:
        """Return whether it was ever started here."""
        return self._cluster_file.exists()

    def change_ports(self) -> None:
        """Choose other ports; for a stopped cluster only."""
        if self.exists():
            self.layout = replace(self.layout, ports=free_ports(len(self.layout.ports)))
            self._write_cluster()

    def destroy(self) -> None:
        """Stop, and remove the data."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _write_cluster(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        unfinished = self._cluster_file.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"id": self._cluster_id, **asdict(self.layout)}))
        unfinished.replace(self._cluster_file)

    def _refuse_taken_ports(self, node: int) -> None:
        for port in self.layout.ports_of(node):
            if not becomes_free(port):
                raise PermanentError(
                    f"port {port}, which Kafka in {self.directory} uses, is held by {holder(port)}; "
                    "end that process, or choose other ports with `makewhole up --new-ports`"
                )

    def _write_configuration(self, node: int) -> Path:
        folder = self.directory / f"node-{node}"
        extra = self._settings(node) if callable(self._settings) else self._settings
        path = folder / "node.properties"
        settings = self.layout.settings_of(node, folder / "data", extra)
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def _format(self, node: int, libs: Path, configuration: Path) -> None:
        if (self.directory / f"node-{node}" / "data" / "meta.properties").exists():
            return
        command = [java(), *_JVM_OPTIONS, *sharing(Program.KAFKA), "-cp", f"{libs}/*", "kafka.tools.StorageTool"]
        # Joined to its option: one in 64 begins with a hyphen.
        identity = f"--cluster-id={self._cluster_id}"
        command += ["format", "--ignore-formatted", identity, "--config", str(configuration)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise TransientError(
                f"the storage of Kafka node {node} in {self.directory} could not be formatted; check space and "
                f"permissions of that folder\n{done.stdout}{done.stderr}"
            )


def _new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
