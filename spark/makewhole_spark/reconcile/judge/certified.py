"""Find the other windows that know keys which a store lacks now: by the key index, and by the rows that they met."""

import polars as pl

from makewhole.compute.frames import HASH, empty
from makewhole.compute.keys import hash_hex
from makewhole.key_index.files import IndexFile, known_keys, rows_of_keys
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.bucket.answer import MAYBE_MET
from makewhole_spark.reconcile.bucket.other_windows import CertifiedResult, met_by
from makewhole_spark.reconcile.bucket.task import BucketTask


def maybe_met_keys(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that a store lacks (`MAYBE_MET`), by the times of their records, as far as there are slices in
    which windows before may have met their rows without the record.

    A row has no time before that of its record by more than `late`, but for one that is far ahead; and a record that
    waited in the log behind one with a time ahead is in a later window than its time says.
    """
    start, pipeline = task.context.window.start, task.context.pipeline
    if start is None or not task.has_slices:
        return empty(MAYBE_MET)
    missing = judged.filter(pl.col("verdict") == Verdict.MISSING.value).select(HASH)
    times = source.join(missing, on=HASH, how="semi").group_by(HASH).agg(pl.col("time").min())
    met_from = pl.min_horizontal("time", pl.lit(start)) - pl.lit(pipeline.late + pipeline.pending_max_age)
    return missing.join(times, on=HASH, how="left").select(
        *HASH, met_from.cast(MAYBE_MET["met_from"]).alias("met_from")
    )


def met_by_window(task: BucketTask, result: CertifiedResult, maybe_met: pl.DataFrame) -> set[str]:
    """Return the hashes, in hex, of the keys (`MAYBE_MET`) whose rows a certified window before met without a
    record."""
    if result.number >= task.context.window.number:
        return set()
    files = [IndexFile(path=path, windows=()) for path in result.met_alone]
    found = known_keys(task.context.storage, files, met_by(maybe_met, result))
    return set(found.select(hash_hex()).to_series())


def recorded_in(task: BucketTask, asked: pl.DataFrame) -> frozenset[int]:
    """Return the numbers of the other windows in which keys (`HASHES`) have records that a store lacks now. Under
    upsert none: what they saw is another version.

    All such keys are asked for, also those of which this window's own revision or a gap in a log says something: what
    is said of a key must not depend on whether another one has its bucket judged again.
    """
    is_store = can_look_up(task.context.pipeline.points[task.hop.target])
    if not is_store or task.is_upsert or task.known_since.knows_certified:
        return frozenset()
    index = task.source.index.copies
    files = (*index.earlier, *index.later, *index.former)
    return frozenset(rows_of_keys(task.context.storage, files, asked)["window"].to_list())
