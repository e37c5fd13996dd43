"""Find how long the keys of a bucket have waited, and which of them may wait no longer.

A key waits from the S1 of the window that first judged it pending: then its record or row was there, whatever the times
in it say. Under upsert each version waits for itself: a key that changes all day is not late because its first version
once was.
"""

from collections.abc import Mapping
from datetime import datetime

import polars as pl

from makewhole.compute.frames import HASH, HASHES, IS_GONE, WAITING, Schema, empty
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.window.consumer_groups import Unreached
from makewhole_spark.reconcile.bucket.task import BucketTask

_SEEN: Schema = {"partition": pl.Int32, "lo": pl.Int64, "hi": pl.Int64, "since": WAITING["since"]}


def behind_limits(source: pl.DataFrame, limits: Mapping[int, int]) -> pl.DataFrame:
    """Return the committed copies of a topic at or behind the limit of their partition; without a limit, all of it.
    A copy that is gone is behind none: its offset is of another log, and will never be reached."""
    bounds = pl.DataFrame(list(limits.items()), schema={"partition": pl.Int32, "limit": pl.Int64}, orient="row")
    there = source.filter(~pl.col(IS_GONE).fill_null(False)) if IS_GONE in source.columns else source
    joined = committed_copies(there).join(bounds, on="partition", how="left", maintain_order="left")
    return joined.filter(pl.col("offset") >= pl.col("limit").fill_null(0)).drop("limit")


def unconsumed_copies(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return the copies that the consumer group has not reached; none where no group is known."""
    if task.limits.group_committed is None or "offset" not in source.columns:
        return source.clear()
    return behind_limits(source, task.limits.group_committed)


def unreached(task: BucketTask, *sources: pl.DataFrame) -> dict[int, Unreached]:
    """Count the records that the consumer group has not reached, by partition; frames may have the same records."""
    if task.limits.group_committed is None:
        return {}
    copies = pl.concat(unconsumed_copies(task, source).select("partition", "offset") for source in sources)
    if copies.is_empty():
        return {}
    found = copies.unique(subset=["partition", "offset"]).group_by("partition").agg(pl.len(), pl.col("offset").min())
    return {partition: Unreached(records=records, first=first) for partition, records, first in found.rows()}


def waiting_keys(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return since when the keys wait that waited before, or that the consumer group has not reached (`WAITING`)."""
    before = task.waiting_since
    if not task.is_upsert:
        return before
    versions = _waiting_versions(task, source)
    if versions.is_empty():
        return before
    known = versions.join(before, on=HASH, how="left", suffix="_before").select(
        *HASH,
        pl.max_horizontal("since", pl.col("since_before").fill_null(task.context.window.opened_at)).alias("since"),
    )
    return pl.concat([known, before.join(known, on=HASH, how="anti")])


def _waiting_versions(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return, per key with versions that the group has not reached, since when the first of these is in the log."""
    copies = unconsumed_copies(task, source)
    if copies.is_empty():
        return empty(WAITING)
    known = pl.DataFrame(list(task.limits.seen_ranges), schema=_SEEN, orient="row")
    seen = (
        copies.join(known, on="partition", how="inner")
        .filter(pl.col("offset").is_between(pl.col("lo"), pl.col("hi"), closed="left"))
        .group_by(*HASH, "place")
        .agg(pl.col("since").max())  # another lineage may have had the offset before
    )
    return seen.group_by(HASH).agg(pl.col("since").min())


def overdue_keys(task: BucketTask, waiting: pl.DataFrame) -> pl.DataFrame:
    """Return the hashes of the keys that have waited for longer than they may; never sooner than the settle time."""
    pipeline = task.context.pipeline
    latest: datetime = task.context.window.opened_at - max(pipeline.pending_max_age, pipeline.settle)
    return waiting.filter(pl.col("since") < latest).select(*HASHES)
