"""Hide the values of masked columns in the samples of a dry run.

Rows and records are as their systems have them, and not as they are compared: a digest of them would be none of a
finding.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from makewhole.compensation.preview.dry_report import DryRun, RecordToSend, Sample
from makewhole.config.template import exact_json
from makewhole.model.pipeline import Pipeline
from makewhole.tables.row_change import ColumnChange, RowChange

HIDDEN = "(masked)"
"""The text that stands for a value."""

CHANGED = "(masked, changed)"
"""The text that stands for a value which the row did not have before."""


def with_masked_samples(report: DryRun, pipeline: Pipeline) -> DryRun:
    """Return a dry run as people see it. Of a record nothing is shown but its size: any part may have the value."""
    if not pipeline.mask:
        return report
    return replace(report, samples=tuple(_masked(sample, pipeline) for sample in report.samples))


def _masked(sample: Sample, pipeline: Pipeline) -> Sample:
    if isinstance(sample.shown, RecordToSend):
        return replace(sample, shown=_masked_record(sample.shown))
    point = pipeline.points[sample.action.target]
    return replace(sample, shown=masked_change(sample.shown, {point.column_place(name) for name in pipeline.mask}))


def _masked_record(record: RecordToSend) -> RecordToSend:
    hidden = HIDDEN.encode()
    return replace(
        record,
        key=None if record.key is None else hidden,
        value=None if record.value is None else f"(masked, {len(record.value):,} bytes)".encode(),
        headers=tuple((name, None if value is None else hidden) for name, value in record.headers),
    )


def masked_change(change: RowChange, columns: Collection[str]) -> RowChange:
    """Return a change of rows without the values of some columns of the table."""
    before = [exact_json.loads(row) for row in change.before]
    return RowChange(
        before=tuple(_row(row, columns) for row in change.before),
        after=tuple(_row(row, columns, () if row in change.before else before) for row in change.after),
        aside=tuple(_row(row, columns) for row in change.aside),
        columns=tuple(_column(column) if column.name in columns else column for column in change.columns),
    )


def _row(text: str, columns: Collection[str], before: Sequence[dict[str, Any]] = ()) -> str:
    row = exact_json.loads(text)
    masked = {
        name: CHANGED if before and all(old.get(name) != value for old in before) else HIDDEN
        for name, value in row.items()
        if name in columns and value is not None
    }
    return exact_json.dumps({**row, **masked}) if masked else text


def _column(column: ColumnChange) -> ColumnChange:
    before, after = (None if text is None else HIDDEN for text in (column.before, column.after))
    return replace(
        column, before=before, after=CHANGED if after and before and column.before != column.after else after
    )
