"""Lay out a Kafka cluster: its nodes, their ports, their `node.properties` as a mapping. No I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from makewhole.stack.ports import LOOPBACK

Settings = Mapping[str, object]
SettingsOfNode = Callable[[int], Settings]

_REPLICAS = 3
_LOOPBACK_LISTENERS = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"

# What makes a broker quick on one machine. Nothing here weakens what a producer or a consumer is promised.
_SETTINGS: Settings = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": _LOOPBACK_LISTENERS,
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


@dataclass(frozen=True, kw_only=True)
class ClusterLayout:
    """The nodes and ports of a cluster. Nodes count from 1: the brokers, then the controller when it is a node of its
    own.

    Without one, every broker is a controller too, and `ports` are two per node, the broker's then the controller's;
    with one, they are one per broker, then the controller's.
    """

    ports: Sequence[int]
    has_own_controller: bool

    @staticmethod
    def ports_needed(brokers: int, has_own_controller: bool) -> int:
        return brokers + 1 if has_own_controller else 2 * brokers

    @property
    def brokers(self) -> range:
        count = len(self.ports) - 1 if self.has_own_controller else len(self.ports) // 2
        return range(1, count + 1)

    @property
    def nodes(self) -> range:
        """All nodes, the controller's own included; the order to start them in is the reverse."""
        return range(1, len(self.brokers) + 1 + self.has_own_controller)

    def broker_port(self, node: int) -> int | None:
        """Return the port at which a node answers clients; None for a controller alone."""
        if self.has_own_controller:
            return self.ports[node - 1] if node in self.brokers else None
        return self.ports[2 * node - 2]

    def controller_port(self, node: int) -> int | None:
        """Return the port at which a node speaks as controller; None for a broker alone."""
        if self.has_own_controller:
            return None if node in self.brokers else self.ports[-1]
        return self.ports[2 * node - 1]

    def ports_of(self, node: int) -> list[int]:
        return [port for port in (self.broker_port(node), self.controller_port(node)) if port is not None]

    def settings_of(self, node: int, data: Path, extra: Settings) -> Settings:
        """Return every setting of one node. `extra` comes last on brokers; a controller alone keeps its own
        listener."""
        own = self._own_settings(node, data)
        if node in self.brokers:
            return {**_SETTINGS, **own, **extra}
        return {**_SETTINGS, **extra, **own}

    def _own_settings(self, node: int, data: Path) -> Settings:
        ports = {"PLAINTEXT": self.broker_port(node), "CONTROLLER": self.controller_port(node)}
        listeners = {name: f"{name}://{LOOPBACK}:{port}" for name, port in ports.items() if port is not None}
        roles = {"PLAINTEXT": "broker", "CONTROLLER": "controller"}
        advertised = listeners.get("PLAINTEXT", listeners.get("CONTROLLER"))
        return {
            "node.id": node,
            "process.roles": ",".join(roles[name] for name in listeners),
            "controller.quorum.voters": ",".join(
                f"{member}@{LOOPBACK}:{port}" for member in self.nodes if (port := self.controller_port(member))
            ),
            "listeners": ",".join(listeners.values()),
            "advertised.listeners": advertised,
            "log.dirs": data,
            **self._replication(),
        }

    def _replication(self) -> Settings:
        replicas = min(len(self.brokers), _REPLICAS)
        return {
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(replicas, 2),
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": min(replicas, 2),
        }
