"""Copies at a point → the keys frame that every later step reads."""

import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import float_text, row_hash
from makewhole.compute.decode import ValueShape, decode_values
from makewhole.compute.frames import KEYS, TOPIC_KEYS, UNDECODABLE
from makewhole.compute.keys import with_hash

PLAN_HEADER = "makewhole-plan"


def topic_frame(batch: pa.RecordBatch, shape: ValueShape) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One batch of the log reader → (keys frame in `TOPIC_KEYS`, undecodable records in `UNDECODABLE`)."""
    decoded = decode_values(batch, shape)
    log = pl.from_arrow(batch.drop_columns(["key", "value", "headers"]))
    assert isinstance(log, pl.DataFrame)
    frame = pl.concat([log, decoded, pl.DataFrame([replay_plans(batch)])], how="horizontal").with_columns(
        pl.concat_str([pl.col("partition").cast(pl.String), pl.lit(":"), pl.col("offset").cast(pl.String)]).alias(
            "place"
        ),
        pl.col("timestamp").cast(pl.Datetime("us", "UTC")).alias("time"),
        pl.lit(None, dtype=pl.Int64).alias("version"),
        row_hash([f"c:{name}" for name in shape.compare]),
    )
    bad = frame.filter(pl.col("key").is_null() & ~pl.col("is_aborted")).select(
        "place", pl.col("problem").alias("reason")
    )
    good = with_hash(frame.filter(pl.col("key").is_not_null()))
    return _select(good, TOPIC_KEYS), bad.cast(UNDECODABLE)


def _select(frame: pl.DataFrame, schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """The columns of the schema, then the compared columns as canonical text."""
    compared = [pl.col(name) for name in frame.columns if name.startswith("c:")]
    return frame.select(*(pl.col(name).cast(kind) for name, kind in schema.items()), *compared)


def replay_plans(batch: pa.RecordBatch) -> pl.Series:
    """The plan that each record's lineage header names; null for records without one (column `replay_plan`)."""
    flags = batch.column("is_replayed")
    if not flags.true_count:
        return pl.Series("replay_plan", [None] * batch.num_rows, dtype=pl.String)
    plans = [
        _plan(headers) if flag else None
        for flag, headers in zip(flags.to_pylist(), batch.column("headers").to_pylist())
    ]
    return pl.Series("replay_plan", plans, dtype=pl.String)


def _plan(headers: list[dict[str, bytes | None]]) -> str | None:
    for entry in headers:
        if entry["key"] == PLAN_HEADER and entry["value"] is not None:
            return bytes(entry["value"]).decode(errors="replace")
    return None


def table_frame(rows: pl.DataFrame, compare: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Exported rows → (keys frame in `KEYS`, rows without a key in `UNDECODABLE`).

    `rows` has `key` (text or null), `place`, `time_us` (int64, microseconds, or null), `version`, `c:<name>` texts that
    PostgreSQL rendered in the declared types, and `excluded_by` (hop names joined by commas, empty for none).
    """
    doubles = [f"c:{name}" for name, declared in compare.items() if declared == "double"]
    frame = rows.with_columns(
        [pl.col(name).cast(pl.Float64).map_elements(float_text, return_dtype=pl.String) for name in doubles]
        + [
            pl.from_epoch(pl.col("time_us"), time_unit="us").dt.replace_time_zone("UTC").alias("time"),
            pl.when(pl.col("excluded_by").fill_null("") == "")
            .then(pl.lit([], dtype=pl.List(pl.String)))
            .otherwise(pl.col("excluded_by").str.split(","))
            .alias("excluded_by"),
        ]
    ).with_columns(row_hash([f"c:{name}" for name in compare]))
    without_key = pl.col("key").is_null() | (pl.col("key") == "")
    bad = frame.filter(without_key).select("place", pl.lit("key is null or empty").alias("reason"))
    return _select(with_hash(frame.filter(~without_key)), KEYS), bad.cast(UNDECODABLE)
