"""Test which numbers say how a window ended, and how far a pipeline is proven."""

from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk.observability import stats

from makewhole.journal.certificates import Watermark
from makewhole.model.verdict import HopCounts
from makewhole.orchestration.telemetry.metrics import Measured, of_watermark, of_window, send

pytestmark = pytest.mark.unit

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOP = {"pipeline": "shop"}


def numbers(measured: list[Measured]) -> dict[Any, float]:
    return {
        (measure.name, *(value for name, value in measure.tags.items() if name != "pipeline")): measure.value
        for measure in measured
    }


def test_each_verdict_of_each_hop_is_a_number_and_gaps_are_added_up() -> None:
    counts = {
        "orders→warehouse": HopCounts(matched=90, missing=3, duplicate=2, pending=4, before_baseline=1),
        "outbox→orders": HopCounts(matched=99, unexpected=1),
    }
    by_name = numbers([*of_window("shop", counts, is_certified=False, older_open=2)])
    assert by_name[("keys", "orders-warehouse", "missing")] == 3
    assert by_name[("keys", "orders-warehouse", "before_baseline")] == 1
    assert by_name[("keys", "outbox-orders", "matched")] == 99
    assert len([key for key in by_name if key[0] == "keys"]) == 2 * 11
    assert {key[0]: value for key, value in by_name.items() if key[0] != "keys"} == {
        "certified": 0,
        "gaps": 6,
        "open_windows": 3,
    }
    certified = numbers([*of_window("shop", {}, is_certified=True, older_open=2)])
    assert certified == {("certified",): 1, ("gaps",): 0, ("open_windows",): 2}


def test_the_age_of_the_proof_counts_from_the_end_of_the_last_proven_window() -> None:
    proven = Watermark(head=9, sha256="00", window=7, until=datetime(2026, 3, 1, 11, tzinfo=UTC))
    assert of_watermark("shop", proven, NOON) == [
        Measured(name="verified_window", value=7, tags=SHOP),
        Measured(name="verified_until", value=1772362800.0, tags=SHOP),
        Measured(name="verified_age_seconds", value=3600.0, tags=SHOP),
    ]
    for nothing in (None, Watermark(head=2, sha256="00", window=None, until=None)):
        assert of_watermark("shop", nothing, NOON) == [Measured(name="verified_window", value=0, tags=SHOP)]


def test_a_backend_that_breaks_does_not_break_the_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(stats, "gauge", broken)
    send([Measured(name="gaps", value=1, tags=SHOP)])
    assert caplog.messages == ["metrics were not sent: OSError"]
