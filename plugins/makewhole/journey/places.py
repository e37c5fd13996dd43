"""Which windows hold which keys: what has to be judged anew when only some keys are in question."""

from collections.abc import Sequence

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.keys import with_hash
from makewhole.journal import evidence, windows
from makewhole.lake.storage import Storage
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import Window
from makewhole.sql import PgConnection


def windows_of(
    journal: PgConnection, pipeline: Pipeline, storage: Storage, keys: Sequence[str]
) -> dict[str, list[Window]]:
    """For each of these business keys the windows whose newest snapshots hold it, oldest first; none: an empty list."""
    wanted = with_hash(pl.DataFrame({"key": list(keys)}, schema={"key": pl.String}))
    found: dict[str, list[Window]] = {key: [] for key in keys}
    for window in reversed(windows.newest(journal, pipeline.name)):
        held: set[str] = set()
        for manifest in evidence.snapshots(journal, window).values():
            for bucket, paths in manifest["files"].items():
                asked = wanted.filter(pl.col("key_hi") % pipeline.buckets == int(bucket))
                frame = storage.read_parquet(paths, list(HASH)) if len(asked) else None
                if frame is not None:
                    held.update(asked.join(frame, on=HASH, how="semi")["key"])
        for key in held:
            found[key].append(window)
    return found
