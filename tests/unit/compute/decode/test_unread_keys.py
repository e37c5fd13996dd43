"""Test which keys the records may have that could not be read."""

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.elements import Elements
from makewhole.compute.decode.unread_keys import unread_keys
from makewhole.model.points import KeyType

pytestmark = pytest.mark.unit

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def found(records: list[tuple[bytes | None, str | None]], **shape: Any) -> list[str | None]:
    """Return the keys of those that could not be read, of records given by their Kafka key and their business key."""
    known = ValueShape(**{"key": ("$.id",), "compare": {}, **shape})
    record_keys = pa.array([key for key, _ in records], type=pa.binary())
    batch = pa.RecordBatch.from_pydict({"key": record_keys, "headers": pa.array([None] * len(records), HEADERS)})
    keys = pl.Series([key for _, key in records], dtype=pl.String)
    return [text for text, key in zip(unread_keys(batch, keys, known).to_list(), keys, strict=True) if key is None]


def test_where_kafkas_key_is_the_business_key_it_says_which_key_it_is() -> None:
    assert found([(b"a", "a"), (b"b", None), (b"c", "c"), (None, None)]) == ["b", None]


@pytest.mark.parametrize("read", [[(b"customer", "a")], [(None, "a")], [], [(b"a", "a"), (b"customer", "c")]])
def test_where_it_is_not_or_nothing_shows_it_may_be_any_key(read: list[tuple[bytes | None, str | None]]) -> None:
    assert found([*read, (b"b", None)]) == [None]


def test_a_record_key_that_is_the_business_key_needs_nothing_beside_it() -> None:
    assert found([(b"b", None)], key=("kafka.key",)) == ["b"]


def test_a_record_key_is_compared_by_the_keys_type_and_what_is_no_value_of_it_is_no_key() -> None:
    layout = (KeyType.BIGINT,)
    assert found([(b"007", "7"), (b"0012", None), (b"x", None), (b"\xff", None)], key_layout=layout) == [
        "12",
        "\0",
        "\0",
    ]


def test_of_a_key_of_several_parts_and_without_record_keys_nothing_is_known() -> None:
    assert found([(b"a", "a"), (b"b", None)], key=("$.id", "$.region")) == [None]
    shape = ValueShape(key=("$.id",), compare={})
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"", b""], type=pa.binary())})
    assert unread_keys(batch, pl.Series(["a", None]), shape).to_list() == [None, None]


def test_a_record_of_elements_may_have_several_keys_whatever_its_record_key_says() -> None:
    """Also where every record that could be read has one element, which is called as it is."""
    divided = {"key": ("$.lines.id",), "elements": Elements(path=("lines",), format=JSON)}
    assert found([(b"a", "a"), (b"b", None)], **divided) == [None]
