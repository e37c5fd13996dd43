"""Test the reader on hand-made logs: every offset is accounted for, whatever stands there."""

import hashlib
import itertools
import json
import struct
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.archive import ArchiveLog, SegmentWriter
from makewhole.kafka.log.page import LogPage
from makewhole.kafka.log.reader import LeaderEpoch, RangeReader, TransactionCounts, Undecodable, read_range
from makewhole.model.errors import CorruptionError, MakewholeError, RefusedError, TransientError
from makewhole.model.window import Accounting, PartitionRange
from tests.world.examples import examples

pytestmark = pytest.mark.unit


def offsets(reader: RangeReader) -> list[int]:
    return [int(offset) for batch in reader.batches() for offset in batch.column("offset").to_numpy()]


def mixed(handmade: ModuleType, page_batches: int = 2):  # type: ignore[no-untyped-def]
    """A log: 0-4 plain, 5-7 aborted, 8 abort marker, 9-10 committed, 11 commit marker, 12-13 hole, 14-16 (not 15)."""
    transactional = {"attributes": 0x10, "producer": (9, 0, 0)}
    return handmade.MemoryLog(
        batches=[
            handmade.plain_batch(0, handmade.rows(5)),
            handmade.plain_batch(5, handmade.rows(3), **transactional),
            handmade.marker(8, 9, is_commit=False),
            handmade.plain_batch(9, handmade.rows(2), attributes=0x10, producer=(9, 0, 3)),
            handmade.marker(11, 9, is_commit=True),
            handmade.sparse_batch(14, {0: handmade.rows(1)[0], 2: handmade.rows(1)[0]}, 2, leader_epoch=1),
        ],
        aborted=[AbortedTransaction(first_offset=5, producer_id=9, marker_offset=8)],
        page_batches=page_batches,
    )


@pytest.mark.parametrize("page_batches", [1, 2, 6])
def test_every_offset_is_accounted_for(handmade: ModuleType, page_batches: int) -> None:
    reader = read_range(mixed(handmade, page_batches), handmade.wanted(0, 17))
    assert offsets(reader) == [0, 1, 2, 3, 4, 9, 10, 14, 16]
    assert reader.accounting == Accounting(span=17, data=9, control=2, aborted=3, compacted=3)
    assert reader.leader_epochs == [LeaderEpoch(0, 0, 12), LeaderEpoch(1, 14, 17)]
    assert reader.transactions == TransactionCounts(committed=1, aborted=1)
    assert reader.aborted == (AbortedTransaction(first_offset=5, producer_id=9, marker_offset=8),)
    assert reader.sequences.breaks == []


@given(lo=st.integers(0, 17), size=st.integers(0, 17), page_batches=st.integers(1, 6))
def test_any_part_of_the_range_gives_that_part(handmade: ModuleType, lo: int, size: int, page_batches: int) -> None:
    hi = min(lo + size, 17)
    reader = read_range(mixed(handmade, page_batches), handmade.wanted(lo, hi))
    assert offsets(reader) == [offset for offset in [0, 1, 2, 3, 4, 9, 10, 14, 16] if lo <= offset < hi]
    assert reader.accounting.is_complete
    assert reader.accounting.aborted == len([offset for offset in (5, 6, 7) if lo <= offset < hi])


def test_aborted_rows_come_marked_when_asked_for(handmade: ModuleType) -> None:
    reader = read_range(mixed(handmade), handmade.wanted(4, 10), include_aborted=True)
    table = pa.Table.from_batches(reader.batches())
    assert dict(zip(table["offset"].to_pylist(), table["is_aborted"].to_pylist(), strict=True)) == {
        4: False,
        5: True,
        6: True,
        7: True,
        9: False,
    }
    assert reader.accounting == Accounting(span=6, data=2, aborted=3, control=1)


def test_replays_are_left_out_when_asked_but_counted(handmade: ModuleType) -> None:
    rows = [(0, b"a", b"1", []), (0, b"b", b"2", [("makewhole-plan", b"p")])]
    reader = read_range(
        handmade.MemoryLog([handmade.plain_batch(0, rows)]), handmade.wanted(0, 2), include_replayed=False
    )
    assert offsets(reader) == [0]
    assert reader.accounting.data == 2


def test_offsets_before_the_log_start_are_expired_even_inside_a_batch(handmade: ModuleType) -> None:
    log = handmade.MemoryLog([handmade.plain_batch(0, handmade.rows(10))], log_start=3)
    reader = read_range(log, handmade.wanted(0, 10))
    assert offsets(reader) == [3, 4, 5, 6, 7, 8, 9]
    assert reader.accounting == Accounting(span=10, data=7, expired=3)
    assert reader.expired == [(0, 3)]


def test_a_batch_with_a_wrong_checksum_costs_itself_only(handmade: ModuleType) -> None:
    bad = bytearray(handmade.plain_batch(5, handmade.rows(5)))
    bad[-1] ^= 1
    log = handmade.MemoryLog(
        [handmade.plain_batch(0, handmade.rows(5)), bytes(bad), handmade.plain_batch(10, handmade.rows(2))]
    )
    reader = read_range(log, handmade.wanted(0, 12))
    assert offsets(reader) == [0, 1, 2, 3, 4, 10, 11]
    assert reader.accounting == Accounting(span=12, data=7, undecodable=5)
    assert reader.undecodable == [Undecodable(3, 5, 10, "wrong checksum (CRC-32C)")]


def test_a_damaged_abort_marker_takes_nothing_of_the_next_transaction(handmade: ModuleType, tmp_path: Path) -> None:
    log = mixed(handmade, page_batches=6)
    marker = bytearray(log.batches[2])
    marker[-1] ^= 1
    log.batches[2] = bytes(marker)
    reader, rows, _ = archived(log, handmade.wanted(0, 17), tmp_path)
    assert [offset for batch in rows for offset in batch.column("offset").to_pylist()] == [0, 1, 2, 3, 4, 9, 10, 14, 16]
    assert reader.accounting == Accounting(span=17, data=9, control=1, aborted=3, compacted=3, undecodable=1)
    assert reader.aborted == (AbortedTransaction(first_offset=5, producer_id=9, marker_offset=8),)
    assert_same(reader, read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 17)), rows)


def test_a_wrong_last_offset_does_not_swallow_the_batches_behind_it(handmade: ModuleType) -> None:
    lying = bytearray(handmade.plain_batch(5, handmade.rows(5)))
    struct.pack_into(">i", lying, 23, 2**30)
    log = handmade.MemoryLog(
        [handmade.plain_batch(0, handmade.rows(5)), bytes(lying), handmade.plain_batch(10, handmade.rows(2))]
    )
    reader = read_range(log, handmade.wanted(0, 12))
    assert offsets(reader) == [0, 1, 2, 3, 4, 10, 11]
    assert reader.accounting == Accounting(span=12, data=7, undecodable=5)


def test_an_unknown_codec_is_counted_and_placed(handmade: ModuleType) -> None:
    log = handmade.MemoryLog(
        [handmade.plain_batch(0, handmade.rows(5), attributes=6), handmade.plain_batch(5, handmade.rows(1))]
    )
    reader = read_range(log, handmade.wanted(0, 6))
    assert offsets(reader) == [5]
    assert reader.undecodable == [Undecodable(3, 0, 5, "unknown compression codec 6")]


def test_an_empty_batch_kept_for_a_live_producer_is_compacted(handmade: ModuleType) -> None:
    empty = handmade.batch_of(0, b"", count=0, last_delta=4, producer=(9, 0, 0))
    follow = handmade.plain_batch(5, handmade.rows(1), producer=(9, 0, 5))
    reader = read_range(handmade.MemoryLog([empty, follow]), handmade.wanted(0, 6))
    assert offsets(reader) == [5]
    assert reader.accounting == Accounting(span=6, data=1, compacted=5)
    assert reader.sequences.breaks == []


def test_a_source_that_does_not_move_is_a_short_read(handmade: ModuleType) -> None:
    class Stuck:
        def check(self, wanted: PartitionRange) -> None:
            """Accept any range."""

        def intact_end(self, wanted: PartitionRange) -> int:
            return wanted.hi

        def fetch(self, wanted: PartitionRange, offset: int, isolation: str) -> LogPage:
            return LogPage()

        def next_batch(self, wanted: PartitionRange, offset: int, likely: int, isolation: str) -> int:
            raise AssertionError("there is no damage")

        def hole_reason(self, wanted: PartitionRange, start: int, end: int) -> str | None:
            return None

    reader = read_range(Stuck(), handmade.wanted(0, 6))
    with pytest.raises(TransientError, match=r"t partition 3 \[0, 6\): nothing was read at offset 0"):
        list(reader)
    with pytest.raises(MakewholeError, match="not read to its end"):
        _ = reader.accounting


def test_what_a_truncation_took_since_the_freezing_is_expired_and_named(handmade: ModuleType) -> None:
    log = mixed(handmade)
    log.intact = 9  # offsets 9 and up hold other records by now
    reader = read_range(log, handmade.wanted(0, 17))
    assert offsets(reader) == [0, 1, 2, 3, 4]
    assert reader.accounting == Accounting(span=17, data=5, control=1, aborted=3, expired=8)
    assert reader.expired == [(9, 17)]
    assert reader.truncated == ((9, 17),)
    log.intact = 0
    reader = read_range(log, handmade.wanted(5, 9))
    assert offsets(reader) == []
    assert reader.truncated == ((5, 9),)
    assert reader.accounting == Accounting(span=4, expired=4)


def test_a_truncation_during_the_read_is_noticed_at_its_end(handmade: ModuleType) -> None:
    log = mixed(handmade)
    rows = read_range(log, handmade.wanted(0, 17), max_records=1).batches()
    next(rows)
    log.intact = 9
    with pytest.raises(TransientError, match=r"t partition 3 \[0, 17\): the log was truncated while it was read"):
        list(rows)


def test_a_hole_that_compaction_does_not_explain_is_placed_and_counted(handmade: ModuleType, tmp_path: Path) -> None:
    log = mixed(handmade)
    log.doubt = "no batch holds these offsets, and cleanup.policy is delete"
    reader, rows, _ = archived(log, handmade.wanted(0, 17), tmp_path)
    assert reader.undecodable == [Undecodable(3, 12, 14, log.doubt)]
    # The hole inside a batch is the cleaner's own work: a broker takes no such batch from a producer.
    assert reader.accounting == Accounting(span=17, data=9, control=2, aborted=3, compacted=1, undecodable=2)
    assert_same(reader, read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 17)), rows)


def test_only_wanted_columns_come(handmade: ModuleType) -> None:
    reader = read_range(mixed(handmade), handmade.wanted(0, 17), columns=["value", "offset"])
    assert [batch.schema.names for batch in reader] == [["value", "offset"]]
    assert reader.accounting.is_complete


def test_the_checksum_may_be_left_unchecked(handmade: ModuleType) -> None:
    bad = bytearray(handmade.plain_batch(0, handmade.rows(3)))
    bad[17] ^= 1  # in the checksum itself
    log = handmade.MemoryLog([bytes(bad)])
    assert offsets(read_range(log, handmade.wanted(0, 3))) == []
    assert offsets(read_range(log, handmade.wanted(0, 3), is_crc_checked=False)) == [0, 1, 2]


@pytest.mark.parametrize("max_records", [1, 3, 100])
def test_record_batches_are_no_larger_than_asked(handmade: ModuleType, max_records: int) -> None:
    reader = read_range(mixed(handmade), handmade.wanted(0, 17), max_records=max_records)
    sizes = [batch.num_rows for batch in reader]
    assert max(sizes) <= max_records
    assert sum(sizes) == 9


def archived(source, wanted: PartitionRange, directory, **options):  # type: ignore[no-untyped-def]
    writer = SegmentWriter(str(directory), wanted, **options)
    reader = read_range(source, wanted, on_fetched=writer.write)
    rows = list(reader)
    account = reader.account
    return (
        reader,
        rows,
        writer.finish(reader.expired, reader.aborted, truncated=account.truncated, unexplained=account.unexplained),
    )


def assert_same(reader: RangeReader, again: RangeReader, rows: list[pa.RecordBatch]) -> None:
    assert list(again) == rows
    assert again.accounting == reader.accounting
    assert again.undecodable == reader.undecodable
    assert again.expired == reader.expired
    assert again.truncated == reader.truncated
    assert again.leader_epochs == reader.leader_epochs
    assert again.transactions == reader.transactions


@pytest.mark.parametrize("segment_bytes", [1, 200, 1 << 30])
@settings(deadline=None, max_examples=25)
@given(lo=st.integers(0, 16), size=st.integers(1, 17), page_bytes=st.sampled_from([1, 150, 1 << 20]))
def test_an_archive_gives_back_what_was_read(
    handmade: ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
    segment_bytes: int,
    lo: int,
    size: int,
    page_bytes: int,
) -> None:
    directory = tmp_path_factory.mktemp("archive")
    wanted = handmade.wanted(lo, min(lo + size, 17))
    reader, rows, _ = archived(mixed(handmade), wanted, directory, segment_bytes=segment_bytes)
    assert_same(reader, read_range(ArchiveLog(str(directory), page_bytes=page_bytes), wanted), rows)


@settings(deadline=None, max_examples=50)
@given(cut=st.lists(st.integers(1, 16), max_size=4, unique=True), lo=st.integers(0, 16))
def test_ranges_written_side_by_side_hold_each_batch_once_and_read_as_one(
    handmade: ModuleType, tmp_path_factory: pytest.TempPathFactory, cut: list[int], lo: int
) -> None:
    directory = tmp_path_factory.mktemp("archive")
    edges = [0, *sorted(cut), 17]
    for start, end in itertools.pairwise(edges):
        archived(mixed(handmade), handmade.wanted(start, end), directory, window_lo=0)
    for wanted in (handmade.wanted(0, 17), handmade.wanted(lo, 17)):
        live = read_range(mixed(handmade), wanted)
        assert_same(live, read_range(ArchiveLog(str(directory)), wanted), list(live))
    size = sum(path.stat().st_size for path in directory.rglob("*.log"))
    assert size == sum(map(len, mixed(handmade).batches))


def test_an_archive_remembers_what_was_expired(handmade: ModuleType, tmp_path: Path) -> None:
    log = handmade.MemoryLog([handmade.plain_batch(0, handmade.rows(10))], log_start=3)
    reader, rows, _ = archived(log, handmade.wanted(0, 10), tmp_path)
    assert_same(reader, read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 10)), rows)


def test_an_archive_remembers_what_was_truncated(handmade: ModuleType, tmp_path: Path) -> None:
    log = mixed(handmade)
    log.intact = 9
    reader, rows, _ = archived(log, handmade.wanted(0, 17), tmp_path)
    assert_same(reader, read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 17)), rows)


def test_a_batch_that_the_range_before_came_too_late_for_is_missed_in_the_archive(
    handmade: ModuleType,
    tmp_path: Path,
) -> None:
    archived(mixed(handmade), handmade.wanted(3, 17), tmp_path, window_lo=0)
    archived(handmade.MemoryLog([], log_start=5), handmade.wanted(0, 3), tmp_path, window_lo=0)
    again = read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 17))
    assert offsets(again) == [9, 10, 14, 16]
    reason = "its batch was left to the archive of the range before, which was read too late for it"
    assert again.undecodable == [Undecodable(3, 3, 5, reason)]
    assert again.expired == [(0, 3)]


def test_a_batch_is_archived_whole_when_the_range_starts_in_it(handmade: ModuleType, tmp_path: Path) -> None:
    _, _, paths = archived(mixed(handmade), handmade.wanted(2, 6), tmp_path)
    assert [path.rsplit("/", 1)[1] for path in paths] == [
        "00000000000000000000.log",
        "00000000000000000000.aborted.json",
    ]
    assert (tmp_path / "partition=3" / "00000000000000000000.log").read_bytes() == b"".join(mixed(handmade).batches[:2])


def test_an_archive_refuses_another_incarnation_and_a_range_it_does_not_hold(
    handmade: ModuleType, tmp_path: Path
) -> None:
    archived(mixed(handmade), handmade.wanted(0, 12), tmp_path)
    other = PartitionRange(topic="t", topic_id="other", partition=3, lo=0, hi=12)
    with pytest.raises(RefusedError, match="another incarnation"):
        list(read_range(ArchiveLog(str(tmp_path)), other))
    with pytest.raises(CorruptionError, match=r"covers offsets up to 12, asked was \[0, 17\)"):
        list(read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 17)))


def test_a_segment_of_another_size_is_corruption(handmade: ModuleType, tmp_path: Path) -> None:
    _, _, paths = archived(mixed(handmade), handmade.wanted(0, 12), tmp_path)
    with Path(paths[0]).open("ab") as file:
        file.write(b"x")
    with pytest.raises(CorruptionError, match="were written"):
        list(read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 12)))


def test_a_segment_with_another_digest_is_corruption(handmade: ModuleType, tmp_path: Path) -> None:
    _, _, paths = archived(mixed(handmade), handmade.wanted(0, 12), tmp_path)
    data = bytearray(Path(paths[0]).read_bytes())
    data[15] ^= 1  # a leader epoch: no checksum of Kafka's covers it
    Path(paths[0]).write_bytes(data)
    with pytest.raises(CorruptionError, match="is not what was written: its SHA-256 differs"):
        list(read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 12)))


def test_an_archive_of_before_digests_were_kept_is_still_read(handmade: ModuleType, tmp_path: Path) -> None:
    reader, rows, paths = archived(mixed(handmade), handmade.wanted(0, 17), tmp_path)
    sidecar = json.loads(Path(paths[1]).read_text())
    for name in ("sha256", "truncated", "unexplained", "left_out"):
        del sidecar[name]
    Path(paths[1]).write_text(json.dumps(sidecar))
    assert_same(reader, read_range(ArchiveLog(str(tmp_path)), handmade.wanted(0, 17)), rows)


@settings(deadline=None, max_examples=examples(150))
@given(position=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_damaged_archive_accounts_for_every_offset_or_fails(
    handmade: ModuleType, tmp_path_factory: pytest.TempPathFactory, position: int, byte: int
) -> None:
    directory = tmp_path_factory.mktemp("archive")
    _, _, paths = archived(mixed(handmade), handmade.wanted(0, 17), directory)
    data = bytearray(Path(paths[0]).read_bytes())
    data[position % len(data)] = byte
    Path(paths[0]).write_bytes(data)
    sidecar = json.loads(Path(paths[1]).read_text())  # with a digest that fits: the damage was there when it was taken
    Path(paths[1]).write_text(json.dumps(sidecar | {"sha256": hashlib.sha256(data).hexdigest()}))
    reader = read_range(ArchiveLog(str(directory)), handmade.wanted(0, 17))
    try:
        list(reader)
    except (TransientError, CorruptionError):
        return
    assert reader.accounting.is_complete


def test_an_unfinished_attempt_leaves_nothing_visible(handmade: ModuleType, tmp_path: Path) -> None:
    writer = SegmentWriter(str(tmp_path), handmade.wanted(0, 17))
    writer.write(0, mixed(handmade).batches[0])
    assert ArchiveLog(str(tmp_path)).segments(3) == []
    writer.discard()
    assert list((tmp_path / "partition=3").iterdir()) == []
