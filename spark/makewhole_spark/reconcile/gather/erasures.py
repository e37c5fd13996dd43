"""Gather the files of the windows by which tombstones are put in order with the records of their keys."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from makewhole.compute.buckets import bucket_name, files_of_bucket
from makewhole.compute.frames import UNDECODABLE
from makewhole.compute.judge.log_history import is_unread
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import can_look_up, has_log
from makewhole.model.window import Window
from makewhole_spark.reconcile.bucket.other_windows import LogFiles, LogOfErasures, UnreadPlace
from makewhole_spark.reconcile.gather.neighbouring_windows import NeighbouringWindows


def erasing_topics(pipeline: Pipeline, hop: Hop) -> tuple[str, ...]:
    """Return the topic points whose tombstones say which keys the stores that a hop leads to need not have."""
    by_store = (store.erased.topics for store in pipeline.stores_at(hop.target) if store.erased is not None)
    return tuple(sorted({topic for topics in by_store for topic in topics}))


def logs_of_erasures(neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window]) -> dict[str, LogOfErasures]:
    """Return what a hop's buckets know of tombstones, by bucket; none where they erase from no store. `handing`: the
    windows that handed keys over on the hop."""
    pipeline = neighbours.context.pipeline
    erasing = erasing_topics(pipeline, hop)
    if not erasing:
        return {}
    source = (hop.source,) if has_log(pipeline.points[hop.source]) else ()
    topics = sorted({*erasing, *source})
    windows = _windows(neighbours, hop, handing)
    manifests = {window.number: neighbours.manifests_of(window) for window in windows}
    manifests[neighbours.context.window.number] = neighbours.manifests
    incarnations = _incarnations(neighbours, topics)
    unread = frozenset(_unread_around(neighbours, erasing, windows))
    unread_at = _unread_at(neighbours, erasing, windows)
    logs: dict[str, LogOfErasures] = {}
    for number in range(neighbours.buckets):
        bucket = bucket_name(number, neighbours.buckets)
        files = (
            _files(topic, window, manifests[window.number].get(topic, {}), bucket)
            for topic in topics
            for window in windows
        )
        logs[bucket] = LogOfErasures(
            erasing=erasing,
            files=tuple(file for file in files if file.tombstones or file.copies),
            incarnations=incarnations,
            unread=unread,
            unread_at=unread_at,
        )
    return logs


def _files(topic: str, window: Window, manifest: Mapping[str, Any], bucket: str) -> LogFiles:
    ranges = window.ranges.get(topic, ())
    return LogFiles(
        topic=topic,
        topic_id=ranges[0].topic_id if ranges else "",
        tombstones=files_of_bucket(manifest.get("tombstones", {}), bucket),
        copies=files_of_bucket(manifest.get("files", {}), bucket),
        lineages={part.partition: part.lineage for part in ranges},
    )


def _windows(neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window]) -> list[Window]:
    """Return this window, the later ones, and of the earlier ones those that may have a tombstone behind the record or
    the row of a key that is judged now."""
    context = neighbours.context
    ours, first = context.window, min((window.number for window in handing), default=context.window.number)
    is_table = can_look_up(context.pipeline.points[hop.source])
    reached = neighbours.recent if is_table else ()
    earlier = {window.number: window for window in (*neighbours.windows.since(first, before=ours.number), *reached)}
    others = [*(window for _, window in sorted(earlier.items())), *neighbours.later]
    neighbours.read_manifests(others)
    return sorted([*others, ours], key=lambda window: window.number)


def _incarnations(neighbours: NeighbouringWindows, topics: Sequence[str]) -> dict[str, int]:
    """Number the ids that the topics had in the windows, by their age."""
    ids = dict.fromkeys(topic_id for _, topic_id, _ in neighbours.windows.topic_ids(topics))
    return {topic_id: number for number, topic_id in enumerate(ids)}


def _unread_around(
    neighbours: NeighbouringWindows, topics: Sequence[str], windows: Sequence[Window]
) -> set[tuple[str, int]]:
    """Return the partitions (with their topic) of which another window may have missed a tombstone: a later one could
    not read some offsets; or it was read before the file said that tombstones erase, with undecodable records."""
    ours, partitions = neighbours.context.window.number, set()
    for window in windows:
        manifests = {} if window.number == ours else neighbours.manifests_of(window)
        for topic in topics:
            manifest = manifests.get(topic, {})
            for number, account in manifest.get("accounting_by_partition", {}).items():
                is_gone = window.number > ours and account["expired"]
                if is_gone or ("tombstones" not in manifest and account["undecodable"]):
                    partitions.add((topic, int(number)))
    return partitions


def _unread_at(
    neighbours: NeighbouringWindows, topics: Sequence[str], windows: Sequence[Window]
) -> tuple[UnreadPlace, ...]:
    """Return the last places of each partition at which a tombstone may have been: of offsets that were gone before
    this window or one before it could read them, and of records of all windows that may be of any key."""
    ours = neighbours.context.window.number
    places: dict[tuple[str, int, bool], UnreadPlace] = {}
    for window in windows:
        manifests = neighbours.manifests if window.number == ours else neighbours.manifests_of(window)
        for topic in topics:
            manifest = manifests.get(topic, {})
            gone = _gone_until(neighbours, topic, window, manifest) if window.number <= ours else {}
            unnamed = _unnamed_at(neighbours, manifest)
            for part in window.ranges.get(topic, ()):
                for is_gone, offsets in ((True, gone), (False, unnamed)):
                    if part.partition in offsets:
                        places[topic, part.partition, is_gone] = UnreadPlace(
                            topic=topic,
                            topic_id=part.topic_id,
                            partition=part.partition,
                            lineage=part.lineage,
                            offset=offsets[part.partition],
                            is_gone=is_gone,
                            before=window.end if window.number < ours else None,
                        )
    return tuple(places.values())


def _gone_until(
    neighbours: NeighbouringWindows, topic: str, window: Window, manifest: Mapping[str, Any]
) -> dict[int, int]:
    """Return the end of the offsets that were gone before a window could read them, by partition; that of the range
    where no incident says it."""
    accounts = manifest.get("accounting_by_partition", {})
    ends = {part.partition: part.hi for part in window.ranges.get(topic, ()) if _has_gone(accounts, part.partition)}
    noticed_ends: dict[int, int] = {}
    for noticed_by, incident in neighbours.incidents:
        at, end = incident.partition, incident.hi
        is_of_window = noticed_by.number == window.number and incident.point == topic and is_unread(incident)
        if is_of_window and at is not None and end is not None:
            noticed_ends[at] = max(end, noticed_ends.get(at, end))
    return {partition: noticed_ends.get(partition, end) for partition, end in ends.items()}


def _has_gone(accounts: Mapping[str, Any], partition: int) -> bool:
    return bool(accounts.get(str(partition), {}).get("expired"))


def _unnamed_at(neighbours: NeighbouringWindows, manifest: Mapping[str, Any]) -> dict[int, int]:
    """Return the last offset of a record (or of what is none) that could not be read and may be of any key, by
    partition."""
    files = tuple(manifest.get("undecodable_files", ()))
    records = neighbours.context.storage.read_parquet(files, list(UNDECODABLE)) if files else None
    if records is None:
        return {}
    unnamed = records.filter(pl.col("business_key").is_null())
    place = pl.col("place").str.split(":").list
    last = unnamed.group_by(place.get(0).cast(pl.Int64)).agg(place.get(1).cast(pl.Int64).max().alias("offset"))
    return dict(last.rows())
