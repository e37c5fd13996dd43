"""Find and mark the missing keys that were deleted on purpose: by tables, and by tombstones in windows and in the rest
of a log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, LOG_ORDER, UNREAD_PLACES, empty
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.tombstones import followed_after, log_order, may_be_deleted, standing_tombstones
from makewhole.lake.storage import Storage
from makewhole.model.points import TablePoint
from makewhole.model.retention import erased_among
from makewhole.model.verdict import Cause, Verdict
from makewhole.tables.erased import erased_everywhere, erased_in_table
from makewhole_spark.reconcile.bucket.other_windows import LogFiles
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.verdicts import has_verdict, turned

_COLUMNS = (*HASH, "partition", "offset", "time", "is_aborted", "is_tombstone")


@dataclass(frozen=True, kw_only=True)
class ErasedInLog:
    """The keys of a bucket that stores name as erased. `erased_by` by key hash: what did; `tombstones`: the place of
    the tombstone that does. `not_known`: by key hash of keys of which a tombstone may have been in what could not be
    read, why it could not."""

    erased_by: Mapping[str, str] = field(default_factory=dict)
    tombstones: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    not_known: Mapping[str, Cause] = field(default_factory=dict)

    def evidence_of(self, key_hash: str) -> dict[str, Any]:
        """Return what shows that a key was erased, or must not be written; nothing for any other key."""
        if key_hash not in self.erased_by:
            return {}
        place = self.tombstones.get(key_hash)
        return {"erased": self.erased_by[key_hash], **({} if place is None else {"tombstone": place})}


def may_be_erased(judged: pl.DataFrame) -> pl.DataFrame:
    """Select the keys of which a tombstone matters: those that are missing, and those whose row would be written."""
    return judged.filter(has_verdict(Verdict.MISSING, Verdict.MISMATCHED))


def mark_erased(task: BucketTask, judged: pl.DataFrame) -> tuple[pl.DataFrame, ErasedInLog]:
    """Turn missing keys of `judged` (`JUDGED`) into erased ones that every store names as such, or that were erased on
    request. The evidence of other exceptions says it, too: of such a key no earlier window's record is known."""
    is_missing = has_verdict(Verdict.MISSING)
    erased = _erased_keys(task, judged)
    requests = task.elsewhere.on_request
    on_request = erased_among(requests, judged["key_hash"]) if requests else {}
    erased = replace(erased, erased_by={**erased.erased_by, **on_request})
    return turned(judged, is_missing, erased.erased_by, Verdict.ERASED, Cause.ERASED_ON_PURPOSE), erased


def mark_tombstone_unknown(judged: pl.DataFrame, erased: ErasedInLog) -> pl.DataFrame:
    """Turn missing keys of `judged` (`JUDGED`) into undecidable ones where a tombstone may have been in what cannot be
    read any more, or could not be read."""
    for cause in (Cause.EXPIRED, Cause.UNREADABLE_RECORD, Cause.COMPACTED):
        keys = [key_hash for key_hash, why in erased.not_known.items() if why is cause]
        judged = turned(judged, has_verdict(Verdict.MISSING), keys, Verdict.UNDECIDABLE, cause)
    return judged


def _erased_keys(task: BucketTask, judged: pl.DataFrame) -> ErasedInLog:
    """Ask every store that the hop leads to which of the judged keys were erased: its tables, and the tombstones in the
    topics that tell it."""
    log = task.elsewhere.erasures
    keys = may_be_erased(judged) if log.erasing else judged.filter(has_verdict(Verdict.MISSING))
    if keys.is_empty():
        return ErasedInLog()
    records = _records_of(task, keys)
    standing = {topic: _standing(task, records, topic, keys) for topic in log.erasing}

    def ask(store: TablePoint, wanted: Iterable[str]) -> Mapping[str, str]:
        if store.erased is None or not store.erased.topics:
            return erased_in_table(task.context.tables(store), store, wanted)
        description, among = store.erased.description, set(wanted)
        pairs = (pair for topic in store.erased.topics for pair in standing[topic].items())
        return {
            key: f"{description}: {at['topic']}/{at['partition']}/{at['offset']}" for key, at in pairs if key in among
        }

    erased_at = erased_everywhere(task.context.pipeline.stores_at(task.hop.target), ask, keys["key"].to_list())
    hashes = dict(keys.select("key", "key_hash").rows())
    places = {key: place for topic in reversed(log.erasing) for key, place in standing[topic].items()}
    return ErasedInLog(
        erased_by={hashes[key]: erased_at[key] for key in hashes if key in erased_at},
        tombstones={hashes[key]: places[key] for key in hashes if key in erased_at and key in places},
        not_known=_not_known(task, records, keys),
    )


def _standing(task: BucketTask, records: pl.DataFrame, topic: str, keys: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the place of the tombstone that stands in a topic, by key. Of a key without any record, the time of its
    row counts."""
    point, log = task.context.pipeline.topic(topic), task.elsewhere.erasures
    tombstones, values = records.filter(pl.col("is_tombstone") & (pl.col("topic") == topic)), _values(records)
    unsent = followed_after(tombstones.join(values, on=HASH, how="anti"), keys)
    sent = tombstones.join(values, on=HASH, how="semi")
    standing = standing_tombstones(pl.concat([sent, unsent, values]), log.incarnations)
    named = standing.join(keys.select("key", *HASH), on=HASH, how="inner")
    return {
        key: {"topic": point.topic, "partition": partition, "offset": offset}
        for key, partition, offset in named.select("key", "partition", "offset").rows()
    }


def _values(records: pl.DataFrame) -> pl.DataFrame:
    return records.filter(~pl.col("is_tombstone"))


def _records_of(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the tombstones of some keys, in the windows and behind them, and the records with a value of those
    that have one (`LOG_ORDER`); of all of them where it matters in which partition they lie."""
    log, storage = task.elsewhere.erasures, task.context.storage
    if not log.erasing:
        return empty(LOG_ORDER)
    tail = [storage.read_parquet(paths) for paths in task.known_since.tail_records.values()]
    frames = [frame.join(keys, on=HASH, how="semi").select(*LOG_ORDER) for frame in tail if frame is not None]
    frames += [_read_log(storage, files, keys, is_tombstone=True) for files in log.files]
    records = pl.concat([empty(LOG_ORDER), *frames])
    wanted = keys if _is_any_unread(task) else keys.join(records.filter("is_tombstone"), on=HASH, how="semi")
    if wanted.is_empty():
        return records
    return pl.concat([records, *(_read_log(storage, files, wanted, is_tombstone=False) for files in log.files)])


def _read_log(storage: Storage, files: LogFiles, keys: pl.DataFrame, *, is_tombstone: bool) -> pl.DataFrame:
    """Return records of some keys. Among the copies are tombstones where the file did not say yet that they
    erase."""
    paths = files.tombstones if is_tombstone else files.copies
    frame = storage.read_parquet(paths, list(_COLUMNS)) if paths else None
    if frame is None:
        return empty(LOG_ORDER)
    committed = committed_copies(frame).join(keys, on=HASH, how="semi")
    return log_order(committed, files.topic, files.topic_id, files.lineages)


def _unread(task: BucketTask) -> frozenset[tuple[str, int]]:
    """Return the partitions of erasing topics of which some offsets could not be read."""
    log = task.elsewhere.erasures
    return frozenset(part for part in log.unread | task.known_since.unread_tails if part[0] in log.erasing)


def _compacted(task: BucketTask) -> frozenset[tuple[str, int]]:
    """Return the partitions of erasing topics of which compaction took records of any key from the rest of the log."""
    erasing = task.elsewhere.erasures.erasing
    return frozenset(part for part in task.known_since.compacted_tails if part[0] in erasing)


def _is_any_unread(task: BucketTask) -> bool:
    return bool(_unread(task) or _compacted(task) or task.elsewhere.erasures.unread_at)


def _not_known(task: BucketTask, records: pl.DataFrame, keys: pl.DataFrame) -> dict[str, Cause]:
    """Return the keys of which a tombstone may have been in what could not be read, with the cause: in offsets of the
    partition of their record that are gone or were compacted, or of a topic that has none, or in a record that may be
    of any key."""
    log, values = task.elsewhere.erasures, _values(records)
    if not _is_any_unread(task):
        return {}
    places, is_gone = pl.DataFrame(log.unread_at, schema=UNREAD_PLACES, orient="row"), pl.col("is_gone")
    by_cause = (
        (Cause.COMPACTED, _behind_gone(values, keys, _compacted(task))),
        (Cause.UNREADABLE_RECORD, may_be_deleted(keys, values, places.filter(~is_gone), log.incarnations)),
        (Cause.EXPIRED, may_be_deleted(keys, values, places.filter(is_gone), log.incarnations)),
        (Cause.EXPIRED, _behind_gone(values, keys, _unread(task))),
    )
    return {
        key_hash: cause
        for cause, hashes in by_cause
        for key_hash in keys.join(hashes, on=HASH, how="semi")["key_hash"].to_list()
    }


def _behind_gone(values: pl.DataFrame, keys: pl.DataFrame, unread: frozenset[tuple[str, int]]) -> pl.DataFrame:
    """Return the keys (`HASHES`) of which a tombstone may have been in offsets of later windows or of the tail, in
    these partitions: in that of their record, or in any one of a topic that has none."""
    gone = pl.DataFrame(sorted(unread), schema={"topic": pl.String, "partition": pl.Int32}, orient="row")
    frames = [values.join(gone, on=["topic", "partition"], how="semi").select(HASH)]
    for topic in sorted({topic for topic, _ in unread}):
        frames.append(keys.select(HASH).join(values.filter(pl.col("topic") == topic), on=HASH, how="anti"))
    return pl.concat(frames)
