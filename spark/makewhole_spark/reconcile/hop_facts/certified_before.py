"""Find what certified windows say of keys that a store lacks now: their records and rows lie in few windows, which are
asked.

A bucket is judged first without them, and says in which windows its missing keys have records, by the key index. Their
rows may have been met without the record by windows before. Where any of these is certified, the bucket is judged again
with what that one found.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH, HASHES, Schema, empty
from makewhole.compute.keys import hash_hex
from makewhole.journal.history import older_results
from makewhole.journal.history.older_results import MET_FAR_AHEAD, MetAloneFiles
from makewhole.key_index.files import IndexFile, known_keys, maybe_known, rows_of_keys
from makewhole.lake.stored_verdicts import VerdictFiles
from makewhole.model.pipeline import Hop
from makewhole.model.points import TablePoint
from makewhole.model.verdict import Verdict
from makewhole_spark.carrier import Carrier
from makewhole_spark.reconcile.buckets import BucketAnswer, BucketTask, CertifiedResult
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows

ResultsByBucket = Mapping[str, Sequence[CertifiedResult]]

UNTRACED: Schema = HASHES | {"met_from": pl.Datetime("us", "UTC")}
"""Keys that a store lacks, each with the earliest time that a row of it may have had."""


# What the driver gathers


def certified_results(neighbours: NeighbouringWindows, hop: Hop, numbers: Collection[int]) -> ResultsByBucket:
    """Return the newest certified result of windows on a hop, by bucket; this revision has none."""
    if not numbers:
        return {}
    ours = neighbours.context.window
    results = older_results.certified_files(neighbours.journal, ours, hop, numbers)
    others = {one.number for one in results} - {ours.number}
    windows = {window.number: window for window in [*neighbours.windows.of_numbers(others), ours]}
    found: dict[str, list[CertifiedResult]] = {}
    for one in results:
        ranges = windows[one.number].ranges.get(hop.source, ()) if one.number in windows else ()
        for bucket in neighbours.own_buckets(one.files["verdicts_by_bucket"]):
            found.setdefault(bucket, []).append(
                CertifiedResult(
                    number=one.number,
                    revision=one.revision,
                    end=one.end,
                    files=VerdictFiles.of(hop.name, one.files, (one.source, one.target), bucket),
                    repaired=one.repaired,
                    ranges=tuple((part.partition, part.lo, part.hi) for part in ranges),
                    has_far_ahead=one.files.get(MET_FAR_AHEAD, 0) > 0,
                    met_alone=_files_of(one.files.get("met_alone") or {}, bucket),
                )
            )
    return found


def to_judge_again(
    _: Carrier, neighbours: NeighbouringWindows, tasks: Iterable[BucketTask], answers: Iterable[BucketAnswer]
) -> list[BucketTask]:
    """Return the tasks of buckets of which certified windows know missing keys, with what these found."""
    judged = list(zip(tasks, answers, strict=True))
    found = {
        hop.name: certified_results(neighbours, hop, _numbers(neighbours, hop, answers))
        for hop in neighbours.context.pipeline.hops
    }
    return [
        replace(
            task,
            certified=(*task.certified, *found[task.hop.name][task.bucket]),
            knows_certified=True,
            tails=task.tails or {},
            looked_up=task.looked_up or answer.looked_up,
            kept=task.kept or answer.kept,
        )
        for task, answer in judged
        if (answer.recorded_in or answer.lacking) and found[task.hop.name].get(task.bucket)
    ]


def _numbers(neighbours: NeighbouringWindows, hop: Hop, answers: Iterable[BucketAnswer]) -> set[int]:
    """Return the numbers of the windows in which keys have records that the hop's store lacks, and of the certified
    ones that may have met their rows without the record: by the filters beside their files."""
    of_hop = [answer for answer in answers if answer.hop == hop.name]
    numbers = {number for one in of_hop for number in one.recorded_in}
    moments = [one.untraced_since for one in of_hop if one.untraced_since is not None]
    if not moments:
        return numbers
    storage, ours = neighbours.context.storage, neighbours.context.window
    keys = {one.bucket: storage.read_parquet([one.lacking]) for one in of_hop if one.lacking}
    for window in older_results.certified_met_alone(neighbours.journal, ours, hop.name, min(moments)):
        for bucket, of_bucket in keys.items():
            files = [IndexFile(path=path, windows=()) for path in _files_of(window.files, bucket)]
            if of_bucket is not None and maybe_known(storage, files, _met_by(of_bucket, window)).any():
                numbers.add(window.number)
    return numbers


def _files_of(met_alone: Mapping[str, str], bucket: str) -> tuple[str, ...]:
    return files_of_bucket({name: (path,) for name, path in met_alone.items()}, bucket)


def _met_by(lacking: pl.DataFrame, window: MetAloneFiles | CertifiedResult) -> pl.DataFrame:
    """Return the keys of `UNTRACED` whose rows may lie in a window."""
    return lacking.filter((pl.col("met_from") < window.end) | window.has_far_ahead)


# What a task says


def untraced_keys(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that a store lacks (`UNTRACED`), by the times of their records, as far as there are slices in
    which windows before may have met their rows without the record.

    A row has no time before that of its record by more than `late`, but for one that is far ahead; and a record that
    waited in the log behind one with a time ahead is in a later window than its time says.
    """
    start, pipeline = task.context.window.start, task.context.pipeline
    if start is None or not task.has_slices:
        return empty(UNTRACED)
    missing = judged.filter(pl.col("verdict") == Verdict.MISSING.value).select(HASH)
    times = source.join(missing, on=HASH, how="semi").group_by(HASH).agg(pl.col("time").min())
    met_from = pl.min_horizontal("time", pl.lit(start)) - pl.lit(pipeline.late + pipeline.pending_max_age)
    return missing.join(times, on=HASH, how="left").select(*HASH, met_from.cast(UNTRACED["met_from"]).alias("met_from"))


def met_before(task: BucketTask, result: CertifiedResult, lacking: pl.DataFrame) -> set[str]:
    """Return the hashes, in hex, of the keys (`UNTRACED`) whose rows a certified window before met without a record."""
    if result.number >= task.context.window.number:
        return set()
    files = [IndexFile(path=path, windows=()) for path in result.met_alone]
    found = known_keys(task.context.storage, files, _met_by(lacking, result))
    return set(found.select(hash_hex()).to_series())


def recorded_in(task: BucketTask, asked: pl.DataFrame) -> frozenset[int]:
    """Return the numbers of the other windows in which keys (`HASHES`) have records that a store lacks now. Under
    upsert none: what they saw is another version.

    All such keys are asked for, also those of which this window's own revision or a gap in a log says something: what
    is said of a key must not depend on whether another one has its bucket judged again.
    """
    is_store = isinstance(task.context.pipeline.points[task.hop.target], TablePoint)
    if not is_store or task.is_upsert or task.knows_certified:
        return frozenset()
    index = task.source_index
    files = (*index.earlier, *index.later, *index.former)
    return frozenset(rows_of_keys(task.context.storage, files, asked)["window"].to_list())
