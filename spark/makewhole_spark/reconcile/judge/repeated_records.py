"""Find records that are sent again of keys which the ledger had, and has purged since: a certified window saw both."""

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.key_index.files import rows_of_keys
from makewhole.model.points import TablePoint
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.not_lost import judged_by


def keys_met_before(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys of `judged` (`JUDGED`) that a topic which a ledger fills had before, each with the
    `window` that met it. Under `upsert` none: a row that is gone was deleted."""
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    is_repeated = (pl.col("verdict") == Verdict.UNEXPECTED.value) & (pl.col("target_copies") > 1)
    unmatched = judged.filter(is_repeated)
    if task.is_upsert or not isinstance(source, TablePoint) or isinstance(target, TablePoint):
        unmatched = unmatched.clear()
    met = rows_of_keys(task.context.storage, task.target.index.copies.earlier, unmatched).select(*HASH, "window")
    return unmatched.select(*HASH, "key_hash").join(met, on=HASH, how="inner").unique(maintain_order=True)


def mark_repeated(task: BucketTask, judged: pl.DataFrame, met: pl.DataFrame) -> pl.DataFrame:
    """Turn unexpected keys of `judged` (`JUDGED`) into duplicates that a certified window saw on both sides. `met`: in
    which windows the topic had them before."""
    seen: set[str] = set()
    for result in task.certified:
        asked = set(met.filter(pl.col("window") == result.number)["key_hash"].to_list())
        seen |= {key for key, is_held in judged_by(task, result, asked).items() if is_held}
    is_seen = pl.col("key_hash").is_in(sorted(seen))
    verdict = pl.when(is_seen).then(pl.lit(Verdict.DUPLICATE.value)).otherwise("verdict")
    return judged.with_columns(verdict.alias("verdict")) if seen else judged
