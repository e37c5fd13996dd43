"""Check the frames of the verdicts and of the buckets in memory, where they have few rows: the answer of Spark, without
its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from makewhole.gate.expectations import SuiteRun, run_on_pandas
from makewhole.gate.frame import FrameCounts, VerdictCount, bucket_rows
from makewhole.gate.planned_expectation import Planned
from makewhole.model.errors import CorruptionError

_OF_VERDICTS = ("hop", "verdict", "key_hash", "cause")
_OF_BUCKETS = ("hop", "bucket", "clean", "expected")


@dataclass(frozen=True, kw_only=True)
class KeyedRows:
    """The rows of stored files, read whole: of the verdicts (`VERDICTS`), a row per hop and key that is not clean; and
    of the buckets (`BUCKETS`), which count the clean ones."""

    verdicts: pl.DataFrame
    buckets: pl.DataFrame

    def run(self, planned: Sequence[Planned]) -> SuiteRun:
        """Run layer A on the verdicts."""
        _require(self.verdicts, _OF_VERDICTS)
        rows = self.verdicts.select(*_OF_VERDICTS, pl.concat_str("key_hash", pl.lit(" "), "hop").alias("hop_key"))
        return run_on_pandas("verdicts", rows.to_pandas(), planned)

    def count(self, hops: Sequence[str]) -> FrameCounts:  # noqa: ARG002 - only Spark's answer has to be cut
        """Count the rows by hop, bucket and verdict."""
        _require(self.buckets, _OF_BUCKETS)
        _require(self.verdicts, (*_OF_VERDICTS, "bucket"))
        groups = self.verdicts.group_by("hop", "bucket", "verdict").agg(pl.len(), pl.col("cause").count())
        return FrameCounts(
            verdicts={
                (hop, of, verdict): VerdictCount(rows=rows, explained=explained)
                for hop, of, verdict, rows, explained in groups.rows()
            },
            buckets=bucket_rows(self.buckets.select(*_OF_BUCKETS).rows()),
        )


def _require(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    missing = [f"`{name}`" for name in columns if name not in frame.columns]
    if missing:
        raise CorruptionError(f"the stored files have no column {', '.join(missing)}")
