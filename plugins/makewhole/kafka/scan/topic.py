"""Scan a whole topic: its bounds, its partitions in parallel, its settings and open transactions."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event

from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.open_transactions import OpenTransaction, find_open_transactions
from makewhole.kafka.scan.partition import LogBounds, PartitionScan
from makewhole.kafka.topics import TopicDescription, describe_settings
from makewhole.kafka.wire.cluster import Cluster
from makewhole.kafka.wire.log_ends import COMMITTED, EARLIEST_MS, LATEST_MS, UNCOMMITTED, LogEndsRequest
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem
from makewhole.model.window import PartitionRange

_WORKERS = 4
_FIRST_CONTACT_SECONDS = 10.0  # a wrong address should be reported soon
ScanProgress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """Request for a scan: these partitions (empty: all) from an offset on (None: from the very first). `newest`: no
    more than so many offsets at the end of each."""

    partitions: Collection[int] = ()
    from_offset: int | None = None
    newest: int | None = None
    is_crc_checked: bool = True


@dataclass(frozen=True, kw_only=True)
class TopicScan:
    """A scanned topic. `open_refusal`: why open transactions could not be asked for; None when they were."""

    description: TopicDescription
    partitions: tuple[PartitionScan, ...]
    open_transactions: tuple[OpenTransaction, ...]
    open_refusal: str | None
    started_at_ms: int
    elapsed_seconds: float


def scan_topic(
    connection: KafkaConnection, topic: str, wanted: ScanRequest, on_progress: ScanProgress | None = None
) -> TopicScan:
    """Scan a topic as it is now; what is written meanwhile is left to the next scan.

    `on_progress` is called with (offsets done, offsets in all) as pages come, from several threads.

    Raises:
        ConfigurationError: the topic or a partition does not exist.
        TransientError: the brokers do not answer. A single partition that cannot be read says so in its scan.
    """
    started = time.time()
    description = describe_settings(connection, topic, patience_seconds=_FIRST_CONTACT_SECONDS)
    chosen = _chosen(connection, description, wanted.partitions)
    with Cluster(connection) as cluster:
        bounds = cluster.run(_bounds(cluster, topic, chosen))
        transactions, refusal = _open_transactions(cluster, topic, bounds)
    scans = _ParallelScan(connection, description, wanted, on_progress).run(chosen, bounds)
    return TopicScan(
        description=description,
        partitions=scans,
        open_transactions=transactions,
        open_refusal=refusal,
        started_at_ms=int(started * 1000),
        elapsed_seconds=time.time() - started,
    )


def _chosen(connection: KafkaConnection, description: TopicDescription, asked: Collection[int]) -> list[int]:
    existing = [replicas.partition for replicas in description.partitions]
    unknown = sorted(set(asked) - set(existing))
    if unknown:
        problem = Problem(
            file=f"topic {description.name}",
            path="partition",
            found=f"there is no partition {', '.join(map(str, unknown))} at {connection.bootstrap}",
            remedy=f"It has {len(existing)}, counted from 0",
        )
        raise ConfigurationError([problem])
    return sorted(set(asked)) or existing


async def _bounds(cluster: Cluster, topic: str, partitions: Collection[int]) -> dict[int, LogBounds]:
    """Return the present offsets of those partitions that have a leader."""

    async def attempt() -> dict[int, LogBounds]:
        by_leader = defaultdict(list)
        for partition, leader in (await cluster.topic(topic)).leaders.items():
            if partition in partitions and leader >= 0:
                by_leader[leader].append(partition)
        bounds: dict[int, LogBounds] = {}
        for leader, led in by_leader.items():
            bounds |= await _bounds_at(cluster, topic, leader, led)
        return bounds

    return await cluster.retry(f"offsets of topic {topic}", attempt)


async def _bounds_at(cluster: Cluster, topic: str, leader: int, partitions: list[int]) -> dict[int, LogBounds]:
    async def ends(timestamp_ms: int, isolation: int) -> dict[int, int]:
        response = await cluster.ask(leader, LogEndsRequest(topic, partitions, timestamp_ms, isolation))
        offsets = {}
        for partition, code, _, offset, _ in response.topics[0][1]:
            cluster.raise_for_code(code, f"{topic} partition {partition}")
            offsets[partition] = offset
        return offsets

    starts, stable = await ends(EARLIEST_MS, UNCOMMITTED), await ends(LATEST_MS, COMMITTED)
    last = await ends(LATEST_MS, UNCOMMITTED)
    return {at: LogBounds(log_start=starts[at], stable=stable[at], end=max(last[at], stable[at])) for at in partitions}


def _open_transactions(
    cluster: Cluster, topic: str, partitions: Collection[int]
) -> tuple[tuple[OpenTransaction, ...], str | None]:
    try:
        return cluster.run(find_open_transactions(cluster, topic, partitions)), None
    except MakewholeError as error:
        return (), str(error)


class _ParallelScan:
    """Scan of partitions in parallel, each worker with connections of its own."""

    def __init__(
        self,
        connection: KafkaConnection,
        description: TopicDescription,
        wanted: ScanRequest,
        on_progress: ScanProgress | None,
    ) -> None:
        self._connection = connection
        self._description = description
        self._wanted = wanted
        self._on_progress = on_progress
        self._is_stopped = Event()
        self._queue: SimpleQueue[PartitionRange] = SimpleQueue()
        self._scans: dict[int, PartitionScan] = {}

    def run(self, chosen: Collection[int], bounds: Mapping[int, LogBounds]) -> tuple[PartitionScan, ...]:
        """Return the scans of these partitions, in their order. Those without bounds have no leader."""
        self._bounds = bounds
        ranges = [self._range(partition) for partition in chosen]
        for part in ranges:
            self._queue.put(part)
        self._total = sum(bounds[part.partition].end - part.lo for part in ranges if part.partition in bounds)
        self._done = dict.fromkeys(chosen, 0)
        workers = max(1, min(_WORKERS, len(ranges)))
        with ThreadPoolExecutor(workers) as pool:
            try:
                for work in [pool.submit(self._work) for _ in range(workers)]:
                    work.result()
            except BaseException:
                self._is_stopped.set()
                raise
        return tuple(self._scans[partition] for partition in chosen)

    def _range(self, partition: int) -> PartitionRange:
        hi = self._bounds[partition].stable if partition in self._bounds else 0
        lowest = 0 if self._wanted.newest is None else hi - self._wanted.newest
        return PartitionRange(
            topic=self._description.name,
            topic_id=self._description.topic_id,
            partition=partition,
            lo=min(max(self._wanted.from_offset or 0, lowest, 0), hi),
            hi=hi,
        )

    def _work(self) -> None:
        with BrokerLog(self._connection) as source:
            while not self._is_stopped.is_set():
                try:
                    wanted = self._queue.get_nowait()
                except Empty:
                    return
                self._scans[wanted.partition] = self._scan(source, wanted)

    def _scan(self, source: BrokerLog, wanted: PartitionRange) -> PartitionScan:
        bounds = self._bounds.get(wanted.partition, LogBounds(log_start=0, stable=0, end=0))
        scan = PartitionScan(source, wanted, bounds, is_crc_checked=self._wanted.is_crc_checked)
        if wanted.partition not in self._bounds:
            scan.failure = f"{wanted.topic} partition {wanted.partition} has no leader."
            return scan
        try:
            source.check(wanted)
            while not scan.is_done and not self._is_stopped.is_set():
                scan.step()
                self._report(wanted, scan.position)
            scan.open_rest()
        except MakewholeError as error:
            scan.failure = str(error)
        return scan

    def _report(self, wanted: PartitionRange, position: int) -> None:
        self._done[wanted.partition] = position - wanted.lo
        if self._on_progress is not None:
            self._on_progress(sum(self._done.values()), self._total)
