"""Remember the keys of whole pieces of a topic's tail: a window after this one that asks for others need not read them.

A backfill judges window after window, and each looks for its keys in the rest of the log, which is nearly the same for
all of them. A filter (`makewhole.compute.indexed_keys.filters`) of all keys in a piece takes some 26 bits a key. Its
file is named by the topic's id, by how keys are read, by the offsets and by the leader epoch of the last of them, so
that it is not asked about a log that was made again or written over. Its name also has what is to be known of a piece
that is not read: how many of its Kafka keys have the business key, and how many of its offsets were compacted.
"""

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from makewhole.compute.frames import HASH
from makewhole.compute.indexed_keys.filters import build_filter, maybe_in
from makewhole.kafka.log.reader import RangeReader
from makewhole.kafka.offsets import TopicLog
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.points import TopicPoint
from makewhole.model.window import PartitionRange
from makewhole.native.sort_hashes import sort_hashes
from makewhole.window.context import WindowContext

logger = logging.getLogger(__name__)

_NAME = re.compile(
    r"(?P<place>(\d+)-(\d+)-(\d+)-(\d+))"  # partition, first offset, end, leader epoch of the last
    r"-(?P<same>\d+)-(?P<compacted>\d+)\.filter"
)
Piece = tuple[int, int, int]
"""Partition, first offset and end of a piece."""


@dataclass(frozen=True, kw_only=True)
class TailFilters:
    """The filters of pieces of a topic's tail: a folder of its own, and the files that still tell of the log."""

    folder: str
    files: Mapping[Piece, str]

    @classmethod
    def of(
        cls, context: WindowContext, point: TopicPoint, topic_id: str, log: TopicLog, starts: Mapping[int, int]
    ) -> "TailFilters":
        """Find them. Files of what is in windows by now, before the `starts` of the tail, are removed."""
        shape = hashlib.sha256(_reading(context, point).encode()).hexdigest()[:16]
        folder = f"{context.window.pipeline}/tails/{point.name}/{topic_id}/{shape}"
        ends: dict[tuple[int, int], int] = {}
        files: dict[Piece, str] = {}
        for name in context.storage.names(folder):
            named = _NAME.fullmatch(name)
            if named is None:
                continue
            partition, first, end, epoch = (int(part) for part in named["place"].split("-"))
            if end <= starts.get(partition, 0):
                context.storage.remove(f"{folder}/{name}")
                continue
            if (partition, epoch) not in ends:
                answer = log.end_of_leader_epoch(partition, epoch)
                ends[partition, epoch] = answer.end_offset if answer is not None and answer.epoch == epoch else 0
            if ends[partition, epoch] >= end:
                files[partition, first, end] = f"{folder}/{name}"
        return cls(folder=folder, files=files)

    def file_of(self, part: PartitionRange) -> str | None:
        """Return the file of the filter of a piece; None without one."""
        return self.files.get((part.partition, part.lo, part.hi))


def whole_pieces(part: PartitionRange, offsets: int) -> Iterator[tuple[PartitionRange, bool]]:
    """Split a range where offsets are multiples of a number; tell of each piece whether it is whole, so that it is the
    same one whatever range it is a piece of."""
    lo = part.lo
    while lo < part.hi:
        hi = min(part.hi, lo - lo % offsets + offsets)
        yield replace(part, lo=lo, hi=hi), hi - lo == offsets
        lo = hi


def may_hold(storage: Storage, path: str, keys: pl.DataFrame) -> bool:
    """Tell by its filter whether a piece may have any of some keys (`HASHES`). False is certain."""
    content = storage.read_if_exists(path)
    if content is None or keys.is_empty():
        return content is None
    high, order = sort_hashes(keys["key_hi"].to_numpy())
    try:
        return bool(maybe_in(content, high, keys["key_lo"].to_numpy()[order]).any())
    except CorruptionError as error:
        logger.warning("the log is read instead of %s, which is removed: %s", path, error)
        storage.remove(path)
        return True


def same_and_compacted(path: str) -> tuple[int, int]:
    """Return how many Kafka keys of a piece had the business key, and how many of its offsets were compacted, by the
    name of its filter."""
    named = _NAME.fullmatch(path.rpartition("/")[2])
    assert named is not None
    return int(named["same"]), int(named["compacted"])


def write_filter(storage: Storage, folder: str, reader: RangeReader, keys: pl.DataFrame, same: int) -> None:
    """Write the filter of the keys (`HASHES`) of all records of a piece that was read; nothing where some of it was
    gone, or could not be read. `same`: how many of its Kafka keys have the business key."""
    epochs = reader.account.leader_epochs
    if not epochs or reader.expired or reader.undecodable:
        return
    part, content = reader.range, build_filter(*(keys[half].to_numpy() for half in HASH))
    place = f"{part.partition}-{part.lo}-{part.hi}-{epochs[-1].epoch}"
    storage.write_bytes(f"{folder}/{place}-{same}-{reader.accounting.compacted}.filter", content)


def _reading(context: WindowContext, point: TopicPoint) -> str:
    """Return a text that is another one when records are read otherwise: another filter would be made of them."""
    shape = context.value_shape(point)
    others = tuple(filter(None, (point.units, shape.elements, point.key_schema)))
    return repr((shape, point.value, point.schema, point.record_key, *others))
