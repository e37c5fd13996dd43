"""Test the benchmark of windows over Iceberg tables on little data: both find what was planted, never how fast."""

from pathlib import Path

import pytest

from bench.windows.iceberg import BY_HAND, measured
from bench.windows.lake import LAKE_HOP, LakeOrders
from bench.windows.stage import MAKEWHOLE
from makewhole.stack.kafka_server import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]


@pytest.mark.parametrize("has_values", [False, True], ids=["positions", "values"])
def test_both_sides_find_the_holes_and_repeats_that_were_planted(
    kafka: KafkaServer, tmp_path: Path, has_values: bool
) -> None:
    orders = LakeOrders(number=20_000, stride=500, has_values=has_values)
    expected = {"missing": 40, "duplicate": 40} | ({"mismatched": 40} if has_values else {})
    assert orders.planted == {(LAKE_HOP, verdict): keys for verdict, keys in expected.items()}
    lines = list[str]()
    duel = measured(kafka.bootstrap, tmp_path, orders, 1, lines.append)  # refuses other verdicts
    assert {side: len(costs) for side, costs in duel.costs.items()} == {MAKEWHOLE: 1, BY_HAND: 1}
    assert duel.document()["ratio"]["cpu_seconds"] > 0
    assert [line.split()[0] for line in lines] == ["makewhole", "by"]
