"""Test the decoding of record bytes into columns, against aiokafka's parser and with damage."""

from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.kafka.log.batches import HEADER_BYTES, split_batches
from makewhole.kafka.log.records import SCHEMA, BatchToDecode, Decoded, decode
from makewhole.kafka.log.salvage import Undecodable
from tests.world.examples import examples

pytestmark = pytest.mark.unit

Row = tuple[Any, ...]

_blobs = st.none() | st.binary(max_size=40) | st.binary(min_size=120, max_size=200)
_headers = st.lists(st.tuples(st.text(max_size=15), _blobs), max_size=3)
_rows = st.lists(st.tuples(st.integers(0, 2**41), _blobs, _blobs, _headers), min_size=1, max_size=20)


def decoded(raw: bytes, lo: int = 0, hi: int = 2**62) -> list[Decoded]:
    items = [
        BatchToDecode(batch, raw[batch.start + HEADER_BYTES : batch.end], lo, hi, False) for batch in split_batches(raw)
    ]
    return list(decode(3, items))


def columns(parts: list[Decoded]) -> pa.Table:
    return pa.Table.from_batches([part.columns for part in parts], schema=SCHEMA)


@settings(max_examples=examples(200), deadline=None)
@given(rows=_rows)
def test_gives_what_aiokafka_wrote(handmade: ModuleType, rows: list[Row]) -> None:
    [part] = decoded(handmade.aiokafka_batch(rows))
    part.columns.validate(full=True)
    table = part.columns
    assert table.column("offset").to_pylist() == list(range(len(rows)))
    assert table.column("timestamp").view(pa.int64()).to_pylist() == [row[0] for row in rows]
    assert table.column("key").to_pylist() == [row[1] for row in rows]
    assert table.column("value").to_pylist() == [row[2] for row in rows]
    headers = [[(header["key"], header["value"]) for header in row["headers"]] for row in table.to_pylist()]
    assert headers == [row[3] for row in rows]
    assert table.column("sequence").to_pylist() == [7 + index for index in range(len(rows))]


@settings(max_examples=examples(100), deadline=None)
@given(rows=_rows, lo=st.integers(0, 3))
def test_values_as_views_are_the_values(handmade: ModuleType, rows: list[Row], lo: int) -> None:
    raw = handmade.aiokafka_batch(rows)
    items = [
        BatchToDecode(batch, raw[batch.start + HEADER_BYTES : batch.end], lo, 2**62, False)
        for batch in split_batches(raw)
    ]
    [part] = decode(3, items, has_views=True)
    part.columns.validate(full=True)
    assert part.columns.column("value").to_pylist() == [row[2] for row in rows[lo:]]
    assert part.columns.schema.field("value").type == (pa.binary() if lo else pa.binary_view())


@settings(max_examples=examples(300), deadline=None)
@given(rows=_rows, damage=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_bytes_never_crash_and_every_offset_is_a_row_or_a_place(
    handmade: ModuleType,
    rows: list[Row],
    damage: list[tuple[int, int]],
) -> None:
    records = bytearray(b"".join(handmade.record(delta, row) for delta, row in enumerate(rows)))
    for position, byte in damage:
        records[position % len(records)] = byte
    raw = handmade.batch_of(0, bytes(records), count=len(rows), last_delta=len(rows) - 1)
    parts = decoded(raw)
    offsets = set(columns(parts).column("offset").to_pylist())
    placed = {at for part in parts for bad in part.undecodable for at in range(bad.offset, bad.end_offset)}
    assert offsets | placed == set(range(len(rows)))
    for part in parts:
        part.columns.validate(full=True)


def test_one_bad_record_costs_itself_only(handmade: ModuleType) -> None:
    first, second, third = (handmade.record(delta, row) for delta, row in enumerate(handmade.rows(3)))
    broken = second[:1] + second[1:3] + b"\x02" + bytes([0x7E]) + second[5:]
    good = handmade.plain_batch(3, handmade.rows(2, start=3))
    parts = decoded(handmade.batch_of(0, first + broken + third, count=3, last_delta=2) + good)
    assert columns(parts).column("offset").to_pylist() == [0, 2, 3, 4]
    assert [bad for part in parts for bad in part.undecodable] == [Undecodable(3, 1, 2, "record structure is damaged")]
    assert [list(part.counts) for part in parts] == [[2], [2]]


def test_a_header_name_that_is_not_utf8_is_undecodable(handmade: ModuleType) -> None:
    name = handmade.record(0, (0, None, b"v", [("ab", b"x")])).replace(b"ab", b"\xff\xfe")
    parts = decoded(handmade.batch_of(0, name + handmade.record(1, (0, None, b"w", [])), count=2, last_delta=1))
    assert columns(parts).column("value").to_pylist() == [b"w"]
    assert parts[0].undecodable == [Undecodable(3, 0, 1, "header name is not UTF-8")]


def test_records_of_replays_are_marked_by_their_header(handmade: ModuleType) -> None:
    rows = [
        (0, b"a", b"1", []),
        (0, b"b", b"2", [("other", b""), ("makewhole-plan", b"p")]),
        (0, b"c", b"3", [("makewhole-plaN", b"")]),
    ]
    assert columns(decoded(handmade.plain_batch(0, rows))).column("is_replayed").to_pylist() == [False, True, False]


def test_a_compacted_batch_keeps_offsets_and_sequences(handmade: ModuleType) -> None:
    kept = dict(zip([1, 4], handmade.rows(2), strict=True))
    raw = handmade.sparse_batch(10, kept, 6, producer=(9, 2, 2**31 - 3))
    table = columns(decoded(raw))
    assert table.column("offset").to_pylist() == [11, 14]
    assert table.column("sequence").to_pylist() == [2**31 - 2, 1]


def test_only_the_asked_offsets_come(handmade: ModuleType) -> None:
    raw = handmade.plain_batch(0, handmade.rows(5)) + handmade.plain_batch(5, handmade.rows(5))
    [part] = decoded(raw, lo=3, hi=7)
    assert part.columns.column("offset").to_pylist() == [3, 4, 5, 6]
    assert list(part.counts) == [2, 2]


def test_log_append_time_is_the_batchs_own(handmade: ModuleType) -> None:
    table = columns(decoded(handmade.plain_batch(0, handmade.rows(2), attributes=0x08, base_timestamp=5000)))
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [6000, 6000]
    assert table.column("timestamp_type").to_pylist() == [1, 1]


def test_extreme_timestamps_pass(handmade: ModuleType) -> None:
    raw = handmade.plain_batch(0, [(0, b"k", b"v", [])], base_timestamp=-1)
    assert columns(decoded(raw)).column("timestamp").cast(pa.int64()).to_pylist() == [-1]
