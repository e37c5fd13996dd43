"""One bucket of one hop as a task: what the driver asked once for all, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from makewhole.compute.frames import REPLAYS, empty
from makewhole.compute.log_history import LogHistory
from makewhole.model.pipeline import Hop, PointKind, Semantics
from makewhole.model.verdict import HopCounts
from makewhole.window.context import WindowContext


@dataclass(frozen=True, kw_only=True)
class IndexFiles:
    """The runs of the key index for a bucket: of the windows before this one, and of those after.

    `former`: runs of earlier incarnations of the topic, which was made again since.
    """

    earlier: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    former: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CutFiles:
    """The target's snapshot of an earlier window that a truncation reached: copies from `limits` on (by partition) are
    gone. `limits_now`: those that this window noticed; its `source_files` tell what the source had then."""

    files: tuple[str, ...]
    limits: Mapping[int, int]
    limits_now: Mapping[int, int]
    source_files: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BucketTask:
    """What an executor is told of a bucket: files below the storage root, and what the driver asked once for all.

    The last four are filled in when the bucket is judged again with what the rest of a topic's log had: `tails` by
    point, `partial_tails` of which some was gone, and the target's rows as they were `looked_up` before that reading.
    """

    context: WindowContext
    hop: Hop
    bucket: str
    source_files: tuple[str, ...]
    target_files: tuple[str, ...]
    source_index: IndexFiles
    target_index: IndexFiles
    handed_over: tuple[tuple[str, int, int], ...]
    handed_over_files: tuple[str, ...]
    settled_offsets: Mapping[int, int] | None
    settled_snapshot: str | None
    group_committed: Mapping[int, int] | None
    replays: pl.DataFrame = field(default_factory=lambda: empty(REPLAYS))
    cut_files: tuple[CutFiles, ...] = ()
    later_source_files: tuple[str, ...] = ()
    source_log: LogHistory = field(default_factory=LogHistory)
    target_log: LogHistory = field(default_factory=LogHistory)
    source_sequences: str | None = None
    target_sequences: str | None = None
    tails: Mapping[str, list[str]] | None = None
    partial_tails: frozenset[str] = frozenset()
    looked_up: str | None = None

    @property
    def is_upsert(self) -> bool:
        return self.hop.semantics is Semantics.UPSERT

    def is_topic(self, point: str) -> bool:
        """Whether this point of the pipeline is a topic."""
        return self.context.pipeline.points[point].kind is PointKind.TOPIC


@dataclass(frozen=True, kw_only=True)
class BucketAnswer:
    """Counts, digest and files of a judged bucket. `wanted`: files with hashes that a topic's tail must be asked for.

    `expected`: how many verdicts there must be, counted from the snapshot's own rows, not from the verdicts.
    `judged_anew`: keys that came in because a truncation took their copies.
    """

    hop: str
    bucket: str
    counts: HopCounts
    digest: int
    expected: int
    without_source: int
    undecidable_without_source: int
    judged_anew: int
    verdicts: str
    findings: str | None
    wanted: Mapping[str, str]
    looked_up: str | None = None
