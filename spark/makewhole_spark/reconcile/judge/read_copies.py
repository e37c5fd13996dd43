"""Read copies of keys: rows of a table by key, files of slices, the rest of a log, and records of an archive."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace

import polars as pl

from makewhole.compute.buckets import is_in_bucket
from makewhole.compute.frames import KEYS, TAIL, TOPIC_KEYS, Schema, empty
from makewhole.compute.normalise import as_compared, log_columns, table_frame, topic_frame
from makewhole.kafka.log.archive import ArchiveLog
from makewhole.kafka.log.reader import read_range
from makewhole.model.places.compared_columns import columns_asked_at
from makewhole.model.points import TablePoint, TopicPoint, has_log
from makewhole.tables.in_doubt import TransactionInDoubt
from makewhole.window.context import WindowContext
from makewhole_spark.reconcile.bucket.other_windows import OtherConfiguration
from makewhole_spark.reconcile.bucket.task import BucketTask
from makewhole_spark.reconcile.bucket.window_files import WindowFiles

POSITION = ("partition", "offset")
SeenInDoubt = tuple[TransactionInDoubt, ...] | None
"""The transactions that were in doubt while rows of keys were looked up; None: there were no keys to look up."""
_GAP_MOST = 10_000  # offsets; positions closer than this are read together


def look_up(context: WindowContext, point: TablePoint, keys: pl.DataFrame) -> pl.DataFrame:
    """Return the current rows of these keys (column `key`), as `KEYS`."""
    return look_up_beside_doubt(context, point, keys)[0]


def look_up_beside_doubt(
    context: WindowContext, point: TablePoint, keys: pl.DataFrame, since: str | None = None
) -> tuple[pl.DataFrame, SeenInDoubt]:
    """Return the same, and the transactions that were in doubt on the table meanwhile. `since`: what a view saw that
    had no row of any of the keys."""
    reader = context.tables(point).reader(context.table_shape(point))
    frames = [
        table_frame(frame, dict(columns_asked_at(context.pipeline, point.name)))[0]
        for frame in reader.keys(keys["key"].to_list(), since)
    ]
    rows = pl.concat(frames) if frames else slice_frame(context, point.name)
    return rows, tuple(reader.in_doubt) if len(keys) else None


def slice_frame(context: WindowContext, point: str, files: Sequence[str] = ()) -> pl.DataFrame:
    """Return the copies in these files of a point, as the hop that sees the pipeline compares them; without files, an
    empty frame with its columns."""
    frame = context.storage.read_parquet(files)
    if frame is not None:
        return as_compared(context.pipeline, point, frame)
    compared: Schema = {f"c:{name}": pl.String for name in columns_asked_at(context.pipeline, point)}
    return empty((TOPIC_KEYS if has_log(context.pipeline.points[point]) else KEYS) | compared)


def rows_of_windows(context: WindowContext, point: str, files: WindowFiles) -> pl.DataFrame:
    """Return the copies in files of other windows at a point: of those that were read otherwise without values and
    versions."""
    alike = slice_frame(context, point, files.alike)
    if not files.otherwise:
        return alike
    otherwise = without_values(slice_frame(context, point, files.otherwise))
    return pl.concat([alike, otherwise], how="diagonal_relaxed")


def without_values(copies: pl.DataFrame) -> pl.DataFrame:
    """Return copies of which neither values nor versions are known."""
    return copies.with_columns(pl.lit(None, dtype=KEYS[name]).alias(name) for name in ("row_hash", "version"))


def passing_copies(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the copies that pass the filter of a hop."""
    return copies.filter(~pl.col("excluded_by").list.contains(hop))


def excluded_copies(copies: pl.DataFrame, hop: str) -> pl.DataFrame:
    """Return the copies that surely do not pass the filter of a hop."""
    return copies.filter(pl.col("excluded_by").list.contains(hop).fill_null(False))


def tail_of(task: BucketTask, point: str) -> pl.DataFrame:
    """Return the copies of this bucket (`TAIL`) that were found in the log of a topic around the windows."""
    paths = task.known_since.tails.get(point)
    tail = task.context.storage.read_parquet(paths) if paths else None
    if tail is None:
        return empty(TAIL)
    return as_compared(task.context.pipeline, point, tail.filter(is_in_bucket(task.bucket))).select(*TAIL)


def open_copies(task: BucketTask, point: str) -> pl.DataFrame:
    """Return the copies behind the stable offset (`TAIL`), which cannot be read as committed yet."""
    return tail_of(task, point).filter("is_open")


def archived_records(
    context: WindowContext, point: TopicPoint, positions: pl.DataFrame, of: OtherConfiguration
) -> pl.DataFrame:
    """Return the records at positions (`partition`, `offset`) of an archive, decoded as the file says now.

    Raises:
        CorruptionError: the archive is not whole.
    """
    shape = context.value_shape(point)
    frames = []
    with closing(ArchiveLog(context.storage.uri(of.archive))) as archive:
        for part in of.ranges:
            of_part = positions.filter(
                (pl.col("partition") == part.partition) & pl.col("offset").is_between(part.lo, part.hi, closed="left")
            )
            for lo, hi in ranges_together(sorted(of_part["offset"].to_list())):
                wanted = replace(part, lo=lo, hi=hi, leader_epochs=())
                reader = read_range(archive, wanted, include_aborted=True, columns=log_columns(shape))
                decoded = (topic_frame(batch, shape)[0] for batch in reader.batches())
                frames += [frame.join(of_part, on=POSITION, how="semi") for frame in decoded]
    return pl.concat([slice_frame(context, point.name), *frames], how="diagonal_relaxed")


def ranges_together(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Return ranges `[lo, hi)` that hold these sorted offsets, near ones together."""
    ranges: list[tuple[int, int]] = []
    for offset in offsets:
        is_near = bool(ranges) and offset - ranges[-1][1] < _GAP_MOST
        ranges.append((ranges.pop()[0] if is_near else offset, offset + 1))
    return ranges
