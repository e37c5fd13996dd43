"""Read the keys that the producers of a topic wrote last, with their partitions, from the archives of windows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.reader import read_range
from makewhole.kafka.partitioner import KnownKeys
from makewhole.model.pipeline import TopicPoint
from makewhole.model.window import PartitionRange, Window
from makewhole.window.context import WindowContext

_OFFSETS_MOST = 100
_WINDOWS_MOST = 5


def read_known_keys(context: WindowContext, judged: Sequence[Window], topic: TopicPoint) -> KnownKeys | None:
    """Return the keys of the newest window that has any, at most so many per partition; None: there are none.

    The `_WINDOWS_MOST` newest of `judged` (newest first) are looked at, and the context's own. Records without a key,
    and records that compensation wrote, tell nothing.

    Raises:
        CorruptionError: an archive is gone or damaged.
    """
    others = (window for window in judged if window.number != context.window.number)
    newest_first = sorted((context.window, *others), key=lambda window: window.number, reverse=True)
    looked_at = newest_first[:_WINDOWS_MOST]
    for window in looked_at if context.window in looked_at else (*looked_at, context.window):
        ranges = [part for part in window.ranges.get(topic.name, ()) if part.topic == topic.topic]
        archive = ArchiveLog(context.storage.uri(f"{window.prefix}/{topic.name}/archive"))
        places = [(part.partition, key) for part in ranges for key in _last_keys(archive, part)]
        if places:
            return KnownKeys(partitions=len({part.partition for part in ranges}), places=places)
    return None


def _last_keys(archive: ArchiveLog, part: PartitionRange) -> Iterator[bytes]:
    if not part.span:
        return
    wanted = replace(part, lo=max(part.lo, part.hi - _OFFSETS_MOST), leader_epochs=())
    for batch in read_range(archive, wanted, include_replayed=False, columns=("key",)).batches():
        yield from (key for key in batch.column("key").to_pylist() if key is not None)
