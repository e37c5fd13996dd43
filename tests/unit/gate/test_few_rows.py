"""Count verdicts and buckets in memory. That the library answers as on Spark is tested in tests/integration/gate."""

from typing import Any

import polars as pl
import pytest

from makewhole.compute.frames import BUCKETS, VERDICTS
from makewhole.gate import KeyedRows, check_verdicts
from makewhole.gate.frame import BucketRow, VerdictCount
from makewhole.gate.summary import HopSummary
from makewhole.model.gate import GateAnswer
from makewhole.model.pipeline import Pipeline

pytestmark = pytest.mark.unit

HOP = "a→b"


def verdicts(*rows: tuple[str | None, ...]) -> pl.DataFrame:
    """Rows of hop, bucket, key hash, verdict and cause."""
    return pl.DataFrame([(*row, False) for row in rows], schema=VERDICTS, orient="row")


def test_verdicts_are_counted_by_hop_bucket_and_verdict_as_they_are_written() -> None:
    rows = KeyedRows(
        verdicts=verdicts(
            (HOP, "00", "k1", "missing", "lost"),
            (HOP, "00", "k2", "missing", None),
            (HOP, "01", "k3", "missing", "lost"),
            (None, None, None, None, None),
        ),
        buckets=pl.DataFrame(
            [(HOP, "00", 5, 7), (HOP, "01", 1, 2), (HOP, "02", None, 1), (HOP, "03", 1, 1), (HOP, "03", 1, 1)],
            schema=BUCKETS,
            orient="row",
        ),
    )

    counts = rows.count([HOP])

    assert counts.verdicts == {
        (HOP, "00", "missing"): VerdictCount(rows=2, explained=1),
        (HOP, "01", "missing"): VerdictCount(rows=1, explained=1),
        (None, None, None): VerdictCount(rows=1, explained=0),
    }
    broken = BucketRow(clean=0, expected=-1)
    assert counts.buckets == {
        (HOP, "00"): BucketRow(clean=5, expected=7),
        (HOP, "01"): BucketRow(clean=1, expected=2),
        (HOP, "02"): broken,
        (HOP, "03"): broken,
    }
    assert counts.unequal_buckets(HOP) == 2


@pytest.mark.parametrize("missing", ["hop", "bucket", "verdict", "key_hash", "cause"])
def test_a_column_that_no_file_has_breaks_the_check(
    pipeline: Pipeline, summaries: list[HopSummary], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any) -> None:
        return None

    monkeypatch.setattr("makewhole.gate.few_rows.run_on_pandas", run)
    rows = KeyedRows(verdicts=verdicts().drop(missing), buckets=pl.DataFrame(schema=BUCKETS))

    report = check_verdicts(pipeline, summaries, rows)

    assert report.answer is GateAnswer.ERROR
    assert report.failures == (f"The gate itself broke (CorruptionError): the stored files have no column `{missing}`",)
