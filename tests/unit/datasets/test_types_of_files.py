"""Test types of columns that files have and tables have not: categories, lists of one length, half floats, views."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from makewhole.datasets.column_types import column_kind, sql_type
from makewhole.datasets.files.write.column_values import written_rows
from makewhole.datasets.files.write.rewritten import _is_equal
from makewhole.datasets.nested_values import row_images, row_texts, rows_of_images
from makewhole.datasets.own_texts import microseconds
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
