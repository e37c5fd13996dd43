"""Test which keys the records may have that could not be read."""

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.elements import Elements
from makewhole.compute.decode.unread_keys import (
    ComparedKeys,
    compare_record_keys,
    is_compacted_by_key,
    unread_keys,
)
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


def compared(*records: tuple[bytes | None, str | None], parts: tuple[str, ...] = ("$.id",)) -> tuple[int, int]:
    """Return of how many records the Kafka key has the business key, and of how many it does not."""
    record_keys = pa.array([key for key, _ in records], type=pa.binary())
    batch = pa.RecordBatch.from_pydict({"key": record_keys, "is_aborted": pa.array([False] * len(records), pa.bool_())})
    keys = compare_record_keys(batch, pl.Series([key for _, key in records], dtype=pl.String), parts)
    return keys.same, keys.others


@pytest.mark.parametrize(
    ("record_key", "key"),
    [
        (b"O1", "O1"),
        (b'{"schema":{"type":"struct"},"payload":{"id":"O1"}}', "O1"),
        (b'{"id": 10.0}', "10"),
        (b'{"id":"say \\"hi\\""}', 'say "hi"'),
        (b"Struct{id=7}", "7"),
        (b"2B0C-11", "2b0c-11"),
        (b"\0\0\0\0\x05\x0e", "7"),
        (b"\0\0\0\0\x05\x06\xc3\xa4b", "äb"),
        (b"\xff\xff\x03", "-32768"),
        (b"\0\0\0\0\0\0\0\x07", "7"),
        (b"\xff\xff\xff\xfe", "-2"),
    ],
)
def test_a_kafka_key_has_the_business_key_in_whatever_form(record_key: bytes, key: str) -> None:
    assert compared((record_key, key)) == (1, 0)
    assert compared((record_key, key), (None, None), (b"other", "O2")) == (1, 1)


@pytest.mark.parametrize(
    ("record_key", "key"),
    [(b"C12", "12"), (b"12", "1"), (None, "1"), (b"--", "++"), (b"\0\0\0\0\x05\x10", "7"), (b'{"id":"O1x"}', "O1")],
)
def test_a_kafka_key_that_has_it_in_part_or_by_chance_does_not_have_it(record_key: bytes | None, key: str) -> None:
    assert compared((record_key, key)) == (0, 1)


def test_of_a_key_of_several_parts_those_are_compared_that_are_not_in_the_kafka_key_by_their_place() -> None:
    key, parts = '["eu","7"]', ("$.region", "$.id")
    assert compared((b'{"region":"eu","id":7}', key), (b"\0\0\0\0\1\x04eu\x0e", key), (b"eu", key), parts=parts) == (
        2,
        1,
    )
    assert compared((b"7", key), (b"eu", key), parts=("kafka.key", "$.id")) == (1, 1)
    assert [is_compacted_by_key(key) for key in (parts, ("kafka.key", "$.id"), ("kafka.key.a", "kafka.key"))] == [
        False,
        False,
        True,
    ]


def test_aborted_records_are_not_compared_and_none_is_no_evidence() -> None:
    columns: dict[str, Any] = {"key": pa.array([b"x"], pa.binary()), "is_aborted": pa.array([True])}
    keys = compare_record_keys(pa.RecordBatch.from_pydict(columns), pl.Series(["a"]), ("$.id",))
    assert (keys, keys.agree) == (ComparedKeys(), False)
