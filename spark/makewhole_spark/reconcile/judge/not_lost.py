"""Tell keys that a store lacks and has not lost: those that were erased on purpose, and those that have vanished.

Only keys that are missing now are asked for. What a certified window found of a key is in the files of its verdicts: a
file of one bucket of each window in which the key's records lie, or that met its row without them, and of this window's
own last certified revision.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.lake.stored_verdicts import stored_verdicts
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.bucket.other_windows import CertifiedResult
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.certified import met_by_window
from makewhole_spark.reconcile.judge.erased_keys import ErasedInLog, erased_keys_of

_SEEN_BY = (Verdict.VANISHED.value, Verdict.ERASED.value)
SeenIn = Mapping[str, tuple[int, int]]
"""Key hash → the window and the revision that saw the key in the store."""


@dataclass(frozen=True, kw_only=True)
class NotLost:
    """The judged keys, with the evidence of those that are not lost. `asked`: the keys (`HASHES`) that no store names
    as erased, and that certified windows may have seen: whatever became of them."""

    judged: pl.DataFrame
    asked: pl.DataFrame = field(default_factory=lambda: empty(HASHES))
    seen: SeenIn = field(default_factory=dict)
    erased: ErasedInLog = field(default_factory=ErasedInLog)

    def evidence_of(self, key_hash: str) -> dict[str, Any]:
        """Return what shows that a key is not lost, or must not be written; nothing for any other key."""
        if key_hash in self.erased.erased_by:
            place = self.erased.tombstones.get(key_hash)
            return {"erased": self.erased.erased_by[key_hash], **({} if place is None else {"tombstone": place})}
        if key_hash not in self.seen:
            return {}
        window, revision = self.seen[key_hash]
        return {"seen": {"window": window, "revision": revision}}


def mark_not_lost(
    task: BucketTask, judged: pl.DataFrame, source_elsewhere: pl.DataFrame, maybe_met: pl.DataFrame
) -> NotLost:
    """Turn missing keys of `judged` (`JUDGED`) into erased and vanished ones; into undecidable ones where a tombstone
    may have been in what cannot be read any more. `maybe_met` (`MAYBE_MET`): keys of whose rows windows before may have
    met some."""
    erased = erased_keys_of(task, judged)
    judged = _turned(judged, erased.erased_by, Verdict.ERASED, Cause.ERASED_ON_PURPOSE)
    missing = judged.filter(pl.col("verdict") == Verdict.MISSING.value)
    seen = _seen(task, missing, source_elsewhere, maybe_met.join(missing, on=HASH, how="semi"))
    judged = _turned(judged, seen, Verdict.VANISHED, Cause.GONE_SINCE_CERTIFIED)
    judged = _turned(judged, erased.not_known, Verdict.UNDECIDABLE, Cause.EXPIRED)
    return NotLost(judged=judged, asked=missing.select(*HASHES), seen=seen, erased=erased)


def _turned(judged: pl.DataFrame, found: Collection[str], verdict: Verdict, cause: Cause) -> pl.DataFrame:
    if not found:
        return judged
    is_found = pl.col("key_hash").is_in(list(found)) & (pl.col("verdict") == Verdict.MISSING.value)
    return judged.with_columns(
        pl.when(is_found).then(pl.lit(cause.value)).otherwise("hint").alias("hint"),
        pl.when(is_found).then(pl.lit(verdict.value)).otherwise("verdict").alias("verdict"),
    )


def _seen(task: BucketTask, missing: pl.DataFrame, source_elsewhere: pl.DataFrame, maybe_met: pl.DataFrame) -> SeenIn:
    """Return the certified windows that saw missing keys in the store: of each key the newest that judged it.

    Under upsert only this window's own revisions judged the version that is missing now: an older one that was seen and
    purged proves nothing of it.
    """
    if missing.is_empty() or not can_look_up(task.context.pipeline.points[task.hop.target]):
        return {}
    by_hash = {(high, low): text for high, low, text in missing.select(*HASH, "key_hash").rows()}
    places = source_elsewhere.join(missing.select(HASH), on=HASH, how="semi").select(*HASH, "place").rows()
    seen: dict[str, tuple[int, int]] = {}
    for result in sorted(task.certified, key=lambda one: one.number):
        if result.number == task.context.window.number:
            asked = set(by_hash.values())
        elif task.is_upsert:
            continue
        else:
            asked = {by_hash[high, low] for high, low, place in places if result.holds(place)}
        met = met_by_window(task, result, maybe_met)
        for key_hash, is_held in (dict.fromkeys(met, True) | judged_by(task, result, asked | met)).items():
            seen.pop(key_hash, None)
            if is_held:
                seen[key_hash] = (result.number, result.revision)
    return seen


def judged_by(task: BucketTask, result: CertifiedResult, asked: set[str]) -> dict[str, bool]:
    """Return which of the keys (hashes in hex) a certified window judged, and whether the store held them by then: by
    its verdicts, and by what was repaired afterwards."""
    if not asked:
        return {}
    stored = stored_verdicts(task.context.storage, result.files, asked)
    found: dict[str, bool] = dict(stored.select("key_hash", _shows_it()).rows())
    repaired = None if result.repaired is None else task.context.storage.read_parquet([result.repaired])
    if repaired is not None:
        wanted = repaired.filter(pl.col("key_hash").is_in(list(asked)))
        found |= dict.fromkeys(wanted["key_hash"].to_list(), True)
    return found


def _shows_it() -> pl.Expr:
    """Return whether a verdict shows that the store held the key rightly. That an unexpected one is gone may be a
    repair."""
    is_held = pl.col("is_held") & (pl.col("verdict") != Verdict.UNEXPECTED.value)
    return (is_held | pl.col("verdict").is_in(_SEEN_BY)).alias("is_held")
