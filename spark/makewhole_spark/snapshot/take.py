"""Take the snapshots of a window: read every point once, normalise, hash and bucket it where it is read.

A task reads a piece of a point and writes its own Parquet files, one or more per bucket. A snapshot exists when its
manifest is committed to the journal: files of attempts that died are never named by one. What an earlier revision of
the window has read is named again where the point is shown to be the same (`makewhole_spark.snapshot.reuse`).
"""

from collections.abc import Mapping
from typing import Any

from makewhole.journal import incidents
from makewhole.journal.results import slice_counts, snapshot_manifests
from makewhole.model.points import PointKind, can_look_up, has_log
from makewhole.sql import PgConnection
from makewhole.window.context import WindowContext
from makewhole_spark.carrier import Carrier
from makewhole_spark.replayed import require_replayed
from makewhole_spark.snapshot.bucket_count import bucket_count
from makewhole_spark.snapshot.read_tables import hops_read_by_keys, read_tables
from makewhole_spark.snapshot.read_topics import read_topics
from makewhole_spark.snapshot.reading import Reading, TakenSnapshot
from makewhole_spark.snapshot.reuse.decide import Reuse


def take_snapshots(
    carrier: Carrier, journal: PgConnection, context: WindowContext, parallelism: int, buckets: int | None = None
) -> list[str]:
    """Take and commit every snapshot of the window that is not committed yet; return their points' names. `buckets`
    None: as many as the size of the window asks for.

    Topics first, then ledgers and the stores that are read by their times alone, all at once, then the stores that are
    read by the keys of their upstream: those with versions or without times.
    """
    manifests = dict(snapshot_manifests.snapshots(journal, context.window))
    wanted = [point for point in context.pipeline.ordered_points() if point.name not in manifests]
    if not wanted:
        return []
    require_replayed(journal, context)
    buckets = buckets or bucket_count(journal, context, manifests)
    reading = Reading(
        carrier=carrier,
        journal=journal,
        context=context,
        parallelism=parallelism,
        buckets=buckets,
        reuse=Reuse.of(carrier, journal, context, buckets),
    )
    # Topics by themselves: while their log is read, no view of a table is held open, which would keep vacuum from it.
    topics = [point for point in wanted if has_log(point)]
    tables = [point for point in wanted if can_look_up(point)]
    by_keys = [point for point in tables if hops_read_by_keys(context, point)]
    # A row is in its ledger before it is in a store: the view of the ledger is the older one.
    by_times = [point for point in tables if point not in by_keys]
    by_times.sort(key=lambda point: point.kind is PointKind.STORE)
    _commit(reading, read_topics(reading, topics), manifests)
    for together in (by_times, by_keys):
        _commit(reading, read_tables(reading, together, manifests), manifests)
    return [point.name for point in wanted]


def _commit(reading: Reading, taken: Mapping[str, TakenSnapshot], manifests: dict[str, Any]) -> None:
    """Commit snapshots to the journal, and note their manifests."""
    for name, snapshot in taken.items():
        if snapshot_manifests.commit_snapshot(reading.journal, reading.context.window, name, snapshot.manifest):
            incidents.put(reading.journal, reading.context.window, snapshot.incidents)
            if snapshot.counted:
                point = reading.context.pipeline.table(name)
                slice_counts.put(reading.journal, reading.context.window, point, snapshot.counted)
        reading.journal.commit()
        manifests[name] = snapshot.manifest
