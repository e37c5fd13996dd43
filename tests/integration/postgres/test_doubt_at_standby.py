"""Test that keys which a prepared transaction may hold are in doubt at a standby, too, which shows no such transaction.

Takes long: two servers of its own.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psycopg2
import pytest

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.postgres_tables import PostgresTables
from makewhole.tables.in_doubt import KeysInDoubt, TransactionInDoubt
from tests.integration.postgres.people import People
from tests.world.postgres_servers import primary_and_standby
from tests.world.prepared import prepared_transactions
from tests.world.sql import run_sql

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

_PATIENCE_SECONDS = 30.0


def servers_with_rows(folder: Path, ends: ExitStack, prepared: int) -> tuple[str, str]:
    primary, standby = primary_and_standby(folder, ends, prepared)
    run_sql(primary, "create table rows (id text primary key, amount int)")
    run_sql(primary, "insert into rows values ('k1', 1), ('k2', 2)")
    wait_for(standby, "select count(*) from rows", [(2,)])
    return primary, standby


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A primary and its standby, by their DSNs."""
    with ExitStack() as ends:
        yield servers_with_rows(tmp_path, ends, 8)


def people_of(dsn: str) -> People:
    return People(connection=PostgresConnection(id="people", dsn=dsn))


def looked_up(dsn: str, *keys: str) -> tuple[set[str], tuple[TransactionInDoubt, ...]]:
    people = people_of(dsn)
    reader = PostgresTables(people.connection).reader(people.shape("rows"))
    there = {key for frame in reader.keys(keys) for key in frame["key"].to_list()}
    return there, tuple(reader.in_doubt)


def in_doubt(dsn: str, *keys: str) -> KeysInDoubt:
    people = people_of(dsn)
    return PostgresTables(people.connection).keys_in_doubt(people.shape("rows"), keys)


def wait_for(dsn: str, statement: str, rows: list[tuple[object, ...]]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with suppress(psycopg2.errors.UndefinedTable):
            if run_sql(dsn, statement) == rows:
                return
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_is_prepared_at_the_primary_is_in_doubt_at_the_standby_until_it_is_settled(
    servers: tuple[str, str],
) -> None:
    primary, standby = servers
    assert looked_up(standby, "k1", "new") == ({"k1"}, ())
    with prepared_transactions(primary) as sink:
        sink.prepare("tx", "insert into rows values ('new', 1)", "update rows set amount = 9 where id = 'k2'")
        run_sql(primary, "create table seen (id int)")  # once this is replayed, so is what was before
        wait_for(standby, "select to_regclass('seen') is not null", [(True,)])
        there, transactions = looked_up(standby, "k1", "new")
        assert (there, len(transactions)) == ({"k1"}, 1)
        assert transactions[0].prepared is None and transactions[0].gid.isdigit()
        assert in_doubt(standby, "k1", "k2", "new") == KeysInDoubt(transactions=transactions, keys=frozenset({"k2"}))
        sink.commit("tx")
    wait_for(standby, "select count(*) from rows", [(3,)])
    assert looked_up(standby, "k1", "new") == ({"k1", "new"}, ())
    assert in_doubt(standby, "k1", "k2") == KeysInDoubt()


def test_transactions_that_come_and_go_put_nothing_in_doubt(servers: tuple[str, str]) -> None:
    primary, standby = servers
    is_over = threading.Event()

    def write() -> None:
        with closing(psycopg2.connect(primary)) as session, session.cursor() as cursor:
            while not is_over.is_set():
                cursor.execute("insert into rows values (md5(random()::text), 0)")
                time.sleep(0.3)
                session.commit()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(5):
            assert looked_up(standby, "k1", "new") == ({"k1"}, ())
    finally:
        is_over.set()
        for writer in writers:
            writer.join()


def test_a_primary_that_prepares_none_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    """Its standby has its setting, or more."""
    with ExitStack() as ends:
        primary, standby = servers_with_rows(tmp_path, ends, 0)
        session = ends.enter_context(closing(psycopg2.connect(primary)))
        session.cursor().execute("insert into rows values ('new', 1)")  # and it stays open
        run_sql(primary, "create table seen (id int)")
        wait_for(standby, "select to_regclass('seen') is not null", [(True,)])
        assert looked_up(standby, "new") == (set(), ())
