"""Test that Arrow columns have the texts of declared types that records and tables have, and images that are exact."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.compute.canonical import canonical_text
from makewhole.compute.moments import day_text
from makewhole.compute.normalise import column_texts
from makewhole.datasets.nested_columns import all_types, column_at, leaf_types
from makewhole.datasets.nested_values import array_of, exact_values, json_texts, row_texts
from makewhole.datasets.own_texts import microseconds
from makewhole.datasets.row_keys import key_texts
from makewhole.datasets.value_texts import declared_texts, own_texts
from makewhole.datasets.written_values import exact_value
from makewhole.model.points import KeyType, PointKind, TablePoint

pytestmark = pytest.mark.unit

MOMENT = datetime(2025, 3, 1, 10, 0, 0, 123_456, UTC)


def texts(values: list[Any], kind: Any, declared: str) -> list[str | None]:
    """Return the canonical texts of a column in a declared type."""
    declared_column = declared_texts(pa.array(values, kind), declared)
    return column_texts(declared_column.alias("c"), declared).to_list()


@pytest.mark.parametrize(
    ("kind", "values", "declared", "records"),
    [
        (pa.int32(), [1, -5, None], "int", [1, -5, None]),
        (pa.int64(), [2**62], "bigint", [2**62]),
        (pa.int64(), [7], "decimal(10,2)", [7]),
        (pa.int64(), [7], "double", [7]),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.00")], "decimal(10,2)", [Decimal("1.5"), Decimal(0)]),
        (pa.decimal128(20, 9), [Decimal("0.000000001")], "decimal(20,9)", [Decimal("0.000000001")]),
        (pa.decimal128(10, 2), [Decimal("1.50")], "int", [Decimal("1.5")]),
        (pa.decimal128(10, 4), [Decimal("1.2350")], "decimal(10,2)", [Decimal("1.235")]),
        (pa.float64(), [0.1, -0.0, 1e300, float("nan"), float("-inf")], "double", [0.1, 0, 1e300, "NaN", "-Infinity"]),
        (pa.float32(), [0.1], "double", [0.1]),
        (pa.bool_(), [True, False], "boolean", [True, False]),
        (pa.string(), ["true", "no", "maybe"], "boolean", [True, False, "maybe"]),
        (pa.string(), ["1.50", "x", "!a"], "decimal(10,2)", [Decimal("1.5"), "x", "!a"]),
        (pa.string(), ["é", "", None], "string", ["é", "", None]),
        (pa.date32(), [date(2025, 3, 1), date(1, 1, 1)], "date", ["2025-03-01", "0001-01-01"]),
        (pa.timestamp("us", "UTC"), [MOMENT], "timestamp", ["2025-03-01T12:00:00.123456+02:00"]),
        (pa.timestamp("us"), [MOMENT.replace(tzinfo=None)], "timestamp", ["2025-03-01 10:00:00.123456"]),
        (pa.timestamp("us", "UTC"), [MOMENT], "timestamp(3)", ["2025-03-01T10:00:00.123Z"]),
        (pa.timestamp("us", "UTC"), [MOMENT], "date", ["2025-03-01"]),
        (pa.timestamp("ms", "UTC"), [MOMENT.replace(microsecond=5_000)], "timestamp", ["2025-03-01T10:00:00.005Z"]),
        (pa.timestamp("us"), [datetime(1969, 12, 31, 23, 59, 59, 999_999)], "timestamp",
         ["1969-12-31T23:59:59.999999"]),
        (pa.list_(pa.int64()), [[1, None, 3], [], None], "json", [[1, None, 3], [], None]),
        (pa.list_(pa.float64()), [[1.5, float("nan"), None]], "double[]", [[Decimal("1.5"), "NaN", None]]),
        (pa.list_(pa.string()), [["a,b", 'c"d']], "string[]", [["a,b", 'c"d']]),
        (pa.struct([pa.field("b", pa.int64()), pa.field("a", pa.decimal128(9, 1))]), [{"b": 1, "a": Decimal("2.0")}],
         "json", [{"a": 2, "b": 1}]),
    ],
)  # fmt: skip
def test_values_have_the_texts_that_records_have(
    kind: Any, values: list[Any], declared: str, records: list[Any]
) -> None:
    decoded = [Decimal(repr(value)) if isinstance(value, float) else value for value in records]
    assert texts(values, kind, declared) == [canonical_text(value, declared) for value in decoded]


def test_own_texts_are_those_that_sql_writes() -> None:
    assert own_texts(pa.array([time(1, 2, 3, 4)], pa.time64("us"))).to_list() == ["01:02:03.000004"]
    clocks = [time(10, 0), time(0, 0), time(9, 30, 50, 500_000), None]
    assert own_texts(pa.array(clocks, pa.time32("ms"))).to_list() == ["10:00:00", "00:00:00", "09:30:50.5", None]
    finer = pa.array([36_000_000_000_001], pa.time64("ns"))
    assert own_texts(finer).to_list() == ["10:00:00.000000001"]
    assert own_texts(pa.array([clocks], pa.list_(pa.time64("us")))).to_list() == [
        '["10:00:00","00:00:00","09:30:50.5",null]'
    ]
    assert own_texts(pa.array([b"\x00\xff", None], pa.binary())).to_list() == ["\\x00ff", None]
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))], pa.binary(16)))
    assert own_texts(ids).to_list() == ["00010203-0405-0607-0809-0a0b0c0d0e0f"]
    beyond = pa.array([2**62], pa.int64()).view(pa.timestamp("us", "UTC"))
    assert own_texts(beyond).to_list() == [f"{2**62} us since 1970"]


NESTED = pa.struct([pa.field("topic", pa.string()), pa.field("at", pa.struct([pa.field("p", pa.int32())]))])


def test_parts_of_columns_are_found_behind_dots_and_a_column_of_that_name_before_them() -> None:
    columns: Any = {"m": NESTED, "m.topic": pa.string()}
    schema = pa.schema(columns)
    rows = pa.Table.from_pylist(
        [{"m": {"topic": "a", "at": {"p": 1}}, "m.topic": "own"}, {"m": None, "m.topic": None}], schema=schema
    )
    assert column_at(rows, "m.at.p").to_pylist() == [1, None]
    assert column_at(rows, "m.topic").to_pylist() == ["own", None]
    assert list(leaf_types(pa.schema([pa.field("m", NESTED)]))) == ["m.topic", "m.at.p"]
    assert list(all_types(pa.schema([pa.field("m", NESTED)]))) == ["m", "m.topic", "m.at", "m.at.p"]
    assert column_at(rows, "m.at.q").to_pylist() == [None, None]
    with pytest.raises(KeyError):
        column_at(rows, "n.at")


def point(*key: str, layout: tuple[KeyType, ...] = ()) -> TablePoint:
    return TablePoint(name="lake", kind=PointKind.STORE, connection="lake", table="a.b", key=key, key_layout=layout)


def test_keys_are_texts_of_their_types_and_null_where_a_part_is_none() -> None:
    columns: Any = {"id": pa.string(), "n": pa.int64(), "d": pa.decimal128(9, 2)}
    rows = pa.Table.from_pylist(
        [
            {"id": "O1", "n": 1, "d": Decimal("1.50")},
            {"id": 'a"\\b', "n": 2, "d": Decimal("2.00")},
            {"id": "", "n": 3, "d": None},
            {"id": "x\0", "n": None, "d": None},
        ],
        schema=pa.schema(columns),
    )
    assert key_texts(rows, point("id")).to_list() == ["O1", 'a"\\b', None, None]
    assert key_texts(rows, point("d", layout=(KeyType.DECIMAL,))).to_list() == ["1.5", "2", None, None]
    both = key_texts(rows, point("id", "n", layout=(KeyType.STRING, KeyType.BIGINT)))
    assert both.to_list() == ['["O1","1"]', '["a\\"\\\\b","2"]', None, None]


def test_rows_are_texts_of_json_with_exact_numbers() -> None:
    columns: Any = {"d": pa.decimal128(9, 2), "f": pa.float64(), "m": NESTED, "t": pa.timestamp("us", "UTC")}
    rows = pa.Table.from_pylist([{"d": Decimal("1.50"), "f": 0.1, "m": None, "t": MOMENT}], schema=pa.schema(columns))
    assert row_texts(rows) == ['{"d":1.50,"f":0.1,"m":null,"t":"2025-03-01 10:00:00.123456+00"}']
    assert json_texts(pa.array([float("nan")], pa.float64())) == ['"NaN"']


def test_maps_are_objects_by_the_texts_of_their_keys() -> None:
    def read(kind: Any, value: Any) -> str | None:
        return json_texts(pa.array([value], pa.map_(kind, pa.int8())))[0]

    assert read(pa.string(), [("a", 1), ("b", None)]) == '{"a":1,"b":null}'
    assert read(pa.int32(), [(10, 1)]) == '{"10":1}'
    assert read(pa.bool_(), [(True, 1)]) == '{"true":1}'
    assert read(pa.float64(), [(1.5, 1)]) == '{"1.5":1}'
    assert read(pa.date32(), [(date(2025, 3, 1), 1)]) == '{"2025-03-01":1}'
    assert read(pa.string(), []) == "{}"
    assert read(pa.string(), None) is None
    assert read(pa.string(), [("a", 1), ("a", 2)]) == '[{"key":"a","value":1},{"key":"a","value":2}]'


_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(),
    pa.binary(): st.binary(),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(20, 4): st.decimals(-(10**15), 10**15, places=4),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("us"): st.datetimes(),
}


@st.composite
def columns(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a type, and what draws its values."""
    shape = draw(st.sampled_from(["scalar", "list", "struct", "map"] if depth else ["scalar"]))
    if shape == "scalar":
        kind = draw(st.sampled_from(list(_SCALARS)))
        return kind, st.none() | _SCALARS[kind]
    inner, values = draw(columns(depth - 1))
    if shape == "list":
        return pa.list_(inner), st.none() | st.lists(values, max_size=3)
    if shape == "struct":
        return pa.struct([pa.field("a", inner), pa.field("b", pa.int64())]), st.none() | st.fixed_dictionaries(
            {"a": values, "b": st.none() | st.integers(0, 9)}
        )
    pairs = st.lists(st.tuples(st.text(), values), max_size=3)
    return pa.map_(pa.string(), inner), st.none() | pairs


@given(st.data())
def test_of_exact_values_the_same_column_is_made_again(data: st.DataObject) -> None:
    kind, values = data.draw(columns())
    array = pa.array(data.draw(st.lists(values, max_size=4)), kind)
    again = array_of(exact_values(array), kind)
    assert exact_values(again) == exact_values(array)
    assert again.type == kind
    assert str(again.to_pylist()) == str(array.to_pylist())


def test_a_value_that_a_column_cannot_hold_is_no_value_of_it() -> None:
    wrong: list[tuple[Any, Any]] = [
        (1.5, pa.int64()), (2**31, pa.int32()), ("x", pa.date32()), (Decimal("123.4"), pa.decimal128(3, 1)),
        ({"q": 1}, NESTED), ("zz", pa.binary()), ("25:00", pa.time64("us")),
        ("10:00:00+02:00", pa.time64("us")), ("10:00:00.0005", pa.time32("ms")), ("10:00:00.0000001", pa.time64("us")),
        (3, pa.list_(pa.int8())),
    ]  # fmt: skip
    for value, kind in wrong:
        with pytest.raises((ValueError, pa.ArrowException)):
            exact_value(Decimal(str(value)) if isinstance(value, float) else value, kind)
    assert exact_value("2025-03-01T10:00:00.123456Z", pa.timestamp("us", "UTC")) == 1_740_823_200_123_456
    assert exact_value(5, pa.string()) == "5"
    assert exact_value([1], pa.string()) == "[1]"
    assert exact_value("10:00:00.5", pa.time32("ms")) == 36_000_500
    assert exact_value("10:00:00.000000001", pa.time64("ns")) == 36_000_000_000_001
    assert pl.Series([exact_value("2025-03-01", pa.date32())]).cast(pl.Date)[0] == date(2025, 3, 1)


@pytest.mark.parametrize(
    ("unit", "number", "text"),
    [
        ("ms", 2**63 - 1, "292278994-08-17T07:12:55.807Z"),
        ("ms", -(2**63), "292275056-05-16T16:47:04.192Z BC"),
        ("ms", 9_223_372_036_854_776, "294247-01-10T04:00:54.776Z"),
        ("s", 2**62, None),
    ],
)
def test_moment_beyond_64_bits_of_microseconds_is_known_by_no_number(unit: Any, number: int, text: str | None) -> None:
    """It has wrapped around to a moment of any year."""
    column = pa.array([number, None, 0], pa.int64()).view(pa.timestamp(unit, "UTC"))
    assert microseconds(column).to_list() == [None, None, 0]
    beyond, missing, zero = column_texts(declared_texts(column, "timestamp").alias("c"), "timestamp")
    assert (missing, zero) == (None, "0")
    if text is None:
        assert str(beyond).startswith("!")
    else:
        assert beyond == canonical_text(text, "timestamp")  # as a record that holds it


@pytest.mark.parametrize("days", [2**31 - 1, -(2**31), 106_751_992, -106_751_992])
def test_day_beyond_all_calendars_has_a_text_and_no_time(days: int) -> None:
    column = pa.array([days, None, 0], pa.int32()).view(pa.date32())
    is_held = abs(days) * 86_400_000_000 < 2**63
    assert microseconds(column).to_list() == [days * 86_400_000_000 if is_held else None, None, 0]
    assert own_texts(column).to_list() == [day_text(days), None, "1970-01-01"]


def test_moment_that_a_finer_column_does_not_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits do not hold it"):
        exact_value("9999-12-31T00:00:00Z", pa.timestamp("ns", "UTC"))
    assert exact_value("2025-03-01T10:00:00.123456Z", pa.timestamp("ns", "UTC")) == 1_740_823_200_123_456_000
