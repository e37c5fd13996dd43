"""Confirm verdicts by look-ups: read the rows of keys that seem missing, unexpected or out of date again."""

from dataclasses import replace

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, KEYS, NAMED_KEYS, TOPIC_KEYS, Schema, empty
from makewhole.compute.indexed_keys.key_runs import first_copies, passing_rows
from makewhole.compute.judge.judge_copies import BucketInput, committed_copies
from makewhole.compute.normalise import table_frame
from makewhole.model.points import TablePoint, can_look_up
from makewhole.model.verdict import Cause, Verdict
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.bucket.window_files import WindowFiles
from makewhole_spark.reconcile.judge.index import overtaken_keys, rows_of


def confirm(
    task: BucketTask, known: BucketInput, judged: pl.DataFrame, known_besides: pl.DataFrame
) -> tuple[BucketInput, pl.DataFrame | None]:
    """Return the input after the look-ups, and the rows that the target has (None: it was not asked).

    The target is asked before the source: whatever the target has by then, the source had before. `known_besides`
    (hashes): keys of which more is known than the window's slices say.
    """
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    to_confirm = judged.filter(_is_to_confirm(task))
    rows = None
    if can_look_up(target):
        of_target = pl.concat([to_confirm, _not_in_slice(task, judged), _left_to_this_window(task, known, judged)])
        asked = pl.concat([of_target.select(*NAMED_KEYS), _in_other_slices(task, judged, known_besides)])
        known, rows = _with_target_rows(task, target, known, judged, asked)
    if can_look_up(source):
        known = _with_source_rows(task, source, known, _with_followed(task, known, judged), to_confirm)
    elif task.is_upsert and task.source.after:
        later = rows_of_windows(task, source.name, task.source.after).join(to_confirm, on=HASH, how="semi")
        versions = _as_elsewhere(committed_copies(later), is_later=True)
        known = replace(known, source_elsewhere=pl.concat([known.source_elsewhere, versions]))
    return known, rows


def _is_to_confirm(task: BucketTask) -> pl.Expr:
    """Select the verdicts to confirm. Under upsert a target that differs, or that holds a key which left the filter,
    may be ahead of the window."""
    wanted = [Verdict.MISSING, Verdict.MISMATCHED] if task.is_upsert else [Verdict.MISSING]
    has_left = pl.col("hint").eq_missing(Cause.LEFT_FILTER.value)
    return pl.col("verdict").is_in([verdict.value for verdict in wanted]) | has_left


def _not_in_slice(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the keys that are pending as the slice has no row of them: one may be there with another time."""
    return judged.filter((pl.col("verdict") == Verdict.PENDING.value) & pl.lit(task.has_slices))


def _left_to_this_window(task: BucketTask, known: BucketInput, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of versions that an earlier window left to this one and of which the slice has no row: it was
    read by the keys of this window's source, and a row that should be gone may be there."""
    return judged.filter((pl.col("target_copies") == 0) & pl.lit(task.is_upsert)).join(
        known.handed_over.select(HASH), on=HASH, how="semi"
    )


def _in_other_slices(task: BucketTask, judged: pl.DataFrame, known_besides: pl.DataFrame) -> pl.DataFrame:
    """Return the keys of the source that may have rows in the slices of other windows, besides that of this one."""
    here = judged.filter("in_source").select(*NAMED_KEYS)
    if not task.has_slices:
        return here.clear()
    return here if task.elsewhere.met_alone is None else here.join(known_besides, on=HASH, how="semi")


def _with_target_rows(
    task: BucketTask, target: TablePoint, known: BucketInput, judged: pl.DataFrame, wanted: pl.DataFrame
) -> tuple[BucketInput, pl.DataFrame]:
    """Read the target's rows of wanted keys, and of those that the source does not have in this window.

    Of the latter the slice may hold only the newest of several rows.
    """
    not_in_source = known.target.join(judged.filter("in_source"), on=HASH, how="anti").select("key", *HASH).unique()
    asked = pl.concat([wanted, not_in_source]).unique(subset=HASH)
    followed = _keys_to_follow(task, judged).join(asked, on=HASH, how="anti").unique(subset=HASH)
    asked = pl.concat([asked, followed]).sort(HASH)
    if task.known_since.looked_up is None:
        rows = look_up(task, target, asked)
    else:
        # Under upsert: the log was read after these rows, and rows of now may have versions behind its end.
        rows = slice_frame(task, target.name, (task.known_since.looked_up,)).join(asked, on=HASH, how="semi")
    rows = _only_repeated(rows, judged, not_in_source)
    # These rows replace the known ones: an updated row has another place and is still one row.
    others = known.target.join(asked, on=HASH, how="anti")
    return replace(known, target=pl.concat([others, rows], how="diagonal_relaxed")), rows


def _with_followed(task: BucketTask, known: BucketInput, judged: pl.DataFrame) -> pl.DataFrame:
    """Add the followed keys that were met only at the target: the source is asked for them as for unexpected ones."""
    met = task.followed.join(known.target, on=HASH, how="semi").join(judged, on=HASH, how="anti")
    return pl.concat([judged, met.with_columns(pl.lit(False).alias("in_source"))], how="diagonal_relaxed")


def _with_source_rows(
    task: BucketTask, source: TablePoint, known: BucketInput, judged: pl.DataFrame, to_confirm: pl.DataFrame
) -> BucketInput:
    """Add unexpected keys that the source does have, unsettled keys, and under upsert the source's newer versions."""
    asked = judged.filter(~pl.col("in_source"))
    unexpected = look_up(task, source, asked)
    if task.is_upsert:
        return _with_source_versions(task, source, known, (asked, unexpected), to_confirm)
    absent = asked.join(_passing(task, unexpected), on=HASH, how="anti")
    purged = _purged(task, source, absent)
    found = [
        known.source_elsewhere,
        *(_as_elsewhere(_passing(task, rows), is_later=False) for rows in (unexpected, purged)),
        in_ledger_before(task, absent.join(purged, on=HASH, how="anti")),
    ]
    unsettled = _unsettled(task, source, to_confirm)
    return replace(known, source_elsewhere=pl.concat(found), unsettled=pl.concat([known.unsettled, unsettled]).unique())


def _with_source_versions(
    task: BucketTask,
    source: TablePoint,
    known: BucketInput,
    of_others: tuple[pl.DataFrame, pl.DataFrame],
    to_confirm: pl.DataFrame,
) -> BucketInput:
    """Add what a ledger of versions has now of keys that it does not have in the window (`of_others`, with its rows of
    them), the newer versions of those to confirm, and the rows of which an older version came in the window.

    A row of theirs is the latest version, unless it is of a later window. It decides whether the key passes the filter:
    what the windows before read of it does not, and counts only where the ledger has no row any more.
    """
    asked, rows = of_others
    purged = _purged(task, source, asked.join(rows, on=HASH, how="anti"))
    rows = rows.join(known.source, on=HASH, how="anti")  # what left the filter in this window has its versions there
    is_later = (pl.col("time") >= task.context.window.end).fill_null(True)
    of_now, later = _newest_of_keys(rows.filter(~is_later)), rows.filter(is_later)
    passing = pl.concat([_passing(task, of_now), _passing(task, later)])
    newer = _newer(look_up(task, source, to_confirm), known.source)
    overtaken, overtaking = _overtaking(task, source, known.source)
    of_now_asked = asked.join(of_now, on=HASH, how="semi")
    may_lag = pl.concat([one.select("key", *HASH) for one in (to_confirm, of_now_asked, overtaken)])
    unsettled = _unsettled(task, source, may_lag.unique(HASH))
    return replace(
        known,
        source_elsewhere=pl.concat(
            [
                known.source_elsewhere,
                *(_as_elsewhere(_passing(task, before), is_later=False) for before in (of_now, purged)),
                _as_elsewhere(overtaking, is_later=False),
                *(_as_elsewhere(after, is_later=True) for after in (_passing(task, later), newer)),
            ]
        ),
        unsettled=pl.concat([known.unsettled, unsettled]).unique(),
        kept_out=rows.join(passing, on=HASH, how="anti").select(HASH).unique(),
    )


def _overtaking(task: BucketTask, source: TablePoint, slice_: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the keys of the slice of which the ledger had a higher version before, and its rows of them that are not
    in it, up to the end of the window."""
    numbered = slice_.filter(pl.col("version").is_not_null())
    keys = numbered.join(overtaken_keys(task, source.name, numbered), on=HASH, how="semi").unique(HASH).sort(HASH)
    rows = look_up(task, source, keys).join(slice_, on=[*HASH, "place"], how="anti")
    return keys, rows.filter((pl.col("time") < task.context.window.end).fill_null(False))


def _purged(task: BucketTask, source: TablePoint, absent: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of absent keys that the source had in the windows before: what the target has may be as old, and
    the row purged since."""
    files = task.source.before if len(absent) else WindowFiles()
    return rows_of_windows(task, source.name, files).join(absent, on=HASH, how="semi")


def in_ledger_before(task: BucketTask, absent: pl.DataFrame) -> pl.DataFrame:
    """Return what other windows had of keys in a ledger that lacks them now (`ELSEWHERE`). Of versions nothing: the row
    that is gone was deleted."""
    if absent.is_empty() or task.is_upsert or not task.source.index.rows.every:
        return empty(ELSEWHERE)
    rows = rows_of(task, task.source.index.rows.every, absent)
    passing = rows if task.hop.where is None else passing_rows(rows, task.hop.name)
    return first_copies(passing, is_later=False).unique(subset=HASH, keep="first", maintain_order=True)


def _passing(task: BucketTask, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(~pl.col("excluded_by").list.contains(task.hop.name))


def _newest_of_keys(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a ledger that may be the latest of their key: of those without a version the newest."""
    return rows.filter(pl.col("version").is_not_null() | (pl.col("time") == pl.col("time").max().over(HASH)))


def _newer(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are not known yet and, by their times, not older than the known rows of their key."""
    rows = rows.join(known, on=[*HASH, "place"], how="anti")
    newest = known.group_by(HASH).agg(pl.col("time").max().alias("newest"))
    return rows.join(newest, on=HASH, how="left").filter((pl.col("time") >= pl.col("newest")).fill_null(True))


def _as_elsewhere(rows: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    copies = rows.with_columns(
        *(pl.lit(False).alias(name) for name in ("is_replay", "is_produced")), pl.lit(is_later).alias("is_later")
    )
    absent = {name: kind for name, kind in ELSEWHERE.items() if name not in copies.columns}
    filled = copies.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in absent.items())
    return filled.select(*(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items()))


def look_up(task: BucketTask, point: TablePoint, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the current rows of these keys (column `key`), as `KEYS`."""
    reader = task.context.tables(point).reader(task.context.table_shape(point))
    frames = [
        table_frame(frame, dict(task.context.pipeline.compare))[0] for frame in reader.keys(keys["key"].to_list())
    ]
    return pl.concat(frames) if frames else slice_frame(task, point.name, ())


def slice_frame(task: BucketTask, point: str, files: tuple[str, ...]) -> pl.DataFrame:
    """Return the copies in these files of a point; without files, an empty frame with its columns."""
    frame = task.context.storage.read_parquet(files)
    if frame is not None:
        return frame
    compared: Schema = {f"c:{name}": pl.String for name in task.context.pipeline.compare}
    return empty((TOPIC_KEYS if task.is_topic(point) else KEYS) | compared)


def rows_of_windows(task: BucketTask, point: str, files: WindowFiles) -> pl.DataFrame:
    """Return the copies in files of other windows at a point: of those that were read otherwise without values and
    versions."""
    alike = slice_frame(task, point, files.alike)
    if not files.otherwise:
        return alike
    unknown = [pl.lit(None, dtype=KEYS[name]).alias(name) for name in ("row_hash", "version")]
    otherwise = slice_frame(task, point, files.otherwise).with_columns(unknown)
    return pl.concat([alike, otherwise], how="diagonal_relaxed")


def _unsettled(task: BucketTask, point: TablePoint, to_confirm: pl.DataFrame) -> pl.DataFrame:
    """Return the hashes of the keys whose ledger row was not yet visible a settle time ago; under upsert any row of
    theirs: it may be the latest version."""
    if to_confirm.is_empty() or task.limits.settled_snapshot is None:
        return empty(HASHES)
    tables, shape = task.context.tables(point), task.context.table_shape(point)
    every_before = task.context.window.end if task.is_upsert else None
    keys = to_confirm["key"].to_list()
    unsettled = tables.keys_not_seen(shape, keys, task.limits.settled_snapshot, every_before)
    return to_confirm.filter(pl.col("key").is_in(unsettled)).select(HASH)


def _keys_to_follow(task: BucketTask, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the keys whose rows are looked up whatever the slices hold: followed ones, and those judged here of which
    a record was sent again to the source."""
    if task.is_upsert:
        return pl.DataFrame(schema=NAMED_KEYS)
    sent = pl.concat([task.source_replays.select(HASH), task.written.select(HASH)]).unique()
    return pl.concat([task.followed.select(*NAMED_KEYS), judged.join(sent, on=HASH, how="semi").select(*NAMED_KEYS)])


def _only_repeated(rows: pl.DataFrame, judged: pl.DataFrame, asked_anyway: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows of keys that have nothing to do with this window, unless a key has several."""
    here = pl.concat([judged.select(HASH), asked_anyway.select(HASH)]).unique()
    repeated = rows.group_by(HASH).len().filter(pl.col("len") > 1).select(HASH)
    return rows.join(pl.concat([here, repeated]).unique(), on=HASH, how="semi", maintain_order="left")
