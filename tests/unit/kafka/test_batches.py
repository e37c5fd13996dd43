"""Test batch headers, checksums, clipping and decompression."""

import struct
from types import ModuleType
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.kafka.log.batches import ABORT_MARKER, COMMIT_MARKER, clip, find_defect, marker_type, split_batches
from makewhole.kafka.log.compression import CodecError, decompress

pytestmark = pytest.mark.unit


def test_reads_every_field_of_a_header(handmade: ModuleType) -> None:
    raw = handmade.plain_batch(
        40, handmade.rows(3), attributes=0x10, producer=(9, 2, 2**31 - 2), leader_epoch=6, base_timestamp=77
    )
    [batch] = split_batches(raw)
    assert (batch.base_offset, batch.end_offset, batch.leader_epoch, batch.base_timestamp) == (40, 43, 6, 77)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.next_sequence) == (9, 2, 2**31 - 2, 1)
    assert (batch.is_transactional, batch.is_control, batch.is_log_append_time, batch.codec) == (True, False, False, 0)
    assert (batch.is_dense, batch.record_count, batch.start, batch.end) == (True, 3, 0, len(raw))
    assert find_defect(batch, raw) is None


@given(cut=st.integers(1, 400))
def test_a_batch_that_is_cut_off_is_left_out(handmade: ModuleType, cut: int) -> None:
    first, second = handmade.plain_batch(0, handmade.rows(5)), handmade.plain_batch(5, handmade.rows(5))
    page = (first + second)[: max(0, len(first + second) - cut)]
    expected = [0] if len(page) >= len(first) else []
    assert [batch.base_offset for batch in split_batches(page)] == expected


def test_a_changed_byte_behind_the_checksum_is_noticed(handmade: ModuleType) -> None:
    raw = bytearray(handmade.plain_batch(0, handmade.rows(5)))
    raw[-1] ^= 1
    [batch] = split_batches(bytes(raw))
    assert find_defect(batch, bytes(raw)) == "wrong checksum (CRC-32C)"


def test_an_old_record_format_and_impossible_counts_are_named(handmade: ModuleType) -> None:
    raw = bytearray(handmade.plain_batch(0, handmade.rows(5)))
    raw[16] = 1
    [old] = split_batches(bytes(raw))
    assert find_defect(old, bytes(raw)) == "record format 1 is not supported, only 2 is"
    lying = handmade.batch_of(0, b"", count=7, last_delta=2)
    [batch] = split_batches(lying)
    assert find_defect(batch, lying) == "impossible counts: 7 records, last offset delta 2"


@pytest.mark.parametrize("length", range(1, 49))
def test_what_is_shorter_than_a_header_is_never_sound(length: int) -> None:
    """The bytes where magic and checksum would be may be anything, also right: the checksum of nothing is 0."""
    raw = struct.pack(">qi", 50, length) + bytes(4) + b"\x02" + bytes(length)
    [batch] = list(split_batches(raw[: 12 + length]))
    size = 12 + length
    assert find_defect(batch, raw) == f"its length says {size} bytes, fewer than a header has"


def test_markers_are_distinguished(handmade: ModuleType) -> None:
    raw = handmade.marker(5, 9, is_commit=True) + handmade.marker(6, 9, is_commit=False)
    assert [marker_type(batch, raw) for batch in split_batches(raw)] == [COMMIT_MARKER, ABORT_MARKER]
    odd = handmade.plain_batch(0, [(0, b"\0", b"", [])], attributes=0x30)
    assert marker_type(next(split_batches(odd)), odd) is None


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [(0, 99, (10, 15)), (12, 99, (12, 15)), (0, 13, (10, 13)), (20, 30, (20, 20)), (0, 5, (5, 5))],
)
def test_clips_to_the_asked_range(handmade: ModuleType, lo: int, hi: int, expected: tuple[int, int]) -> None:
    [batch] = split_batches(handmade.plain_batch(10, handmade.rows(5)))
    assert clip(batch, lo, hi) == expected


@pytest.mark.parametrize(("codec", "name"), [(1, "gzip"), (3, "lz4"), (4, "zstd")])
def test_streamed_codecs_are_read_and_bounded(codec: int, name: Literal["gzip", "lz4", "zstd"]) -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(b"abc" * 1000)
    data = memoryview(sink.getvalue().to_pybytes())
    assert decompress(codec, data) == b"abc" * 1000
    with pytest.raises(CodecError, match="more than 10 bytes when decompressed"):
        decompress(codec, data, limit_bytes=10)
    with pytest.raises(CodecError, match=f"damaged {name} data"):
        decompress(codec, data[:-9] if codec != 1 else data[:20])


def test_snappy_is_read_raw_and_in_javas_framing() -> None:
    block = pa.Codec("snappy").compress(b"abc" * 1000, asbytes=True)
    framed = b"\x82SNAPPY\x00" + bytes(8) + 2 * (len(block).to_bytes(4, "big") + block)
    assert decompress(2, memoryview(block)) == b"abc" * 1000
    assert decompress(2, memoryview(framed)) == b"abc" * 2000
    with pytest.raises(CodecError, match="bytes when decompressed"):
        decompress(2, memoryview(framed), limit_bytes=3500)
    with pytest.raises(CodecError, match="damaged snappy data"):
        decompress(2, memoryview(b"\xff\xff"))


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(CodecError, match="unknown compression codec 7"):
        decompress(7, memoryview(b""))
