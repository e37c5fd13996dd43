"""Find the missing keys of transactions that wrote to two topics, and brought the key to one of them alone.

A producer whose epoch grows with every transaction (KIP-890) names its transaction by producer id and epoch; the marker
has the epoch after. Then this is proven from the archives of both topics: the transaction has a record of the key in
the one, where it was committed, and other records in the topic that lacks the key. Producers that keep their epoch do
not show which of their records are of one transaction, and nothing is said of these.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, TOPIC_KEYS
from makewhole.compute.judge.evidence import PARTIAL
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.markers import TransactionMarker, transaction_end
from makewhole.model.errors import MakewholeError
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.bucket.other_topics import CopiedElsewhere, CopiedTopic
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.verdicts import has_verdict

_KEYS_MOST = 10_000
_TRANSACTIONS_MOST = 100
_PLACES = ("partition", "offset", "producer_id", "producer_epoch", "is_transactional", "is_aborted")


def partial_transactions(task: BucketTask, judged: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the evidence by key hash, of the first keys and transactions of a bucket."""
    elsewhere = task.elsewhere.copied_elsewhere
    missing = judged.filter(has_verdict(Verdict.MISSING)).select(*HASH, "key_hash").head(_KEYS_MOST)
    if elsewhere is None or missing.is_empty():
        return {}
    transactions, evidence = _Transactions(task, elsewhere), dict[str, dict[str, Any]]()
    for topic in elsewhere.topics:
        for copy in _committed_copies(task, topic, missing):
            shown = transactions.shown(topic, copy)
            if shown is not None:
                evidence.setdefault(copy["key_hash"], {PARTIAL: shown})
    return evidence


def _committed_copies(task: BucketTask, topic: CopiedTopic, missing: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
    """Yield the copies of missing keys that another topic has of committed transactions."""
    copies = _columns(task, topic.files)
    wanted = copies.filter(pl.col("is_transactional") & ~pl.col("is_aborted")).join(missing, on=HASH)
    yield from wanted.sort("partition", "offset").iter_rows(named=True)


def _columns(task: BucketTask, files: Sequence[str]) -> pl.DataFrame:
    """Return the hashes, the places and the producers of the copies in files of a topic."""
    columns = [*HASH, *_PLACES]
    frame = task.context.storage.read_parquet(files, columns)
    return pl.DataFrame(schema={name: TOPIC_KEYS[name] for name in columns}) if frame is None else frame


class _Transactions:
    """Transactions of two topics, as the archives of the window show them."""

    def __init__(self, task: BucketTask, elsewhere: CopiedElsewhere) -> None:
        self._task, self._elsewhere = task, elsewhere
        self._known: dict[tuple[str, int, int], dict[str, Any] | None] = {}
        self._archives: dict[str, ArchiveLog] = {}
        self._target: pl.DataFrame | None = None

    def shown(self, topic: CopiedTopic, copy: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what shows that the transaction of a copy in another topic wrote to the target, too."""
        identity = topic.point, copy["producer_id"], copy["producer_epoch"]
        if identity not in self._known:
            if len(self._known) >= _TRANSACTIONS_MOST:
                return None
            self._known[identity] = self._look(topic, copy)
        known = self._known[identity]
        return None if known is None else {**known, "copy": f"{copy['partition']}:{copy['offset']}"}

    def _look(self, topic: CopiedTopic, copy: Mapping[str, Any]) -> dict[str, Any] | None:
        own = self._of_target().filter(
            (pl.col("producer_id") == copy["producer_id"]) & (pl.col("producer_epoch") == copy["producer_epoch"])
        )
        if own.is_empty():
            return None
        record = own.row(0, named=True)
        there = self._end(topic.point, topic.archive, copy)
        here = self._end(self._task.hop.target, self._elsewhere.target_archive, record)
        if there is None or here is None or not there.is_commit:
            return None
        return {
            "producer_id": copy["producer_id"],
            "producer_epoch": copy["producer_epoch"],
            "topic": topic.point,
            "marker": f"{copy['partition']}:{there.offset}",
            "target_record": f"{record['partition']}:{record['offset']}",
            "target_marker": f"{record['partition']}:{here.offset}",
            "is_committed_in_target": here.is_commit,
        }

    def _of_target(self) -> pl.DataFrame:
        """Return the places of all transactional records of the target in the window, in their order."""
        if self._target is None:
            records = _columns(self._task, self._elsewhere.target_files)
            self._target = records.filter("is_transactional").sort("partition", "offset")
        return self._target

    def _end(self, point: str, archive: str, record: Mapping[str, Any]) -> TransactionMarker | None:
        """Return the marker of a record's transaction, if it names this transaction alone."""
        ranges = self._task.context.window.ranges.get(point, ())
        part = next((part for part in ranges if part.partition == record["partition"]), None)
        if part is None:
            return None
        if archive not in self._archives:
            self._archives[archive] = ArchiveLog(self._task.context.storage.uri(archive), is_verified=False)
        log = self._archives[archive]
        try:
            marker = transaction_end(log, part, record["offset"], record["producer_id"])
        except MakewholeError:  # evidence alone: what reads the archive for a repair says what is wrong with it
            return None
        is_own = marker is not None and marker.producer_epoch == record["producer_epoch"] + 1
        return marker if is_own else None
