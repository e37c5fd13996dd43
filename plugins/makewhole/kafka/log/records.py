"""Decode the records of many batches at once into Arrow columns.

A batch whose records do not fit together is taken out and read record by record (salvage.py), so that one bad record
costs itself only.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from makewhole.kafka.log.record_table import SCHEMA, BatchToDecode, RecordTable
from makewhole.kafka.log.salvage import Salvage, Undecodable, salvage
from makewhole.kafka.sequences.numbering import NO_SEQUENCE, SEQUENCES
from makewhole.model.plan import PLAN_HEADER

__all__ = ["SCHEMA", "BatchToDecode", "Decoded", "decode"]


class Decoded(NamedTuple):
    """The wanted records of `items`, in offset order, with how many each item gave and what could not be read."""

    items: Sequence[BatchToDecode]
    counts: Sequence[int]
    columns: pa.RecordBatch
    undecodable: Sequence[Undecodable]


def decode(
    partition: int, items: Sequence[BatchToDecode], names: Collection[str] = SCHEMA.names, *, has_views: bool = False
) -> Iterator[Decoded]:
    """Decode items in order into the named columns of `SCHEMA`; several results when damaged batches stand between.

    With `has_views`, `value` may come as views into the bytes of all items together.
    """
    table = RecordTable(items)
    if not table.damaged:
        yield _decoded(table, partition, names, has_views)
        return
    start = 0
    for index in [*sorted(table.damaged), len(items)]:
        if index > start:
            yield _decoded(RecordTable(items[start:index]), partition, names, has_views)
        if index < len(items):
            yield _salvaged(partition, items[index], names)
        start = index + 1


def _decoded(table: RecordTable, partition: int, names: Collection[str], has_views: bool) -> Decoded:
    counts, wanted = table.wanted()
    if wanted is None:
        return Decoded(table.items, counts, table.columns(partition, names, has_views=has_views), ())
    return Decoded(table.items, counts, table.columns(partition, names).filter(pa.array(wanted)), ())


def _salvaged(partition: int, item: BatchToDecode, names: Collection[str]) -> Decoded:
    """Return what can be read of a damaged batch, record by record."""
    salvaged: Salvage = salvage(item.batch, bytes(item.data), partition)
    records = [record for record in salvaged.records if item.lo <= record.offset < item.hi]
    bad = [
        Undecodable(partition, max(place.offset, item.lo), min(place.end_offset, item.hi), place.reason)
        for place in salvaged.undecodable
        if place.offset < item.hi and place.end_offset > item.lo
    ]
    batch = item.batch
    has_sequence = batch.base_sequence != NO_SEQUENCE
    rows = [
        {
            "partition": partition,
            "offset": record.offset,
            "leader_epoch": batch.leader_epoch,
            "timestamp": record.timestamp,
            "timestamp_type": int(batch.is_log_append_time),
            "key": record.key,
            "value": record.value,
            "headers": [{"key": name, "value": content} for name, content in record.headers],
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "sequence": (batch.base_sequence + record.offset - batch.base_offset) % SEQUENCES if has_sequence else -1,
            "is_transactional": batch.is_transactional,
            "is_aborted": item.is_aborted,
            "is_replayed": any(name == PLAN_HEADER for name, _ in record.headers),
        }
        for record in records
    ]
    return Decoded(
        [item],
        [len(rows)],
        pa.RecordBatch.from_pylist(rows, schema=SCHEMA).select([name for name in SCHEMA.names if name in names]),
        bad,
    )
