"""Test that a value has one text in a JSON record and in the row that PostgreSQL made of it."""

import json
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compute.canonical import canonical_text
from makewhole.compute.keys import component_text, key_text
from tests.integration.postgres.people import People

pytestmark = pytest.mark.integration

TEXTS = [
    "",
    " ",
    "a  ",
    "\n",
    "\r\n",
    "a\rb",
    '"',
    '""',
    "'",
    "\\",
    "\\N",
    "\\.",
    ",",
    'a,b\n"c"',
    "NULL",
    "null",
    "ü",
    "e\u0301",
    "\u00e9",
    "🙂",
    "\u202e\u200b",
    "<script>",
    "=cmd()",
    "\x1b[31m",
    "\x7f",
    "k" * 3_000,
    None,
]
NUMBERS = [
    "0",
    "-0.0",
    "1",
    "-1",
    "1.0",
    "1.10",
    "0.05",
    "-0.05",
    "0.049",
    "2.675",
    "-2.675",
    "1e2",
    "1e-3",
    "0.000000001",
]
BIG = ["9007199254740993", "-9223372036854775808", "9223372036854775807", "12345678901234567890.123456789"]
FLOATS = ["0.1", "0.30000000000000004", "123456789.12345679", "9007199254740991", "-1e-17", "1e15", "-0.0"]
MOMENTS = [
    "2013-01-01T05:00:00Z",
    "2013-01-01T05:00:00+02:00",
    "2013-01-01 05:00:00",
    "2013-01-01T05:00:00.123456Z",
    "2013-01-01T05:00:00.1234565Z",
    "2013-01-01T05:00:00.1234574Z",
    "2013-12-31T23:59:59.9999996Z",
    "1969-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
]
ROUNDED = [
    f"{second}.{fraction}Z"
    for second in ("1969-12-31T23:59:59", "1999-12-31T23:59:59", "2000-01-01T00:00:00", "2013-01-01T05:00:00")
    for fraction in ("5", "0005", "4995", "000499", "9995", "999999", "25", "15", "123456")
]
CASES: list[tuple[str, str, list[Any]]] = [
    ("string", "text", TEXTS),
    ("string", "varchar", TEXTS),
    ("int", "integer", [0, 1, -1, 2_147_483_647, None]),
    ("int", "numeric", [Decimal(text) for text in ["0", "-0.0", "1.0", "100", "1e2", *BIG[:3]]]),
    ("bigint", "bigint", [Decimal(text) for text in BIG[:3]]),
    ("double", "double precision", [Decimal(text) for text in [*NUMBERS, "1e300", "1e-300", "0.1", "1e20", "1e16"]]),
    ("boolean", "boolean", [True, False, None]),
    ("decimal(6,1)", "numeric", [Decimal(text) for text in NUMBERS]),
    ("decimal(38,9)", "numeric", [Decimal(text) for text in [*NUMBERS, *BIG]]),
    ("decimal(6,0)", "numeric", [Decimal(text) for text in [*NUMBERS, "0.5", "1.5", "-0.5", "-0.4"]]),
    ("decimal(6,2)", "double precision", [Decimal(text) for text in ["0.1", "2.5", "-1.25", "100"]]),
    ("decimal(38,18)", "double precision", [Decimal(text) for text in FLOATS]),
    ("decimal(38,9)", "real", [Decimal(text) for text in ["0.1", "1234567", "16777215", "-0.0000012"]]),
    ("bigint", "double precision", [9_007_199_254_740_991, 9_007_199_254_740_990, -1_234_567_890_123_457, 0, None]),
    ("int", "real", [1_234_567, 16_777_215, -7]),
    ("timestamp", "timestamptz", MOMENTS),
    ("timestamp", "timestamp", [text for text in MOMENTS if "+" not in text]),
    ("timestamp(3)", "timestamptz(3)", [*MOMENTS, *ROUNDED]),
    ("timestamp(0)", "timestamp(0)", ROUNDED),
    ("timestamp(1)", "timestamptz", ROUNDED),
    ("timestamp(0)", "date", ["2013-01-01", "1999-12-31", None]),
    ("timestamp(3)", "text", ROUNDED),
    ("date", "date", ["2013-02-28", "2012-02-29", "0001-01-01", "9999-12-31", "infinity", None]),
    ("double", "double precision", ["NaN", "Infinity", "-Infinity"]),
    ("real", "real", [Decimal(text) for text in ["0.1", "0.10000000149011612", "16777217", "3.4e38", "1e-45", "1e16"]]),
    ("time", "time", ["12:00", "12:00:00.500", "00:00:00.000001", "24:00"]),
    ("time", "text", ["12:00", "12:00:00.500", "x"]),
    ("macaddr", "macaddr", ["08-00-2B-01-02-03", "0800.2b01.0203", "0800-2b01-0203", "08002b-010203"]),
    ("real", "text", ["0.1", "0.10000000149011612", "1e39", "NaN", "x"]),
    ("int", "numeric", ["NaN", "Infinity"]),
    ("decimal(6,1)", "numeric", ["NaN", "-Infinity", Decimal("1e100"), -(10**90)]),
    ("timestamp", "timestamptz", ["infinity", "-infinity"]),
]


@pytest.mark.parametrize(
    ("declared", "column", "values"), CASES, ids=[f"{case[0]}-{case[1]}-{len(case[2])}" for case in CASES]
)
def test_a_value_has_the_same_text_from_json_and_from_a_table(
    people: People, declared: str, column: str, values: list[Any]
) -> None:
    people.sql(f"create table rows (id int primary key, x {column})")
    for number, value in enumerate(values):
        people.sql("insert into rows values (%s, %s)", number, value)

    texts = dict(people.texts(people.shape(compare={"x": declared})).select("key", "c:x").rows())

    assert texts == {str(number): canonical_text(value, declared) for number, value in enumerate(values)}


def test_a_domain_of_floating_point_numbers_is_read_by_its_digits_too(people: People) -> None:
    people.sql("create domain measure as float8; create table rows (id int, x measure)")
    people.sql("insert into rows values (1, 9007199254740991), (2, 9007199254740990)")

    rows = people.texts(people.shape(compare={"x": "bigint"}))

    assert rows["c:x"].to_list() == ["9007199254740991", "9007199254740990"]


def test_null_and_the_empty_text_are_distinguished(people: People) -> None:
    people.sql("create table rows (id int, x text); insert into rows values (1, ''), (2, null)")

    rows = people.texts(people.shape(compare={"x": "string"}))

    assert rows["c:x"].to_list() == ["", None]
    assert rows["row_hash"].n_unique() == 2


def test_postgresql_itself_refuses_nul_and_so_do_we(people: People) -> None:
    people.sql("create table rows (id text)")

    with pytest.raises(ValueError, match="NUL"):
        people.sql("insert into rows values (%s)", "a\x00b")
    assert people.look_up(people.shape(), ["a\x00b"]) == []


def test_what_json_cannot_say_stops_nothing(people: People) -> None:
    people.sql(
        "create table rows (id int, d float8, n numeric, t timestamp, day date);"
        "insert into rows values (1, 'NaN', 'NaN', 'infinity', '-infinity'), "
        "(2, '-Infinity', 1, '-infinity', 'infinity')"
    )
    compare = {"d": "double", "n": "decimal(6,1)", "t": "timestamp", "day": "date"}

    rows = people.texts(people.shape(compare=compare, time="t"))

    assert rows.select(*(f"c:{name}" for name in compare)).rows() == [
        ("nan", "NaN", "!infinity", "!-infinity"),
        ("-inf", "1.0", "!-infinity", "!infinity"),
    ]
    assert rows["time"].to_list() == [None, None]


def test_a_fraction_in_a_column_that_is_declared_whole_is_not_rounded_to_a_match(people: People) -> None:
    people.sql("create table rows (id int, x numeric); insert into rows values (1, 1.5), (2, 1e30)")

    rows = people.texts(people.shape(compare={"x": "int"}))

    assert rows["c:x"].to_list() == ["1.5", "1" + "0" * 30]
    assert canonical_text(2, "int") == "2"


NO_VALUES = [
    "n/a",
    "",
    " 7",
    "1_2",
    "1e9999",
    "TRUE",
    "2013-02-30",
    "12:00",
    "infinity",
    "NaN",
    "{1",
    "!x",
    "9" * 1_200,
]


@pytest.mark.parametrize("declared", ["int", "decimal(8,2)", "double", "boolean", "timestamp", "date", "json", "uuid"])
def test_a_text_that_is_no_value_of_its_type_equals_only_itself_and_stops_nothing(
    people: People, declared: str
) -> None:
    people.sql("create table rows (id int, x text)")
    for number, value in enumerate(NO_VALUES):
        people.sql("insert into rows values (%s, %s)", number, value)

    texts = dict(people.texts(people.shape(compare={"x": declared})).select("key", "c:x").rows())

    assert texts == {str(number): canonical_text(value, declared) for number, value in enumerate(NO_VALUES)}
    assert len(set(texts.values())) >= len(NO_VALUES) - 1, "two texts became one value"


# Keys


def test_composite_keys_have_the_same_text_from_json_and_from_a_table(people: People) -> None:
    people.sql("create table rows (a text, b text, n int)")
    parts = [text for text in TEXTS if text]
    for number, text in enumerate(parts):
        people.sql("insert into rows values (%s, %s, %s)", text, parts[-1 - number], number)

    keys = set(people.read(people.shape(key=("a", "b", "n")))["key"])

    assert keys == {key_text([text, parts[-1 - number], str(number)]) for number, text in enumerate(parts)}
    assert all(len(json.loads(key)) == 3 for key in keys)
    assert set(people.look_up(people.shape(key=("a", "b", "n")), sorted(keys))) == keys


def test_a_composite_key_with_an_empty_or_null_part_is_no_key(people: People) -> None:
    people.sql("create table rows (a text, b text); insert into rows values ('x', ''), ('x', null), ('x', 'y')")

    assert people.read(people.shape(key=("a", "b")))["key"].to_list() == [None, None, '["x","y"]']


@pytest.mark.parametrize(
    ("column", "value", "json_value"),
    [
        ("int", 7, 7),
        ("bigint", 9223372036854775807, 9223372036854775807),
        ("numeric", Decimal("1.5"), Decimal("1.50")),
        ("boolean", True, True),
        ("text", " x ", " x "),
        ("uuid", "6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        ("char(5)", "ab", "ab"),
    ],
)
def test_a_single_key_has_the_same_text_from_json_and_from_a_table(
    people: People, column: str, value: Any, json_value: Any
) -> None:
    people.sql(f"create table rows (id {column})")
    people.sql("insert into rows values (%s)", value)

    assert people.read(people.shape())["key"].to_list() == [component_text(json_value)]
    assert people.look_up(people.shape(), [component_text(json_value)]) == [component_text(json_value)]
