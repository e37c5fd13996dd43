"""A self-check of each test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.stack.kafka_server import KafkaServer
from makewhole_spark.carrier import Carrier
from tests.integration.self_check.checked_world import CheckedWorld
from tests.world.environment import enter, service_environment
from tests.world.kept_sessions import kept_sessions
from tests.world.topics import delete_topics


@pytest.fixture
def world(
    carrier: Carrier,
    kafka: KafkaServer,
    database: str,
    journal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[CheckedWorld]:
    """A self-check that has planted nothing yet."""
    made = CheckedWorld(carrier=carrier, bootstrap=kafka.bootstrap, dsn=database, journal=journal, folder=tmp_path)
    enter(monkeypatch, service_environment(made, tmp_path))
    made.describe()
    with kept_sessions():
        yield made
    delete_topics(made.admin, [made.topic])
