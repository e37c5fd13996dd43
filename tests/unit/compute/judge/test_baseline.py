"""Check which keys are set aside as older than the baseline."""

from datetime import UTC, datetime

import polars as pl
import pytest

from makewhole.compute.judge.baseline import Baseline, mark_before_baseline
from makewhole.model.verdict import Cause, Verdict

pytestmark = pytest.mark.unit

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
MISSING, UNEXPECTED, MATCHED = Verdict.MISSING.value, Verdict.UNEXPECTED.value, Verdict.MATCHED.value
BEFORE, UNKNOWN = Verdict.BEFORE_BASELINE.value, Verdict.UNDECIDABLE.value


def marked(baseline: Baseline) -> list[tuple[str, str | None]]:
    """Return verdict and hint of keys without a time that are missing, unexpected and matched."""
    judged = pl.DataFrame(
        {"verdict": [MISSING, UNEXPECTED, MATCHED], "hint": [None] * 3, "time": [None] * 3},
        schema={"verdict": pl.String, "hint": pl.String, "time": pl.Datetime("us", "UTC")},
    )
    answers: list[tuple[str, str | None]] = mark_before_baseline(judged, baseline).select("verdict", "hint").rows()
    return answers


@pytest.mark.parametrize(
    ("baseline", "verdicts"),
    [
        (Baseline(missing=NOON, unexpected=NOON), [MISSING, UNEXPECTED, MATCHED]),
        (Baseline(undated_missing=True, undated_unexpected=True), [MISSING, UNEXPECTED, MATCHED]),
        (Baseline(missing=NOON, unexpected=NOON, undated_missing=True), [BEFORE, UNEXPECTED, MATCHED]),
        (Baseline(missing=NOON, unexpected=NOON, undated_unexpected=True), [MISSING, BEFORE, MATCHED]),
        (Baseline(missing_unknown=NOON, undated_missing=True), [UNKNOWN, UNEXPECTED, MATCHED]),
        (Baseline(missing=NOON, missing_unknown=NOON, undated_missing=True), [BEFORE, UNEXPECTED, MATCHED]),
    ],
)
def test_a_key_without_a_time_is_older_than_a_baseline_where_its_table_is_read_first(
    baseline: Baseline, verdicts: list[str]
) -> None:
    answers = marked(baseline)
    assert [verdict for verdict, _ in answers] == verdicts
    assert [hint for _, hint in answers] == [
        Cause.OLDER_THAN_LOG.value if verdict == UNKNOWN else None for verdict in verdicts
    ]
