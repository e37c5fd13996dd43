"""Test that what PostgreSQL itself writes for a column compares equal to the column, for the types of every family.

Three writers say what a record may hold: `to_json`, a cast to text, and COPY.
"""

import io
import json
import re
from contextlib import closing
from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from makewhole.compute.canonical import canonical_text
from makewhole.compute.key_layout import column_key_type
from makewhole.compute.key_values import part_text
from makewhole.compute.keys import KeyProblem
from makewhole.compute.value_types import ColumnKind, value_types
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType, PointKind, TablePoint, can_look_up
from makewhole.postgres.read.key_columns import describe_columns
from tests.integration.postgres.people import People
from tests.world.examples import seeds
from tests.world.sql import execute

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280), pytest.mark.usefixtures("kept")]

SPACES = ["''", "' '", "'a  '", "'NULL'", "'n/a'", "'{1,2}'", "'\"x\"'", "'ü🙂'", "E'\\n\\t'", "'true'", "'1.50'"]
MOMENTS = [
    "'2013-01-01 12:00:00'",
    "'2013-07-01 12:00:00.123456'",
    "'1883-11-18 12:00:00'",
    "'0001-01-01'",
    "'9999-12-31 23:59:59.999999'",
    "'10000-01-01'",
    "'294276-12-31 23:59:59.999999'",
    "'0044-03-15 BC'",
    "'4713-01-01 BC'",
    "'infinity'",
    "'-infinity'",
]
NUMBERS = ["0", "'-0.0'", "7", "-7.05", "1e15", "1e16", "1e20", "1e-7", "0.1", "123456.789", "'NaN'"]
JSONS = [
    """'{"b": 1.50, "aa": [null, true, "ü\\n", {}], "a": {"x": 1e2}}'""",
    "'[1, 2]'",
    "'{}'",
    "'[]'",
    "'\"text\"'",
    "'\"1.50\"'",
    "'1.50'",
    "'-0.0'",
    "'true'",
    "'null'",
    "'\"null\"'",
    r"""'"{\"a\": 1}"'""",
]
# Type → values as SQL writes them. With what is refused by name at opening: those of UNREAD.
FAMILIES: dict[str, list[str]] = {
    "smallint": ["0", "-32768"],
    "integer": ["0", "7", "-2147483648"],
    "bigint": ["9223372036854775807", "-9223372036854775808"],
    "numeric": [*NUMBERS, "'Infinity'", "12345678901234567890.123456789000", "0.0000001"],
    "numeric(10,2)": ["5", "-0.01", "12345678.90"],
    "real": [*NUMBERS, "'Infinity'", "16777217", "3.4e38", "1e-45"],
    "double precision": [*NUMBERS, "'-Infinity'", "1e300", "5e-324", "9007199254740993"],
    "money": ["0", "-1234.50", "92233720368547758.07"],
    "oid": ["0", "4294967295"],
    "boolean": ["true", "false"],
    "text": SPACES,
    "varchar(12)": SPACES,
    "char(12)": SPACES,
    "name": ["'a b'", "''"],
    '"char"': ["'a'", "''"],
    "mood": ["'sad'", "'so so'"],
    "word": ["'a'", "' b '"],
    "bytea": ["'\\x00ff'", "''"],
    "uuid": ["'6F9619FF-8B86-D011-B42D-00C04FC964FF'"],
    "timestamp": MOMENTS,
    "timestamp(0)": ["'2013-01-01 12:00:00.5'"],
    "timestamptz": [*MOMENTS, "'2013-01-01 12:00:00+05:30'"],
    "date": ["'2013-01-01'", "'0044-03-15 BC'", "'10000-01-01'", "'infinity'", "'5874897-12-31'"],
    "time": ["'00:00'", "'24:00:00'", "'12:00:00.5'"],
    "timetz": ["'12:00:00+05:30'", "'24:00:00-00'"],
    "interval": ["'5 seconds'", "'1 mon -2 days 03:00'", "'-1 year'"],
    "inet": ["'10.0.0.1'", "'10.0.0.0/8'", "'::1'", "'fe80::/10'", "'::ffff:1.2.3.4'", "'1.2.3.4/32'", "'::1:0'"],
    "cidr": ["'10.0.0.0/8'", "'10.0.0.1/32'", "'::1/128'", "'fe80::/10'", "'::ffff:0:0/96'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "macaddr8": ["'08:00:2b:01:02:03:04:05'"],
    "bit(4)": ["B'0101'"],
    "varbit": ["B'1'", "B''"],
    "point": ["'(1,-2.5)'"],
    "lseg": ["'[(0,0),(1,1)]'"],
    "box": ["'(1,1),(0,0)'"],
    "path": ["'[(0,0),(1,1)]'", "'((0,0),(1,1))'"],
    "polygon": ["'((0,0),(1,1),(1,0))'"],
    "circle": ["'<(0,0),1>'"],
    "tsvector": ["'a:1 b:2'::tsvector"],
    "tsquery": ["'a & b'::tsquery"],
    "pg_lsn": ["'16/B374D848'"],
    "int4range": ["'[1,5)'", "'empty'"],
    "numrange": ["'(,1.50]'"],
    "daterange": ["'[2013-01-01,)'"],
    "tstzrange": ["'[2013-01-01,2013-02-01)'"],
    "int4multirange": ["'{[1,3),[5,7)}'"],
    "json": JSONS,
    "jsonb": JSONS,
    "int[]": ["'{}'", "'{1,NULL,-3}'", "'{{1,2},{3,4}}'", "'[0:1]={7,8}'"],
    "numeric(8,2)[]": ["'{1.50,NaN}'"],
    "float8[]": ["'{0.1,1e20,-0}'"],
    "boolean[]": ["'{t,f,NULL}'"],
    "text[]": ["""'{a,"b c","",NULL,"NULL","\\"","\\\\",",","{}"}'""", "'{}'"],
    "char(5)[]": ["'{a,\"b c\"}'"],
    "timestamptz[]": ["'{2013-01-01 12:00:00+02,infinity}'"],
    "date[]": ["'{2013-01-01}'"],
    "uuid[]": ["'{6F9619FF-8B86-D011-B42D-00C04FC964FF}'"],
    "inet[]": ["'{10.0.0.1,10.0.0.0/8}'"],
    "mood[]": ["'{sad,\"so so\"}'"],
    "jsonb[]": ["""array['{"a": 1.50}', '[1]', '"x"']::jsonb[]"""],
    "interval[]": ["array['1 day', '5 seconds']::interval[]"],
    "addr": ["row('a', 1)"],
    "addr[]": ["array[row('a', 1)]::addr[]"],
    "box[]": ["array['(1,1),(0,0)']::box[]"],
}
UNREAD = {"addr", "addr[]", "box[]", "jsonb[]"}
MAKE = """
create type mood as enum ('sad', 'so so'); create domain word as text; create type addr as (street text, number int)
"""


def declared_for(column_type: str, people: People) -> str | None:
    """Return the type by which a window reads a column that the file declares a string; None: it refuses the column."""
    types, problems = value_types(_pipeline(), _kinds(people))
    assert bool(problems) is (column_type in UNREAD), problems
    if problems:
        assert f" is of type {column_type}, which no type reads" in str(problems[0])
        return None
    return types.values.get("x", "string")


def _pipeline(**settings: Any) -> Pipeline:
    point = TablePoint(name="rows", kind=PointKind.STORE, connection="people", table="rows", key=("id",))
    other = TablePoint(name="rows2", kind=PointKind.LEDGER, connection="people", table="rows", key=("id",))
    hop = Hop(source="rows2", target="rows", remedies=Remedies(**_REPORT), **settings)
    return Pipeline(name="p", points={"rows": point, "rows2": other}, hops=(hop,), compare={"x": "string"})


_REPORT = {"missing": Remedy.REPORT, "duplicate": Remedy.REPORT, "mismatched": Remedy.REPORT}


def _kinds(people: People) -> dict[str, dict[str, ColumnKind]]:
    shapes = [replace(people.shape(), point=point) for point in _pipeline().points.values() if can_look_up(point)]
    described, problems = describe_columns(people.connection, shapes)
    assert not problems
    return {name: dict(columns.kinds) for name, columns in described.items()}


def written(people: People) -> dict[str, list[Any]]:
    """Return what PostgreSQL writes for each row: as JSON (decoded as a record is), as text, by COPY."""
    with closing(psycopg2.connect(people.connection.dsn)) as session:
        execute(session, "set timezone to 'UTC'")
        by_key = {
            key: [json.loads(as_json or "null", parse_float=Decimal), text]
            for key, as_json, text in execute(session, "select id::text, to_json(x)::text, x::text from rows")
        }
        stream = io.StringIO(newline="")
        with session.cursor() as cursor:
            cursor.copy_expert("copy rows (id, x) to stdout", stream)
    for line in stream.getvalue().removesuffix("\n").split("\n"):
        key, _, text = line.partition("\t")
        by_key[key].append(None if text == "\\N" else _unescaped(text))
    return by_key


def _unescaped(text: str) -> str:
    signs = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
    return re.sub(r"\\(.)", lambda match: signs.get(match[1], match[1]), text)


def fill(people: People, column_type: str, values: list[str]) -> None:
    people.sql(f"drop table if exists rows; create table rows (id int, x {column_type})")
    for number, value in enumerate([*values, "null"]):
        people.sql(f"insert into rows values ({number}, {value})".replace("%", "%%"))


def require_equal(people: People, column_type: str, declared: str) -> None:
    """Require that every spelling of a value is the value of its column, by snapshots and by look-ups."""
    frame = people.texts(people.shape(compare={"x": declared}))
    texts = dict(frame.select("key", "c:x").rows())
    for key, spellings in written(people).items():
        assert {canonical_text(spelling, declared) for spelling in spellings} == {texts[key]}, (
            column_type,
            declared,
            spellings,
        )


@pytest.mark.parametrize("part", range(6))
def test_what_postgresql_writes_for_a_column_equals_the_column(people: People, part: int) -> None:
    people.sql(MAKE)
    for column_type in list(FAMILIES)[part::6]:
        fill(people, column_type, FAMILIES[column_type])
        declared = declared_for(column_type, people)
        if declared is not None:
            require_equal(people, column_type, declared)


@pytest.mark.parametrize("part", range(3))
def test_what_postgresql_writes_for_a_key_is_the_key_of_the_row(people: People, part: int) -> None:
    people.sql(MAKE)
    for column_type in [family for family in FAMILIES if family not in UNREAD and not family.endswith("[]")][part::3]:
        fill(people, column_type, FAMILIES[column_type])
        kinds = _kinds(people)["rows"]
        if kinds["x"].nature == "json":
            continue
        kind = column_key_type(kinds["x"].type) or KeyType.STRING
        rows = people.read(people.shape(key=("x",), key_layout=(kind,), compare={"id": "int"}))
        keys = dict(rows.select("c:id", "key").rows())
        for number, spellings in written(people).items():
            read_keys = {key_of(spelling, kind) for spelling in spellings}
            assert read_keys == {keys[number] or None}, (column_type, kind, spellings)


def key_of(spelling: Any, kind: KeyType) -> str | None:
    """Return the key that a spelling is; None where it is none."""
    try:
        return part_text(spelling, kind)
    except KeyProblem:
        return None


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
DRAWN: dict[str, st.SearchStrategy[str]] = {
    "jsonb": DOCUMENTS.map(json.dumps),
    "json": DOCUMENTS.map(json.dumps),
    "text[]": st.lists(st.none() | TEXTS, max_size=4).map(
        lambda texts: (
            "{" + ",".join("NULL" if text is None else json.dumps(text, ensure_ascii=False) for text in texts) + "}"
        )
    ),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30).map(str),
    "double precision": st.floats().map(repr),
    "real": st.floats(width=32).map(repr),
    "timestamptz": st.datetimes(timezones=st.just(UTC)).map(str),
    "interval": st.timedeltas().map(lambda delta: f"{delta.days} days {delta.seconds} seconds"),
    "inet": st.ip_addresses().map(str),
    "text": TEXTS,
}


@pytest.mark.parametrize("column_type", list(DRAWN))
def test_any_value_that_postgresql_writes_equals_its_column(people: People, column_type: str) -> None:
    people.sql(MAKE)
    declared: list[str | None] = []

    @settings(
        max_examples=len(seeds(6)),
        deadline=None,
        phases=(Phase.explicit, Phase.generate),  # each example is twenty rows: to make one smaller takes minutes
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(st.lists(DRAWN[column_type], min_size=20, max_size=20))
    def check(values: list[str]) -> None:
        fill(people, column_type, [])
        with closing(psycopg2.connect(people.connection.dsn)) as session, session:
            for number, value in enumerate(values, 1):
                try:
                    execute(session, "savepoint one")
                    execute(session, "insert into rows values (%s, %s)", (number, value))
                except psycopg2.DataError:  # a text that the type does not take
                    execute(session, "rollback to savepoint one")
        declared[:] = declared or [declared_for(column_type, people)]
        require_equal(people, column_type, str(declared[0]))

    check()
