"""Write what a second round is asked for: the keys to look for in the rest of topics' logs, and what the first one
knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.model.verdict import DIFFERING, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.erased_keys import may_be_erased
from makewhole_spark.reconcile.judge.first_pass import FirstPass, keep_exceptions


@dataclass(frozen=True, kw_only=True)
class AskedOfTails:
    """What the first round asks of a second: files of hashes to look for in topics' tails, by point, and the target's
    rows that were looked up for it."""

    wanted: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[str, str] = field(default_factory=dict)
    to_order: Mapping[str, str] = field(default_factory=dict)
    rows: pl.DataFrame | None = None

    @classmethod
    def of(cls, task: BucketTask, judged: pl.DataFrame, rows: pl.DataFrame | None) -> "AskedOfTails":
        """Write what must be looked for of `judged` (`JUDGED`); a second round asks nothing."""
        if task.second is not None:
            return cls()
        wanted, late = _write_wanted(task, judged)
        return cls(wanted=wanted, late=late, to_order=_write_to_order(task, judged), rows=rows)

    def keeps(self, task: BucketTask, first: FirstPass) -> dict[str, Any]:
        """Write what a second round takes from the first; return how the answer names it."""
        kept = keep_exceptions(task, first) if self.wanted or self.to_order else None
        if self.rows is None or not (task.is_upsert and self.wanted):
            return {"kept": kept}
        folder = f"{task.context.window.prefix}/{task.hop.slug}/looked_up"
        return {"kept": kept, "looked_up": task.context.storage.write_parquet(folder, self.rows)}


def _write_wanted(task: BucketTask, judged: pl.DataFrame) -> tuple[dict[str, str], dict[str, str]]:
    """Write the hashes that must be looked for in the rest of a topic's log; return the files by point: of all of them,
    and of those whose row at the other end came late."""
    of_target: tuple[Verdict, ...] = (Verdict.MISSING,)
    of_source: tuple[Verdict, ...] = (Verdict.UNEXPECTED,)
    if task.is_upsert:  # of several rows the one of the latest version stays, which may be in the tail
        of_target = (Verdict.MISSING, Verdict.MISMATCHED, Verdict.UNEXPECTED)
        of_source = (*of_target, Verdict.DUPLICATE)
    set_back = ~pl.col("in_source") & pl.col("verdict").is_in([verdict.value for verdict in DIFFERING])
    sources = {task.hop.source, *(one.hop.source for one in task.elsewhere.other_sources)}
    wanted = {
        point: judged.filter(
            pl.col("verdict").is_in([verdict.value for verdict in verdicts]) | (set_back & (point in sources))
        )
        for point, verdicts in (
            (task.hop.target, of_target),
            *((one.hop.source, (Verdict.UNEXPECTED,)) for one in task.elsewhere.other_sources),
            (task.hop.source, of_source),
        )
        if task.is_topic(point)
    }
    late = {
        point: frame.filter(_came_late(task))
        for point, frame in wanted.items()
        if not task.is_topic(task.hop.source if point == task.hop.target else task.hop.target)
    }
    return _hash_files(task, wanted), _hash_files(task, late)


def _write_to_order(task: BucketTask, judged: pl.DataFrame) -> dict[str, str]:
    """Write the hashes of the keys that a tombstone in the tail of a topic may have erased; return the files by
    point."""
    asked = may_be_erased(judged)
    return _hash_files(task, dict.fromkeys(task.elsewhere.erasures.erasing, asked))


def _came_late(task: BucketTask) -> pl.Expr:
    """Select the keys of rows with a time before the window's, or without one."""
    start = task.context.window.start
    return pl.lit(False) if start is None else (pl.col("time") < start).fill_null(True)


def _hash_files(task: BucketTask, wanted: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    folder = f"{task.context.window.prefix}/{task.hop.slug}/wanted"
    return {
        point: task.context.storage.write_parquet(folder, frame.select(HASH))
        for point, frame in wanted.items()
        if len(frame)
    }
