"""Test that the compiled walk finds what plain Python finds record by record, whatever is wrong with a neighbour."""

from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.kafka.log import record_walk
from makewhole.kafka.log.batches import HEADER_BYTES, Batch, split_batches
from makewhole.kafka.log.record_table import RecordTable
from makewhole.kafka.log.record_walk import Batches, HeaderColumns, Records, walk_headers, walk_records
from makewhole.kafka.log.records import BatchToDecode, decode
from makewhole.kafka.log.salvage import Salvage, salvage
from makewhole.native import byte_strings
from makewhole.native.byte_strings import Blobs, Content
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

_blobs = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=70)
_headers = st.lists(st.tuples(st.text(max_size=5), _blobs), max_size=2)
_rows = st.lists(st.tuples(st.integers(0, 2**41), _blobs, _blobs, _headers), min_size=1, max_size=6)
HOSTILE = [
    b"\x01",
    b"\xff" * 4 + b"\x0f",
    b"\xfe" * 4 + b"\x0f",
    b"\xff" * 5 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",
    b"\xff" * 9 + b"\x01",
    b"\xff" * 9 + b"\x02",
    b"\xff" * 10 + b"\x01",
    b"\x80" * 10,
    b"\x80" * 9 + b"\x00",
    b"\x80\x00",
]
"""Numbers that are negative, as large as they can be, too large, too long, or longer than they need to be."""


def item(
    data: bytes, count: int, *, times: tuple[int, int] = (0, 1000), attributes: int = 0, last: int = -1
) -> BatchToDecode:
    last = count - 1 if last < 0 else last
    batch = Batch(100, 0, 2, 0, attributes, last, *times, -1, -1, -1, count, 0, len(data))
    return BatchToDecode(batch, data, 0, 2**62, False)


def alone(batch: BatchToDecode) -> Salvage | None:
    """Return what plain Python reads from a batch without a fault; None when it finds one."""
    salvaged = salvage(batch.batch, bytes(batch.data), 3)
    sizes = len(salvaged.records) == batch.batch.record_count and not salvaged.undecodable
    ends = sum(len(part) for part in _record_bytes(bytes(batch.data), batch.batch.record_count)) == len(batch.data)
    return salvaged if sizes and salvaged.records and ends else None


def _record_bytes(data: bytes, count: int) -> list[bytes]:
    """Return the records one behind the other, as far as their lengths make sense."""
    parts: list[bytes] = []
    at = 0
    while len(parts) < count and at < len(data):
        value, shift, begin = 0, 0, at
        while at < len(data) and shift <= 63:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        at += value >> 1
        parts.append(data[begin:at])
    return parts


def rows_of(table: RecordTable) -> list[tuple[Any, ...]]:
    names = ("offset", "key", "value", "headers")
    columns = table.columns(3, names).to_pydict()
    headers = [[(header["key"], header["value"]) for header in cell] for cell in columns["headers"]]
    return list(zip(columns["offset"], columns["key"], columns["value"], headers, strict=True))


def same_as_alone(items: list[BatchToDecode]) -> None:
    """Batches of a group are damaged or not as each alone, and then hold the same."""
    expected = [alone(batch) for batch in items]

    table = RecordTable(items)

    assert table.damaged == {number for number, salvaged in enumerate(expected) if salvaged is None}
    good = RecordTable([batch for batch, salvaged in zip(items, expected, strict=True) if salvaged is not None])
    records = [record for salvaged in expected if salvaged is not None for record in salvaged.records]
    assert not good.damaged
    assert rows_of(good) == [(record.offset, record.key, record.value, record.headers) for record in records]
    assert good._records.times.tolist() == [record.timestamp for record in records]


@st.composite
def batches(draw: st.DrawFn, handmade: ModuleType) -> BatchToDecode:
    """Sound batches, or such with bytes changed, inserted or cut off, or with other numbers in the header."""
    rows = draw(_rows)
    data, count = b"".join(handmade.record(delta, row) for delta, row in enumerate(rows)), len(rows)
    odds = st.sampled_from(HOSTILE) | st.binary(max_size=2)
    for at, odd in draw(st.lists(st.tuples(st.integers(0, len(data)), odds), max_size=3)):
        data = data[:at] + odd + data[at + draw(st.integers(0, len(odd))) :]
    data = data[: draw(st.just(len(data)) | st.integers(0, len(data)))]
    count = draw(st.just(count) | st.sampled_from([-1, 0, 1, 2 * count, 2**31 - 1]))
    times = draw(st.sampled_from([(0, 1000), (2**63 - 1, 5), (-(2**63), 7)]))
    return item(data, count, times=times, attributes=draw(st.sampled_from([0, 8])))


@settings(max_examples=examples(400), deadline=None)
@given(data=st.data())
def test_a_batch_in_a_group_is_read_as_if_it_were_alone(handmade: ModuleType, data: st.DataObject) -> None:
    """Takes long where it is the first one, for which the loops are compiled."""
    same_as_alone(data.draw(st.lists(batches(handmade), min_size=1, max_size=5)))


def test_a_batch_that_is_cut_or_damaged_anywhere_is_noticed(handmade: ModuleType) -> None:
    """Batches are cut at every byte, and get every hostile number at every byte, between two sound ones."""
    rows = [(3, b"k", b"v", [("n", b"h"), ("m", None)]), (70, None, b"w" * 70, [])]
    data = b"".join(handmade.record(delta, row) for delta, row in enumerate(rows))
    for at in range(len(data) + 1):
        odd = [item(data[:at], 2), *(item(data[:at] + hostile + data[at + 1 :], 2) for hostile in HOSTILE)]
        same_as_alone([item(data, 2), *odd, item(data, 2)])
        with bounds_checked(record_walk):
            assert all(RecordTable([batch]).damaged == {0} for batch in odd if alone(batch) is None)


@pytest.mark.parametrize("number", HOSTILE)
@pytest.mark.parametrize("place", range(6))
def test_a_hostile_number_in_a_record_of_the_right_length_gives_what_salvage_gives(number: bytes, place: int) -> None:
    """The number is age, offset, length of the key and of the value, count of headers, length of a header's name. What
    only `salvage` reads, like a number of over 64 bits for null, is left to it."""
    numbers = [b"\x00", b"\x00", b"\x01", b"\x01", b"\x02", b"\x00"]
    body = b"\x00" + b"".join([*numbers[:place], number, *numbers[place + 1 :]]) + b"\x01"

    batch = item(bytes([2 * len(body)]) + body, 1)
    slowly = salvage(batch.batch, bytes(batch.data), 3)

    [part] = decode(3, [batch])

    rows = part.columns.select(["offset", "key", "value"]).to_pylist()
    assert rows == [{"offset": record.offset, "key": record.key, "value": record.value} for record in slowly.records]
    assert part.columns.column("timestamp").view(pa.int64()).to_pylist() == [
        record.timestamp for record in slowly.records
    ]
    assert list(part.undecodable) == slowly.undecodable


@pytest.mark.parametrize("rest", range(7))
def test_nothing_is_noted_of_more_records_than_there_is_room_for(rest: int) -> None:
    """The smallest records, and the beginning of one more than fits."""
    smallest = [bytes([12, 0, 0, 2 * delta, 1, 1, 0]) for delta in range(4)]
    begun = bytes([2 * rest - 2 if rest else 0, 0, 0, 6, 1, 1, 0])[:rest]

    with bounds_checked(record_walk):
        assert RecordTable([item(b"".join(smallest), 4)]).damaged == set()
        for count in (4, 2**31 - 1):
            assert RecordTable([item(b"".join(smallest[:3]) + begun, count)]).damaged == {0}


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_batches_that_hold_less_or_more_than_they_say_are_damaged(handmade: ModuleType, count: int) -> None:
    data = b"".join(handmade.record(delta, row) for delta, row in enumerate(handmade.rows(2)))

    assert RecordTable([item(data, 2), item(data, count, last=5), item(b"", count), item(data, 2)]).damaged == {1, 2}


@pytest.mark.parametrize(("time", "age"), [(2**63 - 1, 1), (-(2**63), -1), (2**62, 2**62), (1, 2**63 - 1)])
def test_a_time_that_no_number_holds_is_damage(handmade: ModuleType, time: int, age: int) -> None:
    data = handmade.record(0, (age, None, b"v", []))

    assert RecordTable([item(data, 1, times=(time, 0))]).damaged == {0}
    assert not RecordTable([item(data, 1, times=(time, 9), attributes=8)]).damaged


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data(), guard=st.binary(min_size=16, max_size=16))
def test_nothing_outside_the_text_is_read(handmade: ModuleType, data: st.DataObject, guard: bytes) -> None:
    """Whatever the bytes are, and wherever batches are said to stand: every index is right, and what is around them
    changes nothing."""
    items = data.draw(st.lists(batches(handmade) | st.binary(max_size=60).map(lambda body: item(body, len(body) // 7))))
    text = b"".join(batch.data for batch in items)
    sizes = np.array([len(batch.data) for batch in items], dtype=np.int64)
    shifts = np.array([data.draw(st.sampled_from([0, 0, 0, -20, 20, 2**40])) for _ in items], dtype=np.int64)
    counts = np.array([batch.batch.record_count for batch in items], dtype=np.int64)

    def walked(around: bytes) -> list[object]:
        whole = np.frombuffer(around + text + around, dtype=np.uint8)
        inner, nothing = whole[len(around) : len(whole) - len(around)], np.zeros(len(items), dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        several = Batches(inner, starts, np.cumsum(sizes) + shifts, counts, nothing, counts - 1, nothing, nothing > 0)
        records, fits = Records.with_room_for(len(text) // 7), np.zeros(len(items), dtype=np.bool_)
        end = walk_records(several, records, fits)
        records = records.first(end)
        headers = HeaderColumns.with_room_for(int(records.header_counts.sum()))
        walk_headers(inner, records, headers)
        return [fits.tolist(), *(column.tolist() for column in (*records, *headers))]

    with bounds_checked(record_walk):
        alone = walked(b"")
    assert walked(guard) == walked(bytes(16)) == walked(b"\x02" * 16) == alone


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=70), max_size=30), st.booleans())
def test_columns_of_strings_are_the_strings(texts: list[bytes | None], is_of_one_length: bool) -> None:
    """Copied, and as views; at the very end of their content, too."""
    if is_of_one_length:
        texts = [None if text is None else text[:1] * 13 for text in texts]
    lengths = np.array([-1 if text is None else len(text) for text in texts], dtype=np.int32)
    blobs = Blobs(starts=(np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)).astype(np.int32), lengths=lengths)
    content = Content(b"".join(text or b"" for text in texts))

    with bounds_checked(byte_strings):
        columns = [blobs.column(content), blobs.views(content)]
    for column in [*columns, blobs.column(content), blobs.views(content)]:
        column.validate(full=True)
        assert column.to_pylist() == texts


def test_only_wanted_columns_are_made(handmade: ModuleType) -> None:
    raw = handmade.plain_batch(0, handmade.rows(3))
    items = [
        BatchToDecode(batch, raw[batch.start + HEADER_BYTES : batch.end], 0, 9, False) for batch in split_batches(raw)
    ]

    [part] = decode(3, items, ("value", "offset"))

    assert part.columns.to_pydict() == {"offset": [0, 1, 2], "value": [b"value 0", b"value 1", b"value 2"]}
