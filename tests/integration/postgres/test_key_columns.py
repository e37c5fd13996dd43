"""Test that a key has one text, whether PostgreSQL renders it from a column or we render it from JSON."""

import json
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem, key_text
from makewhole.compute.normalise import table_frame
from makewhole.compute.row_filter import filter_terms
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Semantics
from makewhole.model.points import KeyType
from makewhole.postgres.connect import connect
from makewhole.postgres.read.expressions import column_types
from makewhole.postgres.read.key_conditions import key_condition
from makewhole.postgres.read.ledger import ledger_record
from makewhole.postgres.read.many_keys import ledger_records, rows_of_many_keys
from makewhole.postgres.read.valued_rows import ValuedTable
from makewhole.postgres.table import describe_table, rows_of_key
from makewhole.sql import PgConnection
from makewhole.tables.rows import LedgerReading
from makewhole.tables.shape import TableShape
from tests.integration.postgres.people import People
from tests.world.examples import seeds
from tests.world.key_spellings import MOMENTS, SPELLINGS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280), pytest.mark.usefixtures("kept")]

NATIVE = [
    ("smallint", KeyType.BIGINT),
    ("bigint", KeyType.BIGINT),
    ("bigint", KeyType.DECIMAL),
    ("numeric", KeyType.BIGINT),
    ("numeric", KeyType.DECIMAL),
    ("numeric(12,3)", KeyType.DECIMAL),
    ("real", KeyType.DECIMAL),
    ("double precision", KeyType.DECIMAL),
    ("amount", KeyType.DECIMAL),
    ("uuid", KeyType.UUID),
    ("boolean", KeyType.BOOLEAN),
    ("date", KeyType.DATE),
    ("timestamptz", KeyType.TIMESTAMP),
    ("timestamp", KeyType.TIMESTAMP),
    ("timestamptz(3)", KeyType.TIMESTAMP),
    ("char(12)", KeyType.CHAR),
    ("inet", KeyType.INET),
    ("cidr", KeyType.INET),
]
MANY = settings(
    max_examples=len(seeds(9)),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def rendered(value: Any, *kinds: KeyType) -> str | None:
    """Return the key that we make of JSON values, None where they are none."""
    parts = value if len(kinds) > 1 else [value]
    try:
        return key_text([part_text(part, kind) for part, kind in zip(parts, kinds, strict=True)])
    except KeyProblem:
        return None


def keys_of(people: People, shape: TableShape) -> dict[int, str | None]:
    """Return the key of each row by its number, as a snapshot reads it, None where it has none."""
    rows = people.read(shape)
    if rows.is_empty():
        return {}
    good, bad = table_frame(rows, {"number": "int"})
    numbers = dict(rows.select("place", "c:number").rows())
    keys: dict[int, str | None] = {int(numbers[place]): None for place in bad["place"]}
    return keys | {int(numbers[place]): key for place, key in good.select("place", "key").rows()}


def store_of(session: PgConnection, shape: TableShape) -> ValuedTable:
    """Return the table of a shape, whose values are asked for with its rows."""
    table = describe_table(session, shape.point)
    return ValuedTable(session=session, table=table, point=shape.point, compare=shape.compare)


def fill(people: People, column_type: str, values: list[str]) -> dict[int, Any]:
    """Write the values that a column of this type takes; return each row's value as PostgreSQL makes JSON of it."""
    people.sql("drop table if exists rows; drop domain if exists amount; create domain amount as numeric check (true)")
    people.sql(f"create table rows (id {column_type}, number int)")
    for number, value in enumerate(values):
        try:
            people.sql("insert into rows values (%s, %s)", value, number)
        except psycopg2.DataError:
            continue
    rows = people.sql("select number, row_to_json(r)::text from rows r")
    return {number: json.loads(row, parse_float=Decimal)["id"] for number, row in rows}


def found_again(people: People, shape: TableShape, keys: dict[int, str | None]) -> dict[int, bool]:
    """Return for each row that has a key whether its key finds it, in bulk and alone."""
    wanted = sorted({key for key in keys.values() if key is not None})
    in_bulk = set(people.look_up(shape, wanted))
    with connect(people.connection) as session:
        table = describe_table(session, shape.point)
        alone = {
            key: {json.loads(row.text)["number"] for row in rows_of_key(session, table, shape.point, key)}
            for key in wanted
        }
        for is_exact in (True, False):
            one_by_one = {key: rows_of_key(session, table, shape.point, key, is_exact=is_exact) for key in wanted}
            together = rows_of_many_keys(store_of(session, shape), wanted, is_exact=is_exact) if wanted else {}
            rows_together = {key: [located.row for located in rows] for key, rows in together.items()}
            assert rows_together == {key: rows for key, rows in one_by_one.items() if rows}
    return {number: key in in_bulk and number in alone[key] for number, key in keys.items() if key is not None}


@pytest.mark.parametrize(("column_type", "kind"), NATIVE)
def test_a_column_of_a_type_has_the_keys_of_the_json_that_is_made_of_it(
    people: People, column_type: str, kind: KeyType
) -> None:
    spellings = st.lists(SPELLINGS.get(kind, MOMENTS), min_size=20, max_size=20)

    @MANY
    @given(spellings)
    def check(values: list[str]) -> None:
        in_json = fill(people, column_type, values)
        shape = people.shape(compare={"number": "int"}, key_layout=(kind,))
        keys = keys_of(people, shape)
        assert keys == {number: rendered(value, kind) for number, value in in_json.items()}
        assert found_again(people, shape, keys) == dict.fromkeys(
            [number for number, key in keys.items() if key is not None], True
        )

    check()


def test_an_address_that_is_no_network_finds_no_row_of_a_column_of_networks(people: People) -> None:
    fill(people, "cidr", ["2001:db8::/32"])
    shape = people.shape(compare={"number": "int"}, key_layout=(KeyType.INET,))

    with connect(people.connection) as session:
        table = describe_table(session, shape.point)
        counts = {
            key: len(rows_of_key(session, table, shape.point, key)) for key in ("2001:db8::/32", "2001:db8::1/32")
        }

    assert counts == {"2001:db8::/32": 1, "2001:db8::1/32": 0}


@pytest.mark.parametrize("column_type", ["inet", "cidr"])
def test_an_address_in_any_form_is_the_key_of_the_column_that_takes_it(people: People, column_type: str) -> None:
    @MANY
    @given(st.lists(SPELLINGS[KeyType.INET], min_size=20, max_size=20))
    def check(values: list[str]) -> None:
        fill(people, column_type, values)
        keys = keys_of(people, people.shape(compare={"number": "int"}, key_layout=(KeyType.INET,)))
        read = {number: rendered(values[number], KeyType.INET) for number in keys}
        shortened = {number for number, text in read.items() if text is None}
        assert {values[number] for number in shortened} <= {"10/8", "10.1", "::1.2.3", "1.2.3.4/032"}
        assert {number: key for number, key in keys.items() if number not in shortened} == {
            number: text for number, text in read.items() if number not in shortened
        }

    check()


@pytest.mark.parametrize("kind", list(SPELLINGS))
def test_a_text_in_a_column_is_the_key_that_the_same_text_is_in_json(people: People, kind: KeyType) -> None:
    @MANY
    @given(st.lists(SPELLINGS[kind], min_size=20, max_size=20))
    def check(values: list[str]) -> None:
        in_json = fill(people, "text", values)
        shape = people.shape(compare={"number": "int"}, key_layout=(kind,))
        keys = keys_of(people, shape)
        assert keys == {number: rendered(value, kind) for number, value in in_json.items()}
        assert all(found_again(people, shape, keys).values())

    check()


def test_parts_of_a_key_each_have_their_type(people: People) -> None:
    people.sql("create table rows (number int, id numeric(8,2), region text, day text)")
    people.sql("insert into rows values (0, 5, '007', '2013-01-01'), (1, null, 'a', '2013-01-01'), (2, 5, '', null)")
    people.sql("insert into rows values (3, -0.00, '\"ü\"', '2013-12-31'), (4, 7, 'a', '2013-02-30')")
    kinds = (KeyType.DECIMAL, KeyType.STRING, KeyType.DATE)
    shape = people.shape(key=("id", "region", "day"), compare={"number": "int"}, key_layout=kinds)

    keys = keys_of(people, shape)

    assert keys == {
        0: '["5","007","2013-01-01"]',
        1: None,
        2: None,
        3: '["0","\\"ü\\"","2013-12-31"]',
        4: None,
    }
    assert keys[0] == rendered([Decimal("5.0"), "007", "2013-01-01"], *kinds)
    assert found_again(people, shape, keys) == {0: True, 3: True}


def test_an_index_on_a_numeric_column_serves_its_keys(people: People) -> None:
    people.sql("create table rows (number int, id numeric(12,2) primary key)")
    people.sql("insert into rows select n, n from generate_series(1, 20000) n")
    people.sql("analyze rows")
    shape = people.shape(compare={"number": "int"}, key_layout=(KeyType.DECIMAL,))
    with connect(people.connection) as session, session.cursor() as cursor:
        condition = key_condition(shape, column_types(session, shape), ["5", "7.5", "not a number"])
        cursor.execute("explain select * from rows t where " + condition.as_string(session))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index" in plan and "Seq Scan" not in plan


def test_a_key_that_the_column_cannot_hold_is_reported_whatever_keys_are_asked_for_with_it(people: People) -> None:
    people.sql("create table rows (id bigint, number int)")
    people.sql("insert into rows values (1, 10), (2, 20), (2, 21)")
    shape = people.shape(compare={"number": "int"}, key_layout=(KeyType.STRING,))
    with connect(people.connection) as session:
        by_key = rows_of_many_keys(store_of(session, shape), ["2", "3", "1"], is_exact=False)
        with pytest.raises(
            RefusedError, match=r"unfit: the key columns of \S+\.rows \(id \w+\) cannot hold this key: "
        ):
            rows_of_many_keys(store_of(session, shape), ["1", "none"], is_exact=False)
        again = rows_of_many_keys(store_of(session, shape), ["1"], is_exact=False)

    numbers = {key: [json.loads(located.row.text)["number"] for located in rows] for key, rows in by_key.items()}
    assert numbers == {"2": [20, 21], "1": [10]}
    assert again == {"1": by_key["1"]}


def reading_of(semantics: Semantics, columns: dict[str, str], where: str | None = None) -> LedgerReading:
    """What a hop of these semantics reads of a ledger."""
    is_upsert = semantics is Semantics.UPSERT
    return LedgerReading(columns=columns, terms=filter_terms(where, {}), takes_latest=is_upsert)


@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize("columns", [{}, {"time": "at"}, {"time": "at", "version": "number", "payload": "body"}])
def test_many_keys_have_the_records_that_each_has_alone(
    people: People, semantics: Semantics, columns: dict[str, Any]
) -> None:
    people.sql("create table rows (id text, number int, weight double precision, body text, at timestamptz)")
    people.sql(
        "insert into rows values ('1', 10, 0.1, 'first', '2013-01-02'), ('2', 21, 1, null, '2013-01-03'),"
        " ('2', 20, 3, 'b', '2013-01-02'), ('2', 22, 1e9, 'c', null), ('%', null, null, '{}', '2013-01-01')"
    )
    compare = {"number": "int", "weight": "double"}
    shape = people.shape(compare=compare, **columns)
    keys = ["%", "1", "2", "3"]
    with connect(people.connection) as session:
        table = describe_table(session, shape.point)
        for some in (compare, {}):
            together = ledger_records(session, table, shape.point, keys, reading_of(semantics, some))
            alone = {key: ledger_record(session, table, shape.point, key, reading_of(semantics, some)) for key in keys}
            assert together == {key: record for key, record in alone.items() if record is not None}
            assert sorted(together) == ["%", "1", "2"]
            filtered = ledger_records(session, table, shape.point, keys, reading_of(semantics, some, "number = 20"))
            # Of an event the first row that passes is its record; of versions the latest has to pass.
            is_event = semantics is Semantics.EVENT
            assert {key: record.passes for key, record in filtered.items()} == {"%": False, "1": False, "2": is_event}


@pytest.mark.parametrize("kind", [KeyType.STRING, KeyType.BIGINT])
@pytest.mark.parametrize("analysed", [False, True])
def test_a_key_that_the_column_cannot_hold_is_reported_whatever_the_table_holds(
    people: People, kind: KeyType, analysed: bool
) -> None:
    """An empty table, or one whose other key column has none of the keys, gives a join nothing to cast a key for."""
    unfit = r"unfit: the key columns of \S+\.rows \((region text, )?id bigint\) cannot hold this key: "
    for columns, rows, bad in (
        (("id",), "", "abc"),
        (("id",), "(7, 'x', 70)", "abc"),
        (("region", "id"), "", '["x","abc"]'),
        (("region", "id"), "(7, 'other', 70)", '["x","abc"]'),
    ):
        people.sql("drop table if exists rows; create table rows (id bigint, region text, number int)")
        if rows:
            people.sql(f"insert into rows values {rows}")
        if analysed:
            people.sql("analyze rows")
        layout = tuple(kind if name == "id" else KeyType.STRING for name in columns)
        shape = people.shape(key=columns, compare={"number": "int"}, key_layout=layout)
        good = "7" if len(columns) == 1 else '["other","7"]'
        with connect(people.connection) as session:
            table = describe_table(session, shape.point)
            for is_exact in (True, False):
                with pytest.raises(RefusedError, match=unfit):
                    rows_of_key(session, table, shape.point, bad, is_exact=is_exact)
                with pytest.raises(RefusedError, match=unfit):
                    rows_of_many_keys(store_of(session, shape), [good, bad], is_exact=is_exact)
            with pytest.raises(RefusedError, match=unfit):
                ledger_records(session, table, shape.point, [good, bad], reading_of(Semantics.EVENT, {}))
            by_key = rows_of_many_keys(store_of(session, shape), [good], is_exact=True)
        assert [json.loads(located.row.text)["number"] for located in by_key.get(good, [])] == ([70] if rows else [])


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_key_that_a_domain_does_not_take_is_reported_as_one_that_the_column_cannot_hold(
    people: People, is_empty: bool
) -> None:
    people.sql("create domain small as bigint check (value < 100); create table rows (id small, number int)")
    if not is_empty:
        people.sql("insert into rows values (7, 70)")
    shape = people.shape(compare={"number": "int"}, key_layout=(KeyType.STRING,))
    with connect(people.connection) as session:
        with pytest.raises(
            RefusedError, match=r"unfit: the key columns of \S+\.rows \(id \w+\) cannot hold this key: "
        ):
            rows_of_many_keys(store_of(session, shape), ["500", "7"], is_exact=False)
        by_key = rows_of_many_keys(store_of(session, shape), ["7", "8"], is_exact=False)

    assert [json.loads(located.row.text)["number"] for located in by_key.get("7", [])] == ([] if is_empty else [70])
