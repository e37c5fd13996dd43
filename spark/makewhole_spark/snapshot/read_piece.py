"""Read one piece of a point in a task: decode, hash, bucket and write it; archive a topic's batches."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compute.buckets import bucket_name, split_by_bucket
from makewhole.compute.decode.coordinates import UNNUMBERED
from makewhole.compute.decode.unread_keys import ComparedKeys
from makewhole.compute.frames import NEVER_NULL, TOMBSTONES, UNDECODABLE
from makewhole.compute.key_values import without_key
from makewhole.compute.normalise import log_columns, stored_table_frame, topic_records
from makewhole.kafka.log.account import OffsetSpan
from makewhole.kafka.log.archive import SegmentWriter
from makewhole.kafka.log.broker import BrokerLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.log.salvage import Undecodable
from makewhole.kafka.sequences.audit import SequenceAudit
from makewhole.kafka.sequences.numbering import NO_PRODUCER
from makewhole.lake.constant_columns import constants_among, constants_of, metadata_of
from makewhole.lake.parquet_writer import GrowingParquet
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.points import POSITION, Point, TablePoint, TopicPoint
from makewhole.model.window import Accounting, PartitionRange
from makewhole.tables.reading import UnreadableFile
from makewhole.tables.shape import TimeBounds
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.census import own_slice, rows_in_slice
from makewhole_spark.snapshot.seen_values import SeenValues

_ROWS_PER_FLUSH = 262_144
_ROWS_OF_CONSTANTS = 1_024  # of a first frame, from which columns are taken to hold one value in those after it, too
MOST_REASONS = 10
"""Reasons of undecodable records and rows that are counted in a manifest."""
_NO_FILES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class TopicPiece:
    """Offsets of one partition, for one task. `bucket_count`: of the buckets to write. `compares_keys`: Kafka's keys
    with the business keys."""

    context: WindowContext
    point: TopicPoint
    bucket_count: int
    range: PartitionRange
    window_lo: int
    compares_keys: bool = False


@dataclass(frozen=True, kw_only=True)
class TablePiece:
    """A part of a table under a view that is held, as its `ReadPlan` has it; with `keys_of`, the rows of the keys of
    `source` in some buckets, in that part or, without one, wherever they lie. `bucket_count`: of those to write."""

    context: WindowContext
    point: TablePoint
    bucket_count: int
    view: str
    bounds: TimeBounds | None
    part: Any = None
    source: str | None = None
    keys_of: Mapping[str, list[str]] | None = None
    buckets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PieceRead:
    """The files that one task wrote, as (bucket, path), and the numbers of the read; those of tombstones likewise.

    `sha256` is (path, digest in hex) of every file that the task wrote, taken while it wrote them.

    `undecodable_because` is (reason, number) of the most frequent reasons.
    `rows_in_slice`: of a table's rows, those of the window's own time slice; None where they were not kept apart.
    `unreadable`: the files of the table that did not decode; where there are some, all of the table is read again.
    `looked_at`: the number of keys of earlier windows whose rows were looked at; `gone`: the windows whose files are.
    `with_values`: the number of records or rows that are more than tombstones; `never_valued`: the compared columns of
    which none of them has a value.

    For a topic: `first_record_ms` is the timestamp of its first data record, aborted or not; `expired` are all spans
    that were gone before they could be read, `truncated` those of them that a truncation took; `sequences` audits the
    producers of this piece alone; `unnumbered` records carry no producer id; `compared`: its Kafka keys with its
    business keys, None where they were not compared.
    """

    files: tuple[tuple[str, str], ...]
    rows: int
    rows_counted: int | None = None
    rows_in_slice: int | None = None
    undecodable_files: tuple[str, ...] = ()
    undecodable: int = 0
    undecodable_because: tuple[tuple[str, int], ...] = ()
    tombstone_files: tuple[tuple[str, str], ...] = ()
    accounting: Accounting | None = None
    partition: int | None = None
    leader_epochs: tuple[tuple[int, int, int], ...] = ()
    expired: tuple[OffsetSpan, ...] = ()
    truncated: tuple[OffsetSpan, ...] = ()
    sequences: SequenceAudit | None = None
    first_record_ms: int | None = None
    unnumbered: int = 0
    compared: ComparedKeys | None = None
    unreadable: tuple[UnreadableFile, ...] = ()
    looked_at: int = 0
    gone: tuple[int, ...] = ()
    with_values: int = 0
    never_valued: tuple[str, ...] = ()
    sha256: tuple[tuple[str, str], ...] = ()


@dataclass
class BucketWriter:
    """A buffer of frames that writes them by bucket, so that no shuffle is needed. Close it when a task fails.

    `constants` are the columns, with their values, that have held one value from the first frame on: the rows are
    written without them. Where one holds another value, new files begin, so that they are at most as many as columns.
    """

    context: WindowContext
    folder: str
    bucket_count: int
    held: dict[int, list[pa.Table]] = field(default_factory=dict)
    held_rows: int = 0
    rows: int = 0
    columns: Sequence[str] = ()
    constants: pl.DataFrame | None = None
    files: dict[str, GrowingParquet] = field(default_factory=dict)
    former_files: list[tuple[str, GrowingParquet]] = field(default_factory=list)
    bad: list[pl.DataFrame] = field(default_factory=list)
    tombstones: list[pl.DataFrame] = field(default_factory=list)
    unnumbered: int = 0
    values: SeenValues = field(default_factory=SeenValues)

    def add(self, frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
        """Add the good and the undecodable rows of one batch."""
        good, bad = frames
        if len(bad):
            self.bad.append(bad)
            self.unnumbered += int((bad["reason"] == UNNUMBERED).sum())
        if "producer_id" in good.columns:
            self.unnumbered += int((good["producer_id"] == NO_PRODUCER).sum())
        self.values.add(good)
        for bucket, part in split_by_bucket(self._without_constants(good), self.bucket_count):
            self.held.setdefault(bucket, []).append(part)
        self.held_rows += len(good)
        if self.held_rows >= _ROWS_PER_FLUSH:
            self.flush()

    def _without_constants(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows without the columns that have held one value in all of them so far."""
        if not len(rows):
            return rows
        if self.constants is None:
            self.columns = rows.columns
            values = constants_of(rows if len(rows) >= _ROWS_OF_CONSTANTS else rows.clear())
            filled = (column for column in values if column.name not in NEVER_NULL or not column.has_nulls())
            self.constants = values.select(filled)
        left = constants_among(rows, self.constants)
        if left.width < self.constants.width:
            self.flush()
            self.close()
            self.former_files += sorted(self.files.items())
            self.files, self.constants = {}, left
        return rows.drop(left.columns)

    def add_tombstones(self, frame: pl.DataFrame) -> None:
        """Add tombstones (`TOMBSTONES`), which have files of their own: they are not taken for copies of their keys."""
        if len(frame):
            self.tombstones.append(frame)

    def flush(self) -> None:
        """Write the buffered rows."""
        for bucket, parts in sorted(self.held.items()):
            self._file_of(bucket_name(bucket, self.bucket_count)).append(pa.concat_tables(parts))
        self.rows += self.held_rows
        self.held, self.held_rows = {}, 0

    def _file_of(self, bucket: str) -> GrowingParquet:
        """Return the one file of this task for a bucket."""
        if bucket not in self.files:
            assert self.constants is not None
            self.files[bucket] = self.context.storage.growing_parquet(
                f"{self.folder}/keys/bucket={bucket}", NEVER_NULL, metadata_of(self.columns, self.constants)
            )
        return self.files[bucket]

    def close(self) -> None:
        """Close the files; no manifest names the files of a failed attempt."""
        for file in self.files.values():
            file.close()

    def finish(self, more_files: Mapping[str, str] = _NO_FILES, **numbers: Any) -> PieceRead:
        """Write the rest; return the files and numbers. `more_files` is path → SHA-256 of what else was written."""
        self.flush()
        self.close()
        of_keys = [*self.former_files, *sorted(self.files.items())]
        written = [file for _, file in of_keys]
        bad = pl.concat(self.bad) if self.bad else pl.DataFrame(schema=UNDECODABLE)
        if len(bad):
            with self.context.storage.growing_parquet(f"{self.folder}/undecodable") as undecodable:
                undecodable.append(bad)
            written.append(undecodable)
        tombstones = list(self._tombstone_files())
        return PieceRead(
            files=tuple((bucket, file.path) for bucket, file in of_keys),
            rows=self.rows,
            undecodable=len(bad),
            undecodable_because=_most_frequent(bad),
            undecodable_files=tuple(file.path for file in written[len(of_keys) :]),
            tombstone_files=tuple((bucket, file.path) for bucket, file in tombstones),
            unnumbered=self.unnumbered,
            with_values=self.values.rows,
            never_valued=self.values.never,
            sha256=tuple(
                sorted({**more_files, **_sha256_by_path([*written, *(file for _, file in tombstones)])}.items())
            ),
            **numbers,
        )

    def _tombstone_files(self) -> Iterator[tuple[str, GrowingParquet]]:
        """Write the tombstones, a file per bucket."""
        rows = pl.concat(self.tombstones) if self.tombstones else pl.DataFrame(schema=TOMBSTONES)
        for number, part in split_by_bucket(rows, self.bucket_count):
            bucket = bucket_name(number, self.bucket_count)
            with self.context.storage.growing_parquet(f"{self.folder}/tombstones/bucket={bucket}") as file:
                file.append(part)
            yield bucket, file


def _sha256_by_path(files: Sequence[GrowingParquet]) -> dict[str, str]:
    return {file.path: file.sha256 for file in files}


def point_folder(context: WindowContext, point: Point) -> str:
    """Return the folder of a point's snapshot, below the storage root."""
    return f"{context.window.prefix}/{point.name}"


def _writer(piece: TopicPiece | TablePiece) -> BucketWriter:
    return BucketWriter(piece.context, point_folder(piece.context, piece.point), piece.bucket_count)


def read_topic_piece(piece: TopicPiece) -> PieceRead:
    """Read, decode, hash, bucket and archive the offsets of one task.

    Raises:
        TransientError: the read came up short.
    """
    context, writer = piece.context, _writer(piece)
    shape = context.value_shape(piece.point)
    archive = context.storage.uri(f"{writer.folder}/archive")
    segment = SegmentWriter(archive, piece.range, window_lo=piece.window_lo)
    with closing(BrokerLog(context.kafka(piece.point))) as broker:
        columns = log_columns(shape, compares_keys=piece.compares_keys)
        reader = read_range(
            broker, piece.range, include_aborted=True, columns=columns, has_views=True, on_fetched=segment.write
        )
        first_record_ms: int | None = None
        elements, compared = 0, ComparedKeys()
        try:
            for batch in reader.batches():
                if first_record_ms is None and len(batch):
                    first_record_ms = batch.column("timestamp").cast(pa.int64())[0].as_py()
                records = topic_records(batch, shape, compares_keys=piece.compares_keys and not compared.others)
                writer.add((records.copies, records.undecodable))
                writer.add_tombstones(records.tombstones)
                elements += records.elements
                compared += records.compared
        except BaseException:
            segment.discard()
            writer.close()
            raise
    account = reader.account
    segment.finish(account.expired, reader.aborted, truncated=account.truncated, unexplained=account.unexplained)
    archived = {f"{writer.folder}/archive/{name}": digest for name, digest in segment.sha256.items()}
    without_key = len({place for frame in writer.bad for place in frame["place"]})  # of a record there may be several
    erasures = sum(map(len, writer.tombstones))
    writer.bad.append(_unreadable(piece.range.partition, reader.undecodable))
    return writer.finish(
        archived,
        accounting=reader.accounting
        + Accounting(
            span=0, data=-without_key - erasures, undecodable=without_key, erasures=erasures, elements=elements
        ),
        partition=piece.range.partition,
        leader_epochs=tuple(tuple(entry) for entry in reader.leader_epochs),
        expired=tuple(account.expired),
        truncated=tuple(account.truncated),
        sequences=reader.sequences,
        first_record_ms=first_record_ms,
        compared=compared if piece.compares_keys else None,
    )


def _unreadable(partition: int, undecodable: list[Undecodable]) -> pl.DataFrame:
    rows = [(f"{partition}:{item.offset}", item.reason, None) for item in undecodable]
    return pl.DataFrame(rows, schema=UNDECODABLE, orient="row")


def _most_frequent(bad: pl.DataFrame) -> tuple[tuple[str, int], ...]:
    """Return the most frequent reasons of undecodable records or rows, with their numbers."""
    return tuple(Counter(bad["reason"]).most_common(MOST_REASONS))


def read_table_piece(piece: TablePiece) -> PieceRead:
    """Export, hash and bucket the rows of one task.

    Raises:
        TransientError: the read came up short.
    """
    context, writer = piece.context, _writer(piece)
    reader = context.tables(piece.point).reader(context.table_shape(piece.point), piece.view)
    if piece.keys_of is None:
        frames = reader.part(piece.bounds, piece.part)
    elif piece.part is None:
        frames = reader.keys(_keys(piece)["key"].unique().sort().to_list())
    else:
        frames = reader.keys_in_part(_keys(piece), piece.part)
    in_slice = list[int | None]()
    with closing(writer):
        for frame in frames:
            in_slice.append(rows_in_slice(frame["time_us"], own_slice(context.window)))
            writer.add(
                stored_table_frame(
                    frame,
                    dict(columns_read_at(context.pipeline, piece.point.name)),
                    without_key(piece.point.key_layout),
                )
            )
        return writer.finish(
            rows_counted=reader.counted, rows_in_slice=sum_of_known(in_slice), unreadable=tuple(reader.unreadable)
        )


def sum_of_known(numbers: Sequence[int | None]) -> int | None:
    """Return the sum; None where one number is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _keys(piece: TablePiece) -> pl.DataFrame:
    """Return the keys of the upstream's snapshot in this task's buckets; positions that are read by parts as
    `partition` and `offset`."""
    assert piece.keys_of is not None
    assert piece.source is not None
    paths = [path for bucket in piece.buckets for path in piece.keys_of.get(bucket, [])]
    are_positions = piece.part is not None and piece.context.pipeline.points[piece.source].key == POSITION
    columns = ["partition", "offset"] if are_positions else ["key"]
    frame = piece.context.storage.read_parquet(paths, columns)
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String)) if frame is None else frame


def read_piece(piece: TopicPiece | TablePiece) -> PieceRead:
    """Read and write one piece of a point, whatever its kind."""
    return read_topic_piece(piece) if isinstance(piece, TopicPiece) else read_table_piece(piece)
