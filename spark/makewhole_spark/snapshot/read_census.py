"""Look at the rows of keys that earlier windows read at a source: one task's share of what a window looks at."""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from makewhole.compute.buckets import is_in_bucket
from makewhole.compute.frames import KEYS, UNDECODABLE, empty
from makewhole.compute.judge.rewritten_rows import OF_WINDOW, rewritten_rows
from makewhole.compute.normalise import as_compared, hashed_again, table_frame
from makewhole.model.errors import CorruptionError
from makewhole.model.hops import Hop, Semantics
from makewhole.model.places.compared_columns import columns_read_at
from makewhole.model.points import TablePoint, has_log
from makewhole.window.context import WindowContext
from makewhole_spark.snapshot.read_piece import BucketWriter, PieceRead, TablePiece, point_folder, read_table_piece
from makewhole_spark.snapshot.value_census import Share

logger = logging.getLogger(__name__)

_OF_TABLE = ["key", "key_hi", "key_lo", "row_hash", "time", "version", "place", "excluded_by"]
_OF_TOPIC = [*_OF_TABLE, "partition", "offset", "is_aborted", "is_tombstone"]


@dataclass(frozen=True, kw_only=True)
class CensusPiece:
    """Shares of the keys of earlier windows at a hop's source whose rows in a store are looked at, under a view that
    is held. `bucket_count`: of the buckets to write."""

    context: WindowContext
    point: TablePoint
    hop: Hop
    bucket_count: int
    view: str
    shares: tuple[Share, ...]


def read_table(piece: TablePiece | CensusPiece) -> PieceRead:
    """Read a piece of a table, or look at rows of keys that are known."""
    return read_table_piece(piece) if isinstance(piece, TablePiece) else read_census_piece(piece)


def read_census_piece(piece: CensusPiece) -> PieceRead:
    """Write the rows that differ from what earlier windows read of their keys; `looked_at` is the number of keys.

    A window whose files were removed is left out (`gone`).

    Raises:
        TransientError: the read came up short.
    """
    context, gone = piece.context, list[int]()
    copies = pl.concat([empty(KEYS | {OF_WINDOW: pl.Int32}), *_copies(piece, gone)], how="diagonal_relaxed")
    keys = copies["key"].unique().sort().to_list()
    reader = context.tables(piece.point).reader(context.table_shape(piece.point), piece.view)
    frames = [
        table_frame(frame, dict(columns_read_at(context.pipeline, piece.point.name)))[0] for frame in reader.keys(keys)
    ]
    writer = BucketWriter(context, point_folder(context, piece.point), piece.bucket_count)
    with closing(writer):
        if frames:
            differing = rewritten_rows(
                copies,
                pl.concat(frames).filter(~_has_window_to_come(piece)),
                piece.hop.name,
                is_upsert=piece.hop.semantics is Semantics.UPSERT,
                version_unit=context.pipeline.version_unit(piece.hop),
            )
            writer.add((differing, empty(UNDECODABLE)))
        return writer.finish(
            rows_counted=writer.rows + writer.held_rows,
            looked_at=len(keys),
            gone=tuple(gone),
            unreadable=tuple(reader.unreadable),
        )


def _has_window_to_come(piece: CensusPiece) -> pl.Expr:
    """Return whether a row is in the slice of a later window, which reads it by its time. Rows with times that have not
    come yet, by a clock that is wrong, may never be in one."""
    if piece.hop.semantics is Semantics.UPSERT:
        return pl.lit(False)
    is_behind = (pl.col("time") >= piece.context.window.end) & (pl.col("time") <= datetime.now(UTC))
    return is_behind.fill_null(False)


def _copies(piece: CensusPiece, gone: list[int]) -> Iterator[pl.DataFrame]:
    """Yield the copies of each share with `of_window`, and note windows whose files are not there any more."""
    context, source = piece.context.as_compared_on(piece.hop), piece.hop.source
    for share in piece.shares:
        try:
            copies = piece.context.storage.read_parquet(share.files, _columns(piece, context))
        except CorruptionError as error:
            logger.warning("the keys of window %s are not looked at: %s", share.window, error)
            gone.append(share.window)
            continue
        if copies is not None:
            of_share = as_compared(context.pipeline, source, copies.filter(is_in_bucket(share.bucket)))
            yield of_share.with_columns(pl.lit(share.window).alias(OF_WINDOW))


def _columns(piece: CensusPiece, context: WindowContext) -> list[str]:
    is_topic = has_log(piece.context.pipeline.points[piece.hop.source])
    return [*(_OF_TOPIC if is_topic else _OF_TABLE), *hashed_again(context.pipeline, piece.hop.source)]
