"""Find the records of a topic that could not be read, in a window and in those around it, and the keys that they may
have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, HASHES, UNDECODABLE, empty
from makewhole.compute.judge.log_history import TimeSpan
from makewhole.compute.keys import with_hash
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import has_log
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.task import UnreadOfBucket
from makewhole_spark.reconcile.gather.ledger_files import reached_windows
from makewhole_spark.reconcile.gather.neighbouring_windows import Manifests, NeighbouringWindows


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
    own = _business_keys(neighbours, neighbours.manifests, point)
    before = _business_keys_of(neighbours, _windows_before(neighbours, other), point)
    after = _business_keys_of(neighbours, neighbours.later, point)
    named = pl.concat([own, *(keys for _, keys in (*before, *after))]).drop_nulls().unique().sort()
    hashes = with_hash(pl.DataFrame({"key": named})).select(HASH) if len(named) else empty(HASHES)
    return UnreadOfPoint(
        keys=neighbours.by_bucket(f"{point}/unread", [hashes], HASHES),
        is_any=any(keys.null_count() for keys in (own, *(keys for _, keys in after))),
        spans=tuple(TimeSpan(start=window.start, end=window.end) for window, keys in before if keys.null_count()),
    )


def _windows_before(neighbours: NeighbouringWindows, other: str) -> list[Window]:
    windows = {window.number: window for window in (*neighbours.recent, *reached_windows(neighbours, other))}
    return [windows[number] for number in sorted(windows)]


def _business_keys_of(
    neighbours: NeighbouringWindows, windows: Sequence[Window], point: str
) -> list[tuple[Window, pl.Series]]:
    neighbours.read_manifests(windows)
    return [(window, _business_keys(neighbours, neighbours.manifests_of(window), point)) for window in windows]


def _business_keys(neighbours: NeighbouringWindows, manifests: Manifests, point: str) -> pl.Series:
    """Return the business keys of a snapshot's unreadable records; null of those that may be of any key."""
    manifest = manifests.get(point, {})
    files = tuple(manifest.get("undecodable_files", ()))
    records = neighbours.context.storage.read_parquet(files, list(UNDECODABLE)) if files else None
    keys = (empty(UNDECODABLE) if records is None else records)["business_key"]
    return keys.extend_constant(None, int(lacks_elements(neighbours.context.pipeline, point, manifest)))


def lacks_elements(pipeline: Pipeline, point: str, manifest: Mapping[str, Any]) -> bool:
    """Return whether compaction took records with elements that no newer record of their Kafka key need have: where
    elements are events, they are part of the log as what could not be read is. Versions refuse such a topic."""
    topic = pipeline.points[point]
    return has_log(topic) and topic.explode is not None and (manifest.get("accounting") or {}).get("compacted", 0) > 0
