"""Test catalogues beside sessions that stand still, and servers that say nothing: they are waited for only so long."""

import socket
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
from sqlalchemy.exc import DBAPIError

from makewhole.config.connections import from_environment
from makewhole.datasets.iceberg import patient_rest, sql_sessions
from makewhole.datasets.iceberg.catalog import load_table, open_catalog
from makewhole.kinds import tables_of
from makewhole.model.connection import IcebergConnection
from makewhole.model.errors import ConfigurationError, TransientError
from tests.integration.datasets.test_iceberg_chunks import TABLE, chunk_id, new_row, write
from tests.world.iceberg_lake import Lake, in_order, rows_of
from tests.world.orders import orders

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


@pytest.fixture
def own(lake: Lake, journal: str, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose catalogue is in the database of the journal."""
    own = replace(lake, uri=urlunsplit(urlsplit(journal)._replace(scheme="postgresql+psycopg2")))
    own.make_table(TABLE)
    own.append(TABLE, rows_of(orders(range(3))))
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", own.described)
    return own


def shorten(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have a limit be a fraction of a second."""
    monkeypatch.setitem(sql_sessions._OF_TRANSACTIONS, name, "300ms")


def test_a_lock_that_a_stopped_writer_holds_is_not_waited_for_for_ever(
    own: Lake, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tables_of(from_environment("lake"))
    write(tables, chunk_id(), new_row(0, 5))
    shorten(monkeypatch, "lock_timeout")
    stopped = psycopg2.connect(journal)
    with stopped.cursor() as cursor:
        cursor.execute("update iceberg_tables set metadata_location = metadata_location")
    with pytest.raises(TransientError, match=r"makewhole.effects at connection lake waits in vain for another session"):
        write(tables, chunk_id(1), new_row(1, 6))
    stopped.close()

    assert write(tables, chunk_id(1), new_row(1, 6)).actions == 1
    assert own.rows(TABLE) == in_order(rows_of(orders([0, 1, 2, 5, 6])))


def test_a_session_that_stands_still_in_a_transaction_is_ended(own: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch, "idle_in_transaction_session_timeout")
    connection = from_environment("lake")
    assert isinstance(connection, IcebergConnection)
    engine = open_catalog(connection).engine  # type: ignore[attr-defined]
    with engine.connect() as session, psycopg2.connect(own.uri.replace("+psycopg2", "")) as other:
        session.exec_driver_sql("select * from iceberg_tables for update")
        with other.cursor() as cursor:
            cursor.execute("select * from iceberg_tables for update")
        with pytest.raises(DBAPIError, match=r"idle-in-transaction|closed the connection"):
            session.exec_driver_sql("select 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"netloc": "mw_unknown:SECRET@{server}"}, "the server refuses the user or its password (SQLSTATE 28P01)"),
        ({"path": "/mw_unknown"}, "the server has no database of this name (SQLSTATE 3D000)"),
    ],
)
def test_a_catalogue_whose_server_refuses_the_session_is_a_mistake(
    own: Lake, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], message: str
) -> None:
    parts = urlsplit(own.uri)
    changed = {name: text.format(server=parts.netloc.rpartition("@")[2]) for name, text in change.items()}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", replace(own, uri=urlunsplit(parts._replace(**changed))).described)
    connection = from_environment("lake")
    assert isinstance(connection, IcebergConnection)

    with pytest.raises(ConfigurationError) as caught:
        load_table(connection, TABLE)

    [problem] = caught.value.problems
    assert (problem.file, problem.path, problem.found) == ("connections", "lake", message)
    assert "SECRET" not in str(caught.value)


def test_connections_have_the_limits_of_all_others_unless_their_address_has_its_own() -> None:
    properties = {"uri": "postgresql+psycopg2://anna:a%40b@db/lake?connect_timeout=3", "type": "sql"}

    assert sql_sessions.patient_properties(properties) == {
        "uri": "postgresql+psycopg2://anna:a%40b@db/lake?connect_timeout=3&keepalives_count=6&keepalives_idle=60"
        "&keepalives_interval=10",
        "type": "sql",
    }
    for elsewhere in ({"uri": "sqlite:////tmp/catalog.db"}, {"uri": "https://catalog", "type": "rest"}, {}):
        assert sql_sessions.patient_properties(elsewhere) == elsewhere


def test_a_rest_catalogue_that_takes_a_connection_and_says_nothing_is_asked_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patient_rest, "_ANSWER_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        properties = {"type": "rest", "uri": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        connection = IcebergConnection(id="lake", catalog="default", properties=properties)
        with pytest.raises(TransientError, match=r"connection lake does not answer as it should \(ReadTimeout\)"):
            open_catalog(connection)
