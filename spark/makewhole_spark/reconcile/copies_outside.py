"""Copies outside a window's own slice: the key index, the log's tail, and what a truncation left or took."""

from collections.abc import Iterable

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, TAIL, empty
from makewhole.compute.judge import committed, mark_replays
from makewhole.compute.key_runs import build_key_run, first_and_latest_copies, first_copies
from makewhole.compute.log_history import remaining_copies, truncated_copies
from makewhole_spark.reconcile.buckets import BucketTask, CutFiles, IndexFiles


def at_source(task: BucketTask) -> pl.DataFrame:
    """Every copy that the source is known to have or to have had (`ELSEWHERE`): a truncated one was there, too."""
    index = task.source_index
    return pl.concat(
        [
            _of_runs(task, (*index.earlier, *index.former), is_later=False),
            _later(task, task.hop.source, index),
        ]
    )


def at_target(task: BucketTask, target: pl.DataFrame) -> pl.DataFrame:
    """The copies that count at the target (`ELSEWHERE`).

    Of events: a later copy counts only where there is none before it (a repeat is judged in the window that it falls
    into), and one of a former incarnation only where there is none at all: it is not in the topic any more.
    """
    index = task.target_index
    earlier = pl.concat([_of_runs(task, index.earlier, is_later=False), *_left_over(task)])
    later = _later(task, task.hop.target, index)
    if task.is_upsert:
        return pl.concat([earlier, later])
    found = pl.concat([earlier, _first_where_none(later, committed(target), earlier)])
    former = _of_runs(task, index.former, is_later=False)
    return pl.concat([found, _first_where_none(former, committed(target), found)])


def open_copies(task: BucketTask, point: str) -> pl.DataFrame:
    """Copies behind the stable offset (`TAIL`), which nobody can read as committed yet."""
    return _tail(task, point).filter("is_open")


def cut_off(task: BucketTask) -> pl.DataFrame:
    """The keys (`key` and hashes) whose copies the truncations took that this window noticed."""
    names = [empty({"key": pl.String, **{name: ELSEWHERE[name] for name in HASH}})]
    for cut in task.cut_files:
        if cut.limits_now:
            names.append(truncated_copies(committed(_copies(task, cut)), cut.limits_now).select("key", *HASH))
    return pl.concat(names).unique(maintain_order=True)


def _of_runs(task: BucketTask, files: Iterable[str], *, is_later: bool) -> pl.DataFrame:
    runs = task.context.storage.read_parquet(tuple(files))
    if runs is None:
        return empty(ELSEWHERE)
    return first_and_latest_copies(runs, is_later=is_later) if task.is_upsert else first_copies(runs, is_later=is_later)


def _later(task: BucketTask, point: str, index: IndexFiles) -> pl.DataFrame:
    tail = _tail(task, point).filter(~pl.col("is_open")).select(*ELSEWHERE)
    found = pl.concat([_of_runs(task, index.later, is_later=True), tail])
    return found.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)


def _left_over(task: BucketTask) -> Iterable[pl.DataFrame]:
    """Of windows that a truncation reached, what it left: their own runs would count what is gone."""
    for cut in task.cut_files:
        left = mark_replays(remaining_copies(committed(_copies(task, cut)), cut.limits), task.replays)
        run = build_key_run(left, has_versions=task.is_upsert)
        yield first_and_latest_copies(run, is_later=False) if task.is_upsert else first_copies(run, is_later=False)


def _copies(task: BucketTask, cut: CutFiles) -> pl.DataFrame:
    frame = task.context.storage.read_parquet(cut.files)
    assert frame is not None
    return frame


def _first_where_none(others: pl.DataFrame, target: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    there = pl.concat([target.select(HASH), found.select(HASH)]).unique()
    first_places = others.join(there, on=HASH, how="anti").sort(*HASH, "is_replay", "place")
    return first_places.unique(subset=HASH, keep="first", maintain_order=True)


def _tail(task: BucketTask, point: str) -> pl.DataFrame:
    """What was read of the log after the window for just the keys in question; other buckets' are left out."""
    paths = (task.tails or {}).get(point)
    tail = task.context.storage.read_parquet(paths) if paths else None
    if tail is None:
        return empty(TAIL)
    return tail.filter(pl.col("key_hi") % task.context.pipeline.buckets == int(task.bucket))
