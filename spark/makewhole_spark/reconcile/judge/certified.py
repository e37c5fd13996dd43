"""Ask certified windows what they saw of keys, and mark those that one saw: repeated and vanished ones.

What a certified window found of a key is in the files of its verdicts: a file of one bucket of each window in which the
key's records lie, of those around it that may have judged its row, of those that met its row without them, of this
window's own last certified revision, and of the windows after it that were handed the key over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.keys import hash_hex
from makewhole.key_index.files import known_keys, rows_of_keys
from makewhole.lake.storage import Storage
from makewhole.lake.stored_verdicts import pending_in, stored_verdicts
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.bucket.answer import MAYBE_MET
from makewhole_spark.reconcile.bucket.other_windows import CertifiedResult, met_by
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.index import files_of_keys
from makewhole_spark.reconcile.judge.verdicts import has_verdict, turned


def held_by(storage: Storage, result: CertifiedResult, keys: set[str]) -> dict[str, bool]:
    """Return which of the keys (hashes in hex) a certified window judged, and whether the target had copies of them
    that the source had, too: by its verdicts, and by what was repaired afterwards."""
    # That an unexpected one is gone may be a repair. Several rows of other versions are not held, and are there.
    is_there = pl.col("is_held") & ~has_verdict(Verdict.UNEXPECTED) | has_verdict(Verdict.DUPLICATE)
    return _held_by(storage, result, keys, is_there)


def settled_by(task: BucketTask, result: CertifiedResult, keys: set[str]) -> dict[str, bool]:
    """Return which of the keys (hashes in hex) a certified window judged, and whether the store held by then what it
    had to hold. A key that was pending was not judged: the store may have had an older version of it, or a part.

    Of an event any row shows that it was loaded. Of a version, or of many records, only one does that had nothing wrong
    but its number: a finding that differs may have been tolerated, or accepted.
    """
    is_held = pl.col("is_held") & ~has_verdict(Verdict.UNEXPECTED)
    if _may_change(task) or result.files.is_upsert:
        is_held = pl.col("is_held") & has_verdict(Verdict.MATCHED, Verdict.DUPLICATE)
    return _held_by(task.context.storage, result, keys, is_held, ~has_verdict(Verdict.PENDING))


def _held_by(
    storage: Storage, result: CertifiedResult, keys: set[str], is_held: pl.Expr, is_judged: pl.Expr | None = None
) -> dict[str, bool]:
    if not keys:
        return {}
    stored = stored_verdicts(storage, result.files, keys)
    was_held = is_held | has_verdict(Verdict.VANISHED, Verdict.ERASED)
    judged = stored if is_judged is None else stored.filter(is_judged)
    held: dict[str, bool] = dict(judged.select("key_hash", was_held.alias("is_held")).rows())
    repaired = None if result.repaired is None else storage.read_parquet([result.repaired])
    if repaired is not None:
        wanted = repaired.filter(pl.col("key_hash").is_in(list(keys)))
        held |= dict.fromkeys(wanted["key_hash"].to_list(), True)
    return held


def _may_change(task: BucketTask) -> bool:
    """Return whether a row is of the latest version of its key, or of many records: one that was seen before proves
    nothing of what it must hold since."""
    return task.is_upsert or task.hop.group is not None


def matched_by(storage: Storage, result: CertifiedResult, keys: set[str]) -> set[str]:
    """Return which of the keys (hashes in hex) a certified window matched with what the target held."""
    stored = stored_verdicts(storage, result.files, keys)
    is_matched = has_verdict(Verdict.MATCHED) & pl.col("is_held").fill_null(False)
    return {*stored.filter(is_matched)["key_hash"]}


# Repeated keys


def mark_repeated(task: BucketTask, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Turn unexpected keys of `judged` (`JUDGED`) into duplicates where a certified window saw them on both sides: the
    topic at the target had them before, and the ledger at the source was purged since. Return with the verdicts the
    keys that may be such, each with a `window` in which the topic had it.

    A window judges the keys of its ledger's rows: where the record lies behind its cut, or the row does, not the window
    with the record but one around it judged the key. It is no clean one there, and the slices are not read.
    """
    repeated_from, seen = _repeated_from(task, judged), set[str]()
    for number in repeated_from["window"].unique().sort():
        records = repeated_from.filter(pl.col("window") == number)
        at_it = [result for result in task.certified if result.number == number]
        around = task.known_since.around.get(number, ())
        beside = [replace(result, files=replace(result.files, source=(), target=())) for result in around]
        for result in (*at_it, *beside):
            keys = {*records["key_hash"]} - seen
            seen |= {key for key, is_held in held_by(task.context.storage, result, keys).items() if is_held}
    return turned(judged, has_verdict(Verdict.UNEXPECTED), seen, Verdict.DUPLICATE), repeated_from


def _repeated_from(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys of `judged` (`JUDGED`) that a topic which a ledger fills had before, each with a
    `window` in which it did. Under `upsert` none: a row that is gone was deleted."""
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    unmatched = judged.filter(has_verdict(Verdict.UNEXPECTED) & (pl.col("target_copies") > 1))
    if task.is_upsert or not can_look_up(source) or can_look_up(target):
        unmatched = unmatched.clear()
    earlier = rows_of_keys(task.context.storage, task.target.index.copies.earlier, unmatched).select(*HASH, "window")
    return unmatched.select(*HASH, "key_hash").join(earlier, on=HASH, how="inner").unique(maintain_order=True)


# Vanished keys

SeenIn = Mapping[str, tuple[int, int]]
"""Key hash → the window and the revision that saw the key in the store."""


@dataclass(frozen=True, kw_only=True)
class SeenKeys:
    """The keys (`HASHES`) that were still missing when certified windows were asked, whatever became of them since;
    those of them that this window handed over before (`HASHES`); those of which windows before may have met rows
    (`MAYBE_MET`); and the keys that a window saw in the store (`seen`)."""

    missing: pl.DataFrame
    handed_on: pl.DataFrame
    maybe_met: pl.DataFrame
    seen: SeenIn

    def evidence_of(self, key_hash: str) -> dict[str, Any]:
        """Return what shows that a key has vanished; nothing for any other key."""
        if key_hash not in self.seen:
            return {}
        window, revision = self.seen[key_hash]
        return {"seen": {"window": window, "revision": revision}}


def mark_vanished(
    task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame, source_elsewhere: pl.DataFrame
) -> tuple[pl.DataFrame, SeenKeys]:
    """Turn missing keys of `judged` (`JUDGED`) into vanished ones where a certified window saw them in the store.
    `source`: the copies of the slice."""
    missing = judged.filter(has_verdict(Verdict.MISSING))
    maybe_met = _maybe_met(task, missing.select(HASH), source)
    handed_on = _handed_on(task, missing)
    seen = _seen(task, missing, handed_on, source_elsewhere, maybe_met)
    marked = turned(judged, has_verdict(Verdict.MISSING), seen, Verdict.VANISHED, Cause.GONE_SINCE_CERTIFIED)
    keys = {"missing": missing.select(*HASHES), "handed_on": handed_on.select(*HASHES)}
    return marked, SeenKeys(**keys, maybe_met=maybe_met, seen=seen)


def _handed_on(task: BucketTask, missing: pl.DataFrame) -> pl.DataFrame:
    """Return the missing keys that this window handed over when it was judged before, by its last revision or by its
    last certified one: windows after it judged their records."""
    if missing.is_empty() or not can_look_up(task.context.pipeline.points[task.hop.target]):
        return missing.clear()
    storage, hashes = task.context.storage, {*missing["key_hash"]}
    own = (result.files for result in task.elsewhere.certified if result.number == task.context.window.number)
    certified = [key_hash for files in own for key_hash in pending_in(storage, files, hashes)]
    last = task.keys.judged_pending.read(storage).select(HASH).unique().with_columns(pl.lit(True).alias("_is_last"))
    marked = missing.join(last, on=HASH, how="left", maintain_order="left")
    return marked.filter(pl.col("_is_last").fill_null(False) | pl.col("key_hash").is_in(certified)).drop("_is_last")


def _maybe_met(task: BucketTask, missing: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that a store lacks (`MAYBE_MET`), by the times of their records, as far as there are slices in
    which windows before may have met their rows without the record.

    A row has no time before that of its record by more than `late`, but for one that is far ahead; and a record that
    waited in the log behind one with a time ahead is in a later window than its time says.
    """
    start, pipeline = task.context.window.start, task.context.pipeline
    if start is None or not task.has_slices or _may_change(task):
        return empty(MAYBE_MET)
    times = source.join(missing, on=HASH, how="semi").group_by(HASH).agg(pl.col("time").min())
    met_from = pl.min_horizontal("time", pl.lit(start)) - pl.lit(pipeline.late + pipeline.pending_max_age)
    of_keys = missing.join(times, on=HASH, how="left")
    return of_keys.select(*HASH, met_from.cast(MAYBE_MET["met_from"]).alias("met_from"))


def _seen(
    task: BucketTask,
    missing: pl.DataFrame,
    handed_on: pl.DataFrame,
    source_elsewhere: pl.DataFrame,
    maybe_met: pl.DataFrame,
) -> SeenIn:
    """Return the certified windows that saw missing keys in the store: of each key the newest that judged it.

    Under upsert only this window's own revisions judged the version that is missing now, and where they handed it over
    the first of the following windows in which it did not wait on: an older one that was seen and purged proves nothing
    of it. Nor does a row that was made of the records of older windows.
    """
    if missing.is_empty() or not can_look_up(task.context.pipeline.points[task.hop.target]):
        return {}
    by_hash = {(high, low): text for high, low, text in missing.select(*HASH, "key_hash").rows()}
    places = source_elsewhere.join(missing.select(HASH), on=HASH, how="semi").select(*HASH, "place").rows()
    storage, number = task.context.storage, task.context.window.number
    seen: dict[str, tuple[int, int]] = {}
    results = {result.number: result for result in (*task.certified, *task.known_since.following)}
    waiting = {*handed_on["key_hash"]}
    for _, result in sorted(results.items()):
        if result.number == number:
            keys = set(by_hash.values())
        elif _may_change(task):
            keys = set()
        else:
            keys = {by_hash[high, low] for high, low, place in places if result.holds(place)}
        row_met = _rows_met(storage, result, maybe_met) if result.number < number else set()
        followed = waiting if result.number > number else set()
        held = dict.fromkeys(row_met, True) | settled_by(task, result, keys | row_met | followed)
        waiting = waiting - {*held} if result.number > number else waiting
        for key_hash, is_held in held.items():
            seen.pop(key_hash, None)
            if is_held:
                seen[key_hash] = (result.number, result.revision)
    return seen


def _rows_met(storage: Storage, result: CertifiedResult, maybe_met: pl.DataFrame) -> set[str]:
    """Return the hashes, in hex, of the keys (`MAYBE_MET`) whose rows a certified window met without a record."""
    known = known_keys(storage, files_of_keys(result.met_alone), met_by(maybe_met, result))
    return set(known.select(hash_hex()).to_series())
