"""Test that no secret is sent with a context, and that who receives it knows the same servers or refuses."""

import pickle
import socket
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from makewhole.lake.storage import Storage
from makewhole.model.connection import Connection, KafkaConnection, ObjectStoreConnection, PostgresConnection
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.pipeline import Pipeline
from makewhole.model.window import Window
from makewhole.window.context import WindowContext

pytestmark = pytest.mark.unit

SECRET = "pl4nted"
NOW = datetime(2025, 3, 1, tzinfo=UTC)
KAFKA = KafkaConnection(
    id="log", properties={"bootstrap.servers": "a:1, b:2", "sasl.username": "u", "sasl.password": SECRET}
)
DATABASE = PostgresConnection(id="db", dsn=f"postgresql://u:{SECRET}@h:5432/d?options=-csearch_path%3Ddw")
_PLACE = f"connections of the Python workers on {socket.gethostname()}"


def context(connections: Mapping[str, Connection]) -> WindowContext:
    return WindowContext(
        pipeline=Pipeline(name="demo", points={}, hops=()),
        window=Window(pipeline="demo", number=1, revision=1, start=NOW, end=NOW, opened_at=NOW, ranges={}),
        connections=connections,
        storage=Storage(root="/nowhere"),
    )


def know(monkeypatch: pytest.MonkeyPatch, **described: str) -> None:
    for name, text in described.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", text)


def test_a_context_is_sent_without_secrets_and_received_with_those_of_the_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = pickle.dumps(context({"log": KAFKA, "db": DATABASE}))
    know(
        monkeypatch,
        log='{"conn_type": "kafka", "extra": {"bootstrap.servers": "b:2,a:1", "sasl.password": "another"}}',
        db="postgres://u:another@h:5432/d?options=-csearch_path%3Ddw&connect_timeout=3",
    )

    received = pickle.loads(sent)

    assert SECRET.encode() not in sent
    assert received.connections == {
        "log": KafkaConnection(id="log", properties={"bootstrap.servers": "b:2,a:1", "sasl.password": "another"}),
        "db": PostgresConnection(
            id="db",
            dsn="postgresql://u:another@h:5432/d?options=-csearch_path%3Ddw&connect_timeout=3",
            statement_seconds=received.pipeline.time_limits.longest.total_seconds(),
        ),
    }
    assert (received.pipeline, received.window, received.storage.root) == (
        context({}).pipeline,
        context({}).window,
        "/nowhere",
    )


@pytest.mark.parametrize(
    "text",
    [
        "postgres://u:pw@other:5432/d?options=-csearch_path%3Ddw",
        "postgres://u:pw@h:5433/d?options=-csearch_path%3Ddw",
        "postgres://u:pw@h:5432/e?options=-csearch_path%3Ddw",
        "postgres://v:pw@h:5432/d?options=-csearch_path%3Ddw",
        "postgres://u:pw@h:5432/d",
        '{"conn_type": "kafka", "extra": {"bootstrap.servers": "h:5432"}}',
    ],
)
def test_a_connection_that_leads_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    sent = pickle.dumps(context({"db": DATABASE}))
    know(monkeypatch, db=text)

    with pytest.raises(ConfigurationError) as caught:
        pickle.loads(sent)

    assert str(caught.value) == (
        f"{_PLACE}: db: leads to another server here than where the window was started. Write the same host, port, "
        "database, user and options, or the same bootstrap.servers, in both places"
    )


def test_connections_that_are_not_known_are_all_named_with_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOG", "DB"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{name}", raising=False)
    monkeypatch.delenv("MAKEWHOLE_CONNECTIONS", raising=False)

    with pytest.raises(ConfigurationError) as caught:
        pickle.loads(pickle.dumps(context({"log": KAFKA, "db": DATABASE})))

    assert [(problem.file, problem.path, problem.found) for problem in caught.value.problems] == [
        (f"environment of the Python workers on {socket.gethostname()}", f"AIRFLOW_CONN_{name}", "is not set")
        for name in ("LOG", "DB")
    ]


@pytest.mark.parametrize(
    "connection", [KAFKA, DATABASE, ObjectStoreConnection(id="s", access_key="a", secret_key=SECRET, settings={})]
)
def test_a_connection_itself_cannot_be_sent(connection: object) -> None:
    with pytest.raises(TypeError, match=r"^the connection \w+ holds secrets and does not travel; send its id instead$"):
        pickle.dumps(connection)


def test_an_error_of_a_configuration_keeps_its_problems_when_it_is_sent() -> None:
    error = ConfigurationError([Problem(file="f", path="p", found="is wrong", remedy="Mend it")])

    received = pickle.loads(pickle.dumps(error))

    assert (received.problems, str(received)) == (error.problems, "f: p: is wrong. Mend it")
