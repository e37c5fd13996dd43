"""Write a window's run of the key index from its snapshot, bucket by bucket."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from makewhole.compute.frames import REPLAYS, TOPIC_KEYS, Schema
from makewhole.compute.indexed_keys.former_readings import (
    NOT_KNOWN,
    NUMBERED,
    OF_HOPS,
    with_hashes_of_hops,
    with_reading,
)
from makewhole.compute.indexed_keys.hop_filters import NO_TYPES, filter_digest, with_noted_filters
from makewhole.compute.indexed_keys.key_runs import count_keys
from makewhole.compute.indexed_keys.window_rows import COPIES, window_rows
from makewhole.compute.judge.judge_copies import committed_copies
from makewhole.compute.keys import hashes_of_hex
from makewhole.compute.normalise import hashed_by
from makewhole.journal import replayed_positions
from makewhole.key_index.files import write_index_file
from makewhole.lake.storage import Storage
from makewhole.model.hops import Semantics
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_read_at, compared_at, compared_sets_at
from makewhole.model.points import can_look_up
from makewhole.model.positions import PositionSpan
from makewhole.model.window import Window
from makewhole.sql import PgConnection

_PLACED: Schema = {name: REPLAYS[name] for name in ("plan", "partition", "offset")} | {
    "key_hash": pl.String,
    "is_produced": REPLAYS["is_produced"],
}
_VALUES = ("row_hash", "last_row_hash")
_OF_ROWS = ("key_hi", "key_lo", "row_hash", "version", "excluded_by", "time")


def run_of_bucket(
    storage: Storage, files: Sequence[str], replays: pl.DataFrame, pipeline: Pipeline, point: str
) -> pl.DataFrame:
    """Return the run of a bucket of a snapshot of a topic or a ledger: its distinct committed keys in key order, each
    with its first copy. `replays`: what compensation wrote to the topic.

    Raises:
        CorruptionError: a file of the snapshot does not exist.
    """
    is_table = can_look_up(pipeline.points[point])
    sets = compared_sets_at(pipeline, point)
    values = [f"c:{name}" for name in columns_read_at(pipeline, point)] if sets else []
    frame = storage.read_parquet(files, [*(_OF_ROWS if is_table else COPIES), *values])
    assert frame is not None
    has_versions = _has_versions(pipeline, point)

    def rows_of(copies: pl.DataFrame) -> pl.DataFrame:
        copies = committed_copies(_as_copies(copies) if is_table else copies)
        return window_rows(copies, replays, has_versions=has_versions)

    rows = rows_of(frame.drop(values))
    of_hops = [(at, rows_of(hashed_by(frame, compared, is_topic=not is_table))) for compared, at in sets]
    rows = with_hashes_of_hops(rows, of_hops)
    read = with_reading(rows, compared_at(pipeline, point), pipeline.points[point].version_place)
    return with_noted_filters(
        read, noted_filters(pipeline, point), noted_filters(pipeline, point, pipeline.filter_types).values()
    )


def _as_copies(rows: pl.DataFrame) -> pl.DataFrame:
    """Lay the rows of a table out as the copies of one partition, in the order of their times."""
    at = pl.col("time").dt.epoch("us").fill_null(0).alias("offset")
    never = [pl.lit(False).alias(name) for name in ("is_tombstone", "is_aborted")]
    missing = [name for name in COPIES if name not in (*rows.columns, "offset", "is_tombstone", "is_aborted")]
    nulls = [pl.lit(None, dtype=TOPIC_KEYS[name]).alias(name) for name in missing if name != "partition"]
    return rows.select(*rows.columns, at, *never, *nulls, pl.lit(0, dtype=pl.Int32).alias("partition"))


def noted_filters(pipeline: Pipeline, point: str, types: Mapping[str, str] = NO_TYPES) -> dict[str, str]:
    """Return the digests of the filters that the copies of a point were held against, by the names in `excluded_by`.
    `types`: as in `filter_digest`."""
    hops = pipeline.hops_from(point)
    former = {hop.former_name: hop.former_where for hop in hops if hop.former_where}
    known = {hop.name: hop.where for hop in hops if hop.where} | former
    places = pipeline.column_places.get(point, {})
    return {name: filter_digest(where, places, types) for name, where in known.items()}


def as_read_otherwise(run: pl.DataFrame) -> pl.DataFrame:
    """Return a run of a snapshot that was read by another file than that of now: its values and the order of its
    versions are not known, nor what passed its filters."""
    unknown = [name for name in _VALUES if name in run.columns]
    run = run.with_columns(pl.lit(None, dtype=pl.UInt64).alias(name) for name in unknown)
    run = run.with_columns(pl.lit(NOT_KNOWN, dtype=pl.UInt64).alias(NUMBERED))
    return with_noted_filters(run.drop(OF_HOPS, strict=False), None)


def write_bucket(storage: Storage, window: Window, point: str, bucket: str, run: pl.DataFrame) -> tuple[str, int]:
    """Write a window's run of a bucket (`STORED`); return its path and the number of its keys."""
    folder = f"{window.pipeline}/index/{point}/window={window.number}/bucket={bucket}"
    return write_index_file(storage, folder, [run]), count_keys(run)


def replays_in(journal: PgConnection, spans: Sequence[PositionSpan]) -> Iterator[pl.DataFrame]:
    """Yield the records that compensation wrote into spans of a topic (`REPLAYS`), by the journal: a lineage header
    alone proves nothing. So many at a time."""
    for placed in replayed_positions.between(journal, spans):
        rows = pl.DataFrame(placed, schema_overrides=_PLACED, orient="row").filter(pl.col("key_hash").is_not_null())
        yield rows.with_columns(*hashes_of_hex()).select(*REPLAYS)


def spans_of(window: Window, point: str) -> list[PositionSpan]:
    """Return the ranges of a window at a topic as spans."""
    return [
        PositionSpan(topic_id=part.topic_id, first=part.partition, last=part.partition, lo=part.lo, hi=part.hi)
        for part in window.ranges.get(point, ())
    ]


def _has_versions(pipeline: Pipeline, point: str) -> bool:
    """Return whether the copies of a key at this point are its versions."""
    return any(hop.semantics is Semantics.UPSERT for hop in pipeline.hops if point in (hop.source, hop.target))
