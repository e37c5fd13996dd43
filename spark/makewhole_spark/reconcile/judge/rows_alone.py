"""Note the rows of a target's slice without a record in the window: a later window that has it looks these keys up."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.key_index.files import write_index_file
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.copies_outside import source_tail
from makewhole_spark.reconcile.judge.index import known_later


@dataclass(frozen=True, kw_only=True)
class RowsAlone:
    """The hashes of the keys of a target's slice that have no record in the window, sorted."""

    keys: pl.DataFrame

    @classmethod
    def of(cls, task: BucketTask, target: pl.DataFrame, judged: pl.DataFrame) -> "RowsAlone":
        """Return the keys of the slice without a record among those that were judged (`JUDGED`).

        A later window that has the record sees the rows of its own times only: it looks these keys up.
        """
        keys = target.select(HASH).unique().join(judged.filter("in_source"), on=HASH, how="anti").sort(HASH)
        return cls(keys=keys if task.has_slices else keys.clear())

    def write(self, task: BucketTask) -> dict[str, Any]:
        """Write the hashes with a filter; return how the answer names them."""
        folder = f"{task.context.window.prefix}/{task.hop.slug}/met_alone"
        path = write_index_file(task.context.storage, folder, [self.keys]) if len(self.keys) else None
        return {"met_alone": path, "met_far_ahead": _count_far_ahead(task, self.keys)}


def _count_far_ahead(task: BucketTask, alone: pl.DataFrame) -> int:
    """Count the keys of which the rest of the log has a record of a time so far ahead that a later window with it does
    not know from its own time that it must ask this one. Of a record in a window that was judged already, the time is
    not known: it counts."""
    pipeline = task.context.pipeline
    since = task.context.window.end + pipeline.late + pipeline.pending_max_age
    in_tail = source_tail(task).filter(pl.col("is_later") & (pl.col("time") >= since)).select(HASH)
    in_windows = alone.filter(known_later(task, alone))
    return pl.concat([in_tail.join(alone, on=HASH, how="semi"), in_windows]).n_unique()
