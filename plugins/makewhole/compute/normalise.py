"""Normalise the records or rows of a point to the keys frame that every later step reads."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from makewhole.compute.canonical import FLOATING, column_text, float_texts, is_own_text, with_row_hash
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import Elements
from makewhole.compute.decode.shapes.repeated_elements import one_of_each
from makewhole.compute.decode.unread_keys import ComparedKeys, compare_record_keys, unread_keys
from makewhole.compute.frames import (
    KEYS,
    NUMBERED_PLACE,
    STORED_TOPIC_KEYS,
    TOMBSTONES,
    UNDECODABLE,
    Schema,
    empty,
    place_in_log,
    with_place,
)
from makewhole.compute.keys import with_hash
from makewhole.compute.placeholders import holds_placeholder
from makewhole.model.pipeline import Pipeline
from makewhole.model.places.compared_columns import columns_asked_at, is_all_read
from makewhole.model.plan import PLAN_HEADER
from makewhole.model.points import has_log

_PLAN_ID = re.compile(rb"[a-z][a-z0-9_]*-[0-9]{1,10}-[0-9a-f]{12}(-r[0-9]{1,10})?")  # -r2: the same plan frozen again
_FIRST_MOMENT, _PAST_MOMENTS = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

_WITHOUT_PLACE = {name: kind for name, kind in KEYS.items() if name != "place"}
_IDENTITY = [
    "partition",
    "offset",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "is_aborted",
]


def log_columns(shape: ValueShape, *, compares_keys: bool = False) -> list[str]:
    """Return the columns of the log reader that `topic_frame` needs, or `topic_records` that compares keys."""
    key = ["key"] if len(shape.key) == 1 or shape.needs_record_key or compares_keys else []
    return [*_IDENTITY, "timestamp", *key, "value", "headers", "is_replayed"]


@dataclass(frozen=True, kw_only=True)
class NormalisedRecords:
    """The records of a batch: the copies of keys (`STORED_TOPIC_KEYS`), those without a usable key (`UNDECODABLE`), and
    the tombstones that delete their keys on purpose (`TOMBSTONES`), which are no copies. `elements`: how many with a
    usable key their arrays have; 0 where records are not divided. `compared`: their Kafka keys with their business
    keys, where these were compared."""

    copies: pl.DataFrame
    undecodable: pl.DataFrame
    tombstones: pl.DataFrame
    elements: int = 0
    compared: ComparedKeys = field(default_factory=ComparedKeys)


def topic_frame(batch: pa.RecordBatch, shape: ValueShape) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Normalise a batch of the log reader: (keys frame in `TOPIC_KEYS`, undecodable records in `UNDECODABLE`)."""
    good, bad = stored_topic_frame(batch, shape)
    return with_place(good), bad


def stored_topic_frame(batch: pa.RecordBatch, shape: ValueShape) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Do as `topic_frame`, but in `STORED_TOPIC_KEYS`, as a snapshot's files hold it."""
    records = topic_records(batch, shape)
    return records.copies, records.undecodable


def topic_records(batch: pa.RecordBatch, shape: ValueShape, *, compares_keys: bool = False) -> NormalisedRecords:
    """Normalise a batch of the log reader, element by element where records are divided. Aborted tombstones say nothing
    and are left out. `compares_keys`: compare Kafka's keys (column `key`) with the business keys, too."""
    batch, decoded = decode_records(batch, shape)
    compared = compare_record_keys(batch, decoded["key"], shape.key) if compares_keys else ComparedKeys()
    log = pl.from_arrow(batch.select(_IDENTITY))
    assert isinstance(log, pl.DataFrame)
    milliseconds = pl.Series("ms", pl.from_arrow(batch.column("timestamp").cast(pa.int64())), dtype=pl.Int64)
    frame = pl.concat([log, decoded, pl.DataFrame([replay_plans(batch)])], how="horizontal").with_columns(
        _moment(milliseconds, 1_000).alias("time"),
    )
    frame = with_known_hashes(frame, [f"c:{name}" for name in shape.compare])
    bad = _unreadable(frame, batch, shape) if frame["key"].null_count() else empty(UNDECODABLE)
    frame = frame.filter(pl.col("key").is_not_null()) if frame["key"].null_count() else frame
    if shape.elements is not None and shape.elements.takes_latest:
        frame, repeated = one_of_each(frame)
        bad = pl.concat([bad, _contradicting(repeated, shape.elements)], how="vertical_relaxed")
    good = with_hash(frame)
    tombstones = good.filter("is_tombstone") if shape.tombstones_erase else good.clear()
    good = good.filter(~pl.col("is_tombstone")) if len(tombstones) else good
    return NormalisedRecords(
        copies=_select(good, STORED_TOPIC_KEYS),
        undecodable=_typed(bad, UNDECODABLE),
        tombstones=_typed(tombstones.filter(~pl.col("is_aborted")), TOMBSTONES),
        elements=0 if shape.elements is None else len(frame),
        compared=compared,
    )


def with_known_hashes(frame: pl.DataFrame, compared: Sequence[str]) -> pl.DataFrame:
    """Add the row hash of records; null, not known, where a placeholder stands for a compared value."""
    known = pl.when(~holds_placeholder(compared)).then("row_hash").alias("row_hash")
    return with_row_hash(frame, compared).with_columns(known)


def _unreadable(frame: pl.DataFrame, batch: pa.RecordBatch, shape: ValueShape) -> pl.DataFrame:
    """Return the records without a usable key; what an aborted one held does not matter."""
    named = frame.with_columns(unread_keys(batch, frame["key"], shape).alias("business_key"))
    bad = named.filter(pl.col("key").is_null() & ~pl.col("is_aborted"))
    return bad.select(place_in_log(), pl.col("problem").alias("reason"), "business_key")


def _contradicting(repeated: pl.DataFrame, elements: Elements) -> pl.DataFrame:
    """Return elements of one key and record that differ, as unreadable records of that key."""
    reason = pl.lit(elements.contradiction).alias("reason")
    return repeated.filter(~pl.col("is_aborted")).select(place_in_log(), reason, pl.col("key").alias("business_key"))


def _moment(numbers: pl.Series, microseconds: int) -> pl.Series:
    """Convert numbers of so many microseconds since 1970 to moments; null outside the years 1 to 9999."""
    first, past = (int(edge.timestamp()) * (1_000_000 // microseconds) for edge in (_FIRST_MOMENT, _PAST_MOMENTS))
    kept = numbers.to_frame("n").select(
        pl.when(pl.col("n").is_between(first, past, closed="left")).then(pl.col("n") * microseconds)
    )
    return kept.to_series().cast(pl.Datetime("us", "UTC"))


def _select(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Select the columns of the schema, then the compared columns."""
    compared = [pl.col(name) for name in frame.columns if name.startswith("c:")]
    return frame.select(*(pl.col(name).cast(kind) for name, kind in schema.items()), *compared)


def _typed(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    return frame.select(pl.col(name).cast(kind) for name, kind in schema.items())


def replay_plans(batch: pa.RecordBatch) -> pl.Series:
    """Return column `replay_plan`: the plan that each record's lineage header names; null without such a header."""
    replayed: Any = batch.column("is_replayed")
    if not replayed.true_count:
        return pl.Series("replay_plan", pl.from_arrow(pa.nulls(batch.num_rows, pa.string())), dtype=pl.String)
    flags, headers = replayed.to_pylist(), batch.column("headers")
    plans = [_plan(headers[at].as_py()) if flag else None for at, flag in enumerate(flags)]
    return pl.Series("replay_plan", plans, dtype=pl.String)


def _plan(headers: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the plan of the first header whose value has the form of a plan's id."""
    for entry in headers:
        value = entry["value"]
        if entry["key"] == PLAN_HEADER and value is not None and _PLAN_ID.fullmatch(value):
            return bytes(value).decode()
    return None


def column_texts(texts: pl.Series, declared: str) -> pl.Series:
    """Return the canonical texts of a column, from what a statement gives for it; see `canonical.column_text`."""
    if is_own_text(declared):
        return texts
    is_unread = texts.str.starts_with("!").fill_null(False)
    if not is_unread.any():
        if declared not in FLOATING:
            return texts
        rendered = float_texts(texts.cast(pl.Float64), declared)
        if rendered is not None:
            return rendered.alias(texts.name)
    known = (texts if declared in FLOATING else texts.filter(is_unread)).unique()
    read = pl.Series([column_text(text, declared) for text in known], dtype=pl.String)
    return texts.replace_strict(known, read, default=texts, return_dtype=pl.String).alias(texts.name)


def table_frame(
    rows: pl.DataFrame, compare: dict[str, str], without_key: str = "key is null or empty"
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Normalise exported rows: (keys frame in `KEYS`, rows without a key in `UNDECODABLE`); see
    `stored_table_frame`."""
    good, bad = stored_table_frame(rows, compare, without_key)
    return with_place(good), bad


def stored_table_frame(
    rows: pl.DataFrame, compare: dict[str, str], without_key: str = "key is null or empty"
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Do as `table_frame`, but with the places as a snapshot's files hold them: as `rows` have them.

    `rows` has `key` (text or null), `place` or `NUMBERED_PLACE`, `time_us` (int64, microseconds, or null), `version`
    (a number of `makewhole.compute.versions`), `c:<name>` texts that the table's system rendered in the declared types
    (or its own outputs behind `!`; see `canonical.column_text`), and `excluded_by` (hop names joined by commas, empty
    for none). `without_key` is the reason of rows without a key.
    """
    frame = rows.with_columns(
        [column_texts(rows[f"c:{name}"], declared) for name, declared in compare.items()]
        + [
            _moment(rows["time_us"], 1).alias("time"),
            pl.when(pl.col("excluded_by").fill_null("") == "")
            .then(pl.lit([], dtype=pl.List(pl.String)))
            .otherwise(pl.col("excluded_by").str.split(","))
            .alias("excluded_by"),
        ]
    )
    frame = with_row_hash(frame, [f"c:{name}" for name in compare])
    lacks_key = frame["key"].is_null() | (frame["key"] == "")
    if not lacks_key.any():
        return _select(with_hash(frame), _stored_keys(frame)), empty(UNDECODABLE)
    unknown = pl.lit(None, dtype=pl.String).alias("business_key")
    without = with_place(frame.filter(lacks_key))
    bad = without.select("place", pl.lit(without_key).alias("reason"), unknown)
    return _select(with_hash(frame.filter(~lacks_key)), _stored_keys(frame)), _typed(bad, UNDECODABLE)


def _stored_keys(rows: pl.DataFrame) -> Schema:
    """Return `KEYS` with the places in the columns in which rows have them."""
    return KEYS if "place" in rows.columns else {**_WITHOUT_PLACE, **NUMBERED_PLACE}


def hashed_by(copies: pl.DataFrame, compared: Collection[str], *, is_topic: bool) -> pl.DataFrame:
    """Return copies as a snapshot holds them with these compared columns alone, and the hash of them. Where the copies
    lack one of them, as of a window with another file, the values are not known."""
    names = [f"c:{name}" for name in compared]
    others = [name for name in copies.columns if name.startswith("c:") and name not in names]
    if not {*names} <= {*copies.columns}:
        return copies.drop(others).with_columns(pl.lit(None, dtype=KEYS["row_hash"]).alias("row_hash"))
    hashed = with_known_hashes(copies, names) if is_topic else with_row_hash(copies, names)
    return hashed.select(copies.columns).drop(others)


def as_compared(pipeline: Pipeline, point: str, copies: pl.DataFrame) -> pl.DataFrame:
    """Return copies of a snapshot of a point as the hop which sees the pipeline compares them."""
    if is_all_read(pipeline, point):
        return copies
    return hashed_by(copies, columns_asked_at(pipeline, point), is_topic=has_log(pipeline.points.get(point)))


def hashed_again(pipeline: Pipeline, point: str) -> list[str]:
    """Return the columns that `as_compared` needs besides; none where a snapshot's hashes are of what is compared."""
    return [] if is_all_read(pipeline, point) else [f"c:{name}" for name in columns_asked_at(pipeline, point)]
