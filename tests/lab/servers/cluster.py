"""Run the lab's Kafka: a controller and three brokers on loopback, whose nodes can be frozen, killed and brought back.

The controller is apart, so that two brokers can be taken away and elections go on. It is started once and healed
between scenarios: everything runs again, and every replica is in sync. All waiting is for conditions, with deadlines.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.ports import LOOPBACK, free_ports
from tests.lab import raw
from tests.lab.servers.proxy import Proxy
from tests.world.kafka_nodes import kill_node

BROKERS = (1, 2, 3)
_DEADLINE_SECONDS = 90.0
_POLL_SECONDS = 0.05
_ASK_SECONDS = 5.0
_HEAP_MB = 256
_GROUPS = ("healed-0", "healed-1", "healed-2")  # one per partition of the offsets' topic
# Failover is due after this; a freeze that shall go unnoticed must be shorter.
SESSION_SECONDS = 4.0
# 24 days: a producer whose records are older than that is forgotten at once.
LONGEST_MEMORY_MS = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """A partition as one broker knows it. `leader` is -1 when there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class NotInTimeError(AssertionError):
    """A condition that the lab waits for did not come."""


class LabCluster:
    """Broker numbers are 1, 2 and 3. `proxied_bootstrap` leads clients through `proxy`, all the way."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(10)
        own, listeners, advertised = ports[:4], ports[4:7], ports[7:]
        self.proxy = Proxy(dict(zip(advertised, listeners, strict=True)))
        self.server = KafkaServer(
            folder,
            nodes=len(BROKERS),
            ports=own,
            settings=lambda node: _settings(node, own, listeners, advertised),
            has_own_controller=True,
            heap_mb=_HEAP_MB,
        )
        self.proxied_bootstrap = ",".join(f"{LOOPBACK}:{port}" for port in advertised)
        self._changed: set[str] = set()

    # Its life

    def start(self) -> None:
        self.server.start()
        self.proxy.start()
        self.wait_until_healed()

    def stop(self) -> None:
        self.proxy.stop()
        self.server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def heal(self) -> None:
        """Undo all that was done to it, and wait until every replica of every topic is in sync again."""
        self.proxy.reset()
        for node in self.server.layout.nodes:
            self.server.process(node).resume()
        with ThreadPoolExecutor() as starters:
            list(starters.map(self.server.start_node, self.server.layout.nodes))
        self.server.wait_ready(_DEADLINE_SECONDS)
        self.wait_until_healed()
        if self._changed:
            self.reset_settings(*self._changed)

    # What it is

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    @property
    def connection(self) -> KafkaConnection:
        return KafkaConnection(id="lab", properties={"bootstrap.servers": self.bootstrap})

    def port(self, node: int) -> int:
        """Where a broker answers without the proxy."""
        port = self.server.layout.broker_port(node)
        assert port is not None
        return port

    def running(self) -> list[int]:
        """The brokers that are alive and not frozen."""
        return [node for node in BROKERS if self._runs(node)]

    def _runs(self, node: int) -> bool:
        process = self.server.process(node)
        return process.is_running() and not process.is_paused()

    def admin(self) -> AdminClient:
        """A client of its own each time: one that has met a dead broker is slow to return. Keep it until it is done."""
        bootstrap = ",".join(f"{LOOPBACK}:{self.port(node)}" for node in self.running())
        return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 10_000})

    def known(self, topic: str | None = None) -> list[dict[tuple[str, int], PartitionState]]:
        """Return what each running broker knows of the topic's partitions, of all topics' when none is named."""
        with ThreadPoolExecutor() as askers:
            answers = askers.map(lambda node: self._ask(node, topic), self.running())
            return [answer for answer in answers if answer is not None]

    def _ask(self, node: int, topic: str | None) -> dict[tuple[str, int], PartitionState] | None:
        try:
            answer = raw.send(self.port(node), raw.AllTopicsRequest(topic), _ASK_SECONDS)
        except OSError:
            return None
        return {
            (name, number): PartitionState(leader=leader, leader_epoch=epoch, replicas=tuple(replicas), isr=tuple(isr))
            for error, name, _, _, partitions, *_ in answer.topics
            if error == 0
            for _, number, leader, epoch, replicas, isr, *_ in partitions
        }

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        """The newest that any running broker knows of the partition."""
        known = [answer[topic, partition] for answer in self.known(topic) if (topic, partition) in answer]
        if not known:
            raise NotInTimeError(f"no running broker knows {topic} partition {partition}")
        return max(known, key=lambda answer: answer.leader_epoch)

    def leader(self, topic: str, partition: int = 0) -> int:
        return self.state(topic, partition).leader

    def followers(self, topic: str, partition: int = 0) -> list[int]:
        state = self.state(topic, partition)
        return [node for node in state.replicas if node != state.leader]

    # Waiting

    def wait(self, what: str, condition: Callable[[], Any], deadline_seconds: float = _DEADLINE_SECONDS) -> Any:
        """Wait until the condition gives something true, and return it.

        Raises:
            NotInTimeError: it did not within the deadline.
        """
        deadline = time.monotonic() + deadline_seconds
        while not (answer := condition()):
            if time.monotonic() > deadline:
                raise NotInTimeError(f"waited {deadline_seconds:.0f} s for {what}")
            time.sleep(_POLL_SECONDS)
        return answer

    def wait_for_isr(self, topic: str, partition: int, nodes: Sequence[int]) -> None:
        """Until every running broker knows exactly these replicas as in sync."""

        def agreed() -> bool:
            known = self.known(topic)
            return bool(known) and all(set(view[topic, partition].isr) == set(nodes) for view in known)

        self.wait(f"replicas {sorted(nodes)} of {topic} partition {partition} in sync", agreed)

    def wait_for_leader(self, topic: str, partition: int = 0, *, after_epoch: int = -1) -> PartitionState:
        """Until a running broker leads the partition, in a leader epoch later than the one given, and all know it."""

        def led() -> PartitionState | None:
            running = self.running()
            known = [state for view in self.known(topic) if (state := view.get((topic, partition)))]
            if len(known) < len(running) or len({(view.leader, view.leader_epoch) for view in known}) != 1:
                return None
            return known[0] if known[0].leader in running and known[0].leader_epoch > after_epoch else None

        led_by: PartitionState = self.wait(f"a leader of {topic} partition {partition}", led)
        return led_by

    def wait_for_no_leader(self, topic: str, partition: int = 0) -> None:
        """Until all running brokers know that no broker leads the partition."""

        def unled() -> bool:
            known = self.known(topic)
            return bool(known) and all(view[topic, partition].leader == -1 for view in known)

        self.wait(f"{topic} partition {partition} to have no leader", unled)

    def wait_for_group(self, group: str) -> None:
        """Until a running broker coordinates the group: clients do not wait for that."""

        def coordinated() -> bool:
            with suppress(OSError):
                running = self.running()
                node = raw.group_coordinator(self.port(running[0]), group)
                return node in running and node is not None and raw.coordinates(self.port(node), group)
            return False

        self.wait(f"a coordinator of group {group}", coordinated)

    def wait_until_healed(self) -> None:
        """Until all brokers run, agree that all replicas of all topics are in sync, and coordinate their groups."""

        def healed() -> bool:
            known = self.known()
            return (
                len(known) == len(BROKERS)
                and all(view == known[0] for view in known)
                and all(view.leader > 0 and set(view.isr) == set(view.replicas) for view in known[0].values())
            )

        self.wait("all replicas in sync", healed)
        for group in _GROUPS:
            self.wait_for_group(group)
        self.wait("all replicas in sync", healed)  # the first group made the topic of all groups

    # What is done to it

    def kill(self, *nodes: int) -> None:
        """SIGKILL."""
        for node in nodes:
            kill_node(self.server, node)

    def pause(self, *nodes: int) -> None:
        """SIGSTOP."""
        for node in nodes:
            self.server.process(node).pause()

    def resume(self, *nodes: int) -> None:
        """SIGCONT."""
        for node in nodes:
            self.server.process(node).resume()

    def restart(self, *nodes: int) -> None:
        """Start dead brokers, and wait until they answer."""
        for node in nodes:
            self.server.start_node(node)
        for node in nodes:
            self.wait(f"broker {node} to answer", partial(self._ask, node, None))

    def elect_unclean(self, topic: str, partition: int = 0) -> PartitionState:
        """Make a replica the leader that is not in sync; the partition must have no leader."""
        self.wait_for_no_leader(topic, partition)
        request = raw.UncleanElectionRequest(topic, partition)

        def elected() -> bool:
            with suppress(OSError, NotInTimeError):
                raw.send(self.port(self.running()[0]), request)
                return self.leader(topic, partition) > 0
            return False

        self.wait(f"an unclean election of {topic} partition {partition}", elected)
        return self.wait_for_leader(topic, partition)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: Sequence[Sequence[int]] | None = None,
        min_isr: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """A topic on all brokers, or with `replicas` per partition (the first one leads); returns when all know it."""
        config = {"min.insync.replicas": str(min_isr), "retention.ms": "-1"}
        config |= {key: str(value) for key, value in (settings or {}).items()}
        placing: dict[str, Any] = {"replication_factor": len(BROKERS)}
        if replicas is not None:
            placing = {"replica_assignment": [list(nodes) for nodes in replicas]}
        wanted = NewTopic(name, num_partitions=partitions, config=config, **placing)
        admin = self.admin()
        admin.create_topics([wanted])[name].result(30)
        for partition in range(partitions):
            self.wait_for_leader(name, partition)

    def delete_topic(self, name: str) -> None:
        """Returns when no running broker knows it."""
        admin = self.admin()
        admin.delete_topics([name])[name].exception(30)
        self.wait(f"{name} to be gone", lambda: not any(self.known(name)))

    def change_settings(self, **settings: object) -> None:
        """Dynamic settings of all brokers (`_` for `.`); the next `heal` takes them back."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._changed |= set(named)
        self._alter({name: (AlterConfigOpType.SET, str(value)) for name, value in named.items()})

    def reset_settings(self, *names: str) -> None:
        self._changed -= set(names)
        self._alter(dict.fromkeys(names, (AlterConfigOpType.DELETE, None)))

    def _alter(self, changes: Mapping[str, tuple[AlterConfigOpType, str | None]]) -> None:
        admin = self.admin()
        for node in BROKERS:  # one resource of this type a call is all that the client allows
            entries = [
                ConfigEntry(name, value, incremental_operation=operation)
                for name, (operation, value) in changes.items()
            ]
            resource = ConfigResource(ResourceType.BROKER, str(node), incremental_configs=entries)
            admin.incremental_alter_configs([resource])[resource].result(30)


def _settings(node: int, own: Sequence[int], listeners: Sequence[int], advertised: Sequence[int]) -> dict[str, object]:
    """A second listener per broker that directs clients through the proxy, and the pace of the lab."""
    shared = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
        "broker.session.timeout.ms": int(SESSION_SECONDS * 1000),
        "replica.lag.time.max.ms": int(SESSION_SECONDS * 1000),
        "replica.fetch.wait.max.ms": 100,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # Brokers forget producers by the age of their records' timestamps; scenarios lower it where it matters.
        "producer.id.expiration.ms": LONGEST_MEMORY_MS,
        "producer.id.expiration.check.interval.ms": 500,
        "group.min.session.timeout.ms": 1000,
        "log.segment.delete.delay.ms": 1000,
    }
    if node not in BROKERS:
        return shared
    at = node - 1
    return shared | {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{own[at]},PROXIED://{LOOPBACK}:{listeners[at]}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{own[at]},PROXIED://{LOOPBACK}:{advertised[at]}",
    }
