"""A small pipeline of each test's own, ledger → topic → store, with a window in the journal and real servers."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from makewhole.model.points import TopicPoint
from makewhole.stack.kafka_server import KafkaServer
from tests.integration.compensation.world import PARTITIONS, TABLES, PlanWorld, flights_pipeline
from tests.world.kept_sessions import kept_sessions
from tests.world.topics import delete_topics, make_topic


@pytest.fixture
def world(kafka: KafkaServer, database: str, journal: str, tmp_path: Path) -> Iterator[PlanWorld]:
    """Empty tables and an empty topic."""
    topic = f"flights-{uuid.uuid4().hex[:8]}"
    made = PlanWorld(
        bootstrap=kafka.bootstrap,
        dsn=database,
        journal=journal,
        storage=tmp_path / "storage",
        topic=topic,
        pipeline=flights_pipeline(topic),
    )
    with kept_sessions():
        made.sql(TABLES)
        make_topic(made.admin, topic, PARTITIONS)
        yield made
    points = made.pipeline.points.values()
    delete_topics(made.admin, {topic, *(point.topic for point in points if isinstance(point, TopicPoint))})
