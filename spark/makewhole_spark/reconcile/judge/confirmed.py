"""Give every key of a bucket that is not clean its verdict, and confirm it: by look-ups in tables, by what the other
sources of the same place have, and by the certified windows that saw the records of a purged ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import BucketInput, judge
from makewhole.compute.judge.judge_versions import judge_versions
from makewhole.key_index.files import rows_of_keys
from makewhole.model.points import can_look_up
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.compared_sources import SourcesTogether
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.look_ups import confirm
from makewhole_spark.reconcile.judge.not_lost import judged_by
from makewhole_spark.reconcile.judge.other_sources import without_keys_of_others
from makewhole_spark.reconcile.judge.rows_alone import RowsAlone


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """The keys with their verdicts (`JUDGED`), what is known of them after the look-ups, and the target's `rows` (None:
    it was not asked). `of_others`: by key hash, evidence of what other sources have; `met`: the keys that a topic had
    before, each with the `window` that met it; `alone`: those whose rows have no record in the window."""

    judged: pl.DataFrame
    known: BucketInput
    rows: pl.DataFrame | None
    of_others: Mapping[str, dict[str, Any]]
    met: pl.DataFrame
    alone: RowsAlone


def confirm_verdicts(task: BucketTask, first: FirstPass, gathered: BucketInput) -> Confirmed:
    """Judge by what was gathered, look up every missing and every unexpected key, and judge again what that changed."""
    kernel = judge_versions if task.is_upsert else judge
    at_first = kernel(gathered)
    known, rows = confirm(task, gathered, at_first, first.known_besides)
    together = SourcesTogether.of(task, known, at_first)
    of_all = together.with_later_versions(known)
    judged = without_keys_of_others(task, at_first if of_all.is_same_as(gathered) else kernel(of_all))
    judged, of_others = together.compare(judged, known)
    met = _keys_met_before(task, judged)
    return Confirmed(
        judged=_mark_repeated(task, judged, met),
        known=known,
        rows=rows,
        of_others=of_others,
        met=met,
        alone=RowsAlone.of(task, first.target, at_first),
    )


def _keys_met_before(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys of `judged` (`JUDGED`) that a topic which a ledger fills had before, each with the
    `window` that met it. Under `upsert` none: a row that is gone was deleted."""
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    is_repeated = (pl.col("verdict") == Verdict.UNEXPECTED.value) & (pl.col("target_copies") > 1)
    unmatched = judged.filter(is_repeated)
    if task.is_upsert or not can_look_up(source) or can_look_up(target):
        unmatched = unmatched.clear()
    met = rows_of_keys(task.context.storage, task.target.index.copies.earlier, unmatched).select(*HASH, "window")
    return unmatched.select(*HASH, "key_hash").join(met, on=HASH, how="inner").unique(maintain_order=True)


def _mark_repeated(task: BucketTask, judged: pl.DataFrame, met: pl.DataFrame) -> pl.DataFrame:
    """Turn unexpected keys of `judged` (`JUDGED`) into duplicates that a certified window saw on both sides. `met`: in
    which windows the topic had them before."""
    seen: set[str] = set()
    for result in task.certified:
        asked = set(met.filter(pl.col("window") == result.number)["key_hash"].to_list())
        seen |= {key for key, is_held in judged_by(task, result, asked).items() if is_held}
    is_seen = pl.col("key_hash").is_in(sorted(seen))
    verdict = pl.when(is_seen).then(pl.lit(Verdict.DUPLICATE.value)).otherwise("verdict")
    return judged.with_columns(verdict.alias("verdict")) if seen else judged
