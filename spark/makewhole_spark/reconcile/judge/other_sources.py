"""Ask the other sources of a hop's target: what the hop's own source lacks may have come from one of them."""

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from makewhole.compute.frames import HASH, NUMBERS, empty
from makewhole.compute.indexed_keys.key_runs import passing_rows
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.judge.sources_together import without_left
from makewhole.compute.judge.undecidable import (
    Lags,
    UnreadRecords,
    mark_undecidable,
    mark_unreadable,
    undecidable_spans,
)
from makewhole.model.points import can_look_up
from makewhole.model.verdict import DIFFERING, Cause, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask, OtherSource
from makewhole_spark.reconcile.judge.compared_sources import copies_of
from makewhole_spark.reconcile.judge.copies_outside import source_copies_outside
from makewhole_spark.reconcile.judge.look_ups import in_ledger_before, look_up, rows_of_windows, slice_frame


def without_rows_of_others(task: BucketTask, target: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Drop the target's copies of keys that only another source has in this window. `own`: the keys that the hop's
    source has or had. What is left and unexpected is looked for one by one."""
    if not task.elsewhere.other_sources:
        return target
    slices = [_passing(one, _slice(task, one)).select(HASH) for one in task.elsewhere.other_sources]
    return target.join(pl.concat(slices).unique().join(own, on=HASH, how="anti"), on=HASH, how="anti")


def without_keys_of_others(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Drop the keys of `judged` (`JUDGED`) that the hop's source does not have in this window and another source has,
    or had: they are not unexpected. Of those that differ from what it had before the ones that the other has in this
    window, whose hop judges them. An unexpected one that the hop's own source has in this window, in versions that left
    its filter, is matched by what the other brings."""
    is_unexpected = pl.col("verdict") == Verdict.UNEXPECTED.value
    is_differing = ~pl.col("in_source") & pl.col("verdict").is_in([verdict.value for verdict in DIFFERING])
    for one in task.elsewhere.other_sources:
        unmatched, differing = judged.filter(is_unexpected), judged.filter(is_differing)
        if unmatched.is_empty() and differing.is_empty():
            break
        explained = pl.concat([_known_to(unmatched, _copies(task, one, unmatched)), _judged_by(task, one, differing)])
        explained = explained.join(_left_by_both(task, one, explained), on=HASH, how="anti")
        judged = _with_matched(judged, explained.filter("in_source"))
        judged = judged.join(explained.filter(~pl.col("in_source")), on=HASH, how="anti", maintain_order="left")
    return judged


def _known_to(keys: pl.DataFrame, copies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return keys.join(pl.concat(frame.select(HASH) for frame in copies), on=HASH, how="semi")


def _judged_by(task: BucketTask, one: OtherSource, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that differ for another source's sake: it has them in the window, where its own hop judges them.

    Under `upsert` a row may also be what a table had that has no row of the key any more, or, where nothing numbers its
    rows, any version that it had since the end of the window.
    """
    copies, point = [_passing(one, _slice(task, one))], task.context.pipeline.points[one.hop.source]
    if task.is_upsert and can_look_up(point):
        rows = look_up(task, point, keys.sort(HASH))
        is_later = (pl.col("time") >= task.context.window.end).fill_null(True)
        purged = rows_of_windows(task, point.name, one.end.before).join(rows, on=HASH, how="anti")
        copies += [_passing(one, purged), _passing(one, rows.filter(is_later & pl.col("version").is_null()))]
    return _known_to(keys, copies)


def _left_by_both(task: BucketTask, one: OtherSource, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that left the filter of the hop, and that of another one from a topic: neither brings them."""
    left = keys.filter(pl.col("hint").eq_missing(Cause.LEFT_FILTER.value))
    if left.is_empty() or not task.is_topic(one.hop.source):
        return left.select(HASH).clear()
    copies = pl.concat(copies_of(task, one, left, empty({**NUMBERS, "row_hash": pl.UInt64})))
    return left.select(HASH).join(without_left(copies), on=HASH, how="anti")


def _with_matched(judged: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Turn the verdicts of some keys into matched, without a hint."""
    if keys.is_empty():
        return judged
    is_one = pl.col("key_hash").is_in(keys["key_hash"].to_list())
    return judged.with_columns(
        pl.when(is_one).then(None).otherwise("hint").alias("hint"),
        pl.when(is_one).then(pl.lit(Verdict.MATCHED.value)).otherwise("verdict").alias("verdict"),
    )


def mark_unknown_to_others(task: BucketTask, judged: pl.DataFrame, lags: Lags) -> pl.DataFrame:
    """Turn unexpected keys of `judged` (`JUDGED`), and keys that differ, into undecidable ones of which another source
    may have had a record: in a part of its log that is gone, or one that could not be read."""
    for one in task.elsewhere.other_sources:
        log = replace(
            one.end.log, is_partial=one.end.log.is_partial or one.hop.source in task.known_since.partial_tails
        )
        spans = undecidable_spans(log, LogHistory(), lags)
        of_source = replace(spans, missing=())
        unread = one.end.unread.read(task.context.storage)
        judged = mark_unreadable(mark_undecidable(judged, of_source), unread, UnreadRecords.none(), lags)
    return judged


def _copies(task: BucketTask, one: OtherSource, keys: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Yield the copies that another source has or had; of a table those of some keys."""
    point = task.context.pipeline.points[one.hop.source]
    yield _passing(one, _slice(task, one))
    if can_look_up(point):
        yield _passing(one, look_up(task, point, keys.sort(HASH)))
        yield _passing(one, rows_of_windows(task, point.name, one.end.before))
        yield in_ledger_before(task.of(one), keys)
    else:
        outside = source_copies_outside(task.of(one), keys.select(HASH))
        yield passing_rows(outside, one.hop.name)


def _slice(task: BucketTask, one: OtherSource) -> pl.DataFrame:
    return committed_copies(slice_frame(task, one.hop.source, one.end.files))


def _passing(one: OtherSource, copies: pl.DataFrame) -> pl.DataFrame:
    return copies.filter(~pl.col("excluded_by").list.contains(one.hop.name))
