"""Find the other sources of a hop's target: what the hop's own source lacks may have come from one of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from makewhole.compute.buckets import files_of_bucket
from makewhole.compute.frames import HASH
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.judge.undecidable import (
    Lags,
    UnreadRecords,
    mark_undecidable,
    mark_unreadable,
    undecidable_spans,
)
from makewhole.model.pipeline import Hop, TablePoint
from makewhole.model.verdict import Verdict
from makewhole_spark.reconcile.buckets import BucketTask, IndexFiles, OtherSource, UnreadOfBucket
from makewhole_spark.reconcile.copies_outside import source_copies_outside
from makewhole_spark.reconcile.hop_facts.late_rows import late_facts
from makewhole_spark.reconcile.look_ups import in_ledger_before, look_up, slice_frame
from makewhole_spark.reconcile.neighbouring_windows import NeighbouringWindows


@dataclass(frozen=True, kw_only=True)
class HopsBeside:
    """The hops that lead to the same place as one, with what earlier windows know of their ledgers, by bucket."""

    neighbours: NeighbouringWindows
    hops: tuple[tuple[Hop, dict[str, list[str]]], ...]

    @classmethod
    def of(cls, neighbours: NeighbouringWindows, hop: Hop) -> "HopsBeside":
        beside = (one for one in neighbours.context.pipeline.hops_into(hop.target) if one.name != hop.name)
        return cls(
            neighbours=neighbours,
            hops=tuple((one, dict(late_facts(neighbours, one).source_files)) for one in beside),
        )

    def in_bucket(
        self, bucket: str, runs: Mapping[str, IndexFiles], unread: Mapping[str, UnreadOfBucket]
    ) -> tuple[OtherSource, ...]:
        """Return what a bucket has of the other sources; `runs` are those of the key index by point, and so are the
        records that could not be read."""
        return tuple(
            OtherSource(
                hop=hop,
                files=files_of_bucket(self.neighbours.manifests[hop.source]["files"], bucket),
                earlier_files=files_of_bucket(earlier, bucket),
                index=runs[hop.source],
                log=self.neighbours.log(hop.source),
                unread=unread[hop.source],
            )
            for hop, earlier in self.hops
        )


def without_rows_of_others(task: BucketTask, target: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Drop the target's copies of keys that only another source has in this window. `own`: the keys that the hop's
    source has or had. What is left and unexpected is looked for one by one."""
    if not task.other_sources:
        return target
    slices = [_passing(one, _slice(task, one)).select(HASH) for one in task.other_sources]
    return target.join(pl.concat(slices).unique().join(own, on=HASH, how="anti"), on=HASH, how="anti")


def without_keys_of_others(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Drop the unexpected keys of `judged` (`JUDGED`) that another source has, or had."""
    for one in task.other_sources:
        strangers = judged.filter(pl.col("verdict") == Verdict.UNEXPECTED.value)
        if strangers.is_empty():
            break
        known = pl.concat(frame.select(HASH) for frame in _copies(task, one, strangers))
        judged = judged.join(strangers.join(known, on=HASH, how="semi"), on=HASH, how="anti", maintain_order="left")
    return judged


def mark_unknown_to_others(task: BucketTask, judged: pl.DataFrame, lags: Lags) -> pl.DataFrame:
    """Turn unexpected keys of `judged` (`JUDGED`), and keys that differ, into undecidable ones of which another source
    may have had a record: in a part of its log that is gone, or one that could not be read."""
    for one in task.other_sources:
        log = replace(one.log, is_partial=one.log.is_partial or one.hop.source in task.partial_tails)
        spans = undecidable_spans(log, LogHistory(), lags)
        of_source = replace(spans, missing=())
        unread = one.unread.read(task.context.storage)
        judged = mark_unreadable(mark_undecidable(judged, of_source), unread, UnreadRecords.none())
    return judged


def _copies(task: BucketTask, one: OtherSource, keys: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Yield the copies that another source has or had; of a table those of some keys."""
    point = task.context.pipeline.points[one.hop.source]
    yield _passing(one, _slice(task, one))
    if isinstance(point, TablePoint):
        yield _passing(one, look_up(task, point, keys.sort(HASH)))
        yield _passing(one, slice_frame(task, point.name, one.earlier_files))
        yield in_ledger_before(replace(task, hop=one.hop, ledger_index=one.index), keys)
    else:
        yield source_copies_outside(replace(task, hop=one.hop, source_index=one.index), keys.select(HASH))


def _slice(task: BucketTask, one: OtherSource) -> pl.DataFrame:
    return committed_copies(slice_frame(task, one.hop.source, one.files))


def _passing(one: OtherSource, copies: pl.DataFrame) -> pl.DataFrame:
    return copies.filter(~pl.col("excluded_by").list.contains(one.hop.name))
