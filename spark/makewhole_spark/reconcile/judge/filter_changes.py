"""Find what a change of the pipeline's file alone explains: a filter (`where`) that other windows did not know, or had
otherwise. Such keys are reported with a cause of their own, and never repaired."""

from collections.abc import Iterable

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.indexed_keys.hop_filters import of_unknown_filter
from makewhole.compute.judge.judge_copies import BucketInput
from makewhole.compute.judge.older_copies import older_copies
from makewhole.key_index.files import IndexFile
from makewhole.lake.stored_verdicts import stored_verdicts
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.bucket.other_windows import CertifiedResult
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.index import rows_of
from makewhole_spark.reconcile.judge.look_ups import rows_of_windows, slice_frame
from makewhole_spark.reconcile.judge.not_lost import judged_by

_OF_EVENTS = (Verdict.UNEXPECTED, Verdict.MISMATCHED)
_OF_VERSIONS = (*_OF_EVENTS, Verdict.MISSING, Verdict.DUPLICATE)


def mark_filter_changed(
    task: BucketTask, judged: pl.DataFrame, known: BucketInput, kept_out: pl.DataFrame
) -> pl.DataFrame:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones where another window has copies of the key of which
    it is not known whether they pass the filter of now, and which may be the latest; where a row is unexpected as the
    filter keeps its record out (`kept_out`, `HASHES`), though a certified window saw both, or the filter of the windows
    before let it pass, or where a ledger of versions has it in another window; and where a key is missing whose records
    that filter kept out."""
    source = known.source
    late = _late_rows(task, source)
    was_out = pl.concat([_kept_out_before(task, source), late.filter("was_out").select(HASH)])
    is_missing = pl.col("verdict") == Verdict.MISSING.value
    judged = mark_explained(judged, is_missing, was_out, Cause.FILTER_CHANGED)
    wanted = _OF_VERSIONS if task.is_upsert else _OF_EVENTS
    is_unknown = pl.col("hint").eq_missing(Cause.UNREADABLE_VALUE.value)
    may_be_explained = pl.col("verdict").is_in([verdict.value for verdict in wanted]) | is_unknown
    asked = judged.filter(may_be_explained)
    if asked.is_empty():
        return judged
    found = pl.concat(
        [
            _of_unknown_filter(task, asked, source),
            _seen_before(task, asked, kept_out),
            _left_by_the_change(task, asked, source),
            _passed_before(task, source).join(kept_out, on=HASH, how="semi"),
            late.filter(~pl.col("was_out")).join(kept_out, on=HASH, how="semi").select(HASH),
            known.kept_out.join(asked.filter(_is_unexpected()), on=HASH, how="semi"),
        ]
    )
    return mark_explained(judged, may_be_explained, found, Cause.FILTER_CHANGED)


def _is_unexpected() -> pl.Expr:
    return pl.col("verdict") == Verdict.UNEXPECTED.value


def mark_explained(judged: pl.DataFrame, may_be: pl.Expr, found: pl.DataFrame, cause: Cause) -> pl.DataFrame:
    """Turn such verdicts of `judged` (`may_be`) into undecidable ones where the keys are of `found` (`HASHES`)."""
    is_explained = pl.col("_is_explained").fill_null(False) & may_be
    marked = judged.join(
        found.unique().with_columns(pl.lit(True).alias("_is_explained")), on=HASH, how="left", maintain_order="left"
    )
    return marked.with_columns(
        pl.when(is_explained).then(pl.lit(cause.value)).otherwise("hint").alias("hint"),
        pl.when(is_explained).then(pl.lit(Verdict.UNDECIDABLE.value)).otherwise("verdict").alias("verdict"),
    ).drop("_is_explained")


def keys_kept_out(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys of `judged` (`HASHES`) of which the source has or had copies that the filter keeps
    out. `source`: the copies of the slice."""
    unmatched = judged.filter(_is_unexpected()).select(HASH)
    if task.hop.where is None or unmatched.is_empty():
        return unmatched.clear()
    before = rows_of(task, _files(task), unmatched)
    excluded = pl.concat(
        frame.filter(pl.col("excluded_by").list.contains(task.hop.name).fill_null(False)).select(HASH)
        for frame in (source, before)
    )
    return unmatched.join(excluded.unique(), on=HASH, how="semi")


def _of_unknown_filter(task: BucketTask, keys: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of which the source, or another one of the same place, has copies of an unknown filter; under
    upsert not those of which the latest version lies in the slice (`source`), and is surely later than these."""
    others = (task.of(one) for one in task.elsewhere.other_sources)
    of_others = [of_unknown_filter(rows_of(one, _files(one), keys)) for one in others if one.hop.where]
    if task.hop.where is None:
        return _hashes(of_others)
    own = of_unknown_filter(rows_of(task, _files(task), keys))
    if task.is_upsert:
        latest = keys.select(*HASH, pl.col("latest_place").alias("place")).drop_nulls()
        latest = source.join(latest, on=[*HASH, "place"], how="semi")
        own = own.join(older_copies(own, latest, has_former=bool(task.source.index.copies.former)), on=HASH, how="anti")
    return _hashes([own, *of_others])


def _seen_before(task: BucketTask, asked: pl.DataFrame, kept_out: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys that a certified window of the hop saw on both sides: of those whose record the filter
    keeps out any window, of all others this one, whose ledger may have been purged since. Keys whose latest version
    left the filter are none of them: they were held rightly before that (`_left_by_the_change`)."""
    unmatched = asked.filter(_is_unexpected() & ~_has_left())
    named = {name: (high, low) for high, low, name in unmatched.select(*HASH, "key_hash").rows()}
    held_back = {*unmatched.join(kept_out, on=HASH, how="semi")["key_hash"]}
    seen = set[str]()
    for result in task.certified if task.hop.where is not None else ():
        keys = {*named} if result.number == task.context.window.number else held_back
        seen |= {key for key, is_held in judged_by(task, result, keys).items() if is_held}
    return pl.DataFrame([named[key] for key in sorted(seen)], schema=HASHES, orient="row")


def _left_by_the_change(task: BucketTask, asked: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that left the filter with a version which a certified revision of its window matched with what
    the store held: the filter let it pass then. `source`: the copies of the slice."""
    windows, found = _windows_of_left(task, asked, source), [empty(HASHES)]
    for result in task.certified:
        keys = windows.filter(pl.col("window") == result.number)
        matched = _matched_by(task, result, {*keys["key_hash"]})
        found.append(keys.filter(pl.col("key_hash").is_in(sorted(matched))).select(HASH))
    return pl.concat(found)


def left_in(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> frozenset[int]:
    """Return the numbers of the other windows with the versions by which keys of `judged` (`JUDGED`) left the filter;
    when they have been asked, none. `source`: the copies of the slice."""
    if task.known_since.knows_certified:
        return frozenset()
    numbers = _windows_of_left(task, judged, source)["window"].to_list()
    return frozenset({*numbers} - {task.context.window.number})


def _windows_of_left(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of `judged` that left the filter (hashes, `key_hash`), each with the `window` of the version."""
    left = judged.filter(_has_left())
    if left.is_empty():
        return left.select(*HASH, "key_hash", pl.lit(0, dtype=pl.Int32).alias("window"))
    own = left.join(source, on=HASH, how="semi").select(*HASH, pl.lit(task.context.window.number).alias("window"))
    before = rows_of(task, _files(task), left.join(own, on=HASH, how="anti").select(HASH))
    excluded = before.filter(pl.col("excluded_by").list.contains(task.hop.name).fill_null(False))
    last = excluded.group_by(HASH).agg(pl.col("window").max())
    windows = pl.concat([own, last], how="vertical_relaxed")
    return left.select(*HASH, "key_hash").join(windows, on=HASH, how="inner")


def _has_left() -> pl.Expr:
    return pl.col("hint").eq_missing(Cause.LEFT_FILTER.value)


def _matched_by(task: BucketTask, result: CertifiedResult, keys: set[str]) -> set[str]:
    """Return which of the keys (hashes in hex) a certified window matched with what the store held."""
    stored = stored_verdicts(task.context.storage, result.files, keys)
    is_matched = (pl.col("verdict") == Verdict.MATCHED.value) & pl.col("is_held").fill_null(False)
    return {*stored.filter(is_matched)["key_hash"]}


def _passed_before(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of copies in the slice that only the filter of the windows before lets pass."""
    hop = task.hop
    if hop.former_where is None:
        return empty(HASHES)
    excluded = pl.col("excluded_by").list
    return source.filter(excluded.contains(hop.name) & ~excluded.contains(hop.former_name)).select(HASH)


def _kept_out_before(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of the slice of which the filter of the windows before kept out every copy that passes now."""
    if not task.hop.former_where:
        return empty(HASHES)
    excluded = pl.col("excluded_by").list
    passing = source.filter(~excluded.contains(task.hop.name).fill_null(False))
    was_out = excluded.contains(task.hop.former_name).fill_null(False).all().alias("was_out")
    return passing.group_by(HASH, maintain_order=True).agg(was_out).filter("was_out").select(HASH)


def _late_rows(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of which the slice has rows of earlier windows alone that knew another filter (hashes), and
    whether that one kept them out (`was_out`)."""
    before = rows_of_late_keys(task, source, task.changes.under_other_filters)
    was_out = pl.col("excluded_by").list.contains(task.hop.name).fill_null(False)
    return before.group_by(HASH).agg(was_out.all().alias("was_out"))


def rows_of_late_keys(task: BucketTask, source: pl.DataFrame, files: WindowFiles) -> pl.DataFrame:
    """Return the rows that earlier windows (`files`) read of the keys of which the slice (`source`) has rows of earlier
    windows alone: a ledger's rows that were touched since come once more."""
    start = task.context.window.start
    if start is None or not files:
        return slice_frame(task, task.hop.source, ())
    is_own = (pl.col("time") >= start).fill_null(True)
    late = source.group_by(HASH).agg(is_own.any().alias("_is_own")).filter(~pl.col("_is_own")).select(HASH)
    return rows_of_windows(task, task.hop.source, files).join(late, on=HASH, how="semi")


def _files(task: BucketTask) -> tuple[IndexFile, ...]:
    return (*task.source.index.copies.every, *task.source.index.rows.every)


def _hashes(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([empty(HASHES), *(frame.select(HASH) for frame in frames)])
