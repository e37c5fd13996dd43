"""Look-ups by key that confirm a verdict: a table is asked anew for keys that seem missing, strange or out of date."""

from dataclasses import replace

import polars as pl

from makewhole.compute.frames import ELSEWHERE, HASH, HASHES, KEYS, TOPIC_KEYS, Schema, empty
from makewhole.compute.judge import BucketInput
from makewhole.compute.normalise import table_frame
from makewhole.model.pipeline import TablePoint
from makewhole.model.verdict import Verdict
from makewhole.postgres.read.export import read_keys
from makewhole.postgres.read.visibility import keys_not_visible
from makewhole_spark.reconcile.buckets import BucketTask


def confirm(task: BucketTask, known: BucketInput, judged: pl.DataFrame) -> tuple[BucketInput, pl.DataFrame | None]:
    """What is known after the look-ups, and the rows that the target was found to have (None: it was not asked).

    The target is asked before the source: whatever the target has by then, the source had before.
    """
    source, target = (task.context.pipeline.points[name] for name in (task.hop.source, task.hop.target))
    doubted = judged.filter(pl.col("verdict").is_in(_doubted(task)))
    rows = None
    if isinstance(target, TablePoint):
        known, rows = _with_target_rows(task, target, known, judged, doubted)
    if isinstance(source, TablePoint):
        known = _with_source_rows(task, source, known, judged, doubted)
    elif task.is_upsert and task.later_source_files:
        later = slice_frame(task, source.name, task.later_source_files).join(doubted, on=HASH, how="semi")
        known = replace(known, source_elsewhere=pl.concat([known.source_elsewhere, _elsewhere(later, is_later=True)]))
    return known, rows


def _doubted(task: BucketTask) -> list[str]:
    """Under upsert a target may only seem out of date: it can be ahead of the window."""
    wanted = [Verdict.MISSING, Verdict.MISMATCHED] if task.is_upsert else [Verdict.MISSING]
    return [verdict.value for verdict in wanted]


def _with_target_rows(
    task: BucketTask, target: TablePoint, known: BucketInput, judged: pl.DataFrame, doubted: pl.DataFrame
) -> tuple[BucketInput, pl.DataFrame]:
    """Of a key that the source has in another window, the slice may hold only the newest of several rows."""
    beside = known.target.join(judged.filter("in_source"), on=HASH, how="anti").select("key", *HASH).unique()
    asked = pl.concat([doubted.select("key", *HASH), beside]).sort(HASH)
    if task.looked_up is None:
        rows = look_up(task, target, asked)
    else:
        # Under upsert the log was read up to here: rows of now may be of versions behind that.
        rows = slice_frame(task, target.name, (task.looked_up,)).join(asked, on=HASH, how="semi")
    # What was asked anew is known anew: a row that was updated since has another place, and is still one row.
    others = known.target.join(asked, on=HASH, how="anti")
    return replace(known, target=pl.concat([others, rows], how="diagonal_relaxed")), rows


def _with_source_rows(
    task: BucketTask, source: TablePoint, known: BucketInput, judged: pl.DataFrame, doubted: pl.DataFrame
) -> BucketInput:
    """Strangers that the source has after all, the age of what the target lacks, and under upsert newer versions."""
    strangers = _passing(task, look_up(task, source, judged.filter(~pl.col("in_source"))))
    found = [known.source_elsewhere, _elsewhere(strangers, is_later=False)]
    if task.is_upsert:
        rows = _passing(task, look_up(task, source, doubted))
        found.append(_elsewhere(_after(rows, known.source), is_later=True))
    young = _young(task, source, doubted)
    return replace(known, source_elsewhere=pl.concat(found), unsettled=pl.concat([known.unsettled, young]).unique())


def _passing(task: BucketTask, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(~pl.col("excluded_by").list.contains(task.hop.name))


def _after(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Rows that are not known yet and not older than what is known of their key, by their times."""
    rows = rows.join(known, on=[*HASH, "place"], how="anti")
    newest = known.group_by(HASH).agg(pl.col("time").max().alias("newest"))
    return rows.join(newest, on=HASH, how="left").filter((pl.col("time") >= pl.col("newest")).fill_null(True))


def _elsewhere(rows: pl.DataFrame, *, is_later: bool) -> pl.DataFrame:
    copies = rows.with_columns(pl.lit(False).alias("is_replay"), pl.lit(is_later).alias("is_later"))
    lacking = {name: kind for name, kind in ELSEWHERE.items() if name not in copies.columns}
    filled = copies.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in lacking.items())
    return filled.select(*(pl.col(name).cast(kind) for name, kind in ELSEWHERE.items()))


def look_up(task: BucketTask, point: TablePoint, keys: pl.DataFrame) -> pl.DataFrame:
    """The rows of these keys (column `key`) as they are now (`KEYS`)."""
    shape, connection = task.context.table_shape(point), task.context.postgres(point)
    frames = [
        table_frame(frame, dict(task.context.pipeline.compare))[0]
        for frame in read_keys(connection, shape, keys["key"].to_list())
    ]
    return pl.concat(frames) if frames else slice_frame(task, point.name, ())


def slice_frame(task: BucketTask, point: str, files: tuple[str, ...]) -> pl.DataFrame:
    """The copies in these files of a point; an empty frame with its columns for none."""
    frame = task.context.storage.read_parquet(files)
    if frame is not None:
        return frame
    compared: Schema = {f"c:{name}": pl.String for name in task.context.pipeline.compare}
    return empty((TOPIC_KEYS if task.is_topic(point) else KEYS) | compared)


def _young(task: BucketTask, point: TablePoint, doubted: pl.DataFrame) -> pl.DataFrame:
    """Keys in doubt whose ledger row was not yet visible a settle time ago."""
    if doubted.is_empty() or task.settled_snapshot is None:
        return empty(HASHES)
    shape, connection = task.context.table_shape(point), task.context.postgres(point)
    young = keys_not_visible(connection, shape, doubted["key"].to_list(), task.settled_snapshot)
    return doubted.filter(pl.col("key").is_in(young)).select(HASH)
