"""Ask the other sources of a hop's target: what the hop's own source lacks may have come from one of them.

They are asked in four steps of a bucket, in this order:

1. `gather_copies`: rows of keys that only another source has in this window are dropped (`without_rows_of_others`).
2. `judge_bucket`, before the kernel's second run: their copies of the same keys are gathered (`SourcesTogether.of`),
   and later versions of theirs count as later ones of the hop's own source (`with_later_versions`).
3. `judge_bucket`, after it: keys that another source explains are dropped or matched, and what the sources have of the
   others is compared (`compare_sources`).
4. `marks`: what another source may have had in a part of its log that is gone is not known (`mark_unknown_to_others`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, NUMBERS, Schema, empty
from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER
from makewhole.compute.indexed_keys.key_runs import passing_rows
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.judge.log_history import LogHistory
from makewhole.compute.judge.sources_together import (
    COPIES,
    Compared,
    compare_events,
    compare_versions,
    hold_to_others,
    later_versions,
    without_left,
)
from makewhole.compute.judge.undecidable import (
    Lags,
    UnreadRecords,
    mark_undecidable,
    mark_unreadable,
    undecidable_spans,
)
from makewhole.compute.versions import shown_version
from makewhole.model.hops import Hop
from makewhole.model.points import can_look_up
from makewhole.model.verdict import DIFFERING, Cause, Verdict
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.task import BucketTask, OtherSource
from makewhole_spark.reconcile.judge.copies_outside import ledger_copies_outside, source_copies_outside
from makewhole_spark.reconcile.judge.index import keys_with_other_values, overtaken_keys
from makewhole_spark.reconcile.judge.read_copies import look_up, passing_copies, rows_of_windows, slice_frame
from makewhole_spark.reconcile.judge.verdicts import has_left, has_verdict

_SHOWN = 10
_OF_OWN: Schema = {**NUMBERS, "row_hash": pl.UInt64}


# 1. While copies are gathered


def without_rows_of_others(task: BucketTask, target: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Drop the target's copies of keys that only another source has in this window. `own`: the keys that the hop's
    source has or had. What is left and unexpected is looked for one by one."""
    others = task.elsewhere.other_sources
    if not others:
        return target
    slices = [passing_copies(_slice(task.context, other), other.hop.name).select(HASH) for other in others]
    return target.join(pl.concat(slices).unique().join(own, on=HASH, how="anti"), on=HASH, how="anti")


def _slice(context: WindowContext, other: OtherSource) -> pl.DataFrame:
    return committed_copies(slice_frame(context, other.hop.source, other.end.files))


# 2. Before the kernel's second run


@dataclass(frozen=True, kw_only=True)
class SourcesTogether:
    """Hold what the hop's source and the other sources of the same place have of the keys of a bucket (`COPIES`)."""

    task: BucketTask
    own: pl.DataFrame = field(default_factory=lambda: empty(COPIES))
    others: pl.DataFrame = field(default_factory=lambda: empty(COPIES))

    @classmethod
    def of(cls, task: BucketTask, known: BucketInput, judged: pl.DataFrame) -> "SourcesTogether":
        """Gather the copies of the keys of `judged` (`JUDGED`) that the hop's source has in the window, and of those
        whose rows differ from what it had before: a table is asked for these when they seem unexpected."""
        of_before = DIFFERING if task.is_topic(task.hop.source) else (*DIFFERING, Verdict.UNEXPECTED)
        keys = judged.filter(pl.col("in_source") | has_verdict(*of_before))
        if not task.elsewhere.other_sources or keys.is_empty():
            return cls(task=task)
        here = committed_copies(known.source)
        others = pl.concat(
            frame for other in task.elsewhere.other_sources for frame in _copies_to_compare(task, other, keys, here)
        )
        others = others.unique(subset=[*HASH, "place", "source"], keep="first", maintain_order=True)
        own = [_as_copies(here, task.hop), _as_copies(known.source_elsewhere, task.hop, ~pl.col("is_later"))]
        of_both = pl.concat(own).join(others, on=HASH, how="semi")
        if task.is_upsert:
            return cls(task=task, own=of_both, others=without_left(others))
        return cls(task=task, own=of_both.filter(~pl.col("is_outside")), others=others.filter(~pl.col("is_outside")))

    def with_later_versions(self, known: BucketInput) -> BucketInput:
        """Add the later versions of other sources: a target that holds one of them is ahead of this source."""
        if not self.task.is_upsert or self.others.is_empty():
            return known
        later = later_versions(self.own, self.others)
        return replace(known, source_elsewhere=pl.concat([known.source_elsewhere, later])) if len(later) else known


def _copies_to_compare(
    task: BucketTask, other: OtherSource, keys: pl.DataFrame, here: pl.DataFrame
) -> Iterable[pl.DataFrame]:
    """Yield the copies (`COPIES`) that another source has of some keys (`JUDGED`). A ledger is asked for its rows
    outside the window of keys with a gap, and of those of which it had a higher version before, or another value of the
    event, than the hop's own source has in it (`here`: hashes, `row_hash`, `version`)."""
    point, window = task.context.pipeline.points[other.hop.source], task.context.window
    yield _as_copies(_slice(task.context, other).join(keys, on=HASH, how="semi"), other.hop)
    if can_look_up(point):
        rows = look_up(task.context, point, _to_ask_for(task, other, keys, here))
        is_later = (pl.col("time") >= window.end).fill_null(True)
        is_before = pl.lit(False) if window.start is None else (pl.col("time") < window.start).fill_null(False)
        yield _as_copies(rows.with_columns(is_later.alias("is_later")), other.hop, is_before)
    else:
        outside = source_copies_outside(task.of(other), keys.select(HASH))
        yield _as_copies(outside.join(keys, on=HASH, how="semi"), other.hop, ~pl.col("is_later"))


def _to_ask_for(task: BucketTask, other: OtherSource, keys: pl.DataFrame, here: pl.DataFrame) -> pl.DataFrame:
    if task.is_upsert:
        differing = overtaken_keys(task, other.hop.source, here.filter(pl.col("version").is_not_null()))
    else:
        differing = keys_with_other_values(task.of(other), other.end.index.rows, here)
    has_gap = has_verdict(Verdict.MISSING, Verdict.MISMATCHED, Verdict.DUPLICATE, Verdict.UNEXPECTED)
    return pl.concat([keys.filter(has_gap), keys.join(differing, on=HASH, how="semi")]).unique(HASH).sort(HASH)


def _as_copies(copies: pl.DataFrame, hop: Hop | None, is_before: pl.Expr | None = None) -> pl.DataFrame:
    """Return the copies that the source of a hop has as `COPIES`; of its target without one. Of a copy of another
    filter nothing is known. `is_before`: those from before the window; None: there are none."""
    excluded = pl.col("excluded_by").list
    readable = copies.filter(~excluded.contains(UNKNOWN_FILTER).fill_null(False))
    named = readable.with_columns(
        (pl.lit(False) if is_before is None else is_before).alias("is_before"),
        pl.lit("" if hop is None else hop.source).alias("source"),
        (pl.lit(False) if hop is None else excluded.contains(hop.name).fill_null(False)).alias("is_outside"),
    )
    missing = {name: kind for name, kind in COPIES.items() if name not in named.columns}
    named = named.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
    return named.select(pl.col(name).cast(kind) for name, kind in COPIES.items())


# 3. After the kernel's second run


def compare_sources(
    sources: SourcesTogether, judged: pl.DataFrame, known: BucketInput
) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
    """Return the keys as they are judged with all sources, and by key hash evidence: what the others have of those on
    which they disagree (`other_sources`), and the later versions that they have of others (`later_sources`)."""
    rows = (committed_copies(known.target), known.target_elsewhere)
    target = pl.concat(_as_copies(frame, None, pl.lit(True)) for frame in rows)
    judged, left = _without_keys_of_others(sources.task, judged)
    held = _held_to_others(sources.task, judged, left, target)
    if sources.others.is_empty():
        return held.judged, _evidence(held)
    compare = compare_versions if sources.task.is_upsert else compare_events
    compared = compare(held.judged, sources.own, sources.others, target)
    return compared.judged, _evidence(held) | _evidence(compared)


def _held_to_others(task: BucketTask, judged: pl.DataFrame, keys: pl.DataFrame, target: pl.DataFrame) -> Compared:
    """Hold the rows of keys (`JUDGED`) that the hop's own source has left to what the other sources have of them."""
    if keys.is_empty():
        return Compared(judged=judged, others=empty(COPIES), later=empty(COPIES))
    copies = [
        frame
        for other in task.elsewhere.other_sources
        for frame in _copies_to_compare(task, other, keys, empty(_OF_OWN))
    ]
    others = pl.concat(copies).unique(subset=[*HASH, "place", "source"], keep="first", maintain_order=True)
    return hold_to_others(judged, keys, others, target)


def _evidence(compared: Compared) -> dict[str, dict[str, Any]]:
    evidence: dict[str, dict[str, Any]] = {}
    for name, copies in (("other_sources", compared.others), ("later_sources", compared.later)):
        for key_hash, shown in _shown(copies).items():
            evidence.setdefault(key_hash, {})[name] = shown
    return evidence


def _shown(copies: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return some copies (`COPIES`) as evidence, by key hash."""
    shown: dict[str, list[dict[str, Any]]] = {}
    for high, low, place, row_hash, version, source in copies.select(
        *HASH, "place", "row_hash", "version", "source"
    ).rows():
        value = {} if row_hash is None else {"row_hash": str(row_hash)}
        number = {} if version is None else {"version": shown_version(version)}
        of_key = shown.setdefault(f"{high:016x}{low:016x}", [])
        of_key += [{"source": source, "place": place, **number, **value}] if len(of_key) < _SHOWN else []
    return shown


def _without_keys_of_others(task: BucketTask, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Drop the keys of `judged` (`JUDGED`) that the hop's source does not have in this window and another source has,
    or had: they are not unexpected. Of those that differ from what it had before the ones that the other has in this
    window, whose hop judges them. Return what is left, and the unexpected keys among it that another source has or had,
    and that the hop's own has in this window in versions that left its filter."""
    left = judged.clear()
    is_unexpected = has_verdict(Verdict.UNEXPECTED)
    is_differing = ~pl.col("in_source") & has_verdict(*DIFFERING)
    for other in task.elsewhere.other_sources:
        unmatched, differing = judged.filter(is_unexpected), judged.filter(is_differing)
        if unmatched.is_empty() and differing.is_empty():
            break
        had = _among_copies(unmatched, _copies_had(task, other, unmatched))
        of_other = pl.concat([had, _judged_on_its_hop(task, other, differing)])
        of_other = of_other.join(_left_by_both(task, other, of_other), on=HASH, how="anti")
        left = pl.concat([left, of_other.filter("in_source")])
        judged = judged.join(of_other.filter(~pl.col("in_source")), on=HASH, how="anti", maintain_order="left")
    return judged, left.unique(HASH, maintain_order=True)


def _among_copies(keys: pl.DataFrame, copies: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return keys.join(pl.concat(frame.select(HASH) for frame in copies), on=HASH, how="semi")


def _copies_had(task: BucketTask, other: OtherSource, keys: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Yield the copies that another source has or had; of a table those of some keys."""
    point, hop = task.context.pipeline.points[other.hop.source], other.hop.name
    yield passing_copies(_slice(task.context, other), hop)
    if can_look_up(point):
        yield passing_copies(look_up(task.context, point, keys.sort(HASH)), hop)
        yield passing_copies(rows_of_windows(task.context, point.name, other.end.before), hop)
        yield ledger_copies_outside(task.of(other), keys)
    else:
        yield passing_rows(source_copies_outside(task.of(other), keys.select(HASH)), hop)


def _judged_on_its_hop(task: BucketTask, other: OtherSource, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that differ for another source's sake: it has them in the window, where its own hop judges them,
    and has not left them to others.

    Under `upsert` a row may also be what a table had that has no row of the key any more, or, where nothing numbers its
    rows, any version that it had since the end of the window.
    """
    here, point = _slice(task.context, other), task.context.pipeline.points[other.hop.source]
    standing = without_left(_as_copies(here, other.hop)) if task.is_upsert else passing_copies(here, other.hop.name)
    copies = list[pl.DataFrame]()
    if task.is_upsert and can_look_up(point):
        rows = look_up(task.context, point, keys.sort(HASH))
        is_later = (pl.col("time") >= task.context.window.end).fill_null(True)
        purged = rows_of_windows(task.context, point.name, other.end.before).join(rows, on=HASH, how="anti")
        copies += [purged, rows.filter(is_later & pl.col("version").is_null())]
    return _among_copies(keys, [standing, *(passing_copies(frame, other.hop.name) for frame in copies)])


def _left_by_both(task: BucketTask, other: OtherSource, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that left the filter of the hop, and that of another one from a topic: neither brings them."""
    left = keys.filter(has_left())
    if left.is_empty() or not task.is_topic(other.hop.source):
        return left.select(HASH).clear()
    copies = pl.concat(_copies_to_compare(task, other, left, empty(_OF_OWN)))
    return left.select(HASH).join(without_left(copies), on=HASH, how="anti")


# 4. Among the marks


def mark_unknown_to_others(task: BucketTask, judged: pl.DataFrame, lags: Lags) -> pl.DataFrame:
    """Turn unexpected keys of `judged` (`JUDGED`), and keys that differ, into undecidable ones of which another source
    may have had a record: in a part of its log that is gone, or one that could not be read or was compacted."""
    for other in task.elsewhere.other_sources:
        spans = undecidable_spans(task.log_of(other.hop.source, other.end), LogHistory(), lags)
        unread = other.end.unread.read(task.context.storage)
        judged = mark_undecidable(judged, replace(spans, missing=()))
        judged = mark_unreadable(judged, unread, UnreadRecords.none(), lags)
        compacted = task.compacted_at(other.hop.source, other.end)
        judged = mark_unreadable(judged, compacted, UnreadRecords.none(), lags, cause=Cause.COMPACTED)
    return judged
