"""Fuzz the log reader: whatever bytes stand in a log, every offset of the range is accounted for, and no record is
made up."""

import dataclasses
import json
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import google_crc32c
import pyarrow as pa

from makewhole.kafka.log.aborted_transactions import AbortedTransaction
from makewhole.kafka.log.archive import ArchiveLog, SegmentWriter
from makewhole.kafka.log.batches import split_batches
from makewhole.kafka.log.reader import RangeReader, read_range
from makewhole.kafka.log.segment import SIDECAR
from makewhole.kafka.scan.partition import LogBounds, PartitionScan
from makewhole.model.errors import CorruptionError, MakewholeError
from tests.fuzz.mutations import mutated
from tests.unit.kafka import conftest as handmade

_PARTITION = 3
_CODECS = {1: "gzip", 3: "lz4", 4: "zstd"}
_UNDER_CRC = 21
_BEHIND_LENGTH = 16
_RANGE_BYTES = 256
Contents = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def _compressed(base_offset: int, rows: Sequence[handmade.Row], codec: int) -> bytes:
    records = b"".join(handmade.record(delta, row) for delta, row in enumerate(rows))
    packed = pa.Codec("snappy").compress(records, asbytes=True) if codec == 2 else _streamed(records, _CODECS[codec])
    count = len(rows)
    return handmade.batch_of(base_offset, packed, count=count, last_delta=count - 1, attributes=codec)


def _streamed(records: bytes, codec: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(records)
    return bytes(sink.getvalue())


def _batches() -> list[list[bytes]]:
    """Return logs: plain, in transactions, compacted, and with every codec."""
    rows, transactional = handmade.rows, {"attributes": 0x10, "producer": (9, 0, 0)}
    headers: list[handmade.Row] = [(5, None, None, [("a", b"x"), ("makewhole-plan", None)]), (6, b"", b"", [])]
    mixed = [
        handmade.plain_batch(0, rows(5)),
        handmade.plain_batch(5, rows(3), **transactional),
        handmade.marker(8, 9, is_commit=False),
        handmade.plain_batch(9, rows(2), attributes=0x10, producer=(9, 0, 3)),
        handmade.marker(11, 9, is_commit=True),
        handmade.sparse_batch(14, {0: rows(1)[0], 2: rows(1)[0]}, 2, leader_epoch=1),
        handmade.batch_of(17, b"", count=0, last_delta=4, producer=(9, 0, 5)),
        handmade.plain_batch(22, headers, attributes=0x08),
    ]
    codecs = [_compressed(4 * codec - 4, rows(4), codec) for codec in (1, 2, 3, 4)]
    return [mixed, [handmade.plain_batch(3 * at, rows(3, at)) for at in range(6)], codecs]


class Logs:
    """The bytes of an archive's segment. Of the first two bytes one says of which log, the other where the range begins
    and how many bytes a page has; a checksum may be right whatever it covers."""

    def __init__(self) -> None:
        self._logs = _batches()
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self._sound = [self._archive(number, batches) for number, batches in enumerate(self._logs)]

    def _archive(self, number: int, batches: list[bytes]) -> "_Sound":
        folder = self._folder / f"{number}"
        aborted = [AbortedTransaction(first_offset=5, producer_id=9, marker_offset=8)] if number == 0 else []
        end = list(split_batches(b"".join(batches)))[-1].end_offset
        wanted = handmade.wanted(0, end, _PARTITION)
        writer = SegmentWriter(str(folder), wanted)
        reader = read_range(handmade.MemoryLog(batches, aborted=aborted), wanted, on_fetched=writer.write)
        rows = list(reader)
        account = reader.account
        writer.finish(reader.expired, reader.aborted, truncated=account.truncated, unexplained=account.unexplained)
        (log,) = folder.glob("*/*.log")
        (sidecar,) = folder.glob(f"*/*{SIDECAR}")
        return _Sound(folder=folder, log=log, sidecar=sidecar, end=end, data=log.read_bytes(), rows=rows)

    def draw(self, random: Random) -> bytes:
        """Return a log with damaged bytes, in half of them under checksums that are right again."""
        number = random.randrange(len(self._logs))
        batches = list(self._logs[number])
        at = random.randrange(len(batches))
        match random.randrange(5):
            case 0:
                data = mutated(b"".join(batches), random, batches)
            case 1:
                batches[at] = mutated(batches[at], random, batches)
                data = b"".join(batches)
            case 2:  # nothing but what the checksum covers
                whole, place = bytearray(batches[at]), random.randrange(_BEHIND_LENGTH + 1, len(batches[at]))
                whole[place] ^= random.randrange(1, 256)
                data = b"".join([*batches[:at], bytes(whole), *batches[at + 1 :]])
            case _:
                body = mutated(batches[at][_UNDER_CRC:], random, [batch[_UNDER_CRC:] for batch in batches])
                head = struct.pack(">qiibI", at, 9 + len(body), 0, 2, google_crc32c.value(body))
                batches[at] = batches[at][:8] + head[8:] + body
                data = b"".join(batches)
        return bytes([number, random.randrange(256)]) + data

    def check(self, content: bytes) -> None:
        """Read a range of the log, with and without checksums, and scan its headers."""
        sound = self._sound[content[0] % len(self._sound)]
        begin, data = content[1], content[2:]
        lo, page_bytes = begin % 4 if begin % 3 == 0 else 0, (1 << 20, 70, 300)[begin % 3]
        sound.write(data)
        archive = ArchiveLog(str(sound.folder), page_bytes=page_bytes, is_verified=False)
        for is_crc_checked in (True, False):
            reader = read_range(
                archive, handmade.wanted(lo, sound.end, _PARTITION), max_records=7, is_crc_checked=is_crc_checked
            )
            rows = list(reader)  # an archive does not change: to read it again would help nothing
            self._check_read(reader, rows, lo)
            if is_crc_checked:
                _check_contents(sound, data, rows)
                _check_damage(sound, data, reader, rows, is_one_page=page_bytes > len(data))
        _scan(archive, lo, sound.end)

    @staticmethod
    def _check_read(reader: RangeReader, rows: Sequence[pa.RecordBatch], lo: int) -> None:
        assert reader.accounting.is_complete
        offsets = [int(offset) for batch in rows for offset in batch.column("offset").to_numpy()]
        assert offsets == sorted(set(offsets))
        assert all(lo <= offset < reader.range.hi for offset in offsets)
        assert len(offsets) == reader.accounting.data
        for place in reader.undecodable:
            assert place.partition == _PARTITION
            assert lo <= place.offset < place.end_offset <= reader.range.hi, place
            assert place.reason
        for batch in rows:
            batch.validate(full=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Sound:
    """A log that is sound, and its archive."""

    folder: Path
    log: Path
    sidecar: Path
    end: int
    data: bytes
    rows: Sequence[pa.RecordBatch]

    def write(self, data: bytes) -> None:
        """Have other bytes in the archive, as if they were those that were fetched."""
        self.log.write_bytes(data)
        document = json.loads(self.sidecar.read_bytes()) | {"size_bytes": len(data), "sha256": None}
        self.sidecar.write_text(json.dumps(document), encoding="utf-8")


def _read(reader: RangeReader) -> list[pa.RecordBatch] | None:
    try:
        return list(reader)
    except MakewholeError as error:
        assert str(error)
        return None


def _contents(rows: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Contents]]:
    for batch in rows:
        for row in batch.to_pylist():
            headers = tuple((header["key"], header["value"]) for header in row["headers"])
            yield row["offset"], (row["key"], row["value"], headers)


def _check_contents(sound: _Sound, data: bytes, rows: Sequence[pa.RecordBatch]) -> None:
    """Hold what was read to what was written, unless a checksum is right of other bytes."""
    known = {sound.data[batch.start + _UNDER_CRC : batch.end] for batch in split_batches(sound.data)}
    for at in range(len(data) - _UNDER_CRC):
        length = int.from_bytes(data[at + 8 : at + 12], "big")
        under = data[at + _UNDER_CRC : at + 12 + length]
        if (
            under
            and under not in known
            and google_crc32c.value(under) == int.from_bytes(data[at + 17 : at + 21], "big")
        ):
            return
    records = {contents for _, contents in _contents(sound.rows)}
    assert all(contents in records for _, contents in _contents(rows)), "a record that was not written"


def _check_damage(
    sound: _Sound, data: bytes, reader: RangeReader, rows: Sequence[pa.RecordBatch], *, is_one_page: bool
) -> None:
    """Hold damage within what one checksum covers to the batch: it is named, and all others are read."""
    lo = reader.range.lo
    changed = [at for at, pair in enumerate(zip(data, sound.data, strict=False)) if pair[0] != pair[1]]
    batches = [
        batch
        for batch in split_batches(sound.data)
        if changed and batch.start + _BEHIND_LENGTH < changed[0] and changed[-1] < batch.end
    ]
    if len(data) != len(sound.data) or not batches:
        return
    (batch,) = batches
    if google_crc32c.value(data[batch.start + _UNDER_CRC : batch.end]) == int.from_bytes(
        data[batch.start + 17 : batch.start + 21], "big"
    ):
        return
    others = [
        record
        for record in _contents(sound.rows)
        if record[0] >= lo and not batch.base_offset <= record[0] < batch.end_offset
    ]
    contents = list(_contents(rows))
    assert [record for record in others if record in contents] == contents
    if not is_one_page:
        return  # a wrong end may cost the batch that a page begins with, too
    assert contents == others
    before = [earlier.end_offset for earlier in split_batches(sound.data) if earlier.start < batch.start]
    start = max(lo, *before, 0)  # where it begins is not sure, either
    if batch.end_offset <= lo:
        assert reader.undecodable == []
        return
    (place,) = reader.undecodable
    assert (place.offset, place.reason.split(":")[0]) in [
        (start, reason) for reason in ("wrong checksum (CRC-32C)", "impossible counts")
    ]


def _scan(archive: ArchiveLog, lo: int, hi: int) -> None:
    scan = PartitionScan(archive, handmade.wanted(lo, hi, _PARTITION), LogBounds(log_start=0, stable=hi, end=hi))
    while not scan.is_done:
        scan.step()
    scan.open_rest()
    assert scan.failure is None, scan.failure
    assert scan.account.accounting.is_complete


class Sidecars:
    """The file beside a segment."""

    def __init__(self) -> None:
        logs = Logs()
        self._sound = logs._sound[0]
        self._content = self._sound.sidecar.read_bytes()

    def draw(self, random: Random) -> bytes:
        """Return a sidecar with damaged bytes or words."""
        if random.randrange(2):
            return mutated(self._content, random)
        document = json.loads(self._content)
        name = random.choice(list(document))
        values: tuple[Any, ...] = (
            None,
            -1,
            0,
            1,
            2**70,
            "x",
            [],
            [[1]],
            [[0, 5]],
            [[5, 0]],
            [[9, 5, 8]],
            {},
            1.5,
            [None],
            True,
        )
        document[name] = random.choice(values)
        return json.dumps(document).encode()

    def check(self, content: bytes) -> None:
        """Hold a reader to an account or an error of its own."""
        self._sound.sidecar.write_bytes(content)
        self._sound.log.write_bytes(self._sound.data)
        archive = ArchiveLog(str(self._sound.folder))
        with suppress(CorruptionError):
            archive.ranges()
        reader = read_range(archive, handmade.wanted(0, self._sound.end, _PARTITION))
        rows = _read(reader)
        if rows is not None:
            Logs._check_read(reader, rows, 0)
            _check_contents(self._sound, self._sound.data, rows)
