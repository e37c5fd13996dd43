"""Find what a change of `compare` alone explains: rows of a ledger from windows that compared other columns. Such keys
are reported with a cause of their own, and never repaired."""

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.versions import version_in_order
from makewhole.model.points import TablePoint
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask, FormerCompare
from makewhole_spark.reconcile.judge.filter_changes import mark_explained
from makewhole_spark.reconcile.judge.look_ups import look_up


def mark_compare_changed(task: BucketTask, judged: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    """Turn mismatched keys of `judged` (`JUDGED`) into undecidable ones whose row in the ledger is from a window that
    compared other columns, where the target (`target`: its rows or records) has the same in those that both compare."""
    is_mismatched = pl.col("verdict") == Verdict.MISMATCHED.value
    asked = judged.filter(is_mismatched)
    if task.changes.former_compare is None or asked.is_empty():
        return judged
    explained = _explained(task, task.changes.former_compare, asked, target)
    return mark_explained(judged, is_mismatched, explained, Cause.COMPARE_CHANGED)


def _explained(task: BucketTask, former: FormerCompare, asked: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    point = task.context.pipeline.points[task.hop.source]
    assert isinstance(point, TablePoint)  # no other source has a former `compare`
    rows = look_up(task, point, asked.sort(HASH))
    rows = rows.filter(~pl.col("excluded_by").list.contains(task.hop.name))
    is_since = (pl.col("time") >= former.until).fill_null(True).any().over(HASH)
    rows = rows.filter(~is_since).with_columns(version_in_order().alias("_number"))
    order = ["_number", "time", "place"] if task.is_upsert else ["time", "place"]
    counting = rows.sort(order).unique(HASH, keep="last" if task.is_upsert else "first")
    columns = [f"c:{name}" for name in former.columns if name in task.context.pipeline.compare]
    both = target.join(counting.select(*HASH, "version", *columns), on=HASH, how="inner", suffix="_source")
    is_same = pl.all_horizontal(pl.lit(True), *(pl.col(name).eq_missing(pl.col(f"{name}_source")) for name in columns))
    is_as_new = (pl.col("version") >= pl.col("version_source")).fill_null(True)
    return both.group_by(HASH).agg((is_same & is_as_new).all().alias("_is_same")).filter("_is_same").select(HASH)
