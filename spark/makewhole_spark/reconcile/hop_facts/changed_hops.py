"""Find what a change of the file's hops alone explains: what sources brought that led to a place in windows before and
are named there no more, and rows of windows that did not have a hop. It stays, and is reported with its own cause."""

from collections.abc import Sequence

import polars as pl

from makewhole.compute.buckets import shares_keys
from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.journal.key_index.runs import IndexedRun, IndexedTopic, standing_runs
from makewhole.journal.results.hop_results import first_of_hop, hops_before
from makewhole.key_index.files import IndexFile, known_keys
from makewhole.model.pipeline import Hop
from makewhole.model.points import TablePoint
from makewhole.model.verdict import DIFFERING, Cause, Verdict
from makewhole_spark.reconcile.buckets import BucketTask, HopSince
from makewhole_spark.reconcile.filter_changes import mark_explained, rows_of_late_keys
from makewhole_spark.reconcile.key_index.ask import rows_of
from makewhole_spark.reconcile.look_ups import look_up
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


def runs_of_former_sources(neighbours: NeighbouringWindows, hop: Hop) -> list[IndexedRun]:
    """Return the runs of the key index for the sources that led to a hop's target in the windows before, and do not
    now."""
    context = neighbours.context
    pipeline, window = context.pipeline, context.window
    place = pipeline.place_of(hop.target)
    known = hops_before(neighbours.journal, window)
    led = {source for source, target in known if target in pipeline.points and pipeline.place_of(target) == place}
    former = sorted(led - {one.source for one in pipeline.hops_into(hop.target)})
    topics = (IndexedTopic(pipeline=pipeline.name, point=point) for point in former)
    return [run for topic in topics for run in standing_runs(neighbours.journal, topic, besides=window.number)]


def files_of_former_sources(runs: Sequence[IndexedRun], bucket: str, number: int) -> tuple[IndexFile, ...]:
    """Return the files of a bucket in these runs, with the windows before the one of this number."""
    held = (
        IndexFile(path=path, windows=tuple(at for at in run.windows if at < number))
        for run in runs
        for name, path in run.files.items()
        if shares_keys(name, bucket)
    )
    return tuple(file for file in held if file.windows)


def hop_since(neighbours: NeighbouringWindows, hop: Hop) -> HopSince | None:
    """Return since when windows have a hop; None where the first one had it."""
    window = neighbours.context.window
    first = first_of_hop(neighbours.journal, window.pipeline, hop.name)
    number = window.number if first is None else min(first, window.number)
    start = window.start if number == window.number else neighbours.windows.start_of(number)
    return None if number == 1 or start is None else HopSince(number=number, start=start)


def mark_hops_changed(task: BucketTask, judged: pl.DataFrame, known: BucketInput) -> pl.DataFrame:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones that a change of the file's hops explains: unexpected
    keys that a removed source had, and keys without a record in the window of which the target has its value; and
    missing keys whose rows a ledger had in windows without this hop, and that were touched since. So are rows that
    differ from records which lie in such windows alone, or that are several of them."""
    verdict = pl.col("verdict")
    without_hop = rows_of_late_keys(task, known.source, task.source_without_hop).select(HASH)
    judged = mark_explained(judged, verdict == Verdict.MISSING.value, without_hop, Cause.HOPS_CHANGED)
    of_before = verdict.is_in([one.value for one in (*DIFFERING, Verdict.DUPLICATE)]) & ~pl.col("in_source")
    older = _before_the_hop(task, judged.filter(of_before))
    judged = mark_explained(judged, of_before, older, Cause.HOPS_CHANGED)
    if not task.former_sources:
        return judged
    unmatched = judged.filter(verdict == Verdict.UNEXPECTED.value)
    differing = judged.filter((verdict == Verdict.MISMATCHED.value) & ~pl.col("in_source"))
    explained = pl.concat(
        [
            known_keys(task.context.storage, task.former_sources, unmatched),
            _of_their_values(task, differing, known.target),
        ]
    )
    may_be = verdict.is_in([Verdict.UNEXPECTED.value, Verdict.MISMATCHED.value])
    return mark_explained(judged, may_be, explained, Cause.HOPS_CHANGED)


def _before_the_hop(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return which of some keys the source has in windows before the hop alone."""
    since, point = task.hop_since, task.context.pipeline.points[task.hop.source]
    if since is None or keys.is_empty():
        return empty(HASHES)
    if isinstance(point, TablePoint):
        copies = look_up(task, point, keys.sort(HASH)).select(*HASH, is_since=pl.col("time") >= since.start)
    else:
        copies = rows_of(task, task.source_index.every, keys).select(*HASH, is_since=pl.col("window") >= since.number)
    return copies.group_by(HASH).agg(pl.col("is_since").fill_null(True).any()).filter(~pl.col("is_since")).select(HASH)


def _of_their_values(task: BucketTask, keys: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    if keys.is_empty():
        return empty(HASHES)
    runs = rows_of(task, task.former_sources, keys)
    names = [name for name in ("row_hash", "last_row_hash") if name in runs.columns]
    values = pl.concat(runs.select(*HASH, pl.col(name).alias("row_hash")) for name in names).drop_nulls()
    held = committed_copies(target).join(keys, on=HASH, how="semi").select(*HASH, "row_hash")
    return held.join(values, on=[*HASH, "row_hash"], how="semi").select(HASH)
