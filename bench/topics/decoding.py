"""Measure the decoding of values in files: makewhole in a process of its own on one core, beside a session of Spark."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series

MAKEWHOLE = "makewhole"
ROWS_OF_A_BATCH = 65_536
Report = Callable[[str], None]
Decode = Callable[[Any], int]
"""Decodes a batch of values; returns how many rows have a key."""


def duel(
    sides: Mapping[str, Callable[[], Cost]], part: str, data: DataSet, rounds: int, report: Report
) -> Iterator[Series]:
    """Run sides in turn, the one that begins changing from round to round; the first round warms up."""
    series_by_side = {name: Series(part=part, side=name, data=data) for name in sides}
    for number in range(rounds + 1):
        for name in sides if number % 2 == 0 else reversed(list(sides)):
            cost = sides[name]()
            report(f"{part:16} {name:10} {cost.wall_seconds:6.2f} s, {cost.cpu_seconds:6.2f} s of cores")
            if number:
                series_by_side[name].warm.append(cost)
    yield from series_by_side.values()


def apart(decoder: Callable[[str], Decode], path: Path, form: str, rows: int) -> Cost:
    """Decode a file in a process of its own, on one core; `decoder` makes for a format what decodes a batch.

    Raises:
        RuntimeError: not so many rows have a key.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        decoded, cost = pool.submit(_decode, decoder, str(path), form).result()
    if decoded != rows:
        raise RuntimeError(f"{form}: {decoded} of {rows} rows have a key")
    return cost


def _decode(decoder: Callable[[str], Decode], path: str, form: str) -> tuple[int, Cost]:
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import pyarrow.parquet as pq

    decode = decoder(form)
    batches = pq.ParquetFile(path).iter_batches(ROWS_OF_A_BATCH)
    first = decode(next(batches))  # what is compiled is loaded
    wall, cpu = time.perf_counter(), time.process_time()
    counted = sum(map(decode, batches))
    share = (first + counted) / max(counted, 1)
    return first + counted, Cost(
        wall_seconds=(time.perf_counter() - wall) * share,
        python_cpu_seconds=(time.process_time() - cpu) * share,
        jvm_cpu_seconds=0.0,
        python_bytes=0,
        jvm_bytes=0,
    )


def write_values(path: Path, values: Iterable[bytes]) -> None:
    """Write values into a Parquet file, without headers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema = pa.schema([("value", pa.binary()), ("headers", headers)])
    with pq.ParquetWriter(path, schema) as file:
        for batch in _batches(values):
            file.write_batch(pa.RecordBatch.from_pydict({"value": batch, "headers": [[]] * len(batch)}, schema=schema))


def _batches(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for value in values:
        batch.append(value)
        if len(batch) == ROWS_OF_A_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
