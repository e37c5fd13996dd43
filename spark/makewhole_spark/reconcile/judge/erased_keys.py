"""Find which missing keys were deleted on purpose: by tables, and by tombstones in windows and in the log's tail."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, LOG_ORDER, empty
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.tombstones import followed_after, log_order, standing_tombstones
from makewhole.model.points import TablePoint
from makewhole.model.verdict import Verdict
from makewhole.tables.erased import erased_everywhere, erased_in_table
from makewhole_spark.reconcile.bucket.other_windows import LogFiles
from makewhole_spark.reconcile.bucket.task import BucketTask

_ASKED = (Verdict.MISSING.value, Verdict.MISMATCHED.value)


_COLUMNS = (*HASH, "partition", "offset", "time", "is_aborted", "is_tombstone")


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
    log = task.elsewhere.erasures
    asked = may_be_erased(judged) if log.erasing else judged.filter(pl.col("verdict") == Verdict.MISSING.value)
    if asked.is_empty():
        return ErasedInLog()
    records = _records(task, asked)
    standing = {topic: _standing(task, records, topic, asked) for topic in log.erasing}

    def ask(store: TablePoint, keys: Iterable[str]) -> Mapping[str, str]:
        if store.erased is None or not store.erased.topics:
            return erased_in_table(task.context.tables(store), store, keys)
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
    point, log = task.context.pipeline.topic(topic), task.elsewhere.erasures
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
    log = task.elsewhere.erasures
    if not log.erasing:
        return empty(LOG_ORDER)
    tail = [task.context.storage.read_parquet(paths) for paths in task.known_since.tail_records.values()]
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
    log = task.elsewhere.erasures
    return frozenset(one for one in log.unread | task.known_since.unread_tails if one[0] in log.erasing)


def _not_known(task: BucketTask, records: pl.DataFrame, asked: pl.DataFrame) -> frozenset[str]:
    """Return the keys of which a tombstone may have been in offsets that could not be read: in the partition of their
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
