"""Test reading and counting the rows of time slices of a table."""

from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from psycopg2 import sql

from makewhole.model.window import TimeSlice
from makewhole.postgres.connect import connect
from makewhole.postgres.read.export_parts import ExportPart
from makewhole.postgres.read.expressions import time_between, time_condition
from makewhole.postgres.read.slices import (
    count_new_rows,
    count_rows,
    count_rows_and_ahead,
    has_time_index,
    rows_ahead,
    size_bytes,
)
from makewhole.postgres.read.visibility import current_snapshot, keys_not_visible
from makewhole.tables.shape import EarlierRows, RowsAhead, TableShape, TimeBounds
from tests.integration.postgres.people import People, planned

pytestmark = pytest.mark.integration


def day(number: int) -> datetime:
    return datetime(2013, 1, number, tzinfo=UTC)


def slices(*numbers: int) -> list[TimeSlice]:
    """Return the slices of windows of a day each; the first from the beginning."""
    return [
        TimeSlice(window=number, start=None if number == 1 else day(number), end=day(number + 1)) for number in numbers
    ]


@pytest.fixture
def big(people: People) -> People:
    """Rows of five months, a minute apart."""
    people.sql("create table rows as select *, null::timestamptz as at from generate_series(1, 200000) as id")
    people.sql("update rows set at = '2013-01-01'::timestamptz + id * interval '1 minute'")
    people.sql("create index on rows (at)")
    with ExitStack() as stack:
        session = people.session(stack)
        session.autocommit = True  # no VACUUM inside a transaction
        session.cursor().execute("vacuum (analyze) rows")
    return people


def explained(people: People, statement: str, shape: TableShape, condition: sql.Composable) -> str:
    with connect(people.connection) as session:
        text = sql.SQL("explain select {} from rows t where {}").format(sql.SQL(statement), condition)
        return str(people.sql(text.as_string(session)))


def test_a_window_and_its_late_rows_are_found_by_the_index_on_the_time_column(big: People) -> None:
    shape = big.shape(time="at")
    before = current_snapshot(big.connection)
    big.sql("insert into rows values (-1, '2013-01-02 10:00'), (-2, null), (-3, '2013-01-01 10:00')")
    late = EarlierRows(start=day(2), end=day(3), seen_before=before)
    bounds = TimeBounds(start=day(3), end=day(4), seen_before=before, earlier=(late,))

    with planned(big.connection, shape, bounds, 4) as plan:
        assert plan.parts == (ExportPart(),)
    assert "Seq Scan" not in explained(big, "1", shape, time_condition(shape.point, bounds))

    read = big.read(shape, bounds)
    assert len(read) == 24 * 60 + 2
    assert {"-1", "-2"} <= set(read["key"]) and "-3" not in set(read["key"])


@pytest.mark.parametrize("seen", ['{"uuid": "u", "snapshot": 1}', "q6urq6urq6s=", ""], ids=["iceberg", "files", "none"])
def test_what_was_seen_of_a_table_of_another_kind_hides_no_row(people: People, seen: str) -> None:
    people.sql("create table rows as select 1 as id, '2013-01-02 10:00'::timestamptz as at")
    shape, late = people.shape(time="at"), EarlierRows(start=day(2), end=day(3), seen_before=seen)

    assert list(people.read(shape, TimeBounds(start=day(3), end=day(4), seen_before=seen, earlier=(late,)))["key"]) == [
        "1"
    ]
    assert keys_not_visible(people.connection, shape, ["1"], seen) == ["1"]


def test_the_rows_of_slices_are_counted_in_the_index_alone(big: People) -> None:
    shape = big.shape(time="at")
    big.sql("insert into rows values (-1, '2013-01-02 10:00'), (-2, null), (-3, '-infinity'), (-4, 'infinity')")

    with connect(big.connection) as session:
        assert size_bytes(session, shape.point) > 8 << 20
        assert has_time_index(session, shape.point)
        assert count_rows(session, shape.point, slices(1, 2, 3)) == {1: 24 * 60 - 1 + 1, 2: 24 * 60 + 1, 3: 24 * 60}
        assert count_rows(session, shape.point, []) == {}
    assert "Index Only Scan" in explained(big, "count(*)", shape, time_between("at", day(2), day(3)))


@pytest.mark.parametrize("index", [None, "(id, at)", "(at) where id > 5"])
def test_without_an_index_that_begins_with_the_time_all_slices_are_counted_at_once(
    people: People, index: str | None
) -> None:
    people.sql("create table rows (id int, at timestamp)")
    people.sql("insert into rows values (1, '2013-01-01 10:00'), (2, '2013-01-02'), (3, '2013-01-02 23:59:59.999999')")
    if index is not None:
        people.sql(f"create index on rows {index}")
    point = people.shape(time="at").point

    with connect(people.connection) as session:
        assert not has_time_index(session, point)
        assert count_rows(session, point, slices(1, 2, 3)) == {1: 1, 2: 2, 3: 0}
        assert count_rows_and_ahead(session, point, slices(1, 2)) == (
            {1: 1, 2: 2},
            RowsAhead(rows=0, oldest=None, newest=None, infinite=0),
        )
        assert count_rows_and_ahead(session, point, [])[0] == {}

    people.sql("insert into rows values (4, '2999-01-01'), (5, '9999-12-31 23:00'), (6, 'infinity'), (7, null)")
    with connect(people.connection) as session:
        ahead = RowsAhead(rows=2, oldest="2999-01-01 00:00:00", newest="9999-12-31 23:00:00", infinite=1)
        assert count_rows_and_ahead(session, point, slices(2)) == ({2: 2}, ahead)
        assert rows_ahead(session, point) == ahead


def test_the_size_and_the_index_of_a_table_in_partitions_are_those_of_all_of_them(people: People) -> None:
    people.sql(
        "create table rows (id int, at timestamptz) partition by range (at);"
        "create table rows_1 partition of rows for values from ('2013-01-01') to ('2013-02-01');"
        "create table rows_2 partition of rows for values from ('2013-02-01') to ('2013-03-01');"
        "insert into rows select n, '2013-01-01'::timestamptz + n * interval '1 hour' from generate_series(0, 1000) n;"
        "create index on rows (at)"
    )
    point = people.shape(time="at").point

    with connect(people.connection) as session:
        sizes = people.sql("select sum(pg_relation_size(oid)) from pg_class where relname in ('rows_1', 'rows_2')")
        assert size_bytes(session, point) == sizes[0][0] >= 16_384
        assert has_time_index(session, point)
        assert count_rows(session, point, slices(1, 2)) == {1: 24, 2: 24}


def test_new_rows_are_those_that_a_snapshot_may_not_have_seen_and_changed_ones(people: People) -> None:
    people.sql("create table rows (id int, at timestamptz)")
    people.sql("insert into rows values (1, '2013-01-02 10:00'), (2, '2013-01-02 11:00'), (3, '2013-01-03')")
    before = current_snapshot(people.connection)
    people.sql("insert into rows values (4, '2013-01-02 12:00'), (5, '2013-01-03')")
    people.sql("update rows set at = '2013-01-02 10:30' where id = 1")
    point = people.shape(time="at").point
    (second,) = slices(2)

    with connect(people.connection) as session:
        assert count_new_rows(session, point, second, before) == 2
        assert count_new_rows(session, point, second, current_snapshot(people.connection)) == 0
