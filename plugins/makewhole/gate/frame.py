"""Check and count the frames of the verdicts and of the buckets: Spark DataFrames, used by their methods and never
imported.

A frame that is passed in only names the session and the Parquet files. The gate reads those files itself: a plan
that changes between two evaluations, or a filter put on the frame on the way, cannot reach the expectations. Where
Spark does not know the storage, whoever asks the gate names the files and says how they are read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import unquote

from makewhole.gate.expectations import SuiteRun, run_on_spark
from makewhole.gate.planned_expectation import Planned
from makewhole.model.errors import CorruptionError
from makewhole.model.verdict import Verdict

_BUCKET_ROWS_MOST = 100_000


class Keyed(Protocol):
    """The stored rows of the verdicts and of the buckets, to be checked and counted, wherever that is done."""

    def run(self, planned: Sequence[Planned]) -> SuiteRun: ...
    def count(self, hops: Sequence[str]) -> "FrameCounts": ...


class Frame(Protocol):
    """The few methods of `pyspark.sql.DataFrame` that are used."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802 - Spark's spelling, here and below
    def inputFiles(self) -> list[str]: ...  # noqa: N802
    def selectExpr(self, *expressions: str) -> "Frame": ...  # noqa: N802
    def groupBy(self, *columns: str) -> Any: ...  # noqa: N802
    def limit(self, num: int) -> "Frame": ...
    def collect(self) -> list[Any]: ...


@dataclass(frozen=True, kw_only=True)
class NamedFiles:
    """Stored Parquet files that Spark does not reach, and a function that makes a frame which reads them."""

    paths: Sequence[str]
    read: Callable[[Sequence[str]], Frame]


@dataclass(frozen=True, kw_only=True)
class VerdictCount:
    """The rows of a hop and verdict; `explained` of them have a cause."""

    rows: int
    explained: int


@dataclass(frozen=True, kw_only=True)
class BucketRow:
    """The row of a bucket: clean keys, which have no row among the verdicts, and all that must have a verdict."""

    clean: int
    expected: int


_BROKEN = BucketRow(clean=0, expected=-1)


@dataclass(frozen=True, kw_only=True)
class FrameCounts:
    """Rows of the keyed frame by hop, bucket and verdict, all as the files write them (null included), and the rows of
    the buckets by hop and bucket."""

    verdicts: Mapping[tuple[str | None, str | None, str | None], VerdictCount]
    buckets: Mapping[tuple[str | None, str | None], BucketRow]

    def rows(self, hop: str) -> int:
        """Return the number of rows of a hop, whatever their verdict."""
        return sum(count.rows for (name, _, _), count in self.verdicts.items() if name == hop)

    def of(self, hop: str, verdict: Verdict) -> int:
        """Return the number of rows of a hop with this verdict."""
        return sum(count.rows for (name, _, of), count in self.verdicts.items() if (name, of) == (hop, verdict.value))

    def clean(self, hop: str) -> int:
        """Return the number of clean keys of a hop, by the rows of its buckets."""
        return sum(row.clean for (name, _), row in self.buckets.items() if name == hop)

    def expected(self, hop: str) -> int:
        """Return the number of keys of a hop that must have a verdict, by the rows of its buckets."""
        return sum(row.expected for (name, _), row in self.buckets.items() if name == hop)

    def unequal_buckets(self, hop: str) -> int:
        """Return the number of a hop's buckets whose clean keys and rows of verdicts are not as many as its keys."""
        rows: dict[str | None, int] = {}
        for (name, bucket, _), count in self.verdicts.items():
            if name == hop:
                rows[bucket] = rows.get(bucket, 0) + count.rows
        of_hop = {bucket: row for (name, bucket), row in self.buckets.items() if name == hop}
        return sum(
            bucket not in of_hop or of_hop[bucket].clean + rows.get(bucket, 0) != of_hop[bucket].expected
            for bucket in {*rows, *of_hop}
        )

    def unexplained(self, hop: str) -> int:
        """Return the number of rows that have no cause, of any verdict but those that need none."""
        without = {verdict.value for verdict in Verdict if not verdict.is_finding}
        return sum(
            count.rows - count.explained
            for (name, _, verdict), count in self.verdicts.items()
            if name == hop and verdict not in without
        )


@dataclass(frozen=True, kw_only=True)
class KeyedFrames:
    """Spark DataFrames that read stored Parquet files, or the names of the files: of the verdicts (`VERDICTS`), a row
    per hop and key that is not clean; and of the `buckets` (`BUCKETS`), which count the clean ones."""

    verdicts: Frame | NamedFiles
    buckets: Frame | NamedFiles

    def run(self, planned: Sequence[Planned]) -> SuiteRun:
        """Run layer A on the verdicts."""
        return run_on_spark("verdicts", self._stored_verdicts, planned)

    def count(self, hops: Sequence[str]) -> FrameCounts:
        """Count the rows by hop, bucket and verdict in one small aggregation, and read the rows of the buckets.

        Groups beyond hops x buckets x verdicts cannot be ours: they are cut and fail elsewhere.
        """
        rows = _bucket_rows(self.buckets)
        most_groups = len(hops) * len(Verdict) * max(len(rows), 1) + 100
        grouped = self._stored_verdicts.groupBy("hop", "bucket", "verdict")
        counts = grouped.agg({"*": "count", "cause": "count"}).limit(most_groups)
        return FrameCounts(
            verdicts={
                (group["hop"], group["bucket"], group["verdict"]): VerdictCount(
                    rows=group["count(1)"], explained=group["count(cause)"]
                )
                for group in counts.collect()
            },
            buckets=rows,
        )

    @cached_property
    def _stored_verdicts(self) -> Frame:
        """The files behind the frame, read again: columns hop, bucket, verdict, key_hash, cause and `hop_key`, one
        value per row."""
        return _stored(self.verdicts).selectExpr(
            "hop", "bucket", "verdict", "key_hash", "cause", "concat(key_hash, ' ', hop) AS hop_key"
        )


def _stored(frame: Frame | NamedFiles) -> Frame:
    if isinstance(frame, NamedFiles) and frame.paths:
        return frame.read(frame.paths)
    files = [] if isinstance(frame, NamedFiles) else [unquote(file) for file in frame.inputFiles()]
    if isinstance(frame, NamedFiles) or not files:
        raise CorruptionError(
            "The verdicts do not come from stored files, so they could change while they are checked. "
            "Write them to Parquet and pass the frame that reads it."
        )
    stored: Frame = frame.sparkSession.read.parquet(*files)
    return stored


def _bucket_rows(frame: Frame | NamedFiles) -> dict[tuple[str | None, str | None], BucketRow]:
    stored = _stored(frame).selectExpr("hop", "bucket", "clean", "expected")
    return bucket_rows(tuple(row) for row in stored.limit(_BUCKET_ROWS_MOST).collect())


def bucket_rows(
    rows: Iterable[tuple[str | None, str | None, int | None, int | None]],
) -> dict[tuple[str | None, str | None], BucketRow]:
    """Return the rows of the buckets (hop, bucket, clean, expected). A bucket that has several, or of which a number is
    not known, is none that can be right."""
    by_bucket: dict[tuple[str | None, str | None], BucketRow] = {}
    for hop, bucket, clean, expected in rows:
        if clean is None or expected is None or (hop, bucket) in by_bucket:
            by_bucket[hop, bucket] = _BROKEN
        else:
            by_bucket[hop, bucket] = BucketRow(clean=clean, expected=expected)
    return by_bucket
