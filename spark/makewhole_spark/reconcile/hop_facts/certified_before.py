"""Find what certified windows say of keys that a store lacks now: their records lie in few windows, which are asked.

A bucket is judged first without them, and says in which windows its missing keys have records, by the key index. Where
any of these is certified, the bucket is judged again with what that one found.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl
from pyspark.sql import SparkSession

from makewhole.compute.buckets import bucket_name
from makewhole.journal import window_results
from makewhole.key_index.files import rows_of_keys
from makewhole.lake.stored_verdicts import VerdictFiles
from makewhole.model.pipeline import Hop, TablePoint
from makewhole_spark.reconcile.buckets import BucketAnswer, BucketTask, CertifiedResult
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows

ResultsByBucket = Mapping[str, Sequence[CertifiedResult]]


# What the driver gathers


def certified_results(neighbours: NeighbouringWindows, hop: Hop, numbers: Collection[int]) -> ResultsByBucket:
    """Return the newest certified result of windows on a hop to a store, by bucket; this revision has none."""
    if not numbers or not isinstance(neighbours.context.pipeline.points[hop.target], TablePoint):
        return {}
    ours = neighbours.context.window
    results = window_results.certified_files(neighbours.journal, ours, hop, numbers)
    others = {one.number for one in results} - {ours.number}
    windows = {window.number: window for window in [*neighbours.windows.of_numbers(others), ours]}
    found: dict[str, list[CertifiedResult]] = {}
    for one in results:
        ranges = windows[one.number].ranges.get(hop.source, ()) if one.number in windows else ()
        # Of a result that an older makewhole wrote, nobody knows which file is of which bucket.
        for bucket in neighbours.own_buckets(one.files.get("verdicts_by_bucket") or [bucket_name(0, 1)]):
            found.setdefault(bucket, []).append(
                CertifiedResult(
                    number=one.number,
                    revision=one.revision,
                    files=VerdictFiles.of(hop.name, one.files, (one.source, one.target), bucket),
                    repaired=one.repaired,
                    ranges=tuple((part.partition, part.lo, part.hi) for part in ranges),
                )
            )
    return found


def to_judge_again(
    _: SparkSession, neighbours: NeighbouringWindows, tasks: Iterable[BucketTask], answers: Iterable[BucketAnswer]
) -> list[BucketTask]:
    """Return the tasks of buckets of which certified windows know missing keys, with what these found."""
    judged = list(zip(tasks, answers, strict=True))
    numbers: dict[str, set[int]] = {}
    for task, answer in judged:
        numbers.setdefault(task.hop.name, set()).update(answer.recorded_in)
    found = {
        hop.name: certified_results(neighbours, hop, numbers.get(hop.name, ()))
        for hop in neighbours.context.pipeline.hops
    }
    return [
        replace(
            task,
            certified=(*task.certified, *found[task.hop.name][task.bucket]),
            is_told_of_certified=True,
            tails=task.tails or {},
            looked_up=task.looked_up or answer.looked_up,
            kept=task.kept or answer.kept,
        )
        for task, answer in judged
        if answer.recorded_in and found[task.hop.name].get(task.bucket)
    ]


# What a task says


def recorded_in(task: BucketTask, asked: pl.DataFrame) -> frozenset[int]:
    """Return the numbers of the other windows in which keys (`HASHES`) have records that a store lacks now. Under
    upsert none: what they saw is another version.

    All such keys are asked for, also those of which this window's own revision or a gap in a log says something: what
    is said of a key must not depend on whether another one has its bucket judged again.
    """
    is_store = isinstance(task.context.pipeline.points[task.hop.target], TablePoint)
    if not is_store or task.is_upsert or task.is_told_of_certified:
        return frozenset()
    index = task.source_index
    files = (*index.earlier, *index.later, *index.former)
    return frozenset(rows_of_keys(task.context.storage, files, asked)["window"].to_list())
