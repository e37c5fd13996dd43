"""Count the records of missing keys by partition, by which a reader that takes a part of the partitions is seen."""

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.read_copies import passing_copies
from makewhole_spark.reconcile.judge.verdicts import has_verdict


def missing_records(task: BucketTask, source: pl.DataFrame, judged: pl.DataFrame) -> dict[int, int]:
    """Return the number of committed records of the window, by partition, that pass the hop's filter and whose keys are
    missing."""
    parts = task.context.window.ranges.get(task.hop.source, ())
    if "offset" not in source.columns or not parts:
        return {}
    missing = judged.filter(has_verdict(Verdict.MISSING)).select(HASH)
    copies = committed_copies(passing_copies(source, task.hop.name)).join(missing, on=HASH, how="semi")
    ranges = pl.DataFrame(
        [(part.partition, part.lo, part.hi) for part in parts],
        schema={"partition": pl.Int32, "lo": pl.Int64, "hi": pl.Int64},
        orient="row",
    )
    of_window = copies.join(ranges, on="partition").filter(pl.col("offset").is_between("lo", "hi", closed="left"))
    counted = of_window.unique(subset=["partition", "offset"]).group_by("partition").len()
    return dict(sorted(counted.rows()))
