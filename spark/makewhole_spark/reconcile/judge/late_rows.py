"""Leave out late rows of which an earlier window found what is wrong."""

import polars as pl

from makewhole.compute.frames import HASH
from makewhole_spark.reconcile.bucket.task import BucketTask


def without_reported_rows(task: BucketTask, target: pl.DataFrame, in_source: pl.DataFrame) -> pl.DataFrame:
    """Drop the late rows of keys of which an earlier window said already what is wrong; a row of this window's own
    times says something new. `in_source`: the keys that the source has in this window."""
    start = task.context.window.start
    if start is None or task.already_reported.is_empty():
        return target
    judged_here = pl.concat([in_source.select(HASH), target.filter(pl.col("time") >= start).select(HASH)])
    return target.join(task.already_reported.join(judged_here, on=HASH, how="anti"), on=HASH, how="anti")
