"""Test that a standby is recognised, and held to lag until it has replayed what its primary committed.

Takes long: two servers of its own.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.postgres_tables import PostgresTables
from makewhole.stack.postgres_server import PostgresServer
from tests.world.postgres_servers import standby_of
from tests.world.sql import run_sql

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

_PATIENCE_SECONDS = 30.0


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with ExitStack() as stack:
        primary = PostgresServer(tmp_path / "primary", is_durable=False)
        stack.callback(primary.stop)
        primary.start()
        run_sql(primary.dsn("postgres"), "create table rows (id text)")
        standby = standby_of(primary, tmp_path / "standby", lag="3s")
        stack.callback(standby.stop)
        yield primary, standby


def tables_of(server: PostgresServer) -> PostgresTables:
    return PostgresTables(PostgresConnection(id="people", dsn=server.dsn("postgres")))


def now() -> datetime:
    return datetime.now(UTC)


def test_a_standby_lags_until_it_has_replayed_what_was_committed_and_when_it_is_cut_off(
    servers: tuple[PostgresServer, PostgresServer],
) -> None:
    primary, standby = servers
    at_standby = tables_of(standby)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while at_standby.lags_behind(now()) is not None:  # idle, it is up to date, however long ago the last commit was
        assert time.monotonic() < deadline
        time.sleep(0.2)
    run_sql(primary.dsn("postgres"), "insert into rows values ('k')")
    committed = now()
    time.sleep(0.5)
    reason = at_standby.lags_behind(committed)
    assert run_sql(standby.dsn("postgres"), "select count(*) from rows") == [(0,)]
    assert reason is not None
    assert reason.startswith("the PostgreSQL of connection people is a standby that has replayed no")
    assert "name its primary in the connection if it stays behind" in reason
    assert tables_of(primary).lags_behind(committed) is None
    while at_standby.lags_behind(committed) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert run_sql(standby.dsn("postgres"), "select count(*) from rows") == [(1,)]

    primary.stop()
    while at_standby.lags_behind(now()) is None:  # until it knows that it is cut off
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert at_standby.lags_behind(committed - timedelta(seconds=10)) is None
