"""Read the control topic of Iceberg's sink, and where the groups of its tasks and of its coordinator stand."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest

from makewhole.kafka.iceberg_sink.events import ControlPosition, SinkEvent, UnreadableEvent, decode_event
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.wire.cluster import Cluster
from makewhole.model.connection import KafkaConnection
from makewhole.model.window import PartitionRange

_READ_MOST = 200_000  # offsets of a partition, from its end
_PATIENCE_SECONDS, _PAUSE_SECONDS = 10.0, 0.2
_OF_GROUPS = 0
_LIVE_STATES = frozenset({"PreparingRebalance", "CompletingRebalance", "Stable"})


@dataclass(frozen=True, kw_only=True)
class ControlLog:
    """Messages of the control topic about one sink, in the order of each partition.

    `starts` and `ends`: the offsets that the log of each partition has. `is_whole`: all events that were ever sent are
    here. `is_settled`: no transaction is open in front of `ends`; behind one there may be more events.
    """

    topic: str
    events: tuple[SinkEvent, ...]
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    is_whole: bool
    is_settled: bool
    unreadable: int = 0


@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """Where the coordinator's group stands in the control topic; None where it has committed nothing. `is_live`: it
    has members, so that the coordinator may be further than what it has committed.

    `log`: start and end of the control topic's partitions before that was asked. A coordinator whose group has no
    offset that the log has begins at an end that is no smaller.
    """

    committed: Mapping[int, int | None]
    is_live: bool
    log: Mapping[int, tuple[int, int]]


def coordinator_group(group: str) -> str:
    """Return the name of the group of the coordinator, by that of the tasks."""
    return f"{group}-coord"


def read_control_log(connection: KafkaConnection, topic: str, group: str) -> ControlLog:
    """Return the events of the sink whose tasks are in `group`.

    A task's offsets are committed in one transaction with its events, and the markers of that are written to each topic
    in its time: the ends are asked for first, and waited for until no transaction is open in front of them.

    Raises:
        ConfigurationError: there is no such topic.
        TransientError: the brokers do not answer.
    """
    with TopicLog(connection, topic) as log:
        topic_id = log.describe().topic_id
        ends = {partition: end.offset for partition, end in log.high_watermarks().items()}
        is_settled = _is_settled(log, ends)
        stable = {partition: end.offset for partition, end in log.stable_ends().items()}
        starts = {partition: start.offset for partition, start in log.starts().items()}
    events, unreadable = list[SinkEvent](), 0
    with BrokerLog(connection, patience_seconds=_PATIENCE_SECONDS) as source:
        for partition, end in ends.items():
            hi = min(end, stable.get(partition, 0))
            lo = min(hi, max(starts[partition], hi - _READ_MOST))
            wanted = PartitionRange(topic=topic, topic_id=topic_id, partition=partition, lo=lo, hi=hi)
            for value, at in _values(source, wanted):
                try:
                    event = decode_event(value, at, group)
                except UnreadableEvent:
                    unreadable += 1
                else:
                    events += [] if event is None else [event]
    return ControlLog(
        topic=topic,
        events=tuple(events),
        starts=starts,
        ends=ends,
        is_whole=not any(starts.values()) and max(ends.values(), default=0) <= _READ_MOST,
        is_settled=is_settled,
        unreadable=unreadable,
    )


def _is_settled(log: TopicLog, ends: Mapping[int, int]) -> bool:
    """Wait until no transaction is open in front of the ends; return whether that was so in time."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        stable = log.stable_ends()
        if all(stable[partition].offset >= end for partition, end in ends.items()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_SECONDS)


def _values(source: BrokerLog, wanted: PartitionRange) -> Iterator[tuple[bytes, ControlPosition]]:
    if wanted.span <= 0:
        return
    for batch in read_range(source, wanted, columns=("offset", "value")).batches():
        for row in batch.to_pylist():
            yield row["value"] or b"", ControlPosition(partition=wanted.partition, offset=row["offset"])


def read_coordinator(connection: KafkaConnection, topic: str, group: str) -> Coordinator:
    """Return where the coordinator of the sink whose tasks are in `group` stands.

    Raises:
        TransientError: the brokers do not answer.
    """
    name = coordinator_group(group)
    with TopicLog(connection, topic) as log:
        starts, ends = log.starts(), log.high_watermarks()
        with Cluster(connection) as cluster:
            is_live = cluster.run(cluster.retry(f"members of group {name}", lambda: _is_live(cluster, topic, name)))
        committed = log.committed(name)
    of_log = {partition: (starts[partition].offset, end.offset) for partition, end in ends.items()}
    return Coordinator(committed=committed, is_live=is_live, log=of_log)


async def _is_live(cluster: Cluster, topic: str, group: str) -> bool:
    await cluster.topic(topic)  # with it come the addresses of the brokers
    coordinator = await cluster.ask_any(FindCoordinatorRequest(group, _OF_GROUPS))
    cluster.raise_for_code(coordinator.error_code, f"coordinator of group {group}")
    answer = await cluster.ask(coordinator.coordinator_id, DescribeGroupsRequest([group]))
    code, _, state, *_ = answer.groups[0]
    cluster.raise_for_code(code, f"group {group}")
    return state in _LIVE_STATES
