"""Declare the schemas of the frames that pass between the steps."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from polars.datatypes import DataTypeClass

from makewhole.compute.versions import VERSION
from makewhole.native.arrays import ArrowArray, Int64s

Schema = dict[str, pl.DataType | DataTypeClass]
"""Columns in order with their types."""

KEYS: Schema = {
    "key": pl.String,
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "row_hash": pl.UInt64,
    "time": pl.Datetime("us", "UTC"),
    "version": VERSION,
    "place": pl.String,
    "excluded_by": pl.List(pl.String),
}
"""One row per copy of a key at a point, followed by a text column `c:<name>` per compared column.

`excluded_by` names the hops whose `where` this row does not pass."""

TOPIC_KEYS: Schema = KEYS | {
    "partition": pl.Int32,
    "offset": pl.Int64,
    "leader_epoch": pl.Int32,
    "producer_id": pl.Int64,
    "producer_epoch": pl.Int16,
    "sequence": pl.Int32,
    "is_transactional": pl.Boolean,
    "is_aborted": pl.Boolean,
    "replay_plan": pl.String,
    "is_tombstone": pl.Boolean,
}

STORED_TOPIC_KEYS: Schema = {name: kind for name, kind in TOPIC_KEYS.items() if name != "place"}
"""`TOPIC_KEYS` as a snapshot's files hold them: `with_place` makes the place from partition and offset."""

NEVER_NULL = frozenset(STORED_TOPIC_KEYS) - {"row_hash", "time", "version", "excluded_by", "replay_plan"}
"""Columns that every copy has, of a topic or a table. A record with a placeholder for a compared value has no hash."""

UNDECODABLE: Schema = {"place": pl.String, "reason": pl.String, "business_key": pl.String}
"""Records and rows without a usable key, with their place and the reason. `business_key`: that of a record, known from
elsewhere in it; null: it may be any key."""

_OF_VALUES = ("row_hash", "version", "excluded_by")
TOMBSTONES: Schema = {name: kind for name, kind in STORED_TOPIC_KEYS.items() if name not in _OF_VALUES}
"""Committed records with a key and no value, of a topic whose tombstones say which keys were deleted on purpose."""

LOG_ORDER: Schema = {
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "topic": pl.String,
    "topic_id": pl.String,
    "partition": pl.Int32,
    "lineage": pl.Int32,
    "offset": pl.Int64,
    "time": pl.Datetime("us", "UTC"),
    "is_tombstone": pl.Boolean,
}
"""Records of some keys, with a value or without one, as far as their order matters. `topic` names the point; `lineage`:
that of the partition's range in the window that read them; null: they lie behind all windows."""

UNREAD_PLACES: Schema = {
    "topic": pl.String,
    "topic_id": pl.String,
    "partition": pl.Int32,
    "lineage": pl.Int32,
    "offset": pl.Int64,
    "is_gone": pl.Boolean,
    "before": pl.Datetime("us", "UTC"),
}
"""The last places of partitions of which a window could not read something: offsets that were gone (`is_gone`), or a
record that may be of any key. What was there has a time before `before`; null: any."""

ELSEWHERE: Schema = {
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "place": pl.String,
    "is_replay": pl.Boolean,
    "is_produced": pl.Boolean,
    "row_hash": pl.UInt64,
    "version": VERSION,
    "is_tombstone": pl.Boolean,
    "ends_earlier": pl.Boolean,
    "is_later": pl.Boolean,
    "is_former": pl.Boolean,
    "producer_id": pl.Int64,
    "producer_epoch": pl.Int16,
    "sequence": pl.Int32,
    "excluded_by": pl.List(pl.String),
}
"""Copies outside the window's own slice: from the key index, from the log after the window, from look-ups by key.

`is_replay`: written by compensation in the place of another copy, `is_produced`: written by it as the key's own copy.
`ends_earlier`: versions of its key at earlier offsets of its partition count no more: it is a tombstone without a
version, or one stands between them. `is_later`: after the window's own. `is_former`: in a log that the topic had before
it was made again. `excluded_by` names the hops whose `where` the copy does not pass. Null: not known."""

TAIL: Schema = ELSEWHERE | {"time": KEYS["time"], "is_open": pl.Boolean}
"""Copies in the log after a window, with the times of their records. `is_open`: behind the stable offset, so it cannot
be read as committed yet."""

REPLAYS: Schema = {
    "plan": pl.String,
    "key_hi": pl.UInt64,
    "key_lo": pl.UInt64,
    "partition": pl.Int32,
    "offset": pl.Int64,
    "is_produced": pl.Boolean,
}
"""Records that compensation wrote, by the journal, a row each: a lineage header alone proves nothing.

`is_produced`: the record repeats none of its topic, it is the key's own."""

HASHES: Schema = {"key_hi": pl.UInt64, "key_lo": pl.UInt64}

NUMBERS: Schema = HASHES | {"version": VERSION}
"""Keys with the number of a version."""

NAMED_KEYS: Schema = {"key": pl.String, **HASHES}
"""Keys with their hashes."""

WAITING: Schema = HASHES | {"since": pl.Datetime("us", "UTC")}
"""Keys that are not known yet, with the moment since which each waits."""

JUDGED: Schema = {
    "key": pl.String,
    **HASHES,
    "key_hash": pl.String,
    "verdict": pl.String,
    "hint": pl.String,
    "in_source": pl.Boolean,
    "source_copies": pl.Int64,
    "source_elsewhere_copies": pl.Int64,
    "target_copies": pl.Int64,
    "elsewhere_copies": pl.Int64,
    "source_places": pl.List(pl.String),
    "target_places": pl.List(pl.String),
    "elsewhere_places": pl.List(pl.String),
    "latest_place": pl.String,
    "has_later": pl.Boolean,
    "row_hash": pl.UInt64,
    "time": pl.Datetime("us", "UTC"),
}
"""One row per judged key. `hint` is a cause that only the kernel could see. Under upsert: `latest_place` is where
the source's latest version is, `has_later` that the source has one after the window's own."""

VERDICTS: Schema = {
    "hop": pl.String,
    "bucket": pl.String,
    "key_hash": pl.String,
    "verdict": pl.String,
    "cause": pl.String,
    "is_held": pl.Boolean,
}
"""The keyed frame that the gate reads: one row per hop and key that is not clean. `is_held`: the target has a copy of
the key; under upsert none where it has several rows, and surely none of the latest version."""

BUCKETS: Schema = {"hop": pl.String, "bucket": pl.String, "clean": pl.Int64, "expected": pl.Int64}
"""The other frame that the gate reads, one row per hop and bucket: the number of clean keys, which have no row among
the verdicts, and of all keys that must have a verdict, counted from the snapshots."""

FINDINGS: Schema = {
    "hop": pl.String,
    "key": pl.String,
    "key_hash": pl.String,
    "verdict": pl.String,
    "cause": pl.String,
    "evidence": pl.String,
}
"""One row per key and hop whose verdict is not matched. `evidence` is a JSON object."""

HASH = ("key_hi", "key_lo")

IS_GONE = "is_gone"
"""A column of handed-over copies: the topic was made again since, or truncated before the copy."""


NUMBERED_PLACE: Schema = {"place_number": pl.Int64, "place_form": pl.String}
"""The place of a row in a data file, in two columns that take little room: the number of the row, and the text around
it, which all rows of a file share, with a NUL for the number. `with_place` puts them together."""


def numbered_places(before: str, numbers: Int64s, after: str = "") -> list[pl.Series]:
    """Return the columns `NUMBERED_PLACE`, of a text around the numbers."""
    form = pl.Series("place_form", [f"{before}\0{after}"], dtype=pl.String)
    return [pl.Series("place_number", numbers, dtype=pl.Int64), form.new_from_index(0, len(numbers))]


def _numbered_place() -> pl.Expr:
    form = pl.col("place_form").str.split_exact("\0", 1).struct
    number = pl.col("place_number").cast(pl.String)
    return pl.concat_str([form.field("field_0"), number, form.field("field_1")]).alias("place")


def place_in_log() -> pl.Expr:
    """Return column `place` of a topic's copies: `partition:offset`."""
    return pl.concat_str([pl.col("partition").cast(pl.String), pl.lit(":"), pl.col("offset").cast(pl.String)]).alias(
        "place"
    )


def with_place(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `place` to copies, where `TOPIC_KEYS` or `KEYS` have it: of a topic, or of rows with `NUMBERED_PLACE`, which
    it stands for then. Return other frames unchanged."""
    present = set(frame.columns)
    if "place" in present:
        return frame
    if present >= {*NUMBERED_PLACE}:
        return _with_column(frame, _numbered_place()).drop(*NUMBERED_PLACE)
    return _with_column(frame, place_in_log()) if present >= {"key_hi", "partition", "offset"} else frame


def _with_column(frame: pl.DataFrame, place: pl.Expr) -> pl.DataFrame:
    """Add a place where the schemas have it: behind the version."""
    at = frame.columns.index("version") + 1 if "version" in frame.columns else frame.width
    return frame.select(*frame.columns[:at], place, *frame.columns[at:])


def are_empty_lists(column: pl.Series) -> bool:
    """Return whether every value is a list without elements, as where no hop has a filter."""
    return column.dtype == pl.List and not column.has_nulls() and column.list.len().sum() == 0


def empty_lists(rows: int) -> pl.Series:
    """Return so many lists of texts without elements, made of Arrow's offsets: polars would append each of them."""
    offsets: ArrowArray = pa.array(np.zeros(rows + 1, dtype=np.int64))
    lists = pl.from_arrow(pa.LargeListArray.from_arrays(offsets, pa.array([], pa.large_string())))
    assert isinstance(lists, pl.Series)
    return lists


def empty(schema: Schema) -> pl.DataFrame:
    """Return a frame without rows in this schema."""
    return _empty(tuple(schema.items())).clone()  # half a millisecond to make, and a bucket needs dozens of them


@cache
def _empty(columns: tuple[tuple[str, Any], ...]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict(columns))
