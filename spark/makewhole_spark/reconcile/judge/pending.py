"""Decide whose absence counts: which keys of a bucket are unsettled, how long each has waited, and which may wait no
longer.

A key that the target lacks is `pending`, and not missing, while it is *unsettled*: it has a copy at the target that
cannot be read as committed yet; its record is younger than the settle time (`unsettled_in_log`), or its row
(`unsettled_in_ledger`, asked with the look-ups); or the consumer group has not reached its record. Of an event one that
is *overdue* is missing all the same; of a version only where the target has none.

A key waits from the S1 of the window that first judged it pending: then its record or row was there, whatever the times
in it say. Under upsert each version waits for itself: a key that changes all day is not late because its first version
once was.

A row whose record cannot be read as committed yet (`uncommitted_at_sources`) came by a loader that reads uncommitted
records. Whether it is right is known when the transaction has ended: until then it is neither matched nor unexpected.
"""

from collections.abc import Mapping
from datetime import datetime

import polars as pl

from makewhole.compute.frames import HASH, HASHES, IS_GONE, WAITING, Schema, empty
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.model.points import TablePoint
from makewhole.window.consumer_groups import Unreached
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.task import AbsenceLimits, BucketTask
from makewhole_spark.reconcile.judge.read_copies import open_copies

_SEEN: Schema = {"partition": pl.Int32, "lo": pl.Int64, "hi": pl.Int64, "since": WAITING["since"]}


def unsettled_in_log(task: BucketTask, source: pl.DataFrame, overdue: pl.DataFrame) -> pl.DataFrame:
    """Return the hashes of the keys that have an open copy at the target, whose record (`source`) is younger than the
    settle time, or whose record the consumer group has not reached in the time that it has."""
    frames = [open_copies(task, task.hop.target).select(HASH)]
    if "offset" in source.columns and task.limits.settled_offsets is not None:
        frames.append(behind_limits(source, task.limits.settled_offsets).select(HASH))
    unconsumed = unconsumed_copies(source, task.limits.group_committed).select(HASH)
    return pl.concat([*frames, unconsumed.join(overdue, on=HASH, how="anti")]).unique()


def uncommitted_at_sources(task: BucketTask) -> pl.DataFrame:
    """Return the hashes of the keys of which a topic that leads to the target has a record, and no tombstone, behind
    the stable offset: once committed, it makes their rows right. What the filter of its hop excludes does not."""
    frames = [empty(HASHES)]
    for hop in (task.hop, *(other.hop for other in task.elsewhere.other_sources)):
        if task.is_topic(hop.source):
            is_excluded = pl.col("excluded_by").list.contains(hop.name).fill_null(False)
            is_record = ~pl.col("is_tombstone").fill_null(False)
            frames.append(open_copies(task, hop.source).filter(is_record & ~is_excluded).select(HASH))
    return pl.concat(frames).unique()


def unsettled_in_ledger(task: BucketTask, point: TablePoint, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the hashes of the keys whose ledger row was not yet visible a settle time ago; under upsert any row of
    theirs: it may be the latest version."""
    if keys.is_empty() or task.limits.settled_snapshot is None:
        return empty(HASHES)
    tables, shape = task.context.tables(point), task.context.table_shape(point)
    every_before = task.context.window.end if task.is_upsert else None
    unsettled = tables.keys_not_seen(shape, keys["key"].to_list(), task.limits.settled_snapshot, every_before)
    return keys.filter(pl.col("key").is_in(unsettled)).select(HASH)


def behind_limits(source: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    """Return the committed copies of a topic at or behind the limit of their partition; without a limit, all of it.
    A copy that is gone is behind none: its offset is of another log, and will never be reached."""
    bounds = pl.DataFrame(list(limits.items()), schema={"partition": pl.Int32, "limit": pl.Int64}, orient="row")
    there = source.filter(~pl.col(IS_GONE).fill_null(False)) if IS_GONE in source.columns else source
    joined = committed_copies(there).join(bounds, on="partition", how="left", maintain_order="left")
    return joined.filter(pl.col("offset") >= pl.col("limit").fill_null(0)).drop("limit")


def unconsumed_copies(source: pl.DataFrame, committed: Mapping[int, int] | None) -> pl.DataFrame:
    """Return the copies that a consumer group (`committed`: its offsets) has not reached; none where no group is
    known."""
    if committed is None or "offset" not in source.columns:
        return source.clear()
    return behind_limits(source, committed)


def unreached(committed: Mapping[int, int] | None, *sources: pl.DataFrame) -> dict[int, Unreached]:
    """Count the records that a consumer group has not reached, by partition; frames may have the same records."""
    if committed is None:
        return {}
    copies = pl.concat(unconsumed_copies(source, committed).select("partition", "offset") for source in sources)
    if copies.is_empty():
        return {}
    counts = copies.unique(subset=["partition", "offset"]).group_by("partition").agg(pl.len(), pl.col("offset").min())
    return {partition: Unreached(records=records, first=first) for partition, records, first in counts.rows()}


def waiting_keys(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return since when the keys wait that waited before, or that the consumer group has not reached (`WAITING`)."""
    before = task.waiting_since
    if not task.is_upsert:
        return before
    versions = _waiting_versions(task.limits, source)
    if versions.is_empty():
        return before
    of_versions = versions.join(before, on=HASH, how="left", suffix="_before").select(
        *HASH,
        pl.max_horizontal("since", pl.col("since_before").fill_null(task.context.window.opened_at)).alias("since"),
    )
    return pl.concat([of_versions, before.join(of_versions, on=HASH, how="anti")])


def _waiting_versions(limits: AbsenceLimits, source: pl.DataFrame) -> pl.DataFrame:
    """Return, per key with versions that the group has not reached, since when the first of these is in the log."""
    copies = unconsumed_copies(source, limits.group_committed)
    if copies.is_empty():
        return empty(WAITING)
    ranges = pl.DataFrame(list(limits.seen_ranges), schema=_SEEN, orient="row")
    seen = (
        copies.join(ranges, on="partition", how="inner")
        .filter(pl.col("offset").is_between(pl.col("lo"), pl.col("hi"), closed="left"))
        .group_by(*HASH, "place")
        .agg(pl.col("since").max())  # another lineage may have had the offset before
    )
    return seen.group_by(HASH).agg(pl.col("since").min())


def overdue_keys(context: WindowContext, waiting: pl.DataFrame) -> pl.DataFrame:
    """Return the hashes of the keys that have waited for longer than they may; never sooner than the settle time."""
    pipeline = context.pipeline
    latest: datetime = context.window.opened_at - max(pipeline.pending_max_age, pipeline.settle)
    return waiting.filter(pl.col("since") < latest).select(*HASHES)
