"""Find the records of a window's topics that could not be read, and the keys that they may have."""

from dataclasses import dataclass

import polars as pl

from makewhole.compute.frames import HASH, HASHES, UNDECODABLE, empty
from makewhole.compute.keys import with_hash
from makewhole.lake.rows_by_bucket import RowsByBucket
from makewhole.model.pipeline import TopicPoint
from makewhole_spark.reconcile.buckets import UnreadOfBucket
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class UnreadOfPoint:
    """The keys of a point's records that could not be read, by bucket, and whether there are others."""

    keys: RowsByBucket
    is_any: bool

    def in_bucket(self, bucket: str) -> UnreadOfBucket:
        """Return what may be in a bucket."""
        return UnreadOfBucket(keys=self.keys.in_bucket(bucket), is_any=self.is_any)


def unread_records(neighbours: NeighbouringWindows, point: str) -> UnreadOfPoint:
    """Return the records of a point in the window that could not be read; none of a table: a row without a usable key
    is no row of any key."""
    names = list(UNDECODABLE)
    is_topic = isinstance(neighbours.context.pipeline.points[point], TopicPoint)
    files = tuple(neighbours.manifests[point].get("undecodable_files", ())) if is_topic else ()
    found = neighbours.context.storage.read_parquet(files, names) if files else None
    keys = empty(UNDECODABLE)["business_key"] if found is None else found["business_key"]
    named = keys.drop_nulls().unique().sort()
    hashes = with_hash(pl.DataFrame({"key": named})).select(HASH) if len(named) else empty(HASHES)
    return UnreadOfPoint(keys=neighbours.by_bucket(f"{point}/unread", [hashes], HASHES), is_any=keys.null_count() > 0)
