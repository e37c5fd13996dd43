"""Test that a record goes from its batch, and that nothing else of the log changes, whatever the codec."""

import google_crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from makewhole.kafka.log.batches import find_defect, split_batches
from makewhole.kafka.log.without_records import without_records
from makewhole.model.errors import CorruptionError

pytestmark = pytest.mark.unit


def batch(base: int, values: list[bytes], codec: int = 0, *, is_transactional: bool = False) -> bytes:
    """Return a batch of records with these values at offsets from `base` on."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=is_transactional,
        producer_id=7,
        producer_epoch=1,
        base_sequence=40,
        batch_size=1 << 20,
    )
    for number, value in enumerate(values):
        builder.append(number, 1_000 + number, f"k{number}".encode(), value, [("h", b"x")])
    text = bytearray(builder.build())
    text[:8] = base.to_bytes(8, "big")
    return bytes(text)


def read(text: bytes) -> list[tuple[int, int, bytes | None]]:
    """Return offset, time and value of all records, as Kafka's format says."""
    rows = []
    for header in split_batches(text):
        assert find_defect(header, text) is None
        if header.record_count:
            records = DefaultRecordBatch(text[header.start : header.end])
            rows += [(record.offset, record.timestamp, record.value) for record in records]
    return rows


@pytest.mark.parametrize("codec", [0, 1])
def test_a_record_goes_and_the_others_keep_what_they_have(codec: int) -> None:
    first, second = batch(10, [b"a", b"b" * 300, b"c"], codec), batch(13, [b"d"], codec, is_transactional=True)
    text = first + second + b"cut off"
    left = without_records(text, {11})
    assert read(left) == [(10, 1_000, b"a"), (12, 1_002, b"c"), (13, 1_000, b"d")]
    assert left.endswith(second + b"cut off")
    before, after = next(split_batches(text)), next(split_batches(left))
    kept = ("base_offset", "last_offset_delta", "producer_id", "producer_epoch", "base_sequence", "max_timestamp")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert (after.codec, after.record_count, after.is_transactional) == (0, 2, False)


def test_a_batch_that_loses_all_stays_for_its_sequence() -> None:
    left = without_records(batch(5, [b"a"]), {5})
    [header] = split_batches(left)
    assert (find_defect(header, left), header.record_count, header.end_offset, header.next_sequence) == (None, 0, 6, 41)
    assert b"k0" not in left


def test_nothing_changes_where_nothing_is_wanted() -> None:
    text = batch(5, [b"a"]) + batch(6, [b"b"])
    assert without_records(text, {4, 7}) == text


def test_a_damaged_batch_is_not_written_again() -> None:
    text = bytearray(batch(5, [b"a", b"b"]))
    text[-1] ^= 1
    with pytest.raises(CorruptionError, match="batch at offset 5 cannot be written again: wrong checksum"):
        without_records(bytes(text), {5})


def test_records_that_are_cut_off_are_refused() -> None:
    text = bytearray(batch(5, [b"a", b"b"]))
    text[60] = 3  # one record more than there are
    text[26] = 2
    text[17:21] = google_crc32c.value(bytes(text[21:])).to_bytes(4, "big")
    with pytest.raises(CorruptionError, match="records of the batch at offset 5 are cut off"):
        without_records(bytes(text), {6})
