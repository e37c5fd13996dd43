"""Test the benchmark of records that are added up, on little data: both sides find what was planted, never how fast."""

from pathlib import Path

import pytest

from bench.windows.added_up import SIDES, measured
from makewhole.stack.kafka_server import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]


def test_rows_of_sums_and_rows_of_records_have_the_planted_faults(kafka: KafkaServer, tmp_path: Path) -> None:
    lines = list[str]()
    sides = measured(kafka.bootstrap, tmp_path, 2_000, lines.append)
    assert set(sides) == set(SIDES)
    assert all(cost.cpu_seconds > 0 for cost in sides.values())
    assert len(lines) == len(SIDES)
