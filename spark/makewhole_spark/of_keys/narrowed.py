"""Narrow the snapshots of a window to some keys: the records that it kept, and the rows that tables have by now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from makewhole.compute.buckets import bucket_name, split_by_bucket
from makewhole.compute.frames import HASH, KEYS, empty
from makewhole.compute.key_values import without_key
from makewhole.compute.normalise import table_frame
from makewhole.model.hops import Semantics
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.points import Point, TablePoint, can_look_up, has_log
from makewhole.model.window import Window
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.bucket_count import BUCKETS

CAME_LATE = "{point} has a row of it with a time outside the window that was not there when the window was read"


@dataclass(frozen=True, kw_only=True)
class WindowOfKeys(Window):
    """A window revision of which some keys are judged once more: its files go to a folder of their own, which is
    removed."""

    folder: str

    @property
    def prefix(self) -> str:
        """The path of the files, below the storage root."""
        return f"{super().prefix}/of_keys/{self.folder}"

    @property
    def last_before(self) -> int:
        """The revision itself: what it found is asked for as a next one would ask for it."""
        return self.revision


@dataclass(frozen=True, kw_only=True)
class NarrowedSnapshots:
    """The manifests by point, which name files of the keys alone. `unsure`: by key, why what belongs to the window is
    not known from its key alone."""

    manifests: Mapping[str, Any]
    unsure: Mapping[str, str] = field(default_factory=dict)


def narrowed_snapshots(context: WindowContext, manifests: Mapping[str, Any], keys: pl.DataFrame) -> NarrowedSnapshots:
    """Return the snapshots of a window narrowed to keys (`key` and its hash).

    Records are those that the window read. Rows are looked up now: those of the window's times, and those that it had
    read with other times. `context` is that of a `WindowOfKeys`.

    Raises:
        CorruptionError: a file that a manifest names is not there.
        TransientError: a database does not answer.
    """
    narrowed: dict[str, Any] = {}
    unsure: dict[str, str] = {}
    for point in context.pipeline.ordered_points():
        kept = pl.concat(list(_kept(context, manifests[point.name], keys)), how="diagonal_relaxed")
        if can_look_up(point):
            rows = _rows_now(context, point, keys["key"].to_list())
            is_ours = _is_of_window(context, point, rows, kept)
            unsure |= {
                key: CAME_LATE.format(point=point.name)
                for key in rows.filter(~is_ours & _may_have_come_late(context))["key"]
            }
            kept = rows.filter(is_ours)
        narrowed[point.name] = {**manifests[point.name], "files": _written(context, point, manifests, kept)}
    return NarrowedSnapshots(manifests=narrowed, unsure=unsure)


def _kept(context: WindowContext, manifest: Mapping[str, Any], keys: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the copies of keys in a snapshot; an empty frame, too, with its columns as far as they are known."""
    yield keys.select("key", *HASH).clear()
    for paths in manifest["files"].values():
        hashes = context.storage.read_parquet(paths, list(HASH))
        if hashes is None:
            continue
        wanted = hashes.with_row_index().join(keys, on=HASH, how="semi")["index"].to_numpy()
        if len(wanted):
            marks = np.zeros(len(hashes), dtype=np.bool_)
            marks[wanted] = True
            rows = context.storage.read_rows(paths, marks)
            assert rows is not None
            yield rows


def _rows_now(context: WindowContext, point: TablePoint, keys: Sequence[str]) -> pl.DataFrame:
    """Return every row that a table has of keys by now, as a snapshot has rows."""
    reader = context.tables(point).reader(context.table_shape(point))
    compare = dict(columns_read_at(context.pipeline, point.name))
    frames = [table_frame(rows, compare, without_key(point.key_layout))[0] for rows in reader.keys(keys)]
    return pl.concat([empty(KEYS), *frames], how="diagonal")


def _is_of_window(context: WindowContext, point: TablePoint, rows: pl.DataFrame, kept: pl.DataFrame) -> pl.Series:
    """Return which rows belong to the window: all where a table is read by keys; else those of its times, and those
    that it had read with others, as they came late."""
    hops = context.pipeline.hops_into(point.name)
    if point.time is None or any(hop.semantics is Semantics.UPSERT for hop in hops):
        return pl.Series("ours", [True] * len(rows), dtype=pl.Boolean)
    window, time = context.window, pl.col("time")
    since = pl.lit(value=True) if window.start is None else time >= window.start
    within = rows.select((since & (time < window.end)).fill_null(value=False).alias("ours"))["ours"]
    if "time" not in kept.columns or kept.is_empty():
        return within
    known = kept.select(*HASH, time.cast(rows.schema["time"]), pl.lit(value=True).alias("known")).unique()
    before = rows.join(known, on=[*HASH, "time"], how="left", nulls_equal=True, maintain_order="left")["known"]
    return within | before.fill_null(value=False)


def _may_have_come_late(context: WindowContext) -> pl.Expr:
    """Select rows that a window may read for their coming late: those without a time, and those of earlier times."""
    start = context.window.start
    return pl.col("time").is_null() | (pl.lit(value=False) if start is None else pl.col("time") < start)


def _written(
    context: WindowContext, point: Point, manifests: Mapping[str, Any], rows: pl.DataFrame
) -> dict[str, list[str]]:
    """Write the copies bucket by bucket, as a snapshot has them; return the files."""
    if rows.is_empty():
        return {}
    count, folder = int(manifests[point.name][BUCKETS]), f"{context.window.prefix}/{point.name}/keys"
    as_stored = rows.drop("place") if has_log(point) else rows
    files = {}
    for number, part in split_by_bucket(as_stored, count):
        bucket, frame = bucket_name(number, count), pl.from_arrow(part)
        assert isinstance(frame, pl.DataFrame)
        files[bucket] = [context.storage.write_parquet(f"{folder}/bucket={bucket}", frame)]
    return files
