"""Scan a topic's batch headers alone, as `makewhole audit` does: on one core, with and without the checksums."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing

from bench.measuring.meter import Cost
from bench.topics.snapshots import ranges
from makewhole.model.connection import KafkaConnection


def scan(bootstrap: str, topic: str, is_crc_checked: bool) -> tuple[int, Cost]:
    """Scan a topic in a process of its own; return (records, cost). Memory is not measured."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(_scan, bootstrap, topic, is_crc_checked).result()


def _scan(bootstrap: str, topic: str, is_crc_checked: bool) -> tuple[int, Cost]:
    from makewhole.kafka.log.broker import BrokerLog
    from makewhole.kafka.scan.partition import LogBounds, PartitionScan

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    connection, records = KafkaConnection(id="log", properties={"bootstrap.servers": bootstrap}), 0
    wanted = ranges(connection, topic)
    wall, cpu = time.perf_counter(), time.process_time()
    with closing(BrokerLog(connection)) as log:
        for partition_range in wanted:
            bounds = LogBounds(log_start=partition_range.lo, stable=partition_range.hi, end=partition_range.hi)
            work = PartitionScan(log, partition_range, bounds, is_crc_checked=is_crc_checked)
            while not work.is_done:
                work.step()
            records += work.account.data
    return records, Cost(
        wall_seconds=time.perf_counter() - wall,
        python_cpu_seconds=time.process_time() - cpu,
        jvm_cpu_seconds=0.0,
        python_bytes=0,
        jvm_bytes=0,
    )
