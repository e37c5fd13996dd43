"""Test the servers alone: they keep their data, are found again, and are ended without touching anyone else."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from makewhole.model.errors import PermanentError
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.postgres_server import PostgresServer, create_database
from tests.world.kafka_nodes import kill_node

pytestmark = pytest.mark.integration


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    server = KafkaServer(tmp_path / "kafka")
    yield server
    server.stop()


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres", is_durable=False)
    yield server
    server.stop()


def wait_until_ended(server: PostgresServer) -> None:
    deadline = time.monotonic() + 10
    while server.process.is_running():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.extended
def test_a_transaction_committed_before_a_stop_is_read_after_the_next_start(own_kafka: KafkaServer) -> None:
    """Takes long: a broker starts twice."""
    own_kafka.start()
    admin = AdminClient({"bootstrap.servers": own_kafka.bootstrap, "log_level": 0})
    for created in admin.create_topics([NewTopic("kept", 1, 1)]).values():
        created.result(10)
    producer = Producer({"bootstrap.servers": own_kafka.bootstrap, "transactional.id": "writer", "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("kept", b"value")
    producer.commit_transaction(20)
    own_kafka.stop()
    assert not own_kafka.is_healthy()

    again = KafkaServer(own_kafka.directory)
    again.start()

    consumer = Consumer(
        {
            "bootstrap.servers": again.bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe(["kept"])
    message = consumer.poll(20)
    consumer.close()
    assert message is not None and message.value() == b"value"
    assert again.bootstrap == own_kafka.bootstrap


def test_a_row_committed_before_a_kill_is_read_after_the_next_start(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "postgres")
    with server:
        dsn = server.create_database("kept")
        with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
            cursor.execute("create table kept (id int); insert into kept values (7)")
        connection.close()
        os.kill(server.process.pid() or 0, signal.SIGKILL)
        wait_until_ended(server)

        again = PostgresServer(tmp_path / "postgres")
        again.start()

        connection = psycopg2.connect(again.dsn("kept"))
        with connection.cursor() as cursor:
            cursor.execute("select id from kept")
            assert cursor.fetchall() == [(7,)]
        connection.close()


def test_starting_what_runs_keeps_the_same_process(own_postgres: PostgresServer) -> None:
    own_postgres.start()
    pid = own_postgres.process.pid()

    PostgresServer(own_postgres.directory).start()

    assert own_postgres.process.pid() == pid


def test_a_taken_port_is_refused_with_its_holder_and_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = PostgresServer(tmp_path / "postgres", port=port)

        with pytest.raises(PermanentError) as refused:
            server.start()

    assert f"port {port}" in str(refused.value)
    assert f"(pid {os.getpid()})" in str(refused.value)
    assert "makewhole up --new-ports" in str(refused.value)


def test_an_interrupted_creation_of_the_data_is_done_again(own_postgres: PostgresServer) -> None:
    half = own_postgres.directory / "data.unfinished"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("16\n")

    own_postgres.start()

    assert own_postgres.is_healthy()
    assert not half.exists()


@pytest.mark.extended
def test_three_nodes_form_one_cluster_and_survive_the_loss_of_one(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path / "kafka", nodes=3)
    try:
        server.start()
        assert server.bootstrap.count(",") == 2
        server.process(3).stop()
        server.start_node(3)
        server.wait_ready()
        assert server.is_healthy()
    finally:
        server.stop()


def test_a_database_is_created_once_and_a_second_time_is_harmless(postgres: PostgresServer, database: str) -> None:
    name = database.rpartition("/")[2]

    assert create_database(postgres.dsn, name) == database


def test_the_journal_is_migrated(journal: str) -> None:
    connection = psycopg2.connect(journal)
    with connection.cursor() as cursor:
        cursor.execute("select count(*) > 0 from makewhole.migration")
        assert cursor.fetchone() == (True,)
    connection.close()


@pytest.mark.extended
def test_brokers_with_a_controller_apart_survive_a_kill_and_a_pause_and_keep_their_own_settings(tmp_path: Path) -> None:
    def named(node: int) -> dict[str, object]:
        return {"broker.rack": f"rack-{node}"}

    server = KafkaServer(tmp_path / "kafka", nodes=2, has_own_controller=True, settings=named, heap_mb=256)
    try:
        server.start()
        kill_node(server, 2)
        assert not server.process(2).is_running()
        server.start_node(2)
        server.wait_ready()
        server.process(1).pause()
        assert server.process(1).is_paused()
        server.process(1).resume()
        server.wait_ready()
        assert not server.process(1).is_paused()
        assert "broker.rack=rack-2" in (tmp_path / "kafka/node-2/node.properties").read_text()
        server.process(1).pause()
    finally:
        server.stop()
    assert not any(server.process(node).is_running() for node in server.layout.nodes)
