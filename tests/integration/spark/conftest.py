"""A small pipeline of each test's own on real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.world.environment import enter, service_environment
from tests.world.topics import delete_topics, make_topic
from tests.world.windows import ReconciledShop


@pytest.fixture
def shop(
    carrier: Carrier,
    kafka: KafkaServer,
    database: str,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ReconciledShop]:
    """Empty tables and an empty topic; the pipeline is described with its defaults."""
    made = ReconciledShop(carrier=carrier, bootstrap=kafka.bootstrap, dsn=database, journal=journal, folder=tmp_path)
    enter(monkeypatch, service_environment(made, tmp_path))
    made.describe()
    made.make_tables()
    make_topic(made.admin, made.topic)
    yield made
    delete_topics(made.admin, [made.topic, *made.more_topics])
