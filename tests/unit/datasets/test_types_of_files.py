"""Test types of columns that files have and tables have not: categories, lists of one length, half floats, views."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from makewhole.compute.value_types import ColumnKind
from makewhole.datasets.column_types import column_kind, sql_type
from makewhole.datasets.files.write.column_values import written_rows
from makewhole.datasets.files.write.rewritten import _is_equal
from makewhole.datasets.nested_values import row_images, row_texts, rows_of_images
from makewhole.datasets.own_texts import microseconds, scalar_texts
from makewhole.datasets.plain_types import plain_schema, with_schema

pytestmark = pytest.mark.unit

MOMENT = datetime(2025, 3, 1, tzinfo=UTC)
COLUMNS: dict[str, Any] = {
    "category": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "price": pa.array([Decimal("1.50"), None, Decimal("2.00"), None], pa.decimal128(5, 2)).dictionary_encode(),
    "bytes": pa.array([b"\x00\xff", None, b"", b"a"]).dictionary_encode(),
    "place": pa.array([[1.5, None], None, [0.0, -0.0], [float("nan"), 2.0]], pa.list_(pa.float32(), 2)),
    "half": pa.array([1.5, None, -0.0, 2.0], pa.float16()),
    "view": pa.array([b"\x00\xff", None, b"", b"a"], pa.binary_view()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_image_of_a_row_holds_its_values_exactly(name: str) -> None:
    rows = pa.table({name: COLUMNS[name]})
    images = row_images(rows)
    again = rows_of_images(images, rows.schema)
    assert again.schema.equals(rows.schema)
    assert row_images(again) == images
    assert row_texts(again) == row_texts(rows)


def test_rows_are_read_as_what_their_categories_are_of() -> None:
    rows = pa.table({name: COLUMNS[name] for name in ("category", "price", "bytes", "place", "half")}).slice(0, 2)
    assert row_texts(rows) == [
        r'{"category":"a","price":1.50,"bytes":"\\x00ff","place":[1.5,null],"half":1.5}',
        '{"category":null,"price":null,"bytes":null,"place":null,"half":null}',
    ]
    kind = COLUMNS["category"].type
    assert (sql_type(kind), column_kind(kind)) == ("text", column_kind(pa.string()))
    moments = pa.array([MOMENT, None], pa.timestamp("ms", "UTC")).dictionary_encode()
    assert microseconds(moments).to_list() == [int(MOMENT.timestamp() * 1_000_000), None]


def test_a_value_is_written_as_a_category() -> None:
    schema = pa.schema([pa.field("category", COLUMNS["category"].type)])
    assert written_rows(schema, {"category": "new"}, None).to_pylist() == [{"category": "new"}]


VIEWS: dict[str, tuple[Any, list[Any]]] = {
    "texts": (pa.string_view(), ["a", None, "x" * 40]),
    "bytes": (pa.binary_view(), [b"a", None, b"x" * 40]),
    "lists": (pa.list_view(pa.list_view(pa.int8())), [[[1], None], None, [[], [2, 3]]]),
    "large": (pa.large_list_view(pa.string_view()), [["a", None], None, []]),
    "parts": (pa.struct([("a", pa.string_view()), ("b", pa.list_view(pa.int8()))]), [{"a": "x", "b": [1]}, None, {}]),
    "map": (pa.map_(pa.string(), pa.list_view(pa.int8())), [[("a", [1, 2]), ("b", None)], None, []]),
    "sized": (pa.list_(pa.list_view(pa.int8()), 2), [[[1], None], None, [[], [2, 3]]]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_become_plain_columns_and_views_again(name: str) -> None:
    kind, values = VIEWS[name]
    rows = pa.table({"c": pa.array(values, kind)})
    plain = with_schema(rows, plain_schema(rows.schema))
    plain.validate(full=True)
    assert "view" not in str(plain.schema)
    assert plain.to_pylist() == rows.to_pylist()
    for part in (plain, plain.slice(1, 2), plain.filter(pa.array([True, False, True]))):
        again = with_schema(part, rows.schema)
        again.validate(full=True)
        assert again.schema.equals(rows.schema)
        assert again.to_pylist() == part.to_pylist()


def test_columns_are_the_same_by_their_values_whatever_their_parts_are_named() -> None:
    """NaN is the same as NaN in columns of floats, which no name says."""
    nan = pa.chunked_array([pa.array([{"n": float("nan")}, None])])
    categories = pa.chunked_array([pa.array([float("nan"), 1.0]).dictionary_encode()])
    assert _is_equal(nan, nan)
    assert _is_equal(categories, categories)
    kind: Any = pa.struct([("double", pa.list_view(pa.int8()))])
    empty, missing = pa.chunked_array([pa.array([{}], kind)]), pa.chunked_array([pa.nulls(1, kind)])
    assert not _is_equal(empty, missing)


WRITTEN: list[tuple[Any, Any, Any]] = [
    (
        pa.decimal128(38, 9),
        "12345678901234567890123456789.123456789",
        Decimal("12345678901234567890123456789.123456789"),
    ),
    (pa.decimal256(60, 2), "1" * 40 + ".50", Decimal("1" * 40 + ".50")),
    (pa.time64("us"), "10:00:00.5", time(10, 0, 0, 500_000)),
    (pa.time32("ms"), "10:00:00.5", time(10, 0, 0, 500_000)),
    (pa.binary(), r"\x00ff", b"\x00\xff"),
    (pa.binary(2), r"\x00ff", b"\x00\xff"),
    (pa.binary_view(), r"\x00ff", b"\x00\xff"),
    (pa.uuid(), "6F9619FF8B86D011B42D00C04FC964FF", UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")),
    (pa.list_(pa.decimal128(9, 2)), [1, None], [Decimal("1.00"), None]),
    (pa.map_(pa.string(), pa.int8()), {"a": 1}, [("a", 1)]),
    (pa.struct([("a", pa.int8())]), {"a": 1}, {"a": 1}),
    (pa.string_view(), {"a": 1}, '{"a": 1}'),
    (pa.float16(), Decimal("1.5"), 1.5),
    (pa.date64(), "2025-03-01", date(2025, 3, 1)),
    (pa.timestamp("ms"), "2025-03-01T10:00:00.5Z", datetime(2025, 3, 1, 10, 0, 0, 500_000)),
]
"""A type, what a record says, and what the column holds then."""


@pytest.mark.parametrize(("kind", "value", "held"), WRITTEN, ids=[str(kind) for kind, _, _ in WRITTEN])
def test_a_value_is_written_to_a_column_of_each_type(kind: Any, value: Any, held: Any) -> None:
    row = written_rows(pa.schema([pa.field("x", kind)]), {"x": value}, None)

    assert row.to_pylist() == [{"x": held}]
    assert row_texts(row)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.decimal128(4, 2), "100"),
        (pa.timestamp("ms"), "2025-03-01T10:00:00.0005Z"),
        (pa.float32(), "1e300"),
        (pa.binary(2), r"\x00"),
        (pa.duration("us"), "1"),
        (pa.int8(), 128),
    ],
    ids=str,
)
def test_a_value_that_a_column_does_not_hold_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"x \(.*\) does not hold this value"):
        written_rows(pa.schema([pa.field("x", kind)]), {"x": value}, None)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_moment_of_now_is_written_in_the_unit_of_its_column(unit: Any) -> None:
    row = written_rows(pa.schema([pa.field("x", pa.timestamp(unit, "UTC"))]), {}, None, "x")
    assert abs(microseconds(row.column("x").chunk(0))[0] / 1e6 - datetime.now(UTC).timestamp()) < 60


def test_numbers_of_more_digits_than_a_frame_has_are_texts() -> None:
    wide = pa.array([Decimal("1" * 60 + ".10"), Decimal("-0.01"), None], pa.decimal256(76, 2))
    assert scalar_texts(wide).to_list() == ["1" * 60 + ".10", "-0.01", None]
    assert row_texts(pa.table({"x": wide}))[1] == '{"x":-0.01}'


@pytest.mark.parametrize(
    "kind", [pa.duration("us"), pa.month_day_nano_interval(), pa.list_(pa.duration("s")), pa.bool8()], ids=str
)
def test_a_type_that_has_no_name_in_sql_is_read_by_no_declared_type(kind: Any) -> None:
    assert column_kind(kind) == ColumnKind(type=str(kind), nature=None)
