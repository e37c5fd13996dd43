"""Test that a table read in COPY's binary format is, byte by byte, the one that PostgreSQL renders as text."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from typing import Any

import polars as pl
import psycopg2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg2 import sql
from psycopg2.extensions import make_dsn

from makewhole.compute.row_filter import typed_term
from makewhole.model.connection import PostgresConnection
from makewhole.model.errors import PermanentError, TransientError
from makewhole.model.points import KeyType
from makewhole.postgres.connect import connect
from makewhole.postgres.read.copy_binary.columns import FieldUse, plain_table, sent_columns
from makewhole.postgres.read.copy_binary.rows import copy_binary_rows
from makewhole.postgres.read.copy_text import copy_text_rows
from makewhole.postgres.read.export import ExportReader
from makewhole.postgres.read.export_parts import ExportPart
from makewhole.postgres.read.expressions import column_types
from makewhole.tables.shape import TableShape
from tests.integration.postgres.people import People
from tests.world.examples import seeds

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

FEW = settings(
    max_examples=len(seeds(12)),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
INTEGERS = {"smallint": 15, "integer": 31, "bigint": 63}
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9).map(str)
NOT_FINITE = st.sampled_from(["NaN", "Infinity", "-Infinity"])
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", " ", "a,b", '"', "\\N", "\\.", "\r\n", "NULL", "ü", "🙂", "x" * 5_000]
)
# To the year 294246: of the last one the text that PostgreSQL renders does not fit 64 bits.
MOMENTS = st.sampled_from(
    [
        *("infinity", "-infinity", "4713-11-24 00:00:00 BC", "0044-03-15 12:00:00.000001 BC", "0001-01-01"),
        *("1969-12-31 23:59:59.999999", "1999-12-31 23:59:59.999999", "2000-01-01", "9999-12-31 23:59:59.999999"),
        *("2013-07-01 05:00:00.123456+05:30", "2013-01-01 00:00:00-08", "10000-01-01", "294246-12-31 23:59:59.999999"),
    ]
) | st.datetimes().map(str)
VALUES: dict[str, st.SearchStrategy[str]] = {
    **{
        name: st.integers(-(2**bits), 2**bits - 1).map(str) | st.sampled_from([str(-(2**bits)), str(2**bits - 1), "0"])
        for name, bits in INTEGERS.items()
    },
    "numeric": DECIMALS | NOT_FINITE | st.sampled_from(["-0.00", "1e100", "-1e-40", "0.005", "-99.995", "9" * 40]),
    "numeric(12,3)": DECIMALS.map(lambda text: text if abs(float(text)) < 1e8 else "1"),
    "numeric(30,20)": st.decimals(-1000, 1000, places=20).map(str),
    "text": TEXTS,
    "varchar": TEXTS,
    "char(12)": st.text("ab ü", max_size=12),
    "boolean": st.sampled_from(["true", "false"]),
    "uuid": st.uuids().map(str),
    "timestamptz": MOMENTS,
    "timestamp": MOMENTS,
    "timestamptz(3)": MOMENTS,
    "date": st.sampled_from(["infinity", "-infinity", "0044-03-15 BC", "10000-01-01"]) | st.dates().map(str),
    "real": st.floats(width=32).map(str),
    "double precision": st.floats().map(str),
    "jsonb": st.sampled_from(['{"b": 1, "a": [null]}', '"ü"']),
    "amount": DECIMALS,
    "word": st.text("abc", max_size=5),
}
NUMBERS = ("int", "bigint", "double", "decimal(30,2)", "decimal(38,18)", "decimal(6,0)")
DECLARED: dict[str, Sequence[str]] = {
    **dict.fromkeys([*INTEGERS, "numeric", "numeric(12,3)", "numeric(30,20)", "amount"], NUMBERS),
    **dict.fromkeys(["real", "double precision"], ("int", "double", "decimal(30,2)")),
    **dict.fromkeys(["timestamptz", "timestamp", "timestamptz(3)"], ("timestamp",)),
    "boolean": ("boolean",),
    "date": ("date",),
}
KINDS: dict[KeyType, Sequence[str]] = {
    KeyType.BIGINT: [*INTEGERS, "numeric"],
    KeyType.DECIMAL: [*INTEGERS, "numeric", "numeric(12,3)", "real", "amount"],
    KeyType.UUID: ["uuid", "text"],
    KeyType.BOOLEAN: ["boolean"],
    KeyType.DATE: ["date"],
    KeyType.TIMESTAMP: ["timestamptz", "timestamp", "timestamptz(3)"],
    KeyType.CHAR: ["char(12)", "text"],
}


def fill(people: People, columns: dict[str, str], rows: Sequence[Sequence[str | None]]) -> None:
    """Make a table of these columns (name → type) with these rows."""
    people.sql(
        "drop table if exists rows; drop domain if exists amount, word;"
        "create domain amount as numeric(20,4) check (value is not null or true); create domain word as text"
    )
    people.sql(f"create table rows ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
    if rows:
        values = ", ".join(f"({', '.join(['%s'] * len(row))})" for row in rows)
        people.sql(f"insert into rows values {values}", *chain.from_iterable(rows))


def read_both_ways(people: People, shape: TableShape, chunk_bytes: int = 100) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the whole table as it is read in binary format, in chunks of so many bytes, and as text."""
    rows = sql.SQL("from rows t")
    with connect(people.connection) as session:
        types = column_types(session, shape)
        binary = list(copy_binary_rows(session, shape, types, rows, chunk_bytes))
        text = list(copy_text_rows(session, shape, types, rows))
    return pl.concat(binary), pl.concat(text)


def require_same(people: People, shape: TableShape) -> None:
    binary, text = read_both_ways(people, shape)
    assert binary.schema == text.schema
    assert binary.rows() == text.rows()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("column_type", list(VALUES))
def test_compared_columns_are_the_same_in_both_formats(people: People, column_type: str) -> None:
    declared = ("string", *DECLARED.get(column_type, ()))

    @FEW
    @given(values=st.lists(st.none() | VALUES[column_type], min_size=1, max_size=25))
    def check(values: list[str | None]) -> None:
        compare = {f"x{number}": kind for number, kind in enumerate(declared)}
        rows = [[str(number), *[value] * len(compare)] for number, value in enumerate(values)]
        fill(people, {"id": "int", **dict.fromkeys(compare, column_type)}, rows)
        require_same(people, people.shape(compare=compare))

    check()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("column_type", "kind"),
    [*((name, KeyType.STRING) for name in VALUES), *((name, kind) for kind, names in KINDS.items() for name in names)],
)
def test_keys_are_the_same_in_both_formats(people: People, column_type: str, kind: KeyType) -> None:
    @FEW
    @given(values=st.lists(st.none() | VALUES[column_type], min_size=1, max_size=25))
    def check(values: list[str | None]) -> None:
        fill(people, {"id": column_type, "n": "int"}, [[value, "1"] for value in values])
        require_same(people, people.shape(key_layout=(kind,)))
        require_same(people, people.shape(key=("id", "n"), key_layout=(kind, KeyType.BIGINT)))

    check()


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("time", ["timestamptz", "timestamp", "timestamptz(3)", "date"])
@pytest.mark.parametrize("version", ["smallint", "integer", "bigint", "numeric(12,3)"])
def test_times_versions_and_filters_are_the_same_in_both_formats(people: People, time: str, version: str) -> None:
    filters = {"a→b": (typed_term("v", 7),), "a→c": (typed_term("v", 8),), "a→d": ()}
    versions = st.integers(-(2**15), 2**15 - 1).map(str)

    @FEW
    @given(rows=st.lists(st.tuples(st.none() | VALUES[time], st.none() | versions), min_size=1, max_size=25))
    @example(rows=[("2013-01-01", "7"), (None, None), ("infinity", "8")])
    def check(rows: list[tuple[str | None, str | None]]) -> None:
        fill(people, {"id": "int", "at": time, "v": version}, [["1", *row] for row in rows])
        require_same(people, people.shape(time="at", version="v", filters=filters))
        require_same(people, people.shape(time="at", filters={"a→d": ()}))

    check()


EARLIER_MOMENTS = ["infinity", "2013-01-01"]
LAST = {"timestamptz": "294276-12-31 23:00+00", "timestamp": "294276-12-31 23:00", "date": "5874897-12-31"}
"""The last moments of each type: no 64 bits hold their microseconds."""


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("version", ["numeric", "timestamptz", "timestamp", "date"])
def test_versions_with_fractions_and_moments_are_the_same_in_both_formats(people: People, version: str) -> None:
    @FEW
    @given(rows=st.lists(st.none() | VALUES[version], min_size=1, max_size=25))
    @example(
        rows=["NaN", "1e30", "0.0000000001", "-2.5"] if version == "numeric" else [*EARLIER_MOMENTS, LAST[version]]
    )
    def check(rows: list[str | None]) -> None:
        fill(people, {"id": "int", "v": version}, [["1", row] for row in rows])
        require_same(people, people.shape(version="v"))

    check()


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/St_Johns"])
def test_the_zone_of_the_server_changes_nothing(people: People, zone: str) -> None:
    (name,) = people.sql("select current_database()")[0]
    people.sql(f"alter database {name} set timezone = '{zone}'; alter database {name} set datestyle = 'German, DMY'")
    moments = ["2013-07-01 05:00:00.123456+05:30", "0044-03-15 12:00:00 BC", "infinity"]
    fill(people, {"id": "timestamptz", "at": "timestamp"}, [[moment, moment] for moment in moments])

    require_same(people, people.shape(time="at", compare={"at": "timestamp", "id": "string"}))


def test_places_are_the_same_in_partitions_and_heirs(people: People) -> None:
    people.sql(
        "create table rows (id int, d int) partition by list (d);"
        "create table rows_1 partition of rows for values in (1);"
        'create schema "S"; create table "S"."Rows 2" partition of rows for values in (2);'
        "insert into rows select n, 1 + n % 2 from generate_series(1, 500) n"
    )
    require_same(people, people.shape())
    people.sql("drop table rows; create table rows (id int); create table heir () inherits (rows)")
    people.sql("insert into rows values (1); insert into heir values (1)")

    binary, text = read_both_ways(people, people.shape())

    assert binary["place"].to_list() == text["place"].to_list() == ["(0,1)", "heir(0,1)"]


def test_a_partition_that_is_attached_while_the_table_is_read_gives_no_wrong_place(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look into the catalogue and the reading a table can get an heir, whose pages are counted from 0."""
    people.sql("create table rows (id int); create table heir (id int)")
    people.sql("insert into rows values (1); insert into heir values (2)")

    def plain_before(session: Any, point: Any) -> int | None:
        table = plain_table(session, point)
        people.sql("alter table heir inherit rows")
        return table

    monkeypatch.setattr("makewhole.postgres.read.copy_binary.rows.plain_table", plain_before)
    with connect(people.connection) as session, pytest.raises(TransientError) as raised:
        list(copy_binary_rows(session, people.shape(), {"id": "integer"}, sql.SQL("from rows t")))

    assert str(raised.value) == "rows got partitions while it was read; try again"


def test_plain_types_are_sent_as_they_are_stored(people: People) -> None:
    """Who changes the choice of columns shall see it here, and not as a slower night."""
    fill(
        people,
        {"id": "text", "at": "timestamptz", "n": "numeric(12,2)", "i": "int", "u": "uuid", "f": "real", "v": "bigint"},
        [],
    )
    shape = people.shape(
        time="at", version="v", compare={"n": "decimal(12,2)", "i": "bigint", "u": "string", "f": "double"}
    )
    with connect(people.connection) as session:
        sent = sent_columns(shape, column_types(session, shape), is_plain=True)
        selected = {column.name: (column.selected.as_string(session), column.use) for column in sent}

    assert selected == {
        "key": ('t."id"', FieldUse.TEXT),
        "place": ("t.ctid", FieldUse.RENDERED),
        "table": ("t.tableoid", FieldUse.TABLE),
        "time_us": ('t."at"', FieldUse.NUMBER),
        "version": ('t."v"', FieldUse.NUMBER),
        "c:n": ('t."n"', FieldUse.RENDERED),
        "c:i": ('t."i"', FieldUse.RENDERED),
        "c:u": ('t."u"', FieldUse.RENDERED),
        "c:f": ('t."f"::text', FieldUse.TEXT),
    }


# What is long, broken or cut off


def test_the_last_years_that_postgresql_knows_are_read(people: People) -> None:
    fill(people, {"id": "int", "at": "timestamptz"}, [["1", "294276-12-31 23:59:59.999999+00"]])
    with connect(people.connection) as session:
        shape = people.shape(time="at", compare={"at": "timestamp"})
        (frame,) = copy_binary_rows(session, shape, column_types(session, shape), sql.SQL("from rows t"))

    assert frame.select("time_us", "c:at").rows() == [(None, "9224318015999999999")]


def test_numbers_that_are_long_from_few_bytes_come_in_several_frames(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makewhole.postgres.read.copy_binary.rows._MOST_TEXT_BYTES", 1 << 20)
    fill(people, {"id": "int", "x": "numeric"}, [])
    people.sql("insert into rows select n, ('1e' || 100000 + n)::numeric from generate_series(1, 50) n")

    reader = ExportReader(people.connection, people.shape(compare={"x": "decimal(38,2)"}), None)
    frames = list(reader.part(None, ExportPart()))

    assert len(frames) == 8
    assert pl.concat(frames)["c:x"].to_list() == ["1" + "0" * (100_000 + n) + ".00" for n in range(1, 51)]
    assert reader.counted == 50


def test_a_value_longer_than_a_chunk_is_read_whole(people: People) -> None:
    fill(people, {"id": "int", "x": "text"}, [])
    people.sql("insert into rows select n, repeat(n::text, 20000000) from generate_series(1, 2) n")

    reader = ExportReader(people.connection, people.shape(compare={"x": "string"}), None)

    texts = pl.concat(list(reader.part(None, ExportPart())))["c:x"]
    assert [(text[0], len(text)) for text in texts] == [("1", 20_000_000), ("2", 20_000_000)]


def test_a_text_that_is_not_utf8_is_refused_and_not_quoted(people: People) -> None:
    """A server whose encoding is SQL_ASCII takes any bytes, and says so where they are no text for us."""
    name = f"{people.sql('select current_database()')[0][0]}_ascii"
    make = f"create database {name} encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0"
    with closing(psycopg2.connect(people.connection.dsn)) as session:
        session.autocommit = True
        session.cursor().execute(make)
        other = People(connection=PostgresConnection(id="people", dsn=make_dsn(people.connection.dsn, dbname=name)))
        try:
            other.sql("create table rows (id int, x text); insert into rows values (1, E'secret\\xff')")
            with pytest.raises(PermanentError) as raised:
                other.read(other.shape(compare={"x": "string"}))
        finally:
            session.cursor().execute(f"drop database {name}")

    assert str(raised.value) == (
        "connection people: PostgreSQL refused a statement: CharacterNotInRepertoire (22021), while reading rows "
        "(point rows; columns id, x). A value in one of these columns stops the statement: mend it, or name a view "
        "that leaves it out"
    )


def test_a_reader_that_stops_early_does_not_wait_for_the_rest(people: People) -> None:
    people.sql("create table rows (id int, pad text)")
    people.sql("insert into rows select n, repeat('p', 2000) from generate_series(1, 60000) n")
    reader = ExportReader(people.connection, people.shape(compare={"pad": "string"}), None)

    frames = reader.part(None, ExportPart())
    first = next(frames)
    frames.close()

    assert 0 < len(first) < 60_000
    assert reader.counted == 0
