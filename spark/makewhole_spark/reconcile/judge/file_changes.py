"""Mark what a change of the pipeline's file alone explains: a filter (`where`) that other windows did not know, or had
otherwise; other compared columns; other hops to the same place. Such keys are undecidable, with a cause of their own,
and are never repaired."""

from collections.abc import Iterable

import polars as pl

from makewhole.compute.frames import HASH, HASHES, empty
from makewhole.compute.indexed_keys.hop_filters import of_unknown_filter
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.judge.older_copies import older_copies
from makewhole.compute.versions import version_in_order
from makewhole.key_index.files import IndexFile, known_keys
from makewhole.model.hops import Hop
from makewhole.model.points import can_look_up
from makewhole.model.verdict import DIFFERING, Cause, Verdict
from makewhole_spark.reconcile.bucket.task import BucketEnd, BucketTask, FormerCompare, FormerSource
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.certified import held_by, matched_by
from makewhole_spark.reconcile.judge.index import rows_of
from makewhole_spark.reconcile.judge.read_copies import (
    excluded_copies,
    look_up,
    passing_copies,
    rows_of_windows,
    slice_frame,
)
from makewhole_spark.reconcile.judge.verdicts import explained, has_left, has_verdict

# Another filter


def mark_filter_changed(
    task: BucketTask, judged: pl.DataFrame, known: BucketInput
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones where another window has copies of the key of which
    it is not known whether they pass the filter of now, and which may be the latest; where a row is unexpected as the
    filter excludes its record, though a certified window saw both, or the filter of the windows before let it pass, or
    where a ledger of versions has it in another window; where a key is missing whose records that filter excluded; and
    where a key that an earlier window handed over has no copy that passes now, and had one by the filter of then.
    Return with the verdicts the unexpected keys (`HASHES`) of which the filter excludes a record.

    A key that is undecidable already since its value is not known is given the cause of the change where that is why.
    """
    source = known.source
    excluded, late = _excluded_keys(task, judged, source), _late_rows(task, source)
    unknown = of_unknown_filter(source).select(HASH)
    was_out = pl.concat([_excluded_before(task.hop, source), late.filter("was_out").select(HASH), unknown])
    judged = explained(judged, has_verdict(Verdict.MISSING), was_out, Cause.FILTER_CHANGED)
    without_copy = has_verdict(Verdict.MISSING) | pl.col("hint").eq_missing(Cause.SOURCE_GONE.value)
    passed_then = _handed_over_by_another_filter(task, judged.filter(without_copy), source)
    judged = explained(judged, without_copy, passed_then, Cause.FILTER_CHANGED)
    of_versions = (Verdict.MISSING, Verdict.DUPLICATE) if task.is_upsert else ()
    is_unknown = pl.col("hint").eq_missing(Cause.UNREADABLE_VALUE.value)
    may_be = has_verdict(Verdict.UNEXPECTED, Verdict.MISMATCHED, *of_versions) | is_unknown
    keys = judged.filter(may_be)
    if keys.is_empty():
        return judged, excluded
    changed = pl.concat(
        [
            unknown,
            _of_unknown_filter(task, keys, source),
            _seen_before(task, keys, excluded),
            _left_by_the_change(task, keys, source),
            _passed_before(task.hop, source).join(excluded, on=HASH, how="semi"),
            late.filter(~pl.col("was_out")).join(excluded, on=HASH, how="semi").select(HASH),
            # Of versions also those of which the ledger has rows of other windows now, all of them excluded.
            known.kept_out.join(keys.filter(has_verdict(Verdict.UNEXPECTED)), on=HASH, how="semi"),
        ]
    )
    return explained(judged, may_be, changed, Cause.FILTER_CHANGED), excluded


def _excluded_keys(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys of `judged` (`HASHES`) of which the source has or had copies that the filter excludes.
    `source`: the copies of the slice."""
    unmatched = judged.filter(has_verdict(Verdict.UNEXPECTED)).select(HASH)
    if task.hop.where is None or unmatched.is_empty():
        return unmatched.clear()
    before = rows_of(task, _files(task.source), unmatched)
    excluded = pl.concat(excluded_copies(frame, task.hop.name).select(HASH) for frame in (source, before))
    return unmatched.join(excluded.unique(), on=HASH, how="semi")


def _of_unknown_filter(task: BucketTask, keys: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of which the source, or another one of the same place, has copies of an unknown filter; under
    upsert not those of which the latest version lies in the slice (`source`), and is surely later than these."""
    others = (task.of(other) for other in task.elsewhere.other_sources)
    of_others = [of_unknown_filter(rows_of(other, _files(other.source), keys)) for other in others if other.hop.where]
    if task.hop.where is None:
        return _hashes(of_others)
    own = of_unknown_filter(rows_of(task, _files(task.source), keys))
    if task.is_upsert:
        latest = keys.select(*HASH, pl.col("latest_place").alias("place")).drop_nulls()
        latest = source.join(latest, on=[*HASH, "place"], how="semi")
        own = own.join(older_copies(own, latest, has_former=bool(task.source.index.copies.former)), on=HASH, how="anti")
    return _hashes([own, *of_others])


def _seen_before(task: BucketTask, keys: pl.DataFrame, excluded: pl.DataFrame) -> pl.DataFrame:
    """Return the unexpected keys that a certified window of the hop saw on both sides: of those whose record the filter
    excludes any window, of all others this one, whose ledger may have been purged since. Keys whose latest version left
    the filter are none of them: they were held rightly before that (`_left_by_the_change`)."""
    unmatched = keys.filter(has_verdict(Verdict.UNEXPECTED) & ~has_left())
    named = {name: (high, low) for high, low, name in unmatched.select(*HASH, "key_hash").rows()}
    held_back = {*unmatched.join(excluded, on=HASH, how="semi")["key_hash"]}
    seen = set[str]()
    for result in task.certified if task.hop.where is not None else ():
        wanted = {*named} if result.number == task.context.window.number else held_back
        seen |= {key for key, is_held in held_by(task.context.storage, result, wanted).items() if is_held}
    return pl.DataFrame([named[key] for key in sorted(seen)], schema=HASHES, orient="row")


def _left_by_the_change(task: BucketTask, keys: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that left the filter with a version which a certified revision of its window matched with what
    the store held: the filter let it pass then. `source`: the copies of the slice."""
    windows, hashes = windows_of_left(task, keys, source), [empty(HASHES)]
    for result in task.certified:
        left = windows.filter(pl.col("window") == result.number)
        matched = matched_by(task.context.storage, result, {*left["key_hash"]})
        hashes.append(left.filter(pl.col("key_hash").is_in(sorted(matched))).select(HASH))
    return pl.concat(hashes)


def windows_of_left(task: BucketTask, judged: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of `judged` (`JUDGED`) that left the filter (hashes, `key_hash`), each with the `window` of the
    version by which it did. `source`: the copies of the slice."""
    left = judged.filter(has_left())
    if left.is_empty():
        return left.select(*HASH, "key_hash", pl.lit(0, dtype=pl.Int32).alias("window"))
    own = left.join(source, on=HASH, how="semi").select(*HASH, pl.lit(task.context.window.number).alias("window"))
    before = rows_of(task, _files(task.source), left.join(own, on=HASH, how="anti").select(HASH))
    last = excluded_copies(before, task.hop.name).group_by(HASH).agg(pl.col("window").max())
    windows = pl.concat([own, last], how="vertical_relaxed")
    return left.select(*HASH, "key_hash").join(windows, on=HASH, how="inner")


def _passed_before(hop: Hop, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of copies in the slice that only the filter of the windows before lets pass."""
    if hop.former_where is None:
        return empty(HASHES)
    excluded = pl.col("excluded_by").list
    return source.filter(excluded.contains(hop.name) & ~excluded.contains(hop.former_name)).select(HASH)


def _excluded_before(hop: Hop, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of the slice of which the filter of the windows before excluded every copy that passes now."""
    if not hop.former_where:
        return empty(HASHES)
    excluded = pl.col("excluded_by").list
    passing = source.filter(~excluded.contains(hop.name).fill_null(False))
    was_out = excluded.contains(hop.former_name).fill_null(False).all().alias("was_out")
    return passing.group_by(HASH, maintain_order=True).agg(was_out).filter("was_out").select(HASH)


def _handed_over_by_another_filter(task: BucketTask, keys: pl.DataFrame, source: pl.DataFrame) -> pl.DataFrame:
    """Return which of some keys were handed over, have copies that passed another filter of then, and none that passes
    now. `source`: the copies of the slice and of the windows that handed keys over, as they are read now."""
    windows = [files for files in task.elsewhere.handed_over if files.knew_another_filter]
    if task.hop.where is None or not windows:
        return empty(HASHES)
    passing = committed_copies(source.filter(~pl.col("excluded_by").list.contains(task.hop.name)))
    handed = keys.join(task.handed_over, on=HASH, how="semi").join(passing, on=HASH, how="anti")
    if handed.is_empty():
        return empty(HASHES)
    read_then = (slice_frame(task.context, task.hop.source, files.files) for files in windows)
    passed = (committed_copies(passing_copies(copies, task.hop.name)) for copies in read_then)
    return _hashes(copies.join(handed, on=HASH, how="semi") for copies in passed)


def _late_rows(task: BucketTask, source: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of which the slice has rows of earlier windows alone that knew another filter (hashes), and
    whether that one excluded them (`was_out`)."""
    before = _rows_of_late_keys(task, source, task.changes.under_other_filters)
    was_out = pl.col("excluded_by").list.contains(task.hop.name).fill_null(False)
    return before.group_by(HASH).agg(was_out.all().alias("was_out"))


def _rows_of_late_keys(task: BucketTask, source: pl.DataFrame, files: WindowFiles) -> pl.DataFrame:
    """Return the rows that earlier windows (`files`) read of the keys of which the slice (`source`) has rows of earlier
    windows alone: a ledger's rows that were touched since come once more."""
    start = task.context.window.start
    if start is None or not files:
        return slice_frame(task.context, task.hop.source)
    is_own = (pl.col("time") >= start).fill_null(True)
    late = source.group_by(HASH).agg(is_own.any().alias("_is_own")).filter(~pl.col("_is_own")).select(HASH)
    return rows_of_windows(task.context, task.hop.source, files).join(late, on=HASH, how="semi")


def _files(source: BucketEnd) -> tuple[IndexFile, ...]:
    return (*source.index.copies.every, *source.index.rows.every)


def _hashes(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([empty(HASHES), *(frame.select(HASH) for frame in frames)])


# Other compared columns


def mark_compare_changed(task: BucketTask, judged: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    """Turn mismatched keys of `judged` (`JUDGED`) into undecidable ones whose row in the ledger is from a window that
    compared other columns, where the target (`target`: its rows or records) has the same in those that both compare."""
    keys = judged.filter(has_verdict(Verdict.MISMATCHED))
    if task.changes.former_compare is None or keys.is_empty():
        return judged
    alike = _alike_in_both(task, task.changes.former_compare, keys, target)
    return explained(judged, has_verdict(Verdict.MISMATCHED), alike, Cause.COMPARE_CHANGED)


def _alike_in_both(task: BucketTask, former: FormerCompare, keys: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    point = task.context.pipeline.table(task.hop.source)
    rows = passing_copies(look_up(task.context, point, keys.sort(HASH)), task.hop.name)
    is_since = (pl.col("time") >= former.until).fill_null(True).any().over(HASH)
    rows = rows.filter(~is_since).with_columns(version_in_order().alias("_number"))
    order = ["_number", "time", "place"] if task.is_upsert else ["time", "place"]
    counting = rows.sort(order).unique(HASH, keep="last" if task.is_upsert else "first")
    columns = [f"c:{name}" for name in former.columns if name in task.context.pipeline.compare]
    both = target.join(counting.select(*HASH, "version", *columns), on=HASH, how="inner", suffix="_source")
    is_same = pl.all_horizontal(pl.lit(True), *(pl.col(name).eq_missing(pl.col(f"{name}_source")) for name in columns))
    is_as_new = (pl.col("version") >= pl.col("version_source")).fill_null(True)
    return both.group_by(HASH).agg((is_same & is_as_new).all().alias("_is_same")).filter("_is_same").select(HASH)


# Other hops


def mark_hops_changed(task: BucketTask, judged: pl.DataFrame, known: BucketInput) -> pl.DataFrame:
    """Turn verdicts of `judged` (`JUDGED`) into undecidable ones that a change of the file's hops explains: unexpected
    keys that a removed source had, and keys without a record in the window of which the target has its value; and
    missing keys whose rows a ledger had in windows without this hop, and that were touched since. So are rows that
    differ from records which lie in such windows alone, or that are several of them."""
    without_hop = _rows_of_late_keys(task, known.source, task.changes.without_hop).select(HASH)
    judged = explained(judged, has_verdict(Verdict.MISSING), without_hop, Cause.HOPS_CHANGED)
    of_before = has_verdict(*DIFFERING, Verdict.DUPLICATE) & ~pl.col("in_source")
    judged = explained(judged, of_before, _before_the_hop(task, judged.filter(of_before)), Cause.HOPS_CHANGED)
    files = [file for former in task.changes.former_sources for file in former.files]
    if not files:
        return judged
    unmatched = judged.filter(has_verdict(Verdict.UNEXPECTED))
    differing = judged.filter(has_verdict(Verdict.MISMATCHED) & ~pl.col("in_source"))
    of_removed = [known_keys(task.context.storage, files, unmatched), _of_their_values(task, differing, known.target)]
    may_be = has_verdict(Verdict.UNEXPECTED, Verdict.MISMATCHED)
    return explained(judged, may_be, pl.concat(of_removed), Cause.HOPS_CHANGED)


def _before_the_hop(task: BucketTask, keys: pl.DataFrame) -> pl.DataFrame:
    """Return which of some keys the source has in windows before the hop alone."""
    since, point = task.changes.hop_since, task.context.pipeline.points[task.hop.source]
    if since is None or keys.is_empty():
        return empty(HASHES)
    if can_look_up(point):
        copies = look_up(task.context, point, keys.sort(HASH)).select(*HASH, is_since=pl.col("time") >= since.start)
    else:
        rows = rows_of(task, task.source.index.copies.every, keys)
        copies = rows.select(*HASH, is_since=pl.col("window") >= since.number)
    return copies.group_by(HASH).agg(pl.col("is_since").fill_null(True).any()).filter(~pl.col("is_since")).select(HASH)


def _of_their_values(task: BucketTask, keys: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    """Return which of some keys have a value at the target that a removed source had."""
    if keys.is_empty():
        return empty(HASHES)
    values = pl.concat(_values_of(task, former, keys) for former in task.changes.former_sources)
    held = committed_copies(target).join(keys, on=HASH, how="semi").select(*HASH, "row_hash")
    return held.join(values, on=[*HASH, "row_hash"], how="semi").select(HASH)


def _values_of(task: BucketTask, former: FormerSource, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the values that a removed source had of some keys (hashes, `row_hash`)."""
    rows = rows_of(task, former.files, keys, former.compared)
    names = [name for name in ("row_hash", "last_row_hash") if name in rows.columns]
    return pl.concat(rows.select(*HASH, pl.col(name).alias("row_hash")) for name in names).drop_nulls()
