"""Check the version that orders a record under upsert, and the tombstone that deletes its key."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from makewhole.compute.decode import record_values
from makewhole.compute.decode.json_lines import UnusualBatch
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.row_filter import typed_term
from makewhole.compute.versions import MOMENTS, UNREADABLE
from tests.unit.compute.decode.arrow_alone import decode_with_arrow

pytestmark = pytest.mark.unit

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(rows: list[tuple[bytes | None, bytes | None, list[dict[str, Any]]]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([row[0] for row in rows], pa.binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "headers": pa.array([row[2] for row in rows], HEADERS),
        }
    )


def values(*contents: bytes | None) -> pa.RecordBatch:
    return batch([(b"k", value, []) for value in contents])


def test_both_decoders_read_the_same_version_of_a_record() -> None:
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, version="$.at.v")
    records = values(b'{"id":"a","n":1,"at":{"v":7}}', b'{"id":"b","n":2}', b'{"id":"c","n":3,"at":{"v":-1}}')

    decoded = decode_with_arrow(records, shape)

    assert decoded["version"].to_list() == [7, None, -1]
    assert decoded.equals(record_values._decode_one_by_one(records, shape))


def test_a_version_that_is_compared_too_is_read_once() -> None:
    shape = ValueShape(key=("$.id",), compare={"v": "bigint"}, version="$.v")
    records = values(b'{"id":"a","v":7}')

    assert decode_with_arrow(records, shape).select("c:v", "version").row(0) == ("7", 7)
    with pytest.raises(UnusualBatch):
        decode_with_arrow(records, ValueShape(key=("$.id",), compare={"v": "string"}, version="$.v"))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b"12", 12),
        (b'"12"', 12),
        (b"12.0", 12),
        (b"12.5", Decimal("12.5")),
        (b'"-0.125"', Decimal("-0.125")),
        (b'"2025-03-01"', MOMENTS + 1_740_787_200_000_000),
        (b'"2025-03-01T02:00:00.000001+02:00"', MOMENTS + 1_740_787_200_000_001),
        (b"null", None),
        (b'"x"', UNREADABLE),
        (b'"NaN"', UNREADABLE),
        (b'"infinity"', UNREADABLE),
        (b'""', UNREADABLE),
        (b"true", UNREADABLE),
        (b"[1]", UNREADABLE),
        (b"1e-10", UNREADABLE),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", UNREADABLE),
    ],
)
def test_a_version_is_a_number_or_a_moment_and_anything_else_is_unreadable(
    text: bytes, version: Decimal | int | None
) -> None:
    shape = ValueShape(key=("$.id",), compare={}, version="$.v")

    assert decode_values(values(b'{"id":"a","v":' + text + b"}"), shape)["version"].to_list() == [version]


def test_the_version_can_stand_in_a_header() -> None:
    shape = ValueShape(key=("kafka.key",), compare={}, version="header:v")
    twice = [{"key": "v", "value": b"3"}, {"key": "v", "value": b"4"}]
    records = batch([(b"a", b"{}", twice[:1]), (b"b", b"{}", []), (b"c", b"{}", twice)])

    assert decode_values(records, shape)["version"].to_list() == [3, None, UNREADABLE]


@pytest.mark.parametrize("key", ["kafka.key", "header:id"])
def test_a_tombstone_is_a_version_of_its_key_and_passes_every_filter(key: str) -> None:
    shape = ValueShape(
        key=(key,),
        compare={"n": "int"},
        filters={"a→b": (typed_term("n", 1),)},
        keeps_tombstones=True,
    )
    records = batch([(b"k", None, [{"key": "id", "value": b"k"}]), (b"k", b'{"n":2}', [{"key": "id", "value": b"k"}])])

    decoded = decode_values(records, shape)

    assert decoded.select("key", "problem", "c:n").rows() == [("k", None, None), ("k", None, "2")]
    assert decoded["excluded_by"].to_list() == [[], ["a→b"]]


@pytest.mark.parametrize(
    "shape",
    [
        ValueShape(key=("$.id",), compare={}, keeps_tombstones=True),
        ValueShape(key=("kafka.key", "$.id"), compare={}, keeps_tombstones=True),
        ValueShape(key=("kafka.key",), compare={"n": "int"}),
    ],
)
def test_a_tombstone_has_no_key_in_its_value_and_is_no_event(shape: ValueShape) -> None:
    decoded = decode_values(values(None), shape)

    assert decoded.select("key", "problem").row(0) == (None, "value is null (a tombstone)")
