"""Collect the copies outside a window's own slice: from the key index, the rest of the log, truncated windows, and
windows that handed keys over.

Hashes of values are of the columns that were compared when they were read. Where the pipeline's file says others since,
the copies that are compared with this window's are read again: those of handed-over keys, and of keys whose record lies
in the window before their row.
"""

from collections.abc import Iterable, Sequence

import polars as pl

from makewhole.compute.buckets import is_in_bucket
from makewhole.compute.frames import ELSEWHERE, HASH, IS_GONE, TOPIC_KEYS, empty
from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER
from makewhole.compute.indexed_keys.key_runs import build_key_run, first_and_latest_copies, first_copies, passing_rows
from makewhole.compute.judge.judge_copies import committed_copies, mark_replays
from makewhole.compute.judge.log_history import is_truncated, remaining_copies, truncated_copies
from makewhole.key_index.files import IndexFile
from makewhole.model.errors import RemovedError
from makewhole.model.places.compared_columns import compared_at
from makewhole.model.points import TopicPoint, can_look_up, has_log
from makewhole_spark.reconcile.bucket.other_windows import OtherConfiguration, TruncatedFiles
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.index import rows_of
from makewhole_spark.reconcile.judge.read_copies import (
    POSITION,
    archived_records,
    look_up,
    rows_of_windows,
    slice_frame,
    tail_of,
    without_values,
)


def source_copies_outside(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return every copy of some keys that the source has or had (`ELSEWHERE`), truncated ones included.

    They are in the order in which their values count: of an event the first record of the topic as it is, under upsert
    the last one. Those of an event that do not pass the hop's filter are no copies of it; a version that does not pass
    takes its key out of the hop (`makewhole.compute.judge.judge_versions`).
    """
    index = task.source.index.copies
    hop = None if task.hop.where is None or task.is_upsert else task.hop.name
    point = task.hop.source
    former = _copies_of_runs(task, point, keys, index.former, is_later=False, hop=hop)
    former = former.with_columns(is_former=pl.lit(True))
    earlier = _copies_of_runs(task, point, keys, index.earlier, is_later=False, hop=hop)
    copies = pl.concat(
        [
            _head(task, point),
            *((former, earlier) if task.is_upsert else (earlier, former)),
            _later(task, point, index.later, keys, hop=hop),
        ]
    )
    return copies if hop is None else passing_rows(copies, hop).select(*ELSEWHERE)


def target_copies_outside(task: BucketTask, target: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the copies of some keys that count at the target (`ELSEWHERE`).

    For events, a later copy counts only where there is none before it (a repeat is judged in the window that it falls
    into), and one of a former incarnation only where there is no other: it is not in the topic any more.
    """
    index, point = task.target.index.copies, task.hop.target
    before = _copies_of_runs(task, point, keys, index.earlier, is_later=False)
    earlier = pl.concat([before, _head(task, point), *_remaining(task)])
    later = _later(task, point, index.later, keys)
    if task.is_upsert:
        return pl.concat([earlier, later])
    copies = pl.concat([earlier, first_of_absent(later, committed_copies(target), earlier)])
    former = _copies_of_runs(task, point, keys, index.former, is_later=False)
    return pl.concat([copies, first_of_absent(former, committed_copies(target), copies)])


def ledger_copies_outside(task: BucketTask, absent: pl.DataFrame) -> pl.DataFrame:
    """Return what other windows had of keys in a ledger that lacks them now (`ELSEWHERE`). Of versions nothing: the row
    that is gone was deleted."""
    index = task.source.index.rows
    if absent.is_empty() or task.is_upsert or not index.every:
        return empty(ELSEWHERE)
    rows = rows_of(task, index.every, absent)
    passing = rows if task.hop.where is None else passing_rows(rows, task.hop.name)
    return first_copies(passing, is_later=False).unique(subset=HASH, keep="first", maintain_order=True)


def handed_over_copies(task: BucketTask, keys: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Yield the source's copies of handed-over keys in the windows before; `is_gone`: the topic has it no more."""
    for files in task.elsewhere.handed_over:
        copies = slice_frame(task.context, task.hop.source, files.files).join(keys, on=HASH, how="semi")
        if files.read_with_other_configuration is not None:
            copies = _read_again(task, copies, files.read_with_other_configuration)
        is_gone = pl.lit(files.is_gone) | is_truncated(files.gone_from) if files.gone_from else pl.lit(files.is_gone)
        yield copies.with_columns(is_gone.alias(IS_GONE))


def newly_truncated_keys(task: BucketTask) -> pl.DataFrame:
    """Return the keys (`key` and hashes) whose copies the truncations took that this window noticed."""
    names = [empty({"key": pl.String, **{name: ELSEWHERE[name] for name in HASH}})]
    for truncated in task.elsewhere.truncated:
        if truncated.limits_now:
            taken = truncated_copies(committed_copies(_before_truncation(task, truncated)), truncated.limits_now)
            names.append(taken.select("key", *HASH))
    return pl.concat(names).unique(maintain_order=True)


def _copies_of_runs(
    task: BucketTask,
    point: str,
    keys: pl.DataFrame,
    files: Sequence[IndexFile],
    *,
    is_later: bool,
    hop: str | None = None,
) -> pl.DataFrame:
    """Return the copies that the runs of a point have of some keys; `hop`: only those that pass its filter."""
    if not files:
        return empty(ELSEWHERE)
    rows = rows_of(task, files, keys, compared_at(task.context.pipeline, point))
    rows = rows if hop is None else passing_rows(rows, hop)
    return first_and_latest_copies(rows, is_later=is_later) if task.is_upsert else first_copies(rows, is_later=is_later)


def _later(
    task: BucketTask, point: str, files: Sequence[IndexFile], keys: pl.DataFrame, *, hop: str | None = None
) -> pl.DataFrame:
    tail = tail_of(task, point).filter(~pl.col("is_open") & pl.col("is_later")).select(*ELSEWHERE)
    copies = pl.concat([_copies_of_runs(task, point, keys, files, is_later=True, hop=hop), tail])
    return copies.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)


def _head(task: BucketTask, point: str) -> pl.DataFrame:
    """Return the copies in the log before the first window."""
    return tail_of(task, point).filter(~pl.col("is_later")).select(*ELSEWHERE)


def _remaining(task: BucketTask) -> Iterable[pl.DataFrame]:
    """Return the copies that truncations left of earlier windows: those windows' runs would count what is gone."""
    for truncated in task.elsewhere.truncated:
        left = remaining_copies(committed_copies(_before_truncation(task, truncated)), truncated.limits)
        run = build_key_run(mark_replays(left, task.replays), has_versions=task.is_upsert)
        yield first_and_latest_copies(run, is_later=False) if task.is_upsert else first_copies(run, is_later=False)


def _before_truncation(task: BucketTask, truncated: TruncatedFiles) -> pl.DataFrame:
    """Return what the target had in an earlier window, of this bucket alone."""
    return rows_of_windows(task.context, task.hop.target, truncated.files).filter(is_in_bucket(task.bucket))


def first_of_absent(others: pl.DataFrame, target: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the first of the others for each key that has no copy in the target's slice or among those known."""
    present = pl.concat([target.select(HASH), known.select(HASH)]).unique()
    absent = others.join(present, on=HASH, how="anti")
    parts = pl.col("place").str.split_exact(":", 1).struct  # partition and offset: as texts, 10 comes before 9
    position = (parts[at].cast(pl.Int64, strict=False).alias(name) for at, name in enumerate(POSITION))
    in_order = absent.sort(*HASH, "is_replay", *position, maintain_order=True)
    return in_order.unique(subset=HASH, keep="first", maintain_order=True)


# What was read with another configuration


def _read_again(task: BucketTask, copies: pl.DataFrame, of: OtherConfiguration) -> pl.DataFrame:
    """Return the source's copies in another window as they are compared now: records from its archive, rows as the
    table has them. What is not there any more has no known values; nor have records of an archive that was removed,
    unless what was compared is the same, and whether they pass another filter.

    Raises:
        CorruptionError: the archive is not whole.
    """
    point = task.context.pipeline.points[task.hop.source]
    if copies.is_empty():
        return copies
    if can_look_up(point):
        again = look_up(task.context, point, copies.select("key", *HASH).unique())
        lost = copies.join(again, on=HASH, how="anti")
        unknown = lost.with_columns(pl.lit(None, dtype=pl.UInt64).alias("row_hash"))
        return pl.concat([again, unknown], how="diagonal_relaxed")
    records = _records_again(task, point, copies.select(*POSITION).unique(), of)
    if records is None:
        copies = copies if of.has_same_values else without_values(copies)
        is_unknown = task.hop.name in of.other_filters
        return copies.with_columns(pl.lit([UNKNOWN_FILTER]).alias("excluded_by")) if is_unknown else copies
    return records.join(copies, on=[*HASH, "place"], how="semi")


def _records_again(
    task: BucketTask, point: TopicPoint, positions: pl.DataFrame, of: OtherConfiguration
) -> pl.DataFrame | None:
    """Return the records at positions of a window's archive as the file says now; None: it was removed after its time.

    Raises:
        CorruptionError: the archive is not whole.
    """
    try:
        return archived_records(task.context, point, positions, of)
    except RemovedError:
        return None


def with_values_of_now(task: BucketTask, elsewhere: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the target's copies outside the slice (`ELSEWHERE`) with the values that are compared now, where a window
    right before read them with another configuration. `keys`: those whose values count. Of an archive that was removed
    they stay what the key index knows of them."""
    point = task.context.pipeline.points[task.hop.target]
    if not task.elsewhere.target_with_other_configuration or not has_log(point):
        return elsewhere
    parts = pl.col("place").str.split_exact(":", 1)
    wanted = elsewhere.join(keys, on=HASH, how="semi").select(
        parts.struct[0].cast(pl.Int32).alias("partition"), parts.struct[1].cast(pl.Int64).alias("offset")
    )
    others = task.elsewhere.target_with_other_configuration
    readings = (_records_again(task, point, wanted.unique(), of) for of in others)
    frames = [records for records in readings if records is not None]
    columns = (*HASH, "place", "row_hash")
    now = pl.concat([empty({name: TOPIC_KEYS[name] for name in columns}), *(frame.select(columns) for frame in frames)])
    # Of several elements of a record the index has the first, too.
    now = now.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)
    return elsewhere.join(now, on=[*HASH, "place"], how="left", suffix="_now", maintain_order="left").select(
        pl.coalesce("row_hash_now", "row_hash").alias("row_hash") if name == "row_hash" else pl.col(name)
        for name in elsewhere.columns
    )
