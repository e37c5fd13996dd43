"""Check what a key costs in the index: at most 40 bytes on disk, the filter included, however often it was merged."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.stored_runs import STORED
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic
from makewhole.key_index.files import filter_path, write_index_file
from makewhole.key_index.merge import write_merged
from makewhole.lake.storage import Storage

pytestmark = pytest.mark.unit

KEYS, WINDOWS = 25_000, 8
BYTES_MOST = 40
TOPIC = IndexedTopic(pipeline="demo", point="orders")


def run(storage: Storage, window: int, chance: np.random.Generator) -> IndexedRun:
    """Write the run of a window: events of twelve partitions and four producers, in the order of the log."""
    numbers = np.arange(KEYS)
    partition = chance.integers(0, 12, KEYS)
    columns = {
        "key_hi": chance.integers(0, 2**64, KEYS, dtype=np.uint64),
        "key_lo": chance.integers(0, 2**64, KEYS, dtype=np.uint64),
        "window": np.full(KEYS, window),
        "partition": partition,
        "offset": (window * KEYS + numbers) // 12,
        "is_replay": np.zeros(KEYS, dtype=np.bool_),
        "is_produced": np.zeros(KEYS, dtype=np.bool_),
        "row_hash": chance.integers(0, 2**64, KEYS, dtype=np.uint64),
        "is_tombstone": np.zeros(KEYS, dtype=np.bool_),
        "producer_id": 1_000 + partition % 4,
        "producer_epoch": np.zeros(KEYS, dtype=np.int16),
        "sequence": (window * KEYS + numbers) // 12,
        "is_extra": np.zeros(KEYS, dtype=np.bool_),
        "compared": np.full(KEYS, 7, dtype=np.uint64),
    }
    rows = pl.DataFrame(columns).with_columns(
        pl.lit([], dtype=STORED["excluded_by"]).alias("excluded_by"),
        *(
            pl.lit(None, dtype=kind).alias(name)
            for name, kind in STORED.items()
            if name not in (*columns, "excluded_by")
        ),
    )
    stored = rows.select(pl.col(name).cast(kind) for name, kind in STORED.items()).sort(*HASH)
    path = write_index_file(storage, f"demo/index/orders/window={window}/bucket=00of1", [stored])
    return IndexedRun(files={"00of1": path}, rows=KEYS, revisions={window: 1}, windows=(window,))


def bytes_a_key(storage: Storage, run: IndexedRun) -> float:
    sizes = {file.path: file.size_bytes for file in storage.files_below("demo/index/orders")}
    files = [path for file in run.files.values() for path in (file, filter_path(file))]
    return sum(sizes[path] for path in files) / run.rows


def test_a_key_of_the_index_takes_forty_bytes_at_most_its_filter_included(tmp_path: Path) -> None:
    storage, chance = Storage(root=str(tmp_path)), np.random.default_rng(1)
    single = [run(storage, window, chance) for window in range(1, WINDOWS + 1)]
    merged = write_merged(storage, TOPIC, "merged", single)

    assert merged.rows == KEYS * WINDOWS
    costs = [bytes_a_key(storage, file) for file in (single[0], merged)]
    assert all(20 < cost <= BYTES_MOST for cost in costs), costs
