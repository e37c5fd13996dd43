"""Scanning a whole topic: its bounds, its partitions side by side, and what the cluster says of it beside the log."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event

from makewhole.kafka.broker import BrokerLog
from makewhole.kafka.offsets import TopicLog
from makewhole.kafka.producers import OpenTransaction, open_transactions
from makewhole.kafka.scan import Bounds, PartitionScan
from makewhole.kafka.topics import TopicDescription, describe_settings
from makewhole.model.connection import KafkaConnection
from makewhole.model.errors import ConfigurationError, MakewholeError, Problem
from makewhole.model.window import PartitionRange

_SIDE_BY_SIDE = 4
_FIRST_CONTACT_SECONDS = 10.0  # a wrong address should not take long to say so
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to scan: some partitions or, when empty, all, from an offset or, when None, from the very first one on."""

    partitions: Collection[int] = ()
    from_offset: int | None = None
    is_crc_checked: bool = True


@dataclass(frozen=True, kw_only=True)
class TopicScan:
    """A scanned topic. `open_refusal` says why the coordinators' word on open transactions is missing."""

    description: TopicDescription
    partitions: tuple[PartitionScan, ...]
    open_transactions: tuple[OpenTransaction, ...]
    open_refusal: str | None
    started_at_ms: int
    elapsed_seconds: float


def scan_topic(
    connection: KafkaConnection, topic: str, wanted: Wanted, on_progress: Progress | None = None
) -> TopicScan:
    """Scan a topic as it is now; what is written meanwhile is left to the next scan.

    `on_progress` is called with (offsets done, offsets in all) as pages come, from several threads.

    Raises:
        ConfigurationError: the topic or a partition does not exist.
        TransientError: the brokers do not answer. A single partition that cannot be read says so in its scan.
    """
    started = time.time()
    description = describe_settings(connection, topic, patience_seconds=_FIRST_CONTACT_SECONDS)
    bounds = _bounds(connection, topic, _chosen(connection, description, wanted.partitions))
    transactions, refusal = _open(connection, topic)
    scans = _Scanning(connection, description, wanted, on_progress).run(bounds)
    return TopicScan(
        description=description,
        partitions=scans,
        open_transactions=tuple(one for one in transactions if one.partition in bounds),
        open_refusal=refusal,
        started_at_ms=int(started * 1000),
        elapsed_seconds=time.time() - started,
    )


def _chosen(connection: KafkaConnection, description: TopicDescription, asked: Collection[int]) -> list[int]:
    existing = [one.partition for one in description.partitions]
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


def _bounds(connection: KafkaConnection, topic: str, partitions: list[int]) -> dict[int, Bounds]:
    with TopicLog(connection, topic) as log:
        starts, stable, ends = log.starts(), log.stable_ends(), log.high_watermarks()
    return {
        partition: Bounds(
            log_start=starts[partition].offset,
            stable=stable[partition].offset,
            end=max(ends[partition].offset, stable[partition].offset),
        )
        for partition in partitions
    }


def _open(connection: KafkaConnection, topic: str) -> tuple[tuple[OpenTransaction, ...], str | None]:
    try:
        return open_transactions(connection, topic), None
    except MakewholeError as error:
        return (), str(error)


class _Scanning:
    """Some partitions at a time, each over connections of its own."""

    def __init__(
        self, connection: KafkaConnection, description: TopicDescription, wanted: Wanted, on_progress: Progress | None
    ) -> None:
        self._connection = connection
        self._description = description
        self._wanted = wanted
        self._on_progress = on_progress
        self._is_stopped = Event()

    def run(self, bounds: dict[int, Bounds]) -> tuple[PartitionScan, ...]:
        """The scans of these partitions, in their order."""
        queue = [self._range(partition, one) for partition, one in bounds.items()]
        self._total = sum(max(bounds[one.partition].end - one.lo, 0) for one in queue)
        self._done = dict.fromkeys(bounds, 0)
        with ThreadPoolExecutor(min(_SIDE_BY_SIDE, max(len(queue), 1))) as pool:
            try:
                return tuple(pool.map(lambda one: self._scan(one, bounds[one.partition]), queue))
            except BaseException:
                self._is_stopped.set()
                raise

    def _range(self, partition: int, bounds: Bounds) -> PartitionRange:
        lo = self._wanted.from_offset or 0
        return PartitionRange(
            topic=self._description.name,
            topic_id=self._description.topic_id,
            partition=partition,
            lo=min(lo, bounds.stable),
            hi=bounds.stable,
        )

    def _scan(self, wanted: PartitionRange, bounds: Bounds) -> PartitionScan:
        with ExitStack() as stack:
            source = stack.enter_context(BrokerLog(self._connection))
            scan = PartitionScan(source, wanted, bounds, is_crc_checked=self._wanted.is_crc_checked)
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
