"""Read and count the keyed frame of the verdicts: a Spark DataFrame, used by its methods and never imported.

The frame that is passed in only names the session and the Parquet files. The gate reads those files itself: a plan
that changes between two evaluations, or a filter put on the frame on the way, cannot reach the expectations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

from makewhole.model.errors import CorruptionError
from makewhole.model.verdict import Verdict


class Frame(Protocol):
    """The few methods of `pyspark.sql.DataFrame` that are used."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802 - Spark's spelling, here and below
    def inputFiles(self) -> list[str]: ...  # noqa: N802
    def selectExpr(self, *expressions: str) -> "Frame": ...  # noqa: N802
    def groupBy(self, *columns: str) -> Any: ...  # noqa: N802


@dataclass(frozen=True, kw_only=True)
class VerdictCount:
    """The rows of a hop and verdict; `explained` of them have a cause."""

    rows: int
    explained: int


@dataclass(frozen=True, kw_only=True)
class FrameCounts:
    """Rows of the keyed frame by hop and verdict, both as the files spell them (null included)."""

    by_hop_and_verdict: Mapping[tuple[str | None, str | None], VerdictCount]

    def rows(self, hop: str) -> int:
        """Return the number of rows of a hop, whatever their verdict."""
        return sum(count.rows for (name, _), count in self.by_hop_and_verdict.items() if name == hop)

    def of(self, hop: str, verdict: Verdict) -> int:
        """Return the number of rows of a hop with this verdict."""
        count = self.by_hop_and_verdict.get((hop, verdict.value))
        return count.rows if count else 0

    def unexplained(self, hop: str) -> int:
        """Return the number of rows that have no cause, of any verdict but those that need none."""
        without = {verdict.value for verdict in Verdict if not verdict.is_finding}
        return sum(
            count.rows - count.explained
            for (name, verdict), count in self.by_hop_and_verdict.items()
            if name == hop and verdict not in without
        )


def stored_verdicts(frame: Frame) -> Frame:
    """Read the files behind `frame` anew: columns hop, verdict, key_hash, cause and `hop_key`, one value per row."""
    files = [unquote(file) for file in frame.inputFiles()]
    if not files:
        raise CorruptionError(
            "The verdicts do not come from stored files, so they could change while they are checked. "
            "Write them to Parquet and pass the frame that reads it."
        )
    stored: Frame = frame.sparkSession.read.parquet(*files)
    return stored.selectExpr("hop", "verdict", "key_hash", "cause", "concat(key_hash, ' ', hop) AS hop_key")


def count_verdicts(frame: Frame, hops: Sequence[str]) -> FrameCounts:
    """Count the rows by hop and verdict in one small aggregation.

    Groups beyond hops x verdicts cannot be ours: they are cut and fail elsewhere.
    """
    most_groups = len(hops) * len(Verdict) + 100
    groups = frame.groupBy("hop", "verdict").agg({"*": "count", "cause": "count"}).limit(most_groups).collect()
    return FrameCounts(
        by_hop_and_verdict={
            (group["hop"], group["verdict"]): VerdictCount(rows=group["count(1)"], explained=group["count(cause)"])
            for group in groups
        }
    )
