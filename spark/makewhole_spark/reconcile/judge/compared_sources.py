"""Compare what a hop's source has of its keys with what other sources of the same place have of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from makewhole.compute.frames import HASH, empty
from makewhole.compute.indexed_keys.hop_filters import UNKNOWN_FILTER
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.judge.sources_together import (
    COPIES,
    compare_events,
    compare_versions,
    later_versions,
    without_left,
)
from makewhole.compute.versions import shown_version
from makewhole.model.pipeline import Hop
from makewhole.model.points import can_look_up
from makewhole.model.verdict import DIFFERING, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask, OtherSource
from makewhole_spark.reconcile.judge.copies_outside import source_copies_outside
from makewhole_spark.reconcile.judge.index import keys_with_other_values, overtaken_keys
from makewhole_spark.reconcile.judge.look_ups import look_up, slice_frame

_GAPS = (Verdict.MISSING, Verdict.MISMATCHED, Verdict.DUPLICATE, Verdict.UNEXPECTED)
_SHOWN = 10


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
        keys = judged.filter(pl.col("in_source") | pl.col("verdict").is_in([one.value for one in of_before]))
        if not task.elsewhere.other_sources or keys.is_empty():
            return cls(task=task)
        copies = committed_copies(known.source).select(*HASH, "row_hash", "version")
        others = pl.concat(
            frame for one in task.elsewhere.other_sources for frame in copies_of(task, one, keys, copies)
        )
        others = others.unique(subset=[*HASH, "place", "source"], keep="first", maintain_order=True)
        own = pl.concat(
            [
                _copies(committed_copies(known.source), task.hop, pl.lit(False)),
                _copies(known.source_elsewhere, task.hop, ~pl.col("is_later")),
            ]
        ).join(others, on=HASH, how="semi")
        if task.is_upsert:
            return cls(task=task, own=own, others=without_left(others))
        return cls(task=task, own=own.filter(~pl.col("is_outside")), others=others.filter(~pl.col("is_outside")))

    def with_later_versions(self, known: BucketInput) -> BucketInput:
        """Add the later versions of other sources: a target that holds one of them is ahead of this source."""
        if not self.task.is_upsert or self.others.is_empty():
            return known
        later = later_versions(self.own, self.others)
        return replace(known, source_elsewhere=pl.concat([known.source_elsewhere, later])) if len(later) else known

    def compare(self, judged: pl.DataFrame, known: BucketInput) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
        """Return the keys as they are judged with all sources, and by key hash evidence: what the others have of those
        on which they disagree (`other_sources`), and the later versions that they have of others (`later_sources`)."""
        if self.others.is_empty():
            return judged, {}
        target = _copies(committed_copies(known.target), None, pl.lit(True))
        target = pl.concat([target, _copies(known.target_elsewhere, None, pl.lit(True))])
        compare = compare_versions if self.task.is_upsert else compare_events
        compared = compare(judged, self.own, self.others, target)
        evidence: dict[str, dict[str, Any]] = {}
        for name, copies in (("other_sources", compared.others), ("later_sources", compared.later)):
            for key_hash, shown in _shown(copies).items():
                evidence.setdefault(key_hash, {})[name] = shown
        return compared.judged, evidence


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


def copies_of(task: BucketTask, one: OtherSource, keys: pl.DataFrame, copies: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Yield the copies that another source has of some keys (`JUDGED`). A ledger is asked for its rows outside the
    window of keys with a gap, and of those of which it had a higher version before, or another value of the event, than
    the hop's own source has in it (`copies`: hashes, `row_hash`, `version`)."""
    point, name = task.context.pipeline.points[one.hop.source], one.hop.source
    in_slice = committed_copies(slice_frame(task, name, one.end.files)).join(keys, on=HASH, how="semi")
    yield _copies(in_slice, one.hop, pl.lit(False))
    if can_look_up(point):
        rows = look_up(task, point, _to_ask_for(task, one, keys, copies))
        window = task.context.window
        is_later = (pl.col("time") >= window.end).fill_null(True)
        is_before = pl.lit(False) if window.start is None else (pl.col("time") < window.start).fill_null(False)
        yield _copies(rows.with_columns(is_later.alias("is_later")), one.hop, is_before)
    else:
        outside = source_copies_outside(task.of(one), keys.select(HASH))
        yield _copies(outside.join(keys, on=HASH, how="semi"), one.hop, ~pl.col("is_later"))


def _to_ask_for(task: BucketTask, one: OtherSource, keys: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    if task.is_upsert:
        differing = overtaken_keys(task, one.hop.source, copies.filter(pl.col("version").is_not_null()))
    else:
        differing = keys_with_other_values(task.of(one), one.end.index.rows, copies)
    has_gap = pl.col("verdict").is_in([verdict.value for verdict in _GAPS])
    return pl.concat([keys.filter(has_gap), keys.join(differing, on=HASH, how="semi")]).unique(HASH).sort(HASH)


def _copies(copies: pl.DataFrame, hop: Hop | None, is_before: pl.Expr) -> pl.DataFrame:
    """Return the copies that the source of a hop has as `COPIES`; of its target without one. Of a copy of another
    filter nothing is known."""
    excluded = pl.col("excluded_by").list
    known = copies.filter(~excluded.contains(UNKNOWN_FILTER).fill_null(False))
    named = known.with_columns(
        is_before.alias("is_before"),
        pl.lit("" if hop is None else hop.source).alias("source"),
        (pl.lit(False) if hop is None else excluded.contains(hop.name).fill_null(False)).alias("is_outside"),
    )
    missing = {name: kind for name, kind in COPIES.items() if name not in named.columns}
    named = named.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in missing.items())
    return named.select(pl.col(name).cast(kind) for name, kind in COPIES.items())
