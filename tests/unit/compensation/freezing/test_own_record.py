"""Test that a record which is produced is held to the row that it is judged by, its version included."""

import json
from dataclasses import replace
from typing import Any

import pytest

from makewhole.compensation.freezing.own_record import require_own_values
from makewhole.model.actions import Payload
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.tables.rows import LedgerRecord
from tests.unit.compensation.planning.drafted import pipeline_of

pytestmark = pytest.mark.unit

DAY = "1704067200000000"  # 2024-01-01 in microseconds


def versioned(semantics: Semantics = Semantics.UPSERT) -> Pipeline:
    pipeline = pipeline_of()
    points = {
        **pipeline.points,
        "ledger": replace(pipeline.points["ledger"], version="ver"),
        "topic": replace(pipeline.points["topic"], version="$.ver"),
    }
    first, second = (replace(hop, semantics=semantics) for hop in pipeline.hops)
    return replace(pipeline, points=points, hops=(first, second), compare={"amount": "int"})


def refusal(pipeline: Pipeline, sent: dict[str, Any], *row: tuple[str, str, str | None]) -> str | None:
    value = json.dumps({"id": "a", "amount": 5, **sent}).encode()
    record = LedgerRecord(key=b"a", value=value, timestamp_ms=None, compared=(("amount", "int", "5"), *row))
    payload = Payload(key=b"a", value=value)
    try:
        require_own_values(pipeline, pipeline.hops[0], payload, record)
    except RefusedError as error:
        return str(error)
    return None


def test_a_record_of_another_value_than_its_row_is_refused() -> None:
    assert "another value than its row in amount, and would be mismatched" in str(refusal(versioned(), {"amount": 7}))
    assert refusal(versioned(), {}) is None


@pytest.mark.parametrize(
    ("sent", "declared", "text", "is_refused"),
    [
        (5, "bigint", "6", True),
        (7, "bigint", "6", True),
        (6, "bigint", "6", False),
        ("6.50", "decimal(38,9)", "6.500000000", False),
        ("2024-01-01T00:00:00Z", "timestamp", DAY, False),
        ("2024-01-01T00:00:01Z", "timestamp", DAY, True),
        ("2024-01-01", "date", "2024-01-01", False),
        (None, "bigint", "6", False),
    ],
)
def test_a_record_of_another_version_than_its_row_is_refused(
    sent: object, declared: str, text: str, *, is_refused: bool
) -> None:
    reason = refusal(versioned(), {"ver": sent}, ("ver", declared, text))
    assert (reason is not None and "has another value than its row in ver," in reason) == is_refused
    assert refusal(versioned(Semantics.EVENT), {"ver": sent}, ("ver", declared, text)) is None
