"""Read the sources of payloads: original records by position, and tables by key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.repeated_elements import is_below_another
from makewhole.compute.row_filter import filter_terms
from makewhole.kafka.partitioner import KnownKeys
from makewhole.kinds import OpenTables, tables_of
from makewhole.lake.record_file import RecordFile
from makewhole.model.connection import Connection
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.plan import ErasedSince
from makewhole.model.points import COORDINATES, TablePoint, TopicPoint, can_look_up
from makewhole.model.refusal import Refusal, RefusalCode
from makewhole.tables.reading import OpenTable
from makewhole.tables.rows import LedgerReading
from makewhole.window.context import key_shape, table_shape, value_shape

_HEADER: dict[str, pa.DataType] = {"key": pa.string(), "value": pa.binary()}
_COORDINATES = tuple(dict.fromkeys(COORDINATES.values()))
_RECORD = pa.schema(
    [
        *{"key": pa.binary(), "value": pa.binary(), "headers": pa.list_(pa.struct(list(_HEADER.items())))}.items(),
        *((column, pa.int64()) for column in _COORDINATES),
    ]
)
Position = tuple[int, int]
"""(partition, offset)."""
_NOWHERE = (-1, -1)
_ROW = "_row"
_RECORDS_TOGETHER = 5_000
_MOST_BYTES = 64 * 2**20  # of records in memory; one column of a batch holds less than 2 GiB


class PayloadFrom(StrEnum):
    """The source of a payload: a snapshot's archive, a broker that still had the record, a table upstream, or the
    template of a reversal."""

    ARCHIVE = "archive"
    BROKER = "broker"
    LEDGER = "ledger"
    TEMPLATE = "template"


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """A record as it is in the log. `timestamp_ms` None: it has none. `kept_in`: where it was read. The producer's id,
    epoch and number are -1 where it is not idempotent."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int | None
    kept_in: PayloadFrom = PayloadFrom.ARCHIVE
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1

    @property
    def coordinates(self) -> dict[str, int]:
        """Where it lies and how its producer numbered it, by the columns of the log."""
        return {column: getattr(self, column) for column in _COORDINATES}


class TombstoneSource(Protocol):
    """The topics whose tombstones name the keys of a store that were deleted on purpose."""

    def erased(self, store: TablePoint, keys: Iterable[str]) -> ErasedSince:
        """Return which of the keys were erased since the window was judged."""
        ...


class PayloadSource(Protocol):
    """Original records by position, from the archive of the window or wherever they still are, and what is known of the
    partitions of topics."""

    def records(self, point: str, positions: Sequence[Position]) -> Iterable[SourceRecord]:
        """Return the records of a topic point at these positions, in any order; those not found are left out."""
        ...

    def partition_count(self, point: str) -> int:
        """Return the number of partitions that a topic point has now."""
        ...

    def removed(self, point: str) -> str | None:
        """Return what says that an archive of a topic point was removed, once its records were asked for; None: none
        was."""
        ...

    def known_keys(self, point: str) -> KnownKeys | None:
        """Return keys that the producers of a topic point wrote last; None: none is known.

        Raises:
            CorruptionError: there are archives that should hold some, and they cannot be read.
        """
        ...


class Sources:
    """The sources of a plan's payloads, with one session per database. A context manager."""

    def __init__(
        self,
        pipeline: Pipeline,
        records: PayloadSource,
        connections: Mapping[str, Connection],
        tombstones: TombstoneSource | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._records, self._connections, self._tombstones = records, connections, tombstones
        self._stack = ExitStack()
        self._tables = self._stack.enter_context(
            OpenTables(connections, "reading rows of {}, and of others, for a plan")
        )
        self._known: dict[str, KnownKeys | None] = {}
        self._loaded = self._stack.enter_context(RecordFile())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def load(self, wanted: Mapping[str, Iterable[Position]]) -> None:
        """Read these records of topic points in the order of their positions; they are kept in a file. What was read
        before is not read again."""
        for name, positions in wanted.items():
            for some in _together(self._loaded.not_added(name, _in_order(positions))):
                for records in _pieces(self._records.records(name, some)):
                    for record, key in zip(records, self._keys_of(name, records), strict=True):
                        self._loaded.add(name, record.partition, record.offset, (record, key))

    def _keys_of(self, name: str, records: Sequence[SourceRecord]) -> list[str | None]:
        point = self.pipeline.topic(name)
        return business_keys(point, records)

    def record(self, name: str, position: Position | None, key: str) -> SourceRecord:
        """Return a record that was loaded.

        Raises:
            RefusedError: it is nowhere any more, or is not of this business key.
        """
        if self._loaded.find(name, *(position or _NOWHERE)) is None:
            raise ActionRefusedError.of(
                RefusalCode.NOT_KNOWN,
                f"its record in {name} is in no archive and on no broker any more{self._because(name)}; write the row "
                "by hand",
            )
        record = self.find(name, position, key)
        if record is None and self.pipeline.topic(name).explode is not None:
            raise ActionRefusedError.of(
                RefusalCode.NOT_KNOWN,
                f"the record at its place in {name} has no element of this key any more, or several that differ; write "
                "the row by hand",
            )
        if record is None:
            raise ActionRefusedError.of(
                RefusalCode.STALE, "another record is at the original's offset now; the log was cut off or made again"
            )
        return record

    def _because(self, name: str) -> str:
        removed = self._records.removed(name)
        return "" if removed is None else f" ({removed.rstrip('.')})"

    def partition_count(self, name: str) -> int:
        """Return the number of partitions that a topic point has now."""
        return self._records.partition_count(name)

    def known_keys(self, name: str) -> KnownKeys | None:
        """Return what `PayloadSource.known_keys` does; it is asked once."""
        if name not in self._known:
            self._known[name] = self._records.known_keys(name)
        return self._known[name]

    def find(self, name: str, position: Position | None, key: str) -> SourceRecord | None:
        """Return a record that was loaded; None: it is nowhere any more, or is not of this business key
        (of several elements with it that differ, none)."""
        record, own_key = self._loaded.find(name, *(position or _NOWHERE)) or (None, None)
        point = self.pipeline.topic(name)
        if record is not None and point.explode is not None:
            return _element_of(record, key, value_shape(self.pipeline, point))
        return record if own_key == key else None

    def table(self, name: str) -> OpenTable:
        """Return the table of a point, open for reading.

        Raises:
            RefusedError: the table is not there, or lacks a column.
        """
        return self._tables.of(self.pipeline.table(name))

    def table_as(self, point: TablePoint) -> OpenTable:
        """Return the table of a point that is described otherwise than the pipeline does. Raises as `table`."""
        return self._tables.of(point)

    def rows_now(self, name: str, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows that a table has of some keys, as frames for `table_frame`."""
        point = self.pipeline.table(name)
        return tables_of(self._connections[point.connection]).reader(table_shape(self.pipeline, point)).keys(keys)

    def erased(self, name: str, keys: Iterable[str]) -> dict[str, Refusal]:
        """Return those of the keys that a store names as erased on purpose, or of which that cannot be known; each with
        why it is not written."""
        point, wanted = self.pipeline.points[name], sorted(set(keys))
        if not can_look_up(point) or point.erased is None:
            return {}
        if point.erased.topics:
            not_asked = ErasedSince(not_known=f"no source was given to ask for the tombstones of {name}")
            since = not_asked if self._tombstones is None else self._tombstones.erased(point, wanted)
            return since.refusals(name, wanted)
        refusal = Refusal(RefusalCode.ERASED, f"{name}: {point.erased.description}")
        return dict.fromkeys(self.table(name).erased(wanted), refusal)


def _in_order(positions: Iterable[Position]) -> NDArray[np.int64]:
    """Return the positions in order, each once: a row each."""
    numbers = np.array([*positions] if not isinstance(positions, np.ndarray) else positions, dtype=np.int64)
    return np.unique(numbers.reshape(-1, 2), axis=0)


def _together(ordered: NDArray[np.int64]) -> Iterator[list[Position]]:
    """Yield so many of the positions together."""
    for first in range(0, len(ordered), _RECORDS_TOGETHER):
        yield [(int(partition), int(offset)) for partition, offset in ordered[first : first + _RECORDS_TOGETHER]]


def _pieces(records: Iterable[SourceRecord]) -> Iterator[list[SourceRecord]]:
    """Yield the records in lists, each of which ends with the record that makes it 64 MiB or more."""
    piece, size_bytes = list[SourceRecord](), 0
    for record in records:
        piece.append(record)
        size_bytes += _size_bytes(record)
        if size_bytes >= _MOST_BYTES:
            yield piece
            piece, size_bytes = [], 0
    if piece:
        yield piece


def _size_bytes(record: SourceRecord) -> int:
    texts = [record.key, record.value, *(value for _, value in record.headers)]
    return sum(len(text) for text in texts if text is not None)


def ledger_reading(pipeline: Pipeline, hop: Hop, columns: Mapping[str, str] = MappingProxyType({})) -> LedgerReading:
    """Return what of a ledger's rows a hop reads as records, with the texts of these columns (name → declared type)."""
    return LedgerReading(
        columns=columns,
        terms=filter_terms(hop.where, pipeline.filter_types),
        takes_latest=hop.semantics is Semantics.UPSERT,
    )


def business_key(point: TopicPoint, record: SourceRecord) -> str | None:
    """Return the business key of a record, as snapshots decode it; None: it has none."""
    return business_keys(point, [record])[0]


def business_keys(point: TopicPoint, records: Sequence[SourceRecord]) -> list[str | None]:
    """Return the business key of each record, as snapshots decode it; None: it has none."""
    keys: list[str | None] = decode_values(_batch(records), key_shape(point))["key"].to_list()
    return keys


def _element_of(record: SourceRecord, key: str, shape: ValueShape) -> SourceRecord | None:
    """Return the element of a record that has a business key, as a record of its own: of versions the highest. None:
    none has it, or several that differ."""
    assert shape.elements is not None
    headers = [{"key": name, "value": value} for name, value in record.headers]
    parts = [replace(record, value=value) for value in shape.elements.values_of(record.value, headers)]
    if not parts:
        return None
    own = decode_values(_batch(parts), shape).with_row_index(_ROW).filter(pl.col("key") == key)
    if shape.elements.takes_latest:
        position = {"partition": record.partition, "offset": record.offset}
        own = own.with_columns(pl.lit(value).alias(name) for name, value in position.items())
        own = own.filter(~is_below_another())
    elements = {parts[row].value: parts[row] for row in own[_ROW]}
    return next(iter(elements.values())) if len(elements) == 1 else None


def decoded(record: SourceRecord, shape: ValueShape) -> dict[str, Any]:
    """Decode one record as snapshots do; see `decode_values` for the fields."""
    return decode_values(_batch([record]), shape).row(0, named=True)


def _batch(records: Sequence[SourceRecord]) -> pa.RecordBatch:
    row: dict[str, list[Any]] = {
        "key": [record.key for record in records],
        "value": [record.value for record in records],
        "headers": [[{"key": name, "value": value} for name, value in record.headers] for record in records],
        **{column: [record.coordinates[column] for record in records] for column in _COORDINATES},
    }
    return pa.RecordBatch.from_pydict(row, schema=_RECORD)
