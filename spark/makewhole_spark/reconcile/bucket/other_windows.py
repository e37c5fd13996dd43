"""Name the files of other windows that a bucket reads, and what these windows found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import polars as pl

from makewhole.journal.history.older_results import MetAloneFiles
from makewhole.key_index.files import IndexFile
from makewhole.lake.stored_verdicts import VerdictFiles
from makewhole.model.window import PartitionRange
from makewhole_spark.reconcile.bucket.window_files import WindowFiles


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
    """A window before whose points were read with another configuration, so that its hashes of values may be of other
    columns, and are not where `has_same_values`. `archive` and `ranges` are those of a topic. `other_filters`: the hops
    from the point of whose filter of now the window knew nothing."""

    archive: str
    ranges: tuple[PartitionRange, ...]
    has_same_values: bool = False
    other_filters: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class HandedOverFiles:
    """The source's files of a window that handed keys over. `knew_another_filter`: they say which copies passed another
    filter of the hop than that of now. `is_gone`: that incarnation of the topic is; `gone_from`: truncations took its
    records from there on, by partition."""

    files: tuple[str, ...]
    knew_another_filter: bool = False
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
class LogFiles:
    """Name the files of a bucket in a window's snapshot of a topic point: tombstones that erase, and copies.
    `topic_id`: of the topic as it was then; `lineages`: of its ranges, by partition."""

    topic: str
    topic_id: str
    tombstones: tuple[str, ...]
    copies: tuple[str, ...]
    lineages: Mapping[int, int] = field(default_factory=dict)


class UnreadPlace(NamedTuple):
    """A row of `UNREAD_PLACES`."""

    topic: str
    topic_id: str
    partition: int
    lineage: int
    offset: int
    is_gone: bool
    before: datetime | None


@dataclass(frozen=True, kw_only=True)
class LogOfErasures:
    """Hold the files and places of a bucket by which tombstones are put in order with the records of their keys.

    `erasing`: the topic points whose tombstones do, none where they erase from no store behind the hop.
    `incarnations` numbers the ids of topics by their age. `unread`: partitions of which later windows could not read
    some offsets; `unread_at`: the last place of each partition that this window or one before it could not read, and
    the last record of all windows that may be of any key.
    """

    erasing: tuple[str, ...] = ()
    files: tuple[LogFiles, ...] = ()
    incarnations: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[tuple[str, int]] = frozenset()
    unread_at: tuple[UnreadPlace, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MetAlone:
    """The keys of which windows before met rows without a record: `files` with a key filter beside each, and by name
    (hash high, hash low) keys that were reported as unexpected or undecidable (`named`). Rows of a record with a time
    before `since` may be in the slices of older windows: it stands in the log behind one with a time far ahead. None:
    there are none."""

    files: tuple[str, ...] = ()
    named: tuple[tuple[int, int], ...] = ()
    since: datetime | None = None


def met_by(maybe_met: pl.DataFrame, window: MetAloneFiles | CertifiedResult) -> pl.DataFrame:
    """Return the keys of `MAYBE_MET` whose rows may lie in a window."""
    return maybe_met.filter((pl.col("met_from") < window.end) | window.has_far_ahead)
