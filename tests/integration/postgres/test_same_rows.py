"""Test that a table is only taken for unchanged where a reading would send the same rows from the same places."""

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import psycopg2
import pytest

from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import TransientError
from makewhole.postgres.read.export import hold_view
from makewhole.postgres.same_rows import why_not_same
from makewhole.stack.postgres_server import PostgresServer
from makewhole.tables.reading import ReadBefore
from makewhole.tables.shape import EarlierRows, TableShape, TimeBounds
from tests.integration.postgres.people import People
from tests.world.postgres_servers import standby_of

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("kept")]

FIRST, SECOND = datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 2, tzinfo=UTC)
DAY = TimeBounds(start=FIRST, end=SECOND)
DEFINED = "its server was started again or crashed, or its definition or its files changed"
NEWER = "1 of its rows may be newer than that reading"


@dataclass(kw_only=True)
class Known:
    """A table of which the rows of a day were read."""

    people: People
    table: str = "rows"

    @property
    def shape(self) -> TableShape:
        return self.people.shape(self.table, compare={"x": "int"}, time="at")

    def read(self, bounds: TimeBounds | None = DAY) -> ReadBefore:
        rows = self.people.read(self.shape, bounds)
        with hold_view(self.people.connection, self.shape) as view:
            view.plan(bounds, 2)
            return ReadBefore(mark=view.mark(bounds), seen=view.seen, rows=len(rows))

    def why_not(self, before: ReadBefore, bounds: TimeBounds | None = DAY) -> str | None:
        with hold_view(self.people.connection, self.shape) as view:
            return view.why_not_same(bounds, before)


ROWS = (
    "insert into {} select n, n % 7, timestamptz '2012-12-31 12:00Z' + n * interval '1 minute' from "
    "generate_series(1, 2880) n"
)


@pytest.fixture
def known(people: People) -> Known:
    people.sql("create table rows (id int primary key, x int, at timestamptz)")
    people.sql(ROWS.format("rows"))
    return Known(people=people)


def test_a_table_that_was_left_alone_is_the_same_also_after_vacuum_and_beside_changes_of_other_rows(
    known: Known,
) -> None:
    before = known.read()
    assert (before.rows, before.mark is None) == (1440, False)
    with closing(psycopg2.connect(known.people.connection.dsn)) as session:
        session.autocommit = True
        session.cursor().execute("vacuum (freeze, analyze) rows")
    known.people.sql("insert into rows values (9001, 1, '2013-01-02 00:00Z'); delete from rows where id = 1")
    known.people.sql("update rows set x = 9 where at < '2013-01-01Z'; create table other as select 1")
    assert known.why_not(before) is None


@pytest.mark.parametrize(
    "change, reason",
    [
        ("update rows set x = x + 1 where id = 1000", NEWER),
        ("update rows set x = x where id = 1000", NEWER),
        ("delete from rows where id = 1000", "it has 1,439 rows where 1,440 were read"),
        ("delete from rows where id = 1000; insert into rows values (1000, 6, '2013-01-01 04:40Z')", NEWER),
        ("delete from rows where id = 1000; insert into rows values (9000, 6, '2013-01-01 04:40Z')", NEWER),
        ("update rows set at = '2014-01-01Z' where id = 1000", "it has 1,439 rows where 1,440 were read"),
        ("update rows set at = '2014-01-01Z' where id = 999; update rows set at = '2013-01-01Z' where id = 1", NEWER),
        ("insert into rows values (9000, 6, null)", NEWER),
        ("alter table rows drop column x; alter table rows add column x int default 5", DEFINED),
        ("alter table rows rename column x to y; alter table rows add column x int", DEFINED),
        ("alter table rows alter column x type text", "1,440 of its rows may be newer than that reading"),
        ("truncate rows", "it has 0 rows where 1,440 were read"),
        ("cluster rows using rows_pkey", DEFINED),
        ("create table kept as table rows; truncate rows; insert into rows table kept", "1,440 of its rows"),
        ("alter table rows rename to old; alter table twin rename to rows", DEFINED),
        ("alter table late inherit rows", "it has 1,441 rows where 1,440 were read"),
        ("delete from rows where id = 1000; alter table late inherit rows", DEFINED),
    ],
)
def test_each_change_is_seen(known: Known, change: str, reason: str) -> None:
    """Among them are those that no version of a row shows, and those after which there are as many rows."""
    people = known.people
    people.sql("create table twin (like rows including all)")
    people.sql("insert into twin select id, x + 1, at from rows")
    people.sql("create table late (like rows); insert into late values (9000, 1, '2013-01-01 01:00Z')")
    before = known.read()
    for statement in change.split("; "):
        people.sql(statement)
    assert str(known.why_not(before)).startswith(reason)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_a_row_of_a_savepoint_that_was_open_at_the_reading_is_newer(known: Known, stack: ExitStack) -> None:
    """Its transaction id is one that the snapshot does not list, and another row is deleted: the number is the same."""
    session = known.people.session(stack)
    cursor = session.cursor()
    cursor.execute("savepoint inner_one; insert into rows values (9000, 6, '2013-01-01 04:40Z'); release inner_one")
    before = known.read()
    assert before.rows == 1440
    session.commit()
    known.people.sql("delete from rows where id = 1000")
    assert known.why_not(before) == NEWER


def test_rows_of_a_transaction_that_was_open_and_rolled_back_change_nothing(known: Known, stack: ExitStack) -> None:
    session = known.people.session(stack)
    session.cursor().execute("update rows set x = 100")
    before = known.read()
    session.rollback()
    assert known.why_not(before) is None


def test_rows_that_came_late_are_held_to_the_views_that_their_bounds_name(known: Known) -> None:
    ((seen,),) = known.people.sql("select pg_current_snapshot()::text")
    known.people.sql("insert into rows values (9000, 6, '2012-12-31 04:40Z')")
    bounds = TimeBounds(
        start=FIRST,
        end=SECOND,
        seen_before=seen,
        earlier=(EarlierRows(start=datetime(2012, 12, 31, tzinfo=UTC), end=FIRST, seen_before=seen),),
    )
    before = known.read(bounds)
    assert (before.rows, known.why_not(before, bounds)) == (1441, None)
    known.people.sql("insert into rows values (9001, 6, '2012-12-31 05:40Z')")
    assert known.why_not(before, bounds) == NEWER


def test_partitions_are_part_of_a_table(people: People) -> None:
    people.sql("create table rows (id int, x int, at timestamptz) partition by range (id)")
    people.sql("create table low partition of rows for values from (0) to (1500)")
    people.sql("create table high partition of rows for values from (1500) to (5000)")
    people.sql("create table another (like low)")
    people.sql(ROWS.format("rows"))
    people.sql("insert into another select id, x + 1, at from low")
    known = Known(people=people)
    before = known.read()
    assert known.why_not(before) is None
    people.sql("alter table rows detach partition low")
    people.sql("alter table rows attach partition another for values from (0) to (1500)")
    assert known.why_not(before) == DEFINED


def test_labels_of_a_type_are_part_of_what_is_read(people: People) -> None:
    people.sql("create type colour as enum ('red', 'green')")
    people.sql("create table rows (id int, x colour, at timestamptz)")
    people.sql("insert into rows values (1, 'red', '2013-01-01 01:00Z')")
    known = Known(people=people)
    with hold_view(people.connection, people.shape(compare={"x": "string"}, time="at")) as view:
        view.plan(DAY, 1)
        before = ReadBefore(mark=view.mark(DAY), seen=view.seen, rows=1)
    assert (before.mark is None, known.why_not(before)) == (False, None)
    people.sql("alter type colour rename value 'red' to 'rouge'")
    assert known.why_not(before) == DEFINED


@pytest.mark.parametrize(
    "table",
    [
        "create view shown as select * from rows",
        "create domain amount as int; create table shown as select id, x::amount as x, at from rows",
        "create type pair as (a int, b int); create table shown as select id, row(x, 1)::pair as x, at from rows",
        "create table shown as select id, 'int4'::regtype as x, at from rows",
    ],
)
def test_of_some_nothing_shows_it(known: Known, table: str) -> None:
    known.people.sql(table)
    with hold_view(known.people.connection, known.people.shape("shown", compare={"x": "int"}, time="at")) as view:
        assert view.mark(DAY) is None
        assert view.why_not_same(DAY, ReadBefore(mark=None, seen=view.seen, rows=0)) is not None


def test_where_policies_choose_the_rows_nothing_shows_it(known: Known) -> None:
    people, role = known.people, f"clerk_{uuid.uuid4().hex[:8]}"
    people.sql(f"create role {role} login; grant usage on schema public to {role}; grant select on rows to {role}")
    people.sql("alter table rows enable row level security; create policy own on rows using (x < 9)")
    with hold_view(people.connection, known.shape) as view, view.session.cursor() as cursor:
        assert view.mark(DAY) is not None
        cursor.execute(f"set local role {role}")
        assert view.mark(DAY) is None
    people.sql(f"drop owned by {role}; drop role {role}")


@pytest.fixture(scope="module")
def server(server_folder: Path) -> Iterator[PostgresServer]:
    with PostgresServer(server_folder / "same-rows", is_durable=True) as server:
        yield server


@pytest.mark.extended
def test_a_server_that_crashed_or_was_started_again_shows_nothing(server: PostgresServer) -> None:
    """Takes long: it starts twice. A crash gives the transaction ids of commits that were lost to others."""
    people = People(connection=PostgresConnection(id="people", dsn=server.dsn("postgres")))
    people.sql("create table rows (id int primary key, x int, at timestamptz)")
    people.sql(ROWS.format("rows"))
    known = Known(people=people)
    before = known.read()
    assert known.why_not(before) is None
    with closing(psycopg2.connect(people.connection.dsn)) as victim:
        psutil.Process(victim.info.backend_pid).kill()
        _wait_for(people)
    assert known.why_not(before) == DEFINED
    again = known.read()
    assert known.why_not(again) is None
    server.stop()
    server.start()
    _wait_for(people)
    assert known.why_not(again) == DEFINED


def _wait_for(people: People) -> None:
    for _ in range(100):
        time.sleep(0.2)
        try:
            people.sql("select 1")
            people.read(people.shape(), DAY)  # sessions that were kept are of the time before, each of them once
        except (psycopg2.Error, TransientError):
            continue
        return
    raise AssertionError("the server does not answer any more")


@pytest.mark.extended
def test_a_standby_shows_nothing(server: PostgresServer, server_folder: Path) -> None:
    """Takes long: a standby is copied and starts."""
    people = People(connection=PostgresConnection(id="people", dsn=server.dsn("postgres")))
    people.sql("drop table if exists rows; create table rows (id int primary key, x int, at timestamptz)")
    standby = standby_of(server, server_folder / "standby-same-rows", lag="0")
    try:
        copy = People(connection=PostgresConnection(id="people", dsn=standby.dsn("postgres")))
        with hold_view(copy.connection, copy.shape(compare={"x": "int"}, time="at")) as view:
            assert view.mark(DAY) is None
            assert (
                why_not_same(view.session, view.shape, DAY, ReadBefore(mark=None, seen=view.seen, rows=0)) is not None
            )
    finally:
        standby.stop()
