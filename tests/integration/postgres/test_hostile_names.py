"""Test that any name that PostgreSQL has is read and written as it is, in every role that a column or a table has."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from makewhole.compute.row_filter import typed_term
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import Erased, KeyType, PointKind, TablePoint
from makewhole.model.window import TimeSlice
from makewhole.postgres.postgres_tables import PostgresTables
from makewhole.tables.items import QuarantineRows, UpsertRow
from makewhole.tables.progress import ProgressRows
from makewhole.tables.rows import LedgerReading
from makewhole.tables.shape import TableShape, TimeBounds
from tests.integration.postgres.people import People
from tests.integration.postgres.store import Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

NAMES = (
    'x"; drop table "Kept"; --',
    "100 %s of %(x)s",
    "{0} {name} {{}}",
    "it's.a\\name\t",
    "Größe",
    "C" * 63,
    "select",
    " ",
)
MOMENT = datetime(2025, 3, 1, 12, tzinfo=UTC)


def quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, people: People) -> Iterator[str]:
    """A name of a schema, a table and of columns; another table is there that an attack would drop."""
    hostile: str = request.param
    people.sql('create table "Kept" (id int)')
    yield hostile
    assert people.sql('select count(*) from "Kept"') == [(0,)]


def role(name: str, number: int) -> str:
    """Return the name with a number, as long as PostgreSQL takes it."""
    return f"{number}{name}"[:63]


def make_table(people: People, name: str) -> tuple[str, list[str]]:
    """Make a table with two rows; return its name in a file, and its columns: key, time, value, text, flag."""
    columns = [role(name, number) for number in range(5)]
    key, time, value, text, flag = map(quoted, columns)
    table = f"{quoted(name)}.{quoted(name)}"
    people.sql(f"create schema {quoted(name)}")
    people.sql(
        f"create table {table} ({key} text primary key, {time} timestamptz, {value} int, {text} text, {flag} timestamp)"
    )
    people.sql(f"insert into {table} values ('a', '2025-03-01 12:00Z', 1, '50%', null), ('b', null, 2, 'x', null)")
    return table, columns


@pytest.mark.parametrize("is_view", [False, True])
def test_rows_are_read_by_any_names(people: People, name: str, is_view: bool) -> None:
    table, (key, time, value, text, flag) = make_table(people, name)
    if is_view:
        view = f"{quoted(name)}.{quoted(role(name, 9))}"
        people.sql(f"create view {view} as select * from {table}")
        table = view
    point = TablePoint(
        name="rows",
        kind=PointKind.LEDGER,
        connection="people",
        table=table,
        key=(key,),
        time=time,
        version=value,
        record_key=text,
        headers=(("h", text),),
        erased=Erased(column=flag),
    )
    shape = TableShape(
        point=point, compare={value: "int", text: "string"}, filters={"a→b": (typed_term(text, "50%", "string"),)}
    )
    tables = PostgresTables(people.connection)
    columns, problems = tables.describe_columns([shape])
    assert problems == []
    assert columns["rows"].types == ("text",)

    assert people.read(shape).sort("key").select("key", f"c:{value}", f"c:{text}", "excluded_by").rows() == [
        ("a", "1", "50%", ""),
        ("b", "2", "x", "a→b"),
    ]
    (frame,) = tables.reader(shape).keys(["a"])
    assert frame.select("key", f"c:{value}", f"c:{text}").rows() == [("a", "1", "50%")]
    bounds = TimeBounds(start=MOMENT, end=MOMENT.replace(hour=13))
    assert sorted(people.read(shape, bounds)["key"].to_list()) == ["a", "b"]
    assert tables.estimate_rows(point, bounds) >= 0
    assert tables.erased_keys(point, ["a", "b"]) == set()
    with tables.hold_view(shape) as view_held:
        slices = [TimeSlice(window=1, start=bounds.start, end=bounds.end)]
        assert view_held.count_rows_and_ahead(slices)[0] == {1: 1}
        assert view_held.size_bytes >= 0
    reading = LedgerReading(columns={value: "int"}, terms=shape.filters["a→b"])
    with tables.session("test") as session:
        if is_view:
            return
        opened = session.open_table(point)
        record = opened.ledger_record("a", reading)
        assert record is not None
        assert (record.key, record.headers, record.passes) == (b"50%", (("h", b"50%"),), True)
        assert record.compared == ((value, "int", "1"),)
        assert opened.ledger_records(["a"], reading) == {"a": record}
        (row,) = opened.valued_rows({value: "int"}, "b")
        assert row.values == {value: "2"}


def test_rows_are_written_moved_aside_and_put_back_by_any_names(people: People, name: str) -> None:
    table, (key, time, value, text, flag) = make_table(people, name)
    store = Store(
        people.connection.dsn, table=table, key=(key,), time=time, version=value, key_layout=(KeyType.STRING,)
    )
    before = people.sql(f"select t::text from {table} t order by 1")
    item = UpsertRow(
        seq=1,
        key="a",
        key_columns=(key,),
        value=json.dumps({value: 5}),
        columns=(value,),
        before=store.rows("a"),
        expected=((value, "int", "5"),),
    )
    new = UpsertRow(
        seq=2,
        key="c",
        key_columns=(key,),
        value=json.dumps({text: "%s"}),
        columns=(key, text),
        before=(),
        expected=((text, "string", "%s"),),
        left=(time, value, flag),
    )
    (gone,) = store.rows("b")

    assert dict(store.apply(item, new).refused) == {}
    assert dict(store.apply(QuarantineRows(seq=3, key="b", survivor=None, extras=(gone,)), chunk=1).refused) == {}
    unfit = UpsertRow(
        seq=4, key="d", key_columns=(key,), value=json.dumps({text: "x"}), columns=(key, text), before=(),
        expected=((text, "string", "y"),), left=(time, value, flag),
    )  # fmt: skip
    refused = store.apply(unfit, chunk=2).refused
    assert text in str(refused[4])

    assert people.sql(f"select {quoted(value)}, {quoted(text)} from {table} t order by {quoted(key)}") == [
        (5, "50%"),
        (None, "%s"),
    ]
    ((how_to_restore,),) = people.sql("select how_to_restore from makewhole.quarantine")
    people.sql(how_to_restore)
    assert set(people.sql(f"select t::text from {table} t")) > {before[1]}


def test_erased_keys_and_progress_are_read_by_any_names(people: People, name: str) -> None:
    table, (key, _, value, text, _) = make_table(people, name)
    store = TablePoint(
        name="s",
        kind=PointKind.STORE,
        connection="people",
        table="s",
        key=("id",),
        erased=Erased(table=table, key=(key,)),
    )
    tables = PostgresTables(people.connection)
    people.sql("create table s (id text)")
    assert tables.erased_keys(store, ["a", "z"]) == {"a"}

    progress = SinkProgress(table=table, partition=value, offset=value, topic=text)
    assert tables.read_progress(store, progress, "50%", [1, 2]) == {
        1: ProgressRows(rows=1, offsets=1, least="1", greatest="1")
    }
