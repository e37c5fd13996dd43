"""Tell what a change of the pipeline's file alone explains: a filter (`where`) that other windows did not know, or had
otherwise. Such keys are reported with a cause of their own, and never repaired."""

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.key_index.hop_filters import of_unknown_filter
from makewhole.key_index.files import IndexFile
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.buckets import BucketTask, IndexFiles
from makewhole_spark.reconcile.key_index.ask import rows_of
from makewhole_spark.reconcile.not_lost import judged_by

_OF_EVENTS = (Verdict.UNEXPECTED, Verdict.MISMATCHED)
_OF_VERSIONS = (*_OF_EVENTS, Verdict.MISSING, Verdict.DUPLICATE)


def mark_filter_changed(
    task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame, kept_out: pl.DataFrame
) -> pl.DataFrame:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones where another window has copies of the key of which
    it is not known whether they pass the filter of now; and where a row is unexpected as the filter keeps its record
    out (`kept_out`, `HASHES`), though a certified window saw both, or the filter of the windows before let it pass.
    `source`: the copies of the slice."""
    wanted = _OF_VERSIONS if task.is_upsert else _OF_EVENTS
    asked = judged.filter(pl.col("verdict").is_in([verdict.value for verdict in wanted]))
    if asked.is_empty():
        return judged
    found = pl.concat(
        [
            _of_unknown_filter(task, asked),
            _seen_before(task, asked, kept_out),
            _passed_before(task, source).join(kept_out, on=HASH, how="semi"),
        ]
    )
    is_explained = pl.col("_is_explained").fill_null(False) & pl.col("verdict").is_in([one.value for one in wanted])
    marked = judged.join(
        found.unique().with_columns(pl.lit(True).alias("_is_explained")), on=HASH, how="left", maintain_order="left"
    )
    return marked.with_columns(
        pl.when(is_explained).then(pl.lit(Cause.FILTER_CHANGED.value)).otherwise("hint").alias("hint"),
        pl.when(is_explained).then(pl.lit(Verdict.UNDECIDABLE.value)).otherwise("verdict").alias("verdict"),
    ).drop("_is_explained")


def keys_kept_out(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys of `judged` (`HASHES`) of which the source has or had copies that the filter keeps
    out. `source`: the copies of the slice."""
    strangers = judged.filter(pl.col("verdict") == Verdict.UNEXPECTED.value).select(HASH)
    if task.hop.where is None or strangers.is_empty():
        return strangers.clear()
    before = rows_of(task, _files(task), strangers)
    excluded = pl.concat(
        frame.filter(pl.col("excluded_by").list.contains(task.hop.name).fill_null(False)).select(HASH)
        for frame in (source, before)
    )
    return strangers.join(excluded.unique(), on=HASH, how="semi")


def _of_unknown_filter(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of which the source, or another one of the same place, has copies of an unknown filter."""
    others = (
        replace(task, hop=one.hop, source_index=one.index, ledger_index=IndexFiles()) for one in task.other_sources
    )
    found = (of_unknown_filter(rows_of(one, _files(one), keys)) for one in (task, *others) if one.hop.where)
    return _hashes(found)


def _seen_before(task: BucketTask, asked: pl.DataFrame, kept_out: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys that a certified window of the hop saw on both sides: of those whose record the filter
    keeps out any window, of all others this one, whose ledger may have been purged since."""
    strangers = asked.filter(pl.col("verdict") == Verdict.UNEXPECTED.value)
    named = {name: (high, low) for high, low, name in strangers.select(*HASH, "key_hash").rows()}
    held_back = {*strangers.join(kept_out, on=HASH, how="semi")["key_hash"]}
    seen = set[str]()
    for result in task.certified if task.hop.where is not None else ():
        keys = {*named} if result.number == task.context.window.number else held_back
        seen |= {key for key, is_held in judged_by(task, result, keys).items() if is_held}
    return pl.DataFrame([named[key] for key in sorted(seen)], schema=HASHES, orient="row")


def _passed_before(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of copies in the slice that only the filter of the windows before lets pass."""
    hop = task.hop
    if hop.former_where is None or not task.is_topic(hop.source):
        return empty(HASHES)
    excluded = pl.col("excluded_by").list
    return source.filter(excluded.contains(hop.name) & ~excluded.contains(hop.former_name)).select(HASH)


def _files(task: BucketTask) -> tuple[IndexFile, ...]:
    return (*task.source_index.every, *task.ledger_index.every)


def _hashes(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([empty(HASHES), *(frame.select(HASH) for frame in frames)])
