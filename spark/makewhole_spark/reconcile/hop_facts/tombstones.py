"""Read from a topic's log which missing keys were deleted on purpose: in the windows, and in the log's tail."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from makewhole.compute.buckets import bucket_name, files_of_bucket
from makewhole.compute.frames import HASH, LOG_ORDER, empty
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.tombstones import followed_after, log_order, standing_tombstones
from makewhole.model.pipeline import Hop, Pipeline
from makewhole.model.points import TablePoint, TopicPoint
from makewhole.model.verdict import Verdict
from makewhole.model.window import Window
from makewhole.postgres.read.erased import erased_everywhere, erased_in_table
from makewhole_spark.reconcile.buckets import BucketTask, LogFiles, LogOfErasures
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows

_ASKED = (Verdict.MISSING.value, Verdict.MISMATCHED.value)
_COLUMNS = (*HASH, "partition", "offset", "time", "is_aborted", "is_tombstone")


# What the driver gathers


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
    source = (hop.source,) if isinstance(pipeline.points[hop.source], TopicPoint) else ()
    topics = sorted({*erasing, *source})
    windows = _windows(neighbours, hop, handing)
    manifests = {window.number: neighbours.manifests_of(window) for window in windows}
    manifests[neighbours.context.window.number] = neighbours.manifests
    incarnations = _incarnations(neighbours, topics)
    unread = frozenset(_unread_around(neighbours, erasing, windows))
    found: dict[str, LogOfErasures] = {}
    for number in range(neighbours.buckets):
        bucket = bucket_name(number, neighbours.buckets)
        files = (
            _files(topic, window, manifests[window.number].get(topic, {}), bucket)
            for topic in topics
            for window in windows
        )
        found[bucket] = LogOfErasures(
            erasing=erasing,
            files=tuple(one for one in files if one.tombstones or one.copies),
            incarnations=incarnations,
            unread=unread,
        )
    return found


def _files(topic: str, window: Window, manifest: Mapping[str, Any], bucket: str) -> LogFiles:
    ranges = window.ranges.get(topic, ())
    return LogFiles(
        topic=topic,
        topic_id=ranges[0].topic_id if ranges else "",
        tombstones=files_of_bucket(manifest.get("tombstones", {}), bucket),
        copies=files_of_bucket(manifest.get("files", {}), bucket),
    )


def _windows(neighbours: NeighbouringWindows, hop: Hop, handing: Sequence[Window]) -> list[Window]:
    """Return this window, the later ones, and of the earlier ones those that may have a tombstone behind the record or
    the row of a key that is judged now."""
    context = neighbours.context
    ours, first = context.window, min((window.number for window in handing), default=context.window.number)
    is_table = isinstance(context.pipeline.points[hop.source], TablePoint)
    reached = neighbours.recent if is_table else ()
    earlier = {one.number: one for one in (*neighbours.windows.since(first, before=ours.number), *reached)}
    found = [*(window for _, window in sorted(earlier.items())), *neighbours.later]
    neighbours.read_manifests(found)
    return sorted([*found, ours], key=lambda window: window.number)


def _incarnations(neighbours: NeighbouringWindows, topics: Sequence[str]) -> dict[str, int]:
    """Number the ids that the topics had in the windows, by their age."""
    ids = dict.fromkeys(topic_id for _, topic_id, _ in neighbours.windows.topic_ids(topics))
    return {topic_id: number for number, topic_id in enumerate(ids)}


def _unread_around(
    neighbours: NeighbouringWindows, topics: Sequence[str], windows: Sequence[Window]
) -> set[tuple[str, int]]:
    """Return the partitions (with their topic) of which another window may have missed a tombstone: a later one could
    not read some offsets; or it was read before the file said that tombstones erase, with undecodable records."""
    ours, found = neighbours.context.window.number, set()
    for window in windows:
        manifests = {} if window.number == ours else neighbours.manifests_of(window)
        for topic in topics:
            manifest = manifests.get(topic, {})
            for number, account in manifest.get("accounting_by_partition", {}).items():
                is_gone = window.number > ours and account["expired"]
                if is_gone or ("tombstones" not in manifest and account["undecodable"]):
                    found.add((topic, int(number)))
    return found


# What a task asks


@dataclass(frozen=True, kw_only=True)
class ErasedInLog:
    """The keys of a bucket that stores name as erased. `erased_by` by key hash: what did; `tombstones`: the place of
    the tombstone that does. `not_known`: hashes of keys of which a tombstone may have been in offsets that are gone."""

    erased_by: Mapping[str, str] = field(default_factory=dict)
    tombstones: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    not_known: frozenset[str] = frozenset()


def may_be_erased(judged: pl.DataFrame) -> pl.DataFrame:
    """Select the keys of which a tombstone matters: those that are missing, and those whose row would be written."""
    return judged.filter(pl.col("verdict").is_in(_ASKED))


def erased_keys_of(task: BucketTask, judged: pl.DataFrame) -> ErasedInLog:
    """Ask every store that the hop leads to which of the judged keys were erased: its tables, and the tombstones in the
    topics that tell it."""
    log = task.log_of_erasures
    asked = may_be_erased(judged) if log.erasing else judged.filter(pl.col("verdict") == Verdict.MISSING.value)
    if asked.is_empty():
        return ErasedInLog()
    records = _records(task, asked)
    standing = {topic: _standing(task, records, topic, asked) for topic in log.erasing}

    def ask(store: TablePoint, keys: Iterable[str]) -> Mapping[str, str]:
        if store.erased is None or not store.erased.topics:
            return erased_in_table(task.context.postgres(store), store, keys)
        description, wanted = store.erased.description, set(keys)
        found = (one for topic in store.erased.topics for one in standing[topic].items())
        return {key: f"{description}: {_place(place)}" for key, place in found if key in wanted}

    erased_at = erased_everywhere(task.context.pipeline.stores_at(task.hop.target), ask, asked["key"].to_list())
    hashes = dict(asked.select("key", "key_hash").rows())
    places = {key: place for topic in reversed(log.erasing) for key, place in standing[topic].items()}
    return ErasedInLog(
        erased_by={hashes[key]: erased_at[key] for key in hashes if key in erased_at},
        tombstones={hashes[key]: places[key] for key in hashes if key in erased_at and key in places},
        not_known=_not_known(task, records, asked),
    )


def _place(place: Mapping[str, Any]) -> str:
    return f"{place['topic']}/{place['partition']}/{place['offset']}"


def _standing(task: BucketTask, records: pl.DataFrame, topic: str, asked: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the place of the tombstone that stands in a topic, by key. Of a key without any record, the time of its
    row counts."""
    point, log = task.context.pipeline.points[topic], task.log_of_erasures
    assert isinstance(point, TopicPoint)
    tombstones, values = records.filter(pl.col("is_tombstone") & (pl.col("topic") == topic)), _values(records)
    unsent = followed_after(tombstones.join(values, on=HASH, how="anti"), asked)
    sent = tombstones.join(values, on=HASH, how="semi")
    standing = standing_tombstones(pl.concat([sent, unsent, values]), log.incarnations)
    named = standing.join(asked.select("key", *HASH), on=HASH, how="inner")
    return {
        key: {"topic": point.topic, "partition": partition, "offset": offset}
        for key, partition, offset in named.select("key", "partition", "offset").rows()
    }


def _values(records: pl.DataFrame) -> pl.DataFrame:
    return records.filter(~pl.col("is_tombstone"))


def _records(task: BucketTask, asked: pl.DataFrame) -> pl.DataFrame:
    """Return the tombstones of the asked keys, in the windows and behind them, and the records with a value of those
    that have one (`LOG_ORDER`); of all of them where it matters in which partition they lie."""
    log = task.log_of_erasures
    if not log.erasing:
        return empty(LOG_ORDER)
    tail = [task.context.storage.read_parquet(paths) for paths in task.tail_records.values()]
    known = [frame.join(asked, on=HASH, how="semi").select(*LOG_ORDER) for frame in tail if frame is not None]
    known += [_read(task, files, asked, is_tombstone=True) for files in log.files]
    found = pl.concat([empty(LOG_ORDER), *known])
    wanted = asked if _unread(task) else asked.join(found.filter("is_tombstone"), on=HASH, how="semi")
    if wanted.is_empty():
        return found
    return pl.concat([found, *(_read(task, files, wanted, is_tombstone=False) for files in log.files)])


def _read(task: BucketTask, files: LogFiles, asked: pl.DataFrame, *, is_tombstone: bool) -> pl.DataFrame:
    """Return records of the asked keys. Among the copies are tombstones where the file did not say yet that they
    erase."""
    paths = files.tombstones if is_tombstone else files.copies
    frame = task.context.storage.read_parquet(paths, list(_COLUMNS)) if paths else None
    if frame is None:
        return empty(LOG_ORDER)
    kept = committed_copies(frame).join(asked, on=HASH, how="semi")
    return log_order(kept, files.topic, files.topic_id)


def _unread(task: BucketTask) -> frozenset[tuple[str, int]]:
    """Return the partitions of erasing topics of which some offsets could not be read."""
    log = task.log_of_erasures
    return frozenset(one for one in log.unread | task.unread_tails if one[0] in log.erasing)


def _not_known(task: BucketTask, records: pl.DataFrame, asked: pl.DataFrame) -> frozenset[str]:
    """Return the keys of which a tombstone may have been in offsets that nobody could read: in the partition of their
    record, or in any one of a topic that has none."""
    unread = sorted(_unread(task))
    if not unread:
        return frozenset()
    values = _values(records)
    gone = pl.DataFrame(unread, schema={"topic": pl.String, "partition": pl.Int32}, orient="row")
    found = [values.join(gone, on=["topic", "partition"], how="semi").select(HASH)]
    for topic in sorted({topic for topic, _ in unread}):
        found.append(asked.select(HASH).join(values.filter(pl.col("topic") == topic), on=HASH, how="anti"))
    return frozenset(asked.join(pl.concat(found), on=HASH, how="semi")["key_hash"].to_list())
