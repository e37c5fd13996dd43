"""Define the task of judging one bucket of one hop: few groups of what the driver gathered, each read where it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, HASHES, NAMED_KEYS, REPLAYS, WAITING, Schema
from makewhole.compute.judge.baseline import Baseline
from makewhole.compute.judge.copier_commits import CopierCommits
from makewhole.compute.judge.log_history import LogHistory, TimeSpan
from makewhole.compute.judge.undecidable import UnreadRecords
from makewhole.key_index.files import IndexFile
from makewhole.lake.rows_by_bucket import BucketRows
from makewhole.lake.storage import Storage
from makewhole.model.hops import Hop, Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import PointKind, can_look_up
from makewhole.model.retention import Erasure
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.answer import KeptExceptions
from makewhole_spark.reconcile.bucket.other_topics import CopiedElsewhere
from makewhole_spark.reconcile.bucket.other_windows import (
    CertifiedResult,
    HandedOverFiles,
    IndexFiles,
    LogOfErasures,
    MetAlone,
    OtherConfiguration,
    TruncatedFiles,
)
from makewhole_spark.reconcile.bucket.window_files import WindowFiles

REPORTED: Schema = HASHES | {"copies": pl.Int64}
"""Keys that earlier windows found wrong, with the number of their copies that was reported last; null: a window that is
still open reported the key, and judges it again."""

HANDED_OVER: Schema = NAMED_KEYS | {"since": WAITING["since"]}
"""Keys that the window before handed over, with the moment since which each waits."""


def has_slices(pipeline: Pipeline, hop: Hop) -> bool:
    """Return whether a hop ends in a table of events that is read by its times, so that a key's rows may lie in the
    slices of several windows."""
    point = pipeline.points[hop.target]
    return can_look_up(point) and point.time is not None and hop.semantics is not Semantics.UPSERT


@dataclass(frozen=True, kw_only=True)
class JournalKeys:
    """Hold what the journal knows of keys of a bucket besides the slices. A task reads it where it runs.

    `handed_over` (`HANDED_OVER`): keys of the window before. `judged_pending` (`WAITING`): by the last revision of this
    window. `written` (`HASHES`): keys of which plans for this window wrote records to the source, wherever these are.
    `followed` (`NAMED_KEYS`): keys of which plans wrote rows straight into the target lately. `already_reported`
    (`REPORTED`): keys that an earlier window found wrong.
    """

    handed_over: BucketRows = field(default_factory=partial(BucketRows.none, HANDED_OVER))
    judged_pending: BucketRows = field(default_factory=partial(BucketRows.none, WAITING))
    written: BucketRows = field(default_factory=partial(BucketRows.none, HASHES))
    followed: BucketRows = field(default_factory=partial(BucketRows.none, NAMED_KEYS))
    already_reported: BucketRows = field(default_factory=partial(BucketRows.none, REPORTED))


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
class PointIndex:
    """The files of the key index for a point: the `copies` that a topic has or had; the `rows` of a ledger of events;
    the `versions` of a ledger under `upsert`, which only tell which keys to ask it for."""

    copies: IndexFiles = field(default_factory=IndexFiles)
    rows: IndexFiles = field(default_factory=IndexFiles)
    versions: IndexFiles = field(default_factory=IndexFiles)


@dataclass(frozen=True, kw_only=True)
class BucketEnd:
    """Knowledge of the keys of a bucket at one end of a hop: the `files` of its slice, and those of `before` and
    `after`, the windows around this one (of a ledger, and under `upsert` of any source), and those that newer revisions
    of windows before have `replaced` (of a ledger without an index); its `index`; of a topic also the history of its
    `log`, the records that could not be `unread`, those that were `compacted` and may have been the only ones of their
    keys, the `replays` (`REPLAYS`) that compensation wrote to it, and the file of its producers' `sequences`."""

    files: tuple[str, ...] = ()
    before: WindowFiles = field(default_factory=WindowFiles)
    replaced: WindowFiles = field(default_factory=WindowFiles)
    after: WindowFiles = field(default_factory=WindowFiles)
    index: PointIndex = field(default_factory=PointIndex)
    log: LogHistory = field(default_factory=LogHistory)
    unread: UnreadOfBucket = field(default_factory=UnreadOfBucket)
    compacted: UnreadRecords = field(default_factory=UnreadRecords.none)
    replays: BucketRows = field(default_factory=partial(BucketRows.none, REPLAYS))
    sequences: str | None = None


@dataclass(frozen=True, kw_only=True)
class OtherSource:
    """Another hop to the same place, and what is known at its source."""

    hop: Hop
    end: BucketEnd = field(default_factory=BucketEnd)


@dataclass(frozen=True, kw_only=True)
class AbsenceLimits:
    """Hold up to where, and since when, an absence says something.

    `target_seen`: what the view of a target saw under which the rows of all keys of the source's slice were read,
    whatever their time: one without a row in the target's slice had none then.
    `settled_offsets` and `settled_snapshot` of the source were there a settle time ago; `group_committed`: the offsets
    that what loads the target reads next; `sink`: what Iceberg's sink says of itself, for findings; `copier`: between
    topics, what its group committed so far, and how.
    `seen_ranges`: (partition, lo, hi, since when it is known to exist) of the source, in this window and in those that
    handed keys over.
    """

    target_seen: str | None = None
    settled_offsets: Mapping[int, int] | None = None
    settled_snapshot: str | None = None
    group_committed: Mapping[int, int] | None = None
    sink: Mapping[str, Any] | None = None
    copier: CopierCommits | None = None
    seen_ranges: tuple[tuple[int, int, int, datetime], ...] = ()
    baseline: Baseline = field(default_factory=Baseline)


@dataclass(frozen=True, kw_only=True)
class KnownElsewhere:
    """Hold what other windows and other hops know of the keys.

    `target_with_other_configuration`: of a topic, the windows right before this one that read it so. `other_sources`:
    what other hops bring to the same target. `certified`: what certified revisions of this window found on this hop.
    `met_alone`: the keys of which the windows before met rows that had no record in them; None: not known, so that a
    slice does not tell whether a key has other rows. `erasures`: where tombstones erase, what the windows know of them.
    `copied_elsewhere`: the topics that other hops fill from the same source. `on_request`: keys that were erased
    everywhere because a person asked for it.
    """

    handed_over: tuple[HandedOverFiles, ...] = ()
    truncated: tuple[TruncatedFiles, ...] = ()
    target_with_other_configuration: tuple[OtherConfiguration, ...] = ()
    other_sources: tuple[OtherSource, ...] = ()
    certified: tuple[CertifiedResult, ...] = ()
    met_alone: MetAlone | None = None
    erasures: LogOfErasures = field(default_factory=LogOfErasures)
    copied_elsewhere: CopiedElsewhere | None = None
    on_request: tuple[Erasure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FormerCompare:
    """The columns that windows compared which end at `until` or before, where the file compares others since."""

    until: datetime
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FormerSource:
    """The files of the key index of a source that the file names no more, and how its columns were read."""

    files: tuple[IndexFile, ...]
    compared: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class HopSince:
    """The number and the start of the first window that had a hop."""

    number: int
    start: datetime


@dataclass(frozen=True, kw_only=True)
class FileChanges:
    """Hold what other windows knew by another pipeline file.

    `former_compare`: of a ledger at the source, where the file compares other columns than in windows before.
    `former_sources`: what the key index has of sources that led to the target then, and do not now; `hop_since`: of a
    hop that the first windows did not have. `under_other_filters`: files of a ledger at the source of windows whose
    rows came with this one again, and that knew another filter of the hop; `without_hop`: of those that did not have
    the hop.
    """

    former_compare: FormerCompare | None = None
    former_sources: tuple[FormerSource, ...] = ()
    hop_since: HopSince | None = None
    under_other_filters: WindowFiles = field(default_factory=WindowFiles)
    without_hop: WindowFiles = field(default_factory=WindowFiles)


@dataclass(frozen=True, kw_only=True)
class SecondRound:
    """Hold what was found out for the keys that the first round left, which judges their bucket again.

    From the rest of a topic's log: the files of its `tails` by point, `partial_tails` of which some offsets were gone,
    `tail_records` in their order where tombstones erase, and `unread_tails`, the partitions of which some of it was
    gone. `compacted`: by point, the records that compaction took and that may have been the only ones of any key, where
    the rest of the log says more of them than the windows; `compacted_tails`: the partitions of which some of it is
    among them. `certified`: the windows in which missing keys have records, where they were asked; `following`:
    those after this one to which missing keys were handed over; `around`: by the number of a window that has records of
    repeated keys those around it, nearest first. The target's rows that were `looked_up` before, the exceptions that
    were `kept` then, and the transactions that were `in_doubt`.
    """

    tails: Mapping[str, list[str]] = field(default_factory=dict)
    partial_tails: frozenset[str] = frozenset()
    tail_records: Mapping[str, list[str]] = field(default_factory=dict)
    unread_tails: frozenset[tuple[str, int]] = frozenset()
    compacted: Mapping[str, UnreadRecords] = field(default_factory=dict)
    compacted_tails: frozenset[tuple[str, int]] = frozenset()
    certified: tuple[CertifiedResult, ...] = ()
    following: tuple[CertifiedResult, ...] = ()
    around: Mapping[int, tuple[CertifiedResult, ...]] = field(default_factory=dict)
    knows_certified: bool = False
    looked_up: str | None = None
    kept: KeptExceptions | None = None
    in_doubt: tuple[TransactionInDoubt, ...] = ()


FIRST_ROUND = SecondRound()
"""Nothing of what a second round knows."""


@dataclass(frozen=True, kw_only=True)
class BucketTask:
    """The input of an executor for a bucket: files below the storage root, and what the driver asked once for all.
    `second`: the bucket is judged again; None: for the first time."""

    context: WindowContext
    hop: Hop
    bucket: str
    source: BucketEnd
    target: BucketEnd
    keys: JournalKeys = field(default_factory=JournalKeys)
    limits: AbsenceLimits = field(default_factory=AbsenceLimits)
    elsewhere: KnownElsewhere = field(default_factory=KnownElsewhere)
    changes: FileChanges = field(default_factory=FileChanges)
    second: SecondRound | None = None

    def of(self, other: OtherSource) -> "BucketTask":
        """Return the same bucket as another hop to the same place sees it."""
        return replace(self, hop=other.hop, source=other.end)

    @property
    def is_second_round(self) -> bool:
        """Return whether the bucket was judged before, with less than is known now."""
        return self.second is not None

    @property
    def known_since(self) -> SecondRound:
        """Facts found out since the first round; none in that."""
        return self.second or FIRST_ROUND

    @property
    def certified(self) -> tuple[CertifiedResult, ...]:
        """Findings of certified windows: revisions of this one, and those that were asked for a second round."""
        return (*self.elsewhere.certified, *self.known_since.certified)

    def log_of(self, point: str, end: BucketEnd) -> LogHistory:
        """Return the history of the log at an end, with what the rest of it says."""
        return replace(end.log, is_partial=end.log.is_partial or point in self.known_since.partial_tails)

    def compacted_at(self, point: str, end: BucketEnd) -> UnreadRecords:
        """Return the records that compaction took at an end, and that may have been the only ones of any key, with what
        the rest of the log says of them."""
        return self.known_since.compacted.get(point, end.compacted)

    def folder(self, of: str) -> str:
        """Return the folder for files of a kind that are written for the hop."""
        return f"{self.context.window.prefix}/{self.hop.slug}/{of}"

    def versions_of(self, ledger: str) -> IndexFiles:
        """Return the index of a ledger under `upsert`, of this hop or another one to the same place."""
        if ledger == self.hop.source:
            return self.source.index.versions
        others = (other.end for other in self.elsewhere.other_sources if other.hop.source == ledger)
        return next((end.index.versions for end in others), IndexFiles())

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
        return self.target.replays.read(self.context.storage)

    @cached_property
    def source_replays(self) -> pl.DataFrame:
        """The records that compensation wrote to the source (`REPLAYS`)."""
        return self.source.replays.read(self.context.storage)

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
        """The keys that an earlier window found wrong (`REPORTED`)."""
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
