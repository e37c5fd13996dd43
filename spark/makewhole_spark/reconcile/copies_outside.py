"""Collect the copies outside a window's own slice: from the key index, the log's tail, and truncated windows."""

from collections.abc import Iterable

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, TAIL, empty
from makewhole.compute.judge.judge_copies import committed_copies, mark_replays
from makewhole.compute.judge.log_history import remaining_copies, truncated_copies
from makewhole.compute.key_runs import (
    build_key_run,
    first_and_latest_copies,
    first_copies,
    passing_rows,
    with_comparable_values,
)
from makewhole_spark.reconcile.buckets import BucketTask, IndexFiles, TruncatedFiles


def source_copies_outside(task: BucketTask) -> pl.DataFrame:
    """Return every copy that the source has or had (`ELSEWHERE`), truncated ones included.

    They are in the order in which their values count: of an event the first record of the topic as it is, under upsert
    the last one. Those that do not pass the hop's filter are no copies of it.
    """
    index = task.source_index
    before = (*index.former, *index.earlier) if task.is_upsert else (*index.earlier, *index.former)
    hop = None if task.hop.where is None else task.hop.name
    found = pl.concat(
        [
            _head(task, task.hop.source),
            _from_runs(task, before, is_later=False, hop=hop),
            _later(task, task.hop.source, index, hop=hop),
        ]
    )
    return found if hop is None else passing_rows(found, hop).select(*ELSEWHERE)


def target_copies_outside(task: BucketTask, target: pl.DataFrame) -> pl.DataFrame:
    """Return the copies that count at the target (`ELSEWHERE`).

    For events, a later copy counts only where there is none before it (a repeat is judged in the window that it falls
    into), and one of a former incarnation only where there is no other: it is not in the topic any more.
    """
    index = task.target_index
    earlier = pl.concat(
        [_from_runs(task, index.earlier, is_later=False), _head(task, task.hop.target), *_remaining(task)]
    )
    later = _later(task, task.hop.target, index)
    if task.is_upsert:
        return pl.concat([earlier, later])
    found = pl.concat([earlier, _first_of_absent(later, committed_copies(target), earlier)])
    former = _from_runs(task, index.former, is_later=False)
    return pl.concat([found, _first_of_absent(former, committed_copies(target), found)])


def open_copies(task: BucketTask, point: str) -> pl.DataFrame:
    """Return the copies behind the stable offset (`TAIL`), which nobody can read as committed yet."""
    return _tail(task, point).filter("is_open")


def newly_truncated_keys(task: BucketTask) -> pl.DataFrame:
    """Return the keys (`key` and hashes) whose copies the truncations took that this window noticed."""
    names = [empty({"key": pl.String, **{name: ELSEWHERE[name] for name in HASH}})]
    for truncated in task.truncated_files:
        if truncated.limits_now:
            names.append(
                truncated_copies(committed_copies(_copies(task, truncated)), truncated.limits_now).select("key", *HASH)
            )
    return pl.concat(names).unique(maintain_order=True)


def _from_runs(task: BucketTask, files: Iterable[str], *, is_later: bool, hop: str | None = None) -> pl.DataFrame:
    """Return the copies that runs have of their keys; `hop`: only those that pass its filter."""
    runs = task.context.storage.read_parquet(tuple(files))
    if runs is None:
        return empty(ELSEWHERE)
    runs = with_comparable_values(runs, task.context.pipeline.compare)
    runs = runs if hop is None else passing_rows(runs, hop)
    return first_and_latest_copies(runs, is_later=is_later) if task.is_upsert else first_copies(runs, is_later=is_later)


def _later(task: BucketTask, point: str, index: IndexFiles, *, hop: str | None = None) -> pl.DataFrame:
    tail = _tail(task, point).filter(~pl.col("is_open") & pl.col("is_later")).select(*ELSEWHERE)
    found = pl.concat([_from_runs(task, index.later, is_later=True, hop=hop), tail])
    return found.unique(subset=[*HASH, "place"], keep="first", maintain_order=True)


def _head(task: BucketTask, point: str) -> pl.DataFrame:
    """Return the copies in the log before the first window."""
    return _tail(task, point).filter(~pl.col("is_later")).select(*ELSEWHERE)


def _remaining(task: BucketTask) -> Iterable[pl.DataFrame]:
    """Return the copies that truncations left of earlier windows: those windows' runs would count what is gone."""
    for truncated in task.truncated_files:
        remaining = mark_replays(
            remaining_copies(committed_copies(_copies(task, truncated)), truncated.limits), task.replays
        )
        run = build_key_run(remaining, has_versions=task.is_upsert)
        yield first_and_latest_copies(run, is_later=False) if task.is_upsert else first_copies(run, is_later=False)


def _copies(task: BucketTask, truncated: TruncatedFiles) -> pl.DataFrame:
    frame = task.context.storage.read_parquet(truncated.files)
    assert frame is not None
    return frame


def _first_of_absent(others: pl.DataFrame, target: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the first of the others for each key that has no copy in the target's slice or among those found."""
    present = pl.concat([target.select(HASH), found.select(HASH)]).unique()
    first_places = others.join(present, on=HASH, how="anti").sort(*HASH, "is_replay", "place")
    return first_places.unique(subset=HASH, keep="first", maintain_order=True)


def _tail(task: BucketTask, point: str) -> pl.DataFrame:
    """Return the copies of this bucket that were found in the log around the windows."""
    paths = (task.tails or {}).get(point)
    tail = task.context.storage.read_parquet(paths) if paths else None
    if tail is None:
        return empty(TAIL)
    return tail.filter(pl.col("key_hi") % task.context.pipeline.buckets == int(task.bucket))
