"""Look at the records and the rows of missing keys: count the records by partition, by which a reader that takes a part
of the partitions is seen, and find rows that the target has outside its table."""

import logging
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.model.errors import MakewholeError
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.read_copies import passing_copies
from makewhole_spark.reconcile.judge.verdicts import has_verdict

OUTSIDE = "outside"
"""The name of the evidence that a row of a missing key lies outside its table."""
_LOOKED_FOR = 10_000
logger = logging.getLogger(__name__)


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


def rows_outside(task: BucketTask, judged: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return as evidence by key hash where rows of missing keys are that the target's table does not have, of the first
    keys of a bucket. It decides no verdict."""
    target = task.context.pipeline.points[task.hop.target]
    gone = judged.filter(has_verdict(Verdict.MISSING, Verdict.VANISHED)).sort(HASH).head(_LOOKED_FOR)
    if not can_look_up(target) or gone.is_empty():
        return {}
    try:
        rows_by_key = task.context.tables(target).rows_outside(task.context.table_shape(target), gone["key"].to_list())
    except MakewholeError as error:
        logger.warning("rows outside %s were not looked for: %s", target.table, error)
        return {}
    hashes = dict(zip(gone["key"], gone["key_hash"], strict=True))
    return {hashes[key]: {OUTSIDE: [row.as_evidence() for row in rows]} for key, rows in rows_by_key.items()}
