"""Kafka in KRaft mode on loopback: one node, or three, each broker and controller at once."""

import base64
import json
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from makewhole.model.errors import PermanentError, TransientError
from makewhole.stack.kafka_jars import java, kafka_libs
from makewhole.stack.ports import LOOPBACK, free_ports, holder, is_free, is_open
from makewhole.stack.process import ServerProcess

__all__ = ["KafkaServer", "kafka_libs"]

_JVM_OPTIONS = ["-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_START_TIMEOUT_SECONDS = 60.0
# The last node of three waits for a quorum that is gone; what it has written is safe in its log by then.
_STOP_GRACE_SECONDS = 10.0

# What makes a broker quick on one machine. Nothing here weakens what a producer or a consumer is promised.
_SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "controller.quorum.fetch.timeout.ms": 1000,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "share.coordinator.state.topic.num.partitions": 3,
    "log.cleaner.dedupe.buffer.size": 4194304,
    "log.cleaner.backoff.ms": 500,
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "log.retention.hours": 168,
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "num.partitions": 3,
}


class KafkaServer:
    """A Kafka cluster that lives in `directory`; data, ports and cluster id stay there between stop and start."""

    def __init__(self, directory: Path, nodes: int = 1, ports: Sequence[int] | None = None) -> None:
        """`ports`: two per node, the broker's then the controller's; chosen and remembered when not given.

        `nodes` and `ports` matter the first time; a cluster that exists keeps its own.
        """
        self.directory = Path(directory).resolve()
        self._cluster_file = self.directory / "cluster.json"
        if self._cluster_file.exists():
            cluster = json.loads(self._cluster_file.read_text())
        else:
            cluster = {"id": _new_cluster_id(), "ports": list(ports or free_ports(2 * nodes))}
        self._cluster_id: str = cluster["id"]
        self.ports: list[int] = cluster["ports"]
        self.nodes = len(self.ports) // 2

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker, comma separated."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self.ports[0::2])

    def process(self, node: int) -> ServerProcess:
        """The server process of a node; nodes count from 1."""
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
        for node in range(1, self.nodes + 1):
            self.start_node(node)

    def wait_ready(self, timeout_seconds: float = _START_TIMEOUT_SECONDS) -> None:
        """Wait until all launched nodes answer as one cluster."""
        for node in range(1, self.nodes + 1):
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
        command = [java(), *_JVM_OPTIONS, "-cp", f"{libs}/*", "kafka.Kafka", str(configuration)]
        process.start(command, environment={})

    def stop(self) -> None:
        """End all nodes; the data stays."""
        processes = [self.process(node) for node in range(1, self.nodes + 1)]
        for process in processes:
            process.ask_to_end()
        for process in processes:
            process.stop(grace_seconds=_STOP_GRACE_SECONDS)

    def is_healthy(self) -> bool:
        """Whether all nodes answer as one cluster."""
        if not all(is_open(port) for port in self.ports[0::2]):
            return False
        # A client of its own each time: one that has given up on a dead broker is slow to come back.
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        with suppress(KafkaException):
            return len(client.list_topics(timeout=2).brokers) == self.nodes
        return False

    def exists(self) -> bool:
        """Whether it was ever started here."""
        return self._cluster_file.exists()

    def change_ports(self) -> None:
        """Choose other ports; for a stopped cluster only."""
        if self.exists():
            self.ports = free_ports(len(self.ports))
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
        unfinished.write_text(json.dumps({"id": self._cluster_id, "ports": self.ports}))
        unfinished.replace(self._cluster_file)

    def _refuse_taken_ports(self, node: int) -> None:
        for port in self._ports_of(node):
            if not is_free(port):
                raise PermanentError(
                    f"port {port}, which Kafka in {self.directory} uses, is held by {holder(port)}; "
                    "end that process, or choose other ports with `makewhole up --new-ports`"
                )

    def _ports_of(self, node: int) -> list[int]:
        return self.ports[2 * node - 2 : 2 * node]

    def _write_configuration(self, node: int) -> Path:
        settings = {**_SETTINGS, **self._settings_of(node)}
        path = self.directory / f"node-{node}" / "node.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def _settings_of(self, node: int) -> dict[str, object]:
        broker, controller = self._ports_of(node)
        replicas = min(self.nodes, 3)
        return {
            "node.id": node,
            "controller.quorum.voters": ",".join(
                f"{member}@{LOOPBACK}:{port}" for member, port in enumerate(self.ports[1::2], start=1)
            ),
            "listeners": f"PLAINTEXT://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker}",
            "log.dirs": self.directory / f"node-{node}" / "data",
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(replicas, 2),
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": min(replicas, 2),
        }

    def _format(self, node: int, libs: Path, configuration: Path) -> None:
        if (self.directory / f"node-{node}" / "data" / "meta.properties").exists():
            return
        command = [java(), *_JVM_OPTIONS, "-cp", f"{libs}/*", "kafka.tools.StorageTool"]
        command += ["format", "--ignore-formatted", "-t", self._cluster_id, "-c", str(configuration)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise TransientError(
                f"the storage of Kafka node {node} in {self.directory} could not be formatted; check space and "
                f"permissions of that folder\n{done.stdout}{done.stderr}"
            )


def _new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
