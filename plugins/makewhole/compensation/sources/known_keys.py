"""Read the keys that the producers of a topic wrote last, with their partitions and what their records look like, from
the archives of windows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.json_fields import fields_of
from makewhole.compute.keys import KeyProblem
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.partitioner import KnownKeys, KnownRecord
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange, Window
from makewhole.window.context import WindowContext, key_shape

_OFFSETS_MOST = 100
_WINDOWS_MOST = 5
_COLUMNS = ("key", "value", "headers")


def read_known_keys(
    context: WindowContext, judged: Sequence[Window], topic: TopicPoint, folder_of: Callable[[Window, str], str]
) -> KnownKeys | None:
    """Return the keys of the newest window that has any, at most so many per partition; None: there are none.

    The `_WINDOWS_MOST` newest of `judged` (newest first) are looked at, and the context's own; `folder_of`
    finds their archives. Records without a key,
    and records that compensation wrote, show nothing.

    Raises:
        CorruptionError: an archive is gone or damaged.
    """
    others = (window for window in judged if window.number != context.window.number)
    newest_first = sorted((context.window, *others), key=lambda window: window.number, reverse=True)
    looked_at = newest_first[:_WINDOWS_MOST]
    for window in looked_at if context.window in looked_at else (*looked_at, context.window):
        ranges = [part for part in window.ranges.get(topic.name, ()) if part.topic == topic.topic]
        archive = ArchiveLog(folder_of(window, topic.name))
        records = [(part.partition, record) for part in ranges for record in _last_records(archive, part, topic)]
        if records:
            return KnownKeys(
                partitions=len({part.partition for part in ranges}),
                places=[(partition, record.key) for partition, record in records],
                records=[record for _, record in records],
            )
    return None


def _last_records(archive: ArchiveLog, part: PartitionRange, topic: TopicPoint) -> Iterator[KnownRecord]:
    if not part.span:
        return
    wanted = replace(part, lo=max(part.lo, part.hi - _OFFSETS_MOST), leader_epochs=())
    shape = key_shape(topic)
    columns = (*_COLUMNS, *shape.coordinates)
    for batch in read_range(archive, wanted, include_replayed=False, columns=columns).batches():
        keys = decode_values(batch, shape)["key"].to_list()
        for row, business_key in zip(batch.select(["key", "headers", "value"]).to_pylist(), keys, strict=True):
            if row["key"] is not None:
                headers = tuple((entry["key"], entry["value"]) for entry in row["headers"] or ())
                fields = _fields(row, shape)
                yield KnownRecord(key=row["key"], business_key=business_key, headers=headers, fields=fields)


def _fields(row: Mapping[str, Any], shape: ValueShape) -> Mapping[str, str] | None:
    """Return the fields of a record's value with their types; None: it cannot be decoded."""
    try:
        return fields_of(shape.format.document(row["value"], row["headers"]))
    except KeyProblem:
        return None
