"""Check the keys frames of records and rows."""

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.frames import KEYS, TOPIC_KEYS, UNDECODABLE
from makewhole.compute.normalise import table_frame, topic_frame

pytestmark = pytest.mark.unit

SHAPE = ValueShape(key=("$.id",), compare={"n": "int"})
PLAN = "demo-1-0123456789ab"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
COLUMNS = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "leader_epoch": pa.int32(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "timestamp_type": pa.int8(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "sequence": pa.int32(),
    "is_transactional": pa.bool_(),
    "is_aborted": pa.bool_(),
    "is_replayed": pa.bool_(),
}


def log(records: list[dict[str, Any]]) -> pa.RecordBatch:
    usual: dict[str, Any] = {
        "partition": 2,
        "leader_epoch": 4,
        "timestamp": 1_000,
        "timestamp_type": 0,
        "key": None,
        "value": b'{"id":"a","n":1}',
        "headers": [],
        "producer_id": 9,
        "producer_epoch": 0,
        "sequence": 3,
        "is_transactional": False,
        "is_aborted": False,
        "is_replayed": False,
    }
    rows = [usual | {"offset": at} | record for at, record in enumerate(records)]
    return pa.RecordBatch.from_pydict(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()}
    )


def replayed(*values: bytes | None) -> dict[str, Any]:
    return {"is_replayed": True, "headers": [{"key": "makewhole-plan", "value": value} for value in values]}


def test_a_batch_becomes_keys_with_places_and_undecodable_records_with_reasons() -> None:
    good, bad = topic_frame(log([{}, {"value": None}, {"value": b"{}", "is_aborted": True}]), SHAPE)

    assert dict(good.schema) == TOPIC_KEYS | {"c:n": pl.String}
    assert good.select("key", "place", "time", "offset", "producer_id", "sequence", "c:n").rows() == [
        ("a", "2:0", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 0, 9, 3, "1")
    ]
    assert dict(bad.schema) == UNDECODABLE
    assert bad.rows() == [("2:1", "value is null (a tombstone)", None)]


@pytest.mark.parametrize("stamp", [2**63 - 1, -(2**63) + 1, 253_402_300_800_000, -62_200_000_000_000])
def test_a_timestamp_beyond_the_calendar_is_no_time_and_stops_nothing(stamp: int) -> None:
    good, _ = topic_frame(log([{"timestamp": stamp}, {"timestamp": -1}, {}]), SHAPE)

    before = datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert good["time"].to_list() == [None, before, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("values", "plan"),
    [
        ((PLAN.encode(),), PLAN),
        ((f"{PLAN}-r2".encode(),), f"{PLAN}-r2"),
        ((f"{PLAN}-r".encode(),), None),
        ((None, PLAN.encode()), PLAN),
        ((b"\x00", PLAN.encode()), PLAN),
        ((b"\xff",), None),
        ((b"nul\x00",), None),
        ((b"x" * 100_000,), None),
        ((b"' or 1=1",), None),
        ((None,), None),
    ],
)
def test_only_what_could_be_a_plan_is_read_from_a_lineage_header(values: tuple[bytes | None, ...], plan: str) -> None:
    good, _ = topic_frame(log([replayed(*values), {}]), SHAPE)

    assert good["replay_plan"].to_list() == [plan, None]


def rows(records: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {
        "key": pl.String,
        "place": pl.String,
        "time_us": pl.Int64,
        "version": pl.Int64,
        "c:x": pl.String,
        "excluded_by": pl.String,
    }
    usual = {"key": "a", "place": "(0,1)", "time_us": 1, "version": None, "c:x": "1", "excluded_by": ""}
    return pl.DataFrame([usual | record for record in records], schema=schema)


def test_rows_become_keys_and_those_without_one_are_kept_aside() -> None:
    frame = rows([{}, {"key": None, "place": "(0,2)"}, {"key": "", "place": "(0,3)"}, {"excluded_by": "a→b,a→c"}])

    good, bad = table_frame(frame, {"x": "int"})

    assert dict(good.schema) == KEYS | {"c:x": pl.String}
    assert good["excluded_by"].to_list() == [[], ["a→b", "a→c"]]
    assert good["time"][0] == datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert bad.rows() == [("(0,2)", "key is null or empty", None), ("(0,3)", "key is null or empty", None)]


def test_doubles_are_written_as_for_json_and_times_beyond_the_calendar_are_none() -> None:
    frame = rows(
        [{"c:x": text} for text in ("1e+20", "-0", "0.1", "NaN", "Infinity", None)]
        + [{"time_us": 300_000_000_000_000_000}]
    )

    good, _ = table_frame(frame, {"x": "double"})

    assert good["c:x"].to_list() == ["1e+20", "0.0", "0.1", "nan", "inf", None, "1.0"]
    assert good["time"][-1] is None


def test_one_value_gives_one_row_hash_from_a_record_and_from_a_row() -> None:
    topic, _ = topic_frame(log([{"value": b'{"id":"a","x":0.1}'}]), ValueShape(key=("$.id",), compare={"x": "double"}))
    table, _ = table_frame(rows([{"c:x": "0.1"}]), {"x": "double"})

    assert topic.select("key_hi", "key_lo", "row_hash").rows() == table.select("key_hi", "key_lo", "row_hash").rows()


@pytest.mark.parametrize(
    "written", ["0.1", '"0.10"', "0.10000000000000001", "1e-1", '"1.00e-1"', "0.1000000000000000055511151231257827"]
)
def test_every_text_of_a_double_is_that_double(written: str) -> None:
    shape = ValueShape(key=("$.id",), compare={"x": "double"})
    values = [b'{"id":"a","x":%b}' % text.encode() for text in ("0.5", written, "-0.0", "1e300", "null")]
    topic, _ = topic_frame(log([{"value": value} for value in values]), shape)
    assert topic["c:x"].to_list() == ["0.5", "0.1", "0.0", "1e+300", None]


def test_no_rows_keep_the_schema() -> None:
    good, bad = table_frame(rows([]), {"x": "double"})

    assert dict(good.schema) == KEYS | {"c:x": pl.String}
    assert bad.is_empty()
