"""Define the task of judging one bucket of one hop, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial

import polars as pl

from makewhole.compute.frames import HASH, HASHES, NAMED_KEYS, REPLAYS, WAITING, Schema
from makewhole.compute.judge.baseline import Baseline
from makewhole.compute.judge.log_history import LogHistory, TimeSpan
from makewhole.compute.judge.undecidable import UnreadRecords
from makewhole.key_index.files import IndexFile
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.lake.storage import Storage
from makewhole.lake.stored_verdicts import VerdictFiles
from makewhole.model.pipeline import Hop, Pipeline, Semantics
from makewhole.model.points import PointKind, TablePoint
from makewhole.model.verdict import HopCounts
from makewhole.model.window import PartitionRange
from makewhole.window.consumer_groups import Unreached
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.window_files import WindowFiles

HANDED_OVER: Schema = NAMED_KEYS | {"since": WAITING["since"]}
"""Keys that the window before handed over, with the moment since which each waits."""


@dataclass(frozen=True, kw_only=True)
class IndexFiles:
    """The files of the key index for a bucket: of windows before this one, and of windows after it. A file that holds
    windows of several kinds is named for each kind.

    `former`: runs of earlier incarnations of the topic.
    """

    earlier: tuple[IndexFile, ...] = ()
    later: tuple[IndexFile, ...] = ()
    former: tuple[IndexFile, ...] = ()

    @property
    def every(self) -> tuple[IndexFile, ...]:
        """All files, in the order in which they count."""
        return (*self.earlier, *self.later, *self.former)


@dataclass(frozen=True, kw_only=True)
class TruncatedFiles:
    """The target's snapshot of an earlier window that truncations took copies from: from `limits` on, by partition.

    `limits_now`: the limits of the truncations that this window noticed. `source_files`: the source's snapshot of that
    earlier window.
    """

    files: WindowFiles
    limits: Mapping[int, int]
    limits_now: Mapping[int, int]
    source_files: WindowFiles = field(default_factory=WindowFiles)


@dataclass(frozen=True, kw_only=True)
class OtherConfiguration:
    """A window before whose points were read with another configuration, so that its hashes of values are of other
    columns. `archive` and `ranges` are those of a topic."""

    archive: str
    ranges: tuple[PartitionRange, ...]


@dataclass(frozen=True, kw_only=True)
class HandedOverFiles:
    """The source's files of a window that handed keys over. `is_gone`: that incarnation of the topic is; `gone_from`:
    truncations took its records from there on, by partition."""

    files: tuple[str, ...]
    read_with_other_configuration: OtherConfiguration | None = None
    is_gone: bool = False
    gone_from: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CertifiedResult:
    """The result of a hop in a certified revision of a window: the files that say the verdicts of a bucket, and of the
    keys that were repaired. `ranges`: the source's (partition, lo, hi). `met_alone`: files of the keys whose rows it
    met without a record; `has_far_ahead`: the record of some is far ahead of the window."""

    number: int
    revision: int
    end: datetime
    files: VerdictFiles
    repaired: str | None = None
    met_alone: tuple[str, ...] = ()
    has_far_ahead: bool = False
    ranges: tuple[tuple[int, int, int], ...] = ()

    def holds(self, place: str) -> bool:
        """Return whether a position of the source, as text `partition:offset`, lies in the window."""
        partition, _, offset = place.partition(":")
        if not (partition.isdigit() and offset.isdigit()):
            return False
        return any(part == int(partition) and lo <= int(offset) < hi for part, lo, hi in self.ranges)


@dataclass(frozen=True, kw_only=True)
class OtherSource:
    """Another hop to the same place: the files of its source in this window, and its runs of the key index; of a ledger
    also its files in the windows before; of a topic the history of its log, and the records that could not be read."""

    hop: Hop
    files: tuple[str, ...] = ()
    earlier_files: WindowFiles = field(default_factory=WindowFiles)
    index: IndexFiles = field(default_factory=IndexFiles)
    log: LogHistory = field(default_factory=LogHistory)
    unread: "UnreadOfBucket" = field(default_factory=lambda: UnreadOfBucket())


@dataclass(frozen=True, kw_only=True)
class LogFiles:
    """Name the files of a bucket in a window's snapshot of a topic point: tombstones that erase, and copies.
    `topic_id`: of the topic as it was then."""

    topic: str
    topic_id: str
    tombstones: tuple[str, ...]
    copies: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LogOfErasures:
    """Hold the files and places of a bucket by which tombstones are put in order with the records of their keys.

    `erasing`: the topic points whose tombstones do, none where they erase from no store behind the hop.
    `incarnations` numbers the ids of topics by their age. `unread`: partitions of which later windows could not read
    some offsets.
    """

    erasing: tuple[str, ...] = ()
    files: tuple[LogFiles, ...] = ()
    incarnations: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class MetAlone:
    """The keys of which windows before met rows without a record: `files` with a filter beside each, and the keys (hash
    high, hash low) that were `already_reported` as unexpected or undecidable. Rows of a record with a time before
    `since` may be in the slices of older windows: it stands in the log behind one with a time far ahead. None: there
    are none."""

    files: tuple[str, ...] = ()
    already_reported: tuple[tuple[int, int], ...] = ()
    since: datetime | None = None


def has_slices(pipeline: Pipeline, hop: Hop) -> bool:
    """Return whether a hop ends in a table of events that is read by its times, so that a key's rows may lie in the
    slices of several windows."""
    point = pipeline.points[hop.target]
    return isinstance(point, TablePoint) and point.time is not None and hop.semantics is not Semantics.UPSERT


@dataclass(frozen=True, kw_only=True)
class KeptExceptions:
    """Hold what the first pass of a bucket found: of the clean keys their number, the digest and the numbers of their
    rows; and the files of the copies of all others."""

    clean: int
    digest: int
    source_rows: int
    target_rows: int
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class JournalKeys:
    """Hold what the journal knows of keys of a bucket besides the slices. A task reads it where it runs.

    `handed_over` (`HANDED_OVER`): keys of the window before. `judged_pending` (`WAITING`): by the last revision of this
    window. `replays` and `source_replays` (`REPLAYS`): records that compensation wrote to the target and to the source.
    `written` (`HASHES`): keys of which plans for this window wrote records to the source, wherever these are.
    `followed` (`NAMED_KEYS`): keys of which plans wrote rows straight into the target lately. `already_reported`
    (`HASHES`): keys that an earlier window found wrong.
    """

    handed_over: BucketRows = field(default_factory=partial(BucketRows.none, HANDED_OVER))
    judged_pending: BucketRows = field(default_factory=partial(BucketRows.none, WAITING))
    replays: BucketRows = field(default_factory=partial(BucketRows.none, REPLAYS))
    source_replays: BucketRows = field(default_factory=partial(BucketRows.none, REPLAYS))
    written: BucketRows = field(default_factory=partial(BucketRows.none, HASHES))
    followed: BucketRows = field(default_factory=partial(BucketRows.none, NAMED_KEYS))
    already_reported: BucketRows = field(default_factory=partial(BucketRows.none, HASHES))


@dataclass(frozen=True, kw_only=True)
class UnreadOfBucket:
    """Hold the records of a topic that could not be read: the keys of a bucket that some of them have (`HASHES`), and
    whether there are others, which may be of any key: in the window or after it, and (by their `spans`) before it."""

    keys: BucketRows = field(default_factory=partial(BucketRows.none, HASHES))
    is_any: bool = False
    spans: tuple[TimeSpan, ...] = ()

    def read(self, storage: Storage) -> UnreadRecords:
        """Return the records with their keys."""
        return UnreadRecords(keys=self.keys.read_hashes(storage), is_any=self.is_any, spans=self.spans)


@dataclass(frozen=True, kw_only=True)
class FormerCompare:
    """The columns that windows compared which end at `until` or before, where the file compares others since."""

    until: datetime
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class HopSince:
    """The number and the start of the first window that had a hop."""

    number: int
    start: datetime


@dataclass(frozen=True, kw_only=True)
class BucketTask:
    """The input of an executor for a bucket: files below the storage root, and what the driver asked once for all.

    `keys`: what the journal knows of keys; the properties have the rows, which are read once.

    `earlier_source_files`: of a ledger in the windows before whose rows may be meant, and `ledger_index` what the key
    index has of it, where it feeds a table of events; `source_index` is that of a topic. `versions_of_ledgers`: under
    `upsert`, of the ledgers that feed the table, this hop's and others. `source_under_other_filters`: files of a
    ledger of windows whose rows came with this one again, and that knew another filter of the hop;
    `source_without_hop`: of those that did not have the hop.
    `target_with_other_configuration`: of a topic, the windows right before this one that read it so.
    `other_sources`: what other hops bring to the same target.
    `former_compare`: of a ledger at the source, where the file compares other columns than in windows before;
    `former_sources`: what the key index has of sources that led to the target then, and do not now; `hop_since`: of a
    hop that the first windows did not have.
    `certified`: what certified revisions of this window found on this hop; when the bucket is judged again
    (`knows_certified`) also the windows in which its missing keys have records.
    `met_alone`: the keys of which the windows before met rows that had no record in them; None: not known, so that a
    slice does not tell whether a key has other rows.

    `seen_ranges`: (partition, lo, hi, since when it is known to exist) of the source, in this window and in those that
    handed keys over. The last three are set when the bucket is judged again with the rest of a topic's log:
    files of `tails` by point, `partial_tails` of which some offsets were gone, and the target's rows that were
    `looked_up` before that reading; so are the exceptions that were `kept` then. `log_of_erasures`: where tombstones
    erase, what the windows know of them; then `tail_records` are files of what stands behind the windows, by point, and
    `unread_tails` the partitions of which some of it was gone.
    """

    context: WindowContext
    hop: Hop
    bucket: str
    source_files: tuple[str, ...]
    target_files: tuple[str, ...]
    source_index: IndexFiles
    target_index: IndexFiles
    handed_over_files: tuple[HandedOverFiles, ...]
    settled_offsets: Mapping[int, int] | None
    settled_snapshot: str | None
    group_committed: Mapping[int, int] | None
    keys: JournalKeys = field(default_factory=JournalKeys)
    seen_ranges: tuple[tuple[int, int, int, datetime], ...] = ()
    truncated_files: tuple[TruncatedFiles, ...] = ()
    later_source_files: WindowFiles = field(default_factory=WindowFiles)
    target_with_other_configuration: tuple[OtherConfiguration, ...] = ()
    earlier_source_files: WindowFiles = field(default_factory=WindowFiles)
    ledger_index: IndexFiles = field(default_factory=IndexFiles)
    former_compare: FormerCompare | None = None
    former_sources: tuple[IndexFile, ...] = ()
    hop_since: HopSince | None = None
    source_under_other_filters: WindowFiles = field(default_factory=WindowFiles)
    source_without_hop: WindowFiles = field(default_factory=WindowFiles)
    versions_of_ledgers: Mapping[str, IndexFiles] = field(default_factory=dict)
    other_sources: tuple[OtherSource, ...] = ()
    certified: tuple[CertifiedResult, ...] = ()
    knows_certified: bool = False
    met_alone: MetAlone | None = None
    source_unread: UnreadOfBucket = field(default_factory=UnreadOfBucket)
    target_unread: UnreadOfBucket = field(default_factory=UnreadOfBucket)
    source_log: LogHistory = field(default_factory=LogHistory)
    target_log: LogHistory = field(default_factory=LogHistory)
    baseline: Baseline = field(default_factory=Baseline)
    source_sequences: str | None = None
    target_sequences: str | None = None
    tails: Mapping[str, list[str]] | None = None
    partial_tails: frozenset[str] = frozenset()
    looked_up: str | None = None
    kept: KeptExceptions | None = None
    log_of_erasures: LogOfErasures = field(default_factory=LogOfErasures)
    tail_records: Mapping[str, list[str]] = field(default_factory=dict)
    unread_tails: frozenset[tuple[str, int]] = frozenset()

    @cached_property
    def handed_over(self) -> pl.DataFrame:
        """The keys that the window before handed over (`HANDED_OVER`)."""
        return self.keys.handed_over.read(self.context.storage)

    @cached_property
    def waiting_since(self) -> pl.DataFrame:
        """The keys that were judged pending before, each with the moment since which it waits (`WAITING`)."""
        before = self.keys.judged_pending.read(self.context.storage)
        pending = pl.concat([self.handed_over.select(*WAITING), before])
        return pending.group_by(HASH).agg(pl.col("since").min()).sort(HASH)

    @cached_property
    def replays(self) -> pl.DataFrame:
        """The records that compensation wrote to the target (`REPLAYS`)."""
        return self.keys.replays.read(self.context.storage)

    @cached_property
    def source_replays(self) -> pl.DataFrame:
        """The records that compensation wrote to the source (`REPLAYS`)."""
        return self.keys.source_replays.read(self.context.storage)

    @cached_property
    def written(self) -> pl.DataFrame:
        """The keys of which plans for this window wrote records to the source (`HASHES`)."""
        return self.keys.written.read(self.context.storage)

    @cached_property
    def followed(self) -> pl.DataFrame:
        """The keys of which plans wrote rows straight into the target lately (`NAMED_KEYS`)."""
        return self.keys.followed.read(self.context.storage)

    @cached_property
    def already_reported(self) -> pl.DataFrame:
        """The keys of which an earlier window said already what is wrong (`HASHES`)."""
        return self.keys.already_reported.read(self.context.storage)

    @property
    def is_upsert(self) -> bool:
        return self.hop.semantics is Semantics.UPSERT

    @property
    def has_slices(self) -> bool:
        """Return whether the rows of a key at the target may lie in the slices of several windows."""
        return has_slices(self.context.pipeline, self.hop)

    def is_topic(self, point: str) -> bool:
        """Return whether this point of the pipeline is a topic."""
        return self.context.pipeline.points[point].kind is PointKind.TOPIC


@dataclass(frozen=True, kw_only=True)
class BucketAnswer:
    """Counts, digest and files of a judged bucket. `wanted`: files of hashes to look for in a topic's tail, by point.
    `late_wanted`: those of them whose row came late, so that its record may be before the first window. `to_order`:
    files of hashes of which the tail must tell records and tombstones, by point.

    `expected`: the number of verdicts that there must be, counted from the snapshot's rows, not from the verdicts.
    `older_than_log`: the number of keys that are undecidable because nobody said from when on to judge.
    `judged_again`: the number of keys that are judged because a truncation took their copies. `unreached`: the source's
    records that the consumer group has not reached, by partition. `clean`: the number of keys that the first pass took
    out; the file of verdicts has none of them. `kept`: the others, of a bucket to be judged again. `met_alone`: the
    file of keys whose rows had no record in the window, and `met_far_ahead` the number of those whose record is so far
    ahead that no later window would ask this one for them. `recorded_in`: the other windows in which keys have records
    that the store lacks now. `lacking`: the file of the keys (`UNTRACED`) that the store lacks, of whose rows windows
    before may have met some, and `untraced_since` the first of its moments.
    """

    hop: str
    bucket: str
    counts: HopCounts
    digest: int
    expected: int
    without_source: int
    undecidable_without_source: int
    before_baseline_without_source: int
    differing_without_source: int
    pending_without_source: int
    unexpected_with_source: int
    older_than_log: int
    judged_again: int
    clean: int
    verdicts: str
    findings: str | None
    wanted: Mapping[str, str]
    late_wanted: Mapping[str, str] = field(default_factory=dict)
    unreached: Mapping[int, Unreached] = field(default_factory=dict)
    looked_up: str | None = None
    kept: KeptExceptions | None = None
    to_order: Mapping[str, str] = field(default_factory=dict)
    met_alone: str | None = None
    met_far_ahead: int = 0
    recorded_in: frozenset[int] = frozenset()
    lacking: str | None = None
    untraced_since: datetime | None = None
