"""Test the benchmark of consumers of what is published, on little data: both sides agree, never how fast."""

from pathlib import Path

import pytest

from bench.windows.orders import Orders
from bench.windows.published import measured
from makewhole.stack.kafka_server import KafkaServer

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]


def test_consumers_of_what_is_published_have_the_answer_of_those_that_deduplicate(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    lines = list[str]()
    counted = measured(kafka.bootstrap, tmp_path, Orders(number=20_000, stride=500), 1, lines.append)
    assert (counted.records, counted.published) == (20_000, 20_000 - 40)  # one in 500 was never sent
    assert [len(costs) for costs in (counted.own, counted.once)] == [1, 1]
    assert counted.publishing.cpu_seconds > 0
    document = counted.document(4)
    assert document["ratio"]["cpu_seconds"] > document["ratio_with_publishing"]["cpu_seconds"] > 0
    assert len(lines) == 4
