"""Test the stack without its Airflow, which takes the time: data, ports, and messages when something is wrong."""

import socket
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from makewhole.cli.stack import document
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.stack import local
from makewhole.stack.airflow_server import AirflowServer
from makewhole.stack.kafka_server import KafkaServer
from makewhole.stack.local import Health, StackState, stack_state

pytestmark = pytest.mark.integration

_Usage = namedtuple("_Usage", "total used free")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("MAKEWHOLE_POSTGRES_DSN", raising=False)
    for step in ("migrate", "launch", "wait_ready"):
        monkeypatch.setattr(AirflowServer, step, lambda _: None)
    yield tmp_path
    local.down(tmp_path)


def health(state: StackState, part: str) -> Health:
    return next(each.health for each in state.parts if each.name == part)


@pytest.mark.extended
def test_data_and_addresses_survive_down_and_up(home: Path) -> None:
    local.up(home)
    before = stack_state(home)
    assert before.bootstrap and before.dsn
    admin = AdminClient({"bootstrap.servers": before.bootstrap, "log_level": 0})
    created = admin.create_topics([NewTopic("kept", 1, 1)])
    created["kept"].result(10)
    connection = psycopg2.connect(before.dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute("create table kept as select 7 as id")
    connection.close()

    local.down(home)
    stopped = stack_state(home)
    assert stopped.is_down
    local.up(home)
    after = stack_state(home)

    assert (after.bootstrap, after.dsn, after.password) == (before.bootstrap, before.dsn, before.password)
    assert "kept" in AdminClient({"bootstrap.servers": before.bootstrap, "log_level": 0}).list_topics(timeout=10).topics
    connection = psycopg2.connect(before.dsn)
    with connection.cursor() as cursor:
        cursor.execute("select id from kept")
        assert cursor.fetchall() == [(7,)]
    connection.close()


@pytest.mark.extended
def test_a_part_that_hesitates_is_asked_again_before_it_is_called_silent(home: Path) -> None:
    kafka = KafkaServer(home / "kafka")
    kafka.start()
    kafka.process(1).pause()
    resume = threading.Timer(4, kafka.process(1).resume)
    resume.start()

    state = stack_state(home)

    assert health(state, "kafka-1") is Health.HEALTHY
    assert not resume.is_alive()


@pytest.mark.extended
def test_a_port_taken_meanwhile_is_said_and_new_ports_are_a_way_out(home: Path) -> None:
    kafka = KafkaServer(home / "kafka")
    kafka.launch()
    kafka.stop()
    port = kafka.ports[0]

    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(PermanentError, match=rf"port {port}.* is held by .*--new-ports"):
            local.up(home)
        with pytest.raises(RefusedError, match=r"ports change only while nothing runs; `makewhole down` first"):
            local.up(home, new_ports=True)
        local.down(home)
        local.up(home, new_ports=True)
        state = stack_state(home)

    assert health(state, "kafka-1") is Health.HEALTHY
    assert state.bootstrap != f"127.0.0.1:{port}"


def test_another_number_of_nodes_is_refused_with_the_ways_out(home: Path) -> None:
    KafkaServer(home / "kafka").launch()

    with pytest.raises(RefusedError) as refused:
        local.up(home, kafka_nodes=3)

    assert str(refused.value) == (
        f"the Kafka in {home} has 1 node(s), not 3; leave --kafka-nodes out, use another MAKEWHOLE_HOME, "
        f"or `makewhole down` and remove {home / 'kafka'}, its topics with it"
    )


def test_a_full_disk_stops_up_before_anything_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: _Usage(10**9, 10**9, 7 * 1024**2))

    with pytest.raises(PermanentError) as refused:
        local.up(home)

    assert str(refused.value) == (
        f"only 7 MiB are free at {home}, 512 are needed to start; "
        "free some, or name a folder on another disk in MAKEWHOLE_HOME"
    )
    assert stack_state(home).is_down
    assert stack_state(home).disk_is_scarce


def test_what_was_never_started_is_shown_as_stopped(tmp_path: Path) -> None:
    shown = document(stack_state(tmp_path / "nowhere"))

    assert shown["kafka"] == {"bootstrap": None}
    assert shown["postgres"] == {"dsn": None}
    assert shown["airflow"] == {"url": None, "user": None, "password": None}
    assert not (tmp_path / "nowhere").exists()
