"""Find what a change of the file's hops or of `compare` alone explains: what sources brought that led to a place in
windows before and are named there no more, rows of windows that did not have a hop, and rows of a ledger from windows
that compared other columns. It stays, and is reported with its own cause."""

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.versions import version_in_order
from makewhole.key_index.files import known_keys
from makewhole.model.points import can_look_up
from makewhole.model.verdict import DIFFERING, Cause, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask, FormerCompare
from makewhole_spark.reconcile.judge.filter_changes import mark_explained, rows_of_late_keys
from makewhole_spark.reconcile.judge.index import rows_of
from makewhole_spark.reconcile.judge.look_ups import look_up


def mark_hops_changed(task: BucketTask, judged: pl.DataFrame, known: BucketInput) -> pl.DataFrame:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones that a change of the file's hops explains: unexpected
    keys that a removed source had, and keys without a record in the window of which the target has its value; and
    missing keys whose rows a ledger had in windows without this hop, and that were touched since. So are rows that
    differ from records which lie in such windows alone, or that are several of them."""
    verdict = pl.col("verdict")
    without_hop = rows_of_late_keys(task, known.source, task.changes.without_hop).select(HASH)
    judged = mark_explained(judged, verdict == Verdict.MISSING.value, without_hop, Cause.HOPS_CHANGED)
    of_before = verdict.is_in([one.value for one in (*DIFFERING, Verdict.DUPLICATE)]) & ~pl.col("in_source")
    older = _before_the_hop(task, judged.filter(of_before))
    judged = mark_explained(judged, of_before, older, Cause.HOPS_CHANGED)
    if not task.changes.former_sources:
        return judged
    unmatched = judged.filter(verdict == Verdict.UNEXPECTED.value)
    differing = judged.filter((verdict == Verdict.MISMATCHED.value) & ~pl.col("in_source"))
    explained = pl.concat(
        [
            known_keys(task.context.storage, task.changes.former_sources, unmatched),
            _of_their_values(task, differing, known.target),
        ]
    )
    may_be = verdict.is_in([Verdict.UNEXPECTED.value, Verdict.MISMATCHED.value])
    return mark_explained(judged, may_be, explained, Cause.HOPS_CHANGED)


def _before_the_hop(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return which of some keys the source has in windows before the hop alone."""
    since, point = task.changes.hop_since, task.context.pipeline.points[task.hop.source]
    if since is None or keys.is_empty():
        return empty(HASHES)
    if can_look_up(point):
        copies = look_up(task, point, keys.sort(HASH)).select(*HASH, is_since=pl.col("time") >= since.start)
    else:
        copies = rows_of(task, task.source.index.copies.every, keys).select(
            *HASH, is_since=pl.col("window") >= since.number
        )
    return copies.group_by(HASH).agg(pl.col("is_since").fill_null(True).any()).filter(~pl.col("is_since")).select(HASH)


def _of_their_values(task: BucketTask, keys: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    if keys.is_empty():
        return empty(HASHES)
    runs = rows_of(task, task.changes.former_sources, keys)
    names = [name for name in ("row_hash", "last_row_hash") if name in runs.columns]
    values = pl.concat(runs.select(*HASH, pl.col(name).alias("row_hash")) for name in names).drop_nulls()
    held = committed_copies(target).join(keys, on=HASH, how="semi").select(*HASH, "row_hash")
    return held.join(values, on=[*HASH, "row_hash"], how="semi").select(HASH)


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
    point = task.context.pipeline.table(task.hop.source)
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
