"""What tests of several kinds ask for: topics of a test's own, and the one Spark session that a process can have."""

import sys
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from makewhole.kafka.offsets import describe_topic
from makewhole.model.connection import KafkaConnection
from makewhole.stack.kafka_server import KafkaServer

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # the workers need this environment's packages
        builder = SparkSession.builder.master("local[2]").appName("tests")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def connection(kafka: KafkaServer) -> KafkaConnection:
    return KafkaConnection(id="local_kafka", properties={"bootstrap.servers": kafka.bootstrap})


@pytest.fixture(scope="session")
def admin(kafka: KafkaServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def make_topic(admin: AdminClient, connection: KafkaConnection) -> Iterator[MakeTopic]:
    """Make a topic of the test's own, with settings."""
    made: list[str] = []

    def make(partitions: int = 1, **settings: str) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        config = {key.replace("_", "."): value for key, value in settings.items()}
        for future in admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values():
            future.result()
        describe_topic(connection, name)
        made.append(name)
        return name

    yield make
    if made:
        for future in admin.delete_topics(made).values():
            future.exception()
