"""Look keys up by name before the kernel's second run: ask tables what they have now of keys whose verdict that may
change.

The target, where it is a table, is asked first (`_to_ask_target`), and then the source: whatever the target has by
then, the source had before. The source, where it is a table, is asked for the keys that it does not have in the window,
above all unexpected ones; whether the rows of those that seem missing are older than the settle time; and under upsert
for newer versions of these.

Nothing is asked of a topic here. What it has of such keys is in the key index, and in the rest of its log, which is
read for a second round (`second_round`); under upsert also in the snapshots of the windows after this one.
"""

from dataclasses import replace

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, NAMED_KEYS
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.model.points import TablePoint, can_look_up
from makewhole.model.verdict import Verdict
from makewhole.tables.in_doubt import together
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.judge.copies_outside import ledger_copies_outside
from makewhole_spark.reconcile.judge.first_pass import FirstPass
from makewhole_spark.reconcile.judge.gather_copies import Gathered
from makewhole_spark.reconcile.judge.in_doubt import KeysHeld, keys_held, unexpected_held, with_keys_held
from makewhole_spark.reconcile.judge.index import overtaken_keys
from makewhole_spark.reconcile.judge.pending import unsettled_in_ledger
from makewhole_spark.reconcile.judge.read_copies import (
    SeenInDoubt,
    look_up,
    look_up_beside_doubt,
    passing_copies,
    rows_of_windows,
    slice_frame,
)
from makewhole_spark.reconcile.judge.verdicts import has_left, has_verdict


def look_up_again(task: BucketTask, gathered: Gathered, judged: pl.DataFrame, first: FirstPass) -> Gathered:
    """Return what is known after the look-ups, by the kernel's first verdicts (`JUDGED`)."""
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    known, rows, held, at_source = gathered.known, None, KeysHeld(), KeysHeld()
    seem_missing = judged.filter(_seems_missing(is_upsert=task.is_upsert))
    if can_look_up(target):
        wanted = _to_ask_target(task, known, judged, first.known_besides)
        known, rows, seen = _with_target_rows(task, target, known, judged, wanted, first)
        held = keys_held(task, target, known.target, judged, seen)
    if can_look_up(source):
        of_both = _with_followed(task.followed, known, judged)
        known, seen = _with_source_rows(task, source, known, of_both, seem_missing)
        at_source = unexpected_held(of_both, seen)
    elif task.is_upsert and task.source.after:
        later = rows_of_windows(task.context, source.name, task.source.after).join(seem_missing, on=HASH, how="semi")
        versions = _as_elsewhere(committed_copies(later), is_later=True)
        known = replace(known, source_elsewhere=pl.concat([known.source_elsewhere, versions]))
    return replace(
        gathered, known=with_keys_held(known, held), target_rows=rows, in_doubt=held, source_in_doubt=at_source
    )


# The target


def _seems_missing(*, is_upsert: bool) -> pl.Expr:
    """Select the keys that the target seems to lack. Under upsert one that differs, or that holds a key which left the
    filter, lacks the latest version, or is ahead of the window."""
    return has_verdict(Verdict.MISSING, Verdict.MISMATCHED) | has_left() if is_upsert else has_verdict(Verdict.MISSING)


def _to_ask_target(
    task: BucketTask, known: BucketInput, judged: pl.DataFrame, known_besides: pl.DataFrame
) -> pl.DataFrame:
    """Return the keys of which the target may have rows that its slice has not (`NAMED_KEYS`).

    All that seem missing. Where rows lie in the slices of several windows also those that are pending as this slice has
    no row of them, which may be there with another time, and those of the source of which more is known than the
    slices say. Under upsert also those of versions that an earlier window left to this one and of which the slice has
    no row: it was read by the keys of this window's source, and a row that should be gone may be there.
    """
    wanted = [judged.filter(_seems_missing(is_upsert=task.is_upsert))]
    if task.hop.group is not None:  # its loader may have added up more since the slice was read
        wanted.append(judged.filter(has_verdict(Verdict.MISMATCHED)))
    if task.has_slices:
        here = judged.filter("in_source")
        is_known = task.elsewhere.met_alone is not None
        wanted.append(judged.filter(has_verdict(Verdict.PENDING)))
        wanted.append(here.join(known_besides, on=HASH, how="semi") if is_known else here)
    if task.is_upsert:
        absent = judged.filter(pl.col("target_copies") == 0)
        wanted.append(absent.join(known.handed_over, on=HASH, how="semi"))
    return pl.concat(frame.select(*NAMED_KEYS) for frame in wanted)


def _keys_to_follow(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the keys whose rows are looked up whatever the slices hold: followed ones, and those judged here of which
    a record was sent again to the source."""
    if task.is_upsert:
        return pl.DataFrame(schema=NAMED_KEYS)
    sent = pl.concat([task.source_replays.select(HASH), task.written.select(HASH)]).unique()
    return pl.concat([task.followed.select(*NAMED_KEYS), judged.join(sent, on=HASH, how="semi").select(*NAMED_KEYS)])


def _with_target_rows(
    task: BucketTask,
    target: TablePoint,
    known: BucketInput,
    judged: pl.DataFrame,
    wanted: pl.DataFrame,
    first: FirstPass,
) -> tuple[BucketInput, pl.DataFrame, SeenInDoubt]:
    """Read the target's rows of wanted keys, and of those that the source does not have in this window; and the
    transactions that were in doubt meanwhile (None: nothing was read).

    Of the latter the slice may hold only the newest of several rows.
    """
    not_in_source = known.target.join(judged.filter("in_source"), on=HASH, how="anti").select("key", *HASH).unique()
    keys = pl.concat([wanted, not_in_source]).unique(subset=HASH)
    followed = _keys_to_follow(task, judged).join(keys, on=HASH, how="anti").unique(subset=HASH)
    keys = pl.concat([keys, followed]).sort(HASH)
    path = task.known_since.looked_up
    seen: SeenInDoubt = None
    if path is not None and task.hop.group is not None:
        # The log was read after all these rows: what they add up has no record behind its end.
        known = replace(known, target=slice_frame(task.context, target.name, (path,)))
        return known, known.target, seen
    if path is None:
        rows, seen = _look_up_target(task, target, keys, first)
    else:
        # Under upsert: the log was read after these rows, and rows of now may have versions behind its end.
        rows = slice_frame(task.context, target.name, (path,)).join(keys, on=HASH, how="semi")
    rows = _only_repeated(rows, judged, not_in_source)
    # These rows replace the known ones: an updated row has another place and is still one row.
    others = known.target.join(keys, on=HASH, how="anti")
    return replace(known, target=pl.concat([others, rows], how="diagonal_relaxed")), rows, seen


def _look_up_target(
    task: BucketTask, target: TablePoint, keys: pl.DataFrame, first: FirstPass
) -> tuple[pl.DataFrame, SeenInDoubt]:
    """Return the target's rows of keys as they are now, and the transactions that were in doubt meanwhile. Of keys that
    the view of its snapshot had no row of, only what came later is read."""
    if task.limits.target_seen is None:
        return look_up_beside_doubt(task.context, target, keys)
    # A join makes a table of its right side: of the many copies only those that may be of one of the few keys.
    of_keys = first.narrow.filter(pl.col("key_hi").is_in(keys["key_hi"].implode()))
    is_absent = keys.join(of_keys, on=HASH, how="semi").join(first.target, on=HASH, how="anti")
    others = keys.join(is_absent, on=HASH, how="anti")
    if is_absent.is_empty():
        return look_up_beside_doubt(task.context, target, others)
    rows, seen = look_up_beside_doubt(task.context, target, is_absent, task.limits.target_seen)
    if others.is_empty():
        return rows, seen
    more, also = look_up_beside_doubt(task.context, target, others)
    return pl.concat([rows, more], how="diagonal_relaxed"), together(seen or (), also or ())


def _only_repeated(rows: pl.DataFrame, judged: pl.DataFrame, asked_anyway: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows of keys that have nothing to do with this window, unless a key has several."""
    here = pl.concat([judged.select(HASH), asked_anyway.select(HASH)]).unique()
    repeated = rows.group_by(HASH).len().filter(pl.col("len") > 1).select(HASH)
    return rows.join(pl.concat([here, repeated]).unique(), on=HASH, how="semi", maintain_order="left")


# The source


def _with_followed(followed: pl.DataFrame, known: BucketInput, judged: pl.DataFrame) -> pl.DataFrame:
    """Add the followed keys that only the target has: the source is asked for them as for unexpected ones."""
    of_target = followed.join(known.target, on=HASH, how="semi").join(judged, on=HASH, how="anti")
    return pl.concat([judged, of_target.with_columns(pl.lit(False).alias("in_source"))], how="diagonal_relaxed")


def _with_source_rows(
    task: BucketTask, source: TablePoint, known: BucketInput, judged: pl.DataFrame, seem_missing: pl.DataFrame
) -> tuple[BucketInput, SeenInDoubt]:
    """Add unexpected keys that the source does have, unsettled keys, and under upsert the source's newer versions.
    Return the transactions that were in doubt at the source meanwhile, too."""
    not_here = judged.filter(~pl.col("in_source"))
    rows, seen = look_up_beside_doubt(task.context, source, not_here)
    if task.is_upsert:
        return _with_source_versions(task, source, known, (not_here, rows), seem_missing), seen
    absent = not_here.join(passing_copies(rows, task.hop.name), on=HASH, how="anti")
    purged = _purged(task, source, absent)
    parts = [
        known.source_elsewhere,
        *(_as_elsewhere(passing_copies(frame, task.hop.name), is_later=False) for frame in (rows, purged)),
        ledger_copies_outside(task, absent.join(purged, on=HASH, how="anti")),
    ]
    unsettled = unsettled_in_ledger(task, source, seem_missing)
    unsettled = pl.concat([known.unsettled, unsettled]).unique()
    return replace(known, source_elsewhere=pl.concat(parts), unsettled=unsettled), seen


def _with_source_versions(
    task: BucketTask,
    source: TablePoint,
    known: BucketInput,
    of_others: tuple[pl.DataFrame, pl.DataFrame],
    seem_missing: pl.DataFrame,
) -> BucketInput:
    """Add what a ledger of versions has now of keys that it does not have in the window (`of_others`, with its rows of
    them), the newer versions of those that seem missing, and the rows of which an older version came in the window.

    A row of theirs is the latest version, unless it is of a later window. It decides whether the key passes the filter:
    what the windows before read of it does not, and counts only where the ledger has no row any more.
    """
    not_here, rows = of_others
    purged = _purged(task, source, not_here.join(rows, on=HASH, how="anti"))
    rows = rows.join(known.source, on=HASH, how="anti")  # what left the filter in this window has its versions there
    is_later = (pl.col("time") >= task.context.window.end).fill_null(True)
    of_now, later = _newest_of_keys(rows.filter(~is_later)), rows.filter(is_later)
    passing_now, passing_later, passing_purged = (
        passing_copies(frame, task.hop.name) for frame in (of_now, later, purged)
    )
    newer = _newer(look_up(task.context, source, seem_missing), known.source)
    overtaken, overtaking = _overtaking(task, source, known.source)
    with_row = not_here.join(of_now, on=HASH, how="semi")
    may_lag = pl.concat([frame.select("key", *HASH) for frame in (seem_missing, with_row, overtaken)])
    unsettled = unsettled_in_ledger(task, source, may_lag.unique(HASH))
    before = (_as_elsewhere(frame, is_later=False) for frame in (passing_now, passing_purged, overtaking))
    after = (_as_elsewhere(frame, is_later=True) for frame in (passing_later, newer))
    passing = pl.concat([passing_now, passing_later])
    return replace(
        known,
        source_elsewhere=pl.concat([known.source_elsewhere, *before, *after]),
        unsettled=pl.concat([known.unsettled, unsettled]).unique(),
        kept_out=rows.join(passing, on=HASH, how="anti").select(HASH).unique(),
    )


def _overtaking(task: BucketTask, source: TablePoint, slice_: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the keys of the slice of which the ledger had a higher version before, and its rows of them that are not
    in it, up to the end of the window."""
    numbered = slice_.filter(pl.col("version").is_not_null())
    keys = numbered.join(overtaken_keys(task, source.name, numbered), on=HASH, how="semi").unique(HASH).sort(HASH)
    rows = look_up(task.context, source, keys).join(slice_, on=[*HASH, "place"], how="anti")
    return keys, rows.filter((pl.col("time") < task.context.window.end).fill_null(False))


def _purged(task: BucketTask, source: TablePoint, absent: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of absent keys that the source had in the windows before: what the target has may be as old, and
    the row purged since. What a revision read that a newer one replaced counts for keys that no newer one has."""
    if absent.is_empty():
        return slice_frame(task.context, source.name)
    rows, replaced = (
        rows_of_windows(task.context, source.name, files).join(absent, on=HASH, how="semi")
        for files in (task.source.before, task.source.replaced)
    )
    return pl.concat([rows, replaced.join(rows, on=HASH, how="anti")], how="diagonal_relaxed")


def _newest_of_keys(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a ledger that may be the latest of their key: of those without a version the newest."""
    return rows.filter(pl.col("version").is_not_null() | (pl.col("time") == pl.col("time").max().over(HASH)))


def _newer(rows: pl.DataFrame, slice_: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are not in the slice and, by their times, not older than its rows of their key."""
    rows = rows.join(slice_, on=[*HASH, "place"], how="anti")
    newest = slice_.group_by(HASH).agg(pl.col("time").max().alias("newest"))
    return rows.join(newest, on=HASH, how="left").filter((pl.col("time") >= pl.col("newest")).fill_null(True))


def _as_elsewhere(rows: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    copies = rows.with_columns(
        *(pl.lit(False).alias(name) for name in ("is_replay", "is_produced")), pl.lit(is_later).alias("is_later")
    )
    absent = {name: kind for name, kind in ELSEWHERE.items() if name not in copies.columns}
    filled = copies.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in absent.items())
    return filled.select(*(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items()))
