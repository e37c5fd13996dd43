"""Find the records of a topic that could not be read, in a window and in those around it, with the keys that they may
have, and where compaction took records that may have been of any key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.decode.unread_keys import ComparedKeys, is_compacted_by_key
from makewhole.compute.frames import HASH, HASHES, UNDECODABLE, empty
from makewhole.compute.judge.log_history import TimeSpan
from makewhole.compute.judge.undecidable import UnreadRecords
from makewhole.compute.keys import with_hash
from makewhole.journal.results import snapshot_manifests
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.points import has_log
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.task import UnreadOfBucket
from makewhole_spark.reconcile.gather.ledger_files import reached_windows
from makewhole_spark.reconcile.gather.neighbouring_windows import Manifests, NeighbouringWindows
from makewhole_spark.snapshot.compacted_keys import compared_in, is_compacted, lacks_compacted


@dataclass(frozen=True, kw_only=True)
class UnreadOfPoint:
    """The keys of a point's records that could not be read, by bucket; whether there are others in the window or after
    it; and the times of the windows before it that have others."""

    keys: RowsByBucket
    is_any: bool
    spans: tuple[TimeSpan, ...] = ()

    def in_bucket(self, bucket: str) -> UnreadOfBucket:
        """Return what may be in a bucket."""
        return UnreadOfBucket(keys=self.keys.in_bucket(bucket), is_any=self.is_any, spans=self.spans)


def unread_records(neighbours: NeighbouringWindows, point: str, *, other: str) -> UnreadOfPoint:
    """Return the records of a point that could not be read; none of a table: a row without a usable key is no row of
    any key.

    Those of the window; of the windows before it in which keys of the `other` end may have their records (late ones,
    and such as lag), and of those after it that were judged.
    """
    if not has_log(neighbours.context.pipeline.points[point]):
        return UnreadOfPoint(keys=neighbours.by_bucket(f"{point}/unread", (), HASHES), is_any=False)
    before, after = _windows_around(neighbours, other)
    own = _business_keys(neighbours, neighbours.manifests, point)
    of_before, of_after = (
        [_business_keys(neighbours, neighbours.manifests_of(window), point) for window in windows]
        for windows in (before, after)
    )
    named = pl.concat([own, *of_before, *of_after]).drop_nulls().unique().sort()
    hashes = with_hash(pl.DataFrame({"key": named})).select(HASH) if len(named) else empty(HASHES)
    return UnreadOfPoint(
        keys=neighbours.by_bucket(f"{point}/unread", [hashes], HASHES),
        is_any=any(keys.null_count() for keys in (own, *of_after)),
        spans=_spans(window for window, keys in zip(before, of_before, strict=True) if keys.null_count()),
    )


def compacted_records(
    neighbours: NeighbouringWindows, point: str, *, other: str, tail: ComparedKeys | None = None
) -> UnreadRecords:
    """Return the records of a point that compaction took and that may have been the only ones of any key, in the same
    windows; none where the newer record of a Kafka key has the business key, in all windows around and in the `tail`,
    as far as it was read."""
    pipeline = neighbours.context.pipeline
    if not has_log(pipeline.points[point]):
        return UnreadRecords.none()
    before, after = _windows_around(neighbours, other)
    of_before, of_after = (
        [neighbours.manifests_of(window).get(point, {}) for window in windows] for windows in (before, after)
    )
    own = neighbours.manifests.get(point, {})
    if not any(map(is_compacted, (own, *of_before, *of_after))):
        return UnreadRecords.none()
    around = sum((keys for keys in (compared_around(neighbours, point), tail) if keys is not None), ComparedKeys())

    def lacks(manifest: Mapping[str, Any]) -> bool:
        return lacks_compacted(pipeline, point, manifest, around)

    return UnreadRecords(
        keys=empty(HASHES),
        is_any=any(map(lacks, (own, *of_after))),
        spans=_spans(window for window, manifest in zip(before, of_before, strict=True) if lacks(manifest)),
    )


def compared_around(neighbours: NeighbouringWindows, point: str) -> ComparedKeys | None:
    """Return how many Kafka keys of a topic have the business key in this window and those around it, for whichever
    hop, and in earlier revisions of this one; None: they were not compared.

    A record with another Kafka key may be left in one of them alone, where compaction took others like it from the
    rest.
    """
    topic = neighbours.context.pipeline.points[point]
    if not has_log(topic) or topic.explode is not None or is_compacted_by_key(topic.key):
        return None
    hops = [hop for hop in neighbours.context.pipeline.hops if point in (hop.source, hop.target)]
    windows = {window.number: window for window in (*neighbours.recent, *neighbours.later)}
    for hop in hops:
        reached = reached_windows(neighbours, hop.source if point == hop.target else hop.target)
        windows |= {window.number: window for window in reached}
    neighbours.read_manifests(windows.values())
    around = [neighbours.manifests_of(window).get(point, {}) for window in windows.values()]
    replaced = snapshot_manifests.snapshots_before(neighbours.journal, neighbours.context.window, point)
    return compared_in([neighbours.manifests.get(point, {}), *around, *replaced])


def _windows_around(neighbours: NeighbouringWindows, other: str) -> tuple[list[Window], Sequence[Window]]:
    """Return the windows before this one in which keys of the `other` end may have their records, and those after it
    that were judged; their manifests are read."""
    before, after = _windows_before(neighbours, other), neighbours.later
    neighbours.read_manifests([*before, *after])
    return before, after


def _spans(windows: Iterable[Window]) -> tuple[TimeSpan, ...]:
    return tuple(TimeSpan(start=window.start, end=window.end) for window in windows)


def _windows_before(neighbours: NeighbouringWindows, other: str) -> list[Window]:
    windows = {window.number: window for window in (*neighbours.recent, *reached_windows(neighbours, other))}
    return [windows[number] for number in sorted(windows)]


def _business_keys(neighbours: NeighbouringWindows, manifests: Manifests, point: str) -> pl.Series:
    """Return the business keys of a snapshot's unreadable records; null of those that may be of any key."""
    manifest = manifests.get(point, {})
    files = tuple(manifest.get("undecodable_files", ()))
    records = neighbours.context.storage.read_parquet(files, list(UNDECODABLE)) if files else None
    return (empty(UNDECODABLE) if records is None else records)["business_key"]
