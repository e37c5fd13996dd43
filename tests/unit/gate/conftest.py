"""One pipeline, ledger → topic → store, and summaries of a window in which nothing went wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from makewhole.gate import HopSummary, PointEvidence
from makewhole.model.gate import Gate
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, TablePoint, TopicPoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import Accounting

REMEDIES = Remedies(missing=Remedy.REDELIVER, duplicate=Remedy.QUARANTINE, mismatched=Remedy.REPORT)


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline(
        name="flights",
        points={
            "outbox": TablePoint(name="outbox", kind=PointKind.LEDGER, connection="db", table="ops.out", key=("id",)),
            "flights": TopicPoint(name="flights", connection="kafka", topic="flights", key=("$.id",)),
            "warehouse": TablePoint(
                name="warehouse", kind=PointKind.STORE, connection="db", table="dw.in", key=("id",)
            ),
        },
        hops=(
            Hop(source="outbox", target="flights", remedies=REMEDIES),
            Hop(source="flights", target="warehouse", remedies=REMEDIES),
        ),
    )


@pytest.fixture
def with_gate(pipeline: Pipeline) -> Callable[..., Pipeline]:
    return lambda **tolerance: replace(pipeline, gate=Gate(**tolerance))


def accounting_of(evidence: PointEvidence) -> Accounting:
    """Return the accounting of a topic."""
    assert evidence.accounting is not None
    return evidence.accounting


def table(point: str, rows: int) -> PointEvidence:
    return PointEvidence(point=point, has_manifest=True, rows_read=rows, rows_counted=rows)


def topic(point: str, records: int) -> PointEvidence:
    accounting = Accounting(span=records + 2, data=records, control=2)
    return PointEvidence(point=point, has_manifest=True, rows_read=records, accounting=accounting)


@pytest.fixture
def summaries() -> list[HopSummary]:
    """Each hop: 3 keys, all matched."""
    counts = HopCounts(source_keys=3, source_rows=3, target_rows=3, matched=3)
    return [
        HopSummary(
            hop="outbox→flights",
            counts=counts,
            expected_rows=3,
            source=table("outbox", 3),
            target=topic("flights", 3),
            handovers_written=0,
        ),
        HopSummary(
            hop="flights→warehouse",
            counts=counts,
            expected_rows=3,
            source=topic("flights", 3),
            target=table("warehouse", 3),
            handovers_written=0,
        ),
    ]
