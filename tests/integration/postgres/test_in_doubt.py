"""Test which prepared transactions of a database may hold keys of a table, and which of its rows."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from makewhole.model.connection import PostgresConnection
from makewhole.postgres.postgres_tables import PostgresTables
from makewhole.postgres.read import export
from makewhole.postgres.read.expressions import column_types
from makewhole.sql import PgConnection
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.tables.shape import TableShape
from tests.integration.postgres.people import People
from tests.world.databases import Databases
from tests.world.prepared import PreparedTransactions, prepared_transactions

pytestmark = pytest.mark.integration


@pytest.fixture
def sink(people: People) -> Iterator[PreparedTransactions]:
    people.sql("create table rows (id text primary key, at timestamptz, amount int)")
    people.sql("insert into rows select 'k' || n, now(), n from generate_series(1, 5) as n")
    with prepared_transactions(people.connection.dsn) as sink:
        yield sink


def looked_up(people: People, *keys: str, table: str = "rows") -> tuple[set[str], list[str]]:
    """Return the keys that are there, and the transactions that were in doubt meanwhile."""
    reader = PostgresTables(people.connection).reader(people.shape(table))
    there = {key for frame in reader.keys(keys) for key in frame["key"].to_list()}
    return there, [item.gid for item in reader.in_doubt]


def in_doubt(people: People, *keys: str, table: str = "rows") -> set[str]:
    """Return the keys of which a transaction in doubt may have changed a row."""
    shape: TableShape = people.shape(table)
    return set(PostgresTables(people.connection).keys_in_doubt(shape, keys).keys)


def test_an_inserted_row_is_seen_by_no_one_and_its_transaction_is(people: People, sink: PreparedTransactions) -> None:
    assert looked_up(people, "k1", "new") == ({"k1"}, [])
    sink.prepare("tx", "insert into rows values ('new', now(), 1)")
    assert looked_up(people, "k1", "new") == ({"k1"}, ["tx"])
    assert in_doubt(people, "k1", "new") == set()
    sink.commit("tx")
    assert looked_up(people, "k1", "new") == ({"k1", "new"}, [])


def test_rows_that_are_updated_or_deleted_are_in_doubt_until_it_is_settled(
    people: People, sink: PreparedTransactions
) -> None:
    sink.prepare("tx", "update rows set amount = 9 where id = 'k1'", "delete from rows where id = 'k2'")
    assert in_doubt(people, "k1", "k2", "k3", "new") == {"k1", "k2"}
    sink.roll_back("tx")
    assert in_doubt(people, "k1", "k2", "k3") == set()


def test_the_changes_of_a_savepoint_and_beside_another_locker_are_in_doubt(
    people: People, sink: PreparedTransactions
) -> None:
    with ExitStack() as stack:
        other = people.session(stack)
        other.cursor().execute("select * from rows where id = 'k3' for key share")
        sink.prepare(
            "tx",
            "savepoint one",
            "update rows set amount = 9 where id = 'k1'",
            "release savepoint one",
            "update rows set amount = 9 where id = 'k3'",
        )
    assert in_doubt(people, "k1", "k2", "k3") == {"k1", "k3"}


def test_rows_that_are_merely_locked_put_nothing_in_doubt(people: People, sink: PreparedTransactions) -> None:
    sink.prepare("tx", "select * from rows where id = 'k1' for update")
    assert (in_doubt(people, "k1"), looked_up(people, "new")) == (set(), (set(), []))
    sink.prepare("writes", "select * from rows where id = 'k2' for update", "insert into rows values ('new')")
    assert in_doubt(people, "k1", "k2", "k3") == {"k1", "k2"}  # which of them also changed its row cannot be seen


def test_what_was_rolled_back_and_what_only_reads_puts_nothing_in_doubt(
    people: People, sink: PreparedTransactions
) -> None:
    sink.prepare("reads", "select count(*) from rows", "create table other (id text)")
    sink.prepare("old", "update rows set amount = 9")
    sink.roll_back("old")
    assert (in_doubt(people, "k1", "k2"), looked_up(people, "new")) == (set(), (set(), []))


def test_a_transaction_on_another_table_or_of_another_database_puts_nothing_in_doubt(
    people: People, sink: PreparedTransactions, databases: Databases
) -> None:
    people.sql('create table "rows.of" (id text primary key)')
    people.sql("create schema other create table rows (id text primary key)")
    sink.prepare("other", 'insert into "rows.of" values (1)', "insert into other.rows values (1)")
    with databases.of_a_test("test") as dsn, prepared_transactions(dsn) as of_other:
        create = "create table rows (id text primary key, at timestamptz, amount int)"
        with closing(psycopg2.connect(dsn)) as session, session, session.cursor() as cursor:
            cursor.execute(create)
        of_other.prepare("elsewhere", "insert into rows values ('new')")
        assert looked_up(people, "new") == (set(), [])
        there = People(connection=PostgresConnection(id="people", dsn=dsn))
        assert looked_up(there, "new") == (set(), ["elsewhere"])


def test_a_transaction_on_a_partition_an_heir_or_what_a_view_reads_counts(
    people: People, sink: PreparedTransactions
) -> None:
    people.sql("create table parts (id text primary key, at timestamptz, amount int) partition by list (id)")
    people.sql("create table part_1 partition of parts for values in ('new')")
    people.sql("create table heir () inherits (rows)")
    people.sql("create view seen as select * from (select * from rows union all select * from parts) as r")
    sink.prepare("part", "insert into part_1 values ('new')")
    assert looked_up(people, "new", table="parts") == (set(), ["part"])
    assert (looked_up(people, "new"), looked_up(people, "new", table="seen")) == ((set(), []), (set(), ["part"]))
    sink.prepare("heir", "insert into heir values ('new')")
    assert looked_up(people, "new") == (set(), ["heir"])
    # The rows of a view carry no mark: any of them may be changed.
    assert in_doubt(people, "k1", "k2", table="seen") == {"k1", "k2"}


def test_all_of_them_are_named_whoever_owns_them_and_whatever_their_names(
    people: People, sink: PreparedTransactions
) -> None:
    odd = 'it\'s a "gid" % with ünusual\ncharacters; -- \\'
    people.sql("create table other (id text)")
    sink.prepare(odd, "insert into rows values ('a')", "insert into other values ('a')")
    for number in range(11):
        sink.prepare(f"many-{number}", f"insert into rows values ('many-{number}')")
    name = people.sql("select 'reader_' || md5(current_database())")[0][0]
    people.sql(f"create role {name} login password 'x'; grant select on rows to {name}")
    try:
        dsn = make_dsn(people.connection.dsn, user=name, password="x")
        reader = PostgresTables(PostgresConnection(id="people", dsn=dsn)).reader(people.shape("rows"))
        assert not list(reader.keys(["new"]))
    finally:
        people.sql(f"drop owned by {name}; drop role {name}")
    assert [item.gid for item in reader.in_doubt] == [odd, *(f"many-{number}" for number in range(11))]
    first = reader.in_doubt[0]
    assert (first.owner, first.tables, first.is_writing) == ("postgres", ("public.other", "public.rows"), True)
    assert isinstance(first, TransactionInDoubt) and first.prepared is not None and first.prepared.tzinfo is not None


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed meanwhile", "prepared meanwhile"])
def test_one_that_is_settled_or_prepared_while_keys_are_read_is_named(
    people: People, sink: PreparedTransactions, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    if is_committed:
        sink.prepare("tx", "insert into rows values ('new')")

    def then(session: PgConnection, shape: TableShape) -> dict[str, str]:
        types = column_types(session, shape)  # the first statement of the view of the data
        sink.commit("tx") if is_committed else sink.prepare("tx", "insert into rows values ('new')")
        return types

    monkeypatch.setattr(export, "column_types", then)
    assert looked_up(people, "new") == (set(), ["tx"])
