"""Test that a row which Debezium marks as deleted deletes its key, in every format of rows."""

import json
from typing import Any

import pyarrow as pa
import pytest

from makewhole.compute.column_values import parse_fields
from makewhole.compute.decode import record_values
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.model.errors import ActionRefusedError
from makewhole.model.points import TopicPoint, ValueSchema
from makewhole.window.formats import format_of
from tests.unit.compute.decode.avro.written import batch, body

pytestmark = pytest.mark.unit

AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": "int"},
        {"name": "__deleted", "type": ["null", "string"], "default": None},
    ],
}
CONNECT = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "string"},
        {"field": "n", "type": "int32"},
        {"field": "__deleted", "type": "string"},
    ],
}
ENCODE: dict[str, Any] = {
    "json": lambda row: json.dumps(row).encode(),
    "avro": lambda row: body(AVRO, row),
    "connect": lambda row: json.dumps({"schema": CONNECT, "payload": row}).encode(),
}


def point_of(name: str) -> TopicPoint:
    schema = ValueSchema(text=json.dumps(AVRO)) if name == "avro" else None
    return TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",), value=name, schema=schema)


def row(number: int, mark: str | None) -> dict[str, Any]:
    return {"id": f"O{number}", "n": number, "__deleted": mark}


@pytest.mark.parametrize("name", ENCODE)
@pytest.mark.parametrize("number", [3, 300])
def test_a_row_that_is_marked_as_deleted_deletes_its_key(name: str, number: int) -> None:
    form = format_of(point_of(name))
    values = [ENCODE[name](row(at, "true" if at == 1 else "false" if at else None)) for at in range(number)]
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, format=form, keeps_tombstones=True)

    decoded = decode_values(batch(values), shape)

    assert decoded.select("key", "problem", "c:n", "is_tombstone").rows() == [
        (f"O{at}", None, None if at == 1 else str(at), at == 1) for at in range(number)
    ]


@pytest.mark.parametrize("name", ENCODE)
def test_such_a_row_is_no_copy_where_deletions_say_nothing(name: str) -> None:
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, format=format_of(point_of(name)))

    decoded = decode_values(batch([ENCODE[name](row(1, "true"))]), shape)

    assert decoded.select("key", "problem").rows() == [(None, "value is of a deleted row (__deleted)")]


@pytest.mark.parametrize("name", ENCODE)
def test_no_row_is_written_of_such_a_record(name: str) -> None:
    with pytest.raises(ActionRefusedError, match="the record's value is of a deleted row"):
        parse_fields(ENCODE[name](row(1, "true")), ["n"], format_of(point_of(name)))


def test_a_boolean_is_a_mark_too_and_a_part_of_that_name_is_none() -> None:
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, format=format_of(point_of("json")), keeps_tombstones=True)
    values: list[bytes | None] = [
        json.dumps(deleted).encode()
        for deleted in ({"id": "a", "__deleted": True}, {"id": "b", "x": {"__deleted": "true"}})
    ]

    assert decode_values(batch(values), shape)["is_tombstone"].to_list() == [True, False]


@pytest.mark.parametrize(
    ("kind", "mark", "deletes"),
    [
        ("int", 1, False),
        ("double", 1.0, False),
        ("string", "1", False),
        ("boolean", True, True),
        ("boolean", False, False),
    ],
)
@pytest.mark.parametrize("name", ["json", "avro"])
def test_the_number_one_is_no_mark(name: str, kind: str, mark: Any, deletes: bool) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}, {"name": "__deleted", "type": kind}]
    schema = {"type": "record", "name": "Row", "fields": fields}
    text = ValueSchema(text=json.dumps(schema)) if name == "avro" else None
    point = TopicPoint(name="orders", connection="log", topic="orders", key=("$.id",), value=name, schema=text)
    shape = ValueShape(key=("$.id",), compare={"n": "int"}, format=format_of(point), keeps_tombstones=True)
    marked = {"id": "a", "n": 5, "__deleted": mark}
    value = body(schema, marked) if name == "avro" else json.dumps(marked).encode()

    for records in (batch([value]), batch([value] * 50)):
        decoded = decode_values(records, shape)

        assert decoded["is_tombstone"].unique().to_list() == [deletes]
        assert decoded.rows() == record_values._decode_one_by_one(records, shape).rows()


ROW = {"type": "record", "name": "Value", "fields": [{"name": "n", "type": "int"}]}
EVENT_SCHEMA = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ],
}


@pytest.mark.parametrize("name", ["json", "avro"])
def test_a_deletion_in_an_envelope_is_no_version_of_nulls(name: str) -> None:
    schema = ValueSchema(text=json.dumps(EVENT_SCHEMA)) if name == "avro" else None
    point = TopicPoint(name="orders", connection="log", topic="orders", key=("kafka.key",), value=name, schema=schema)
    shape = ValueShape(
        key=("kafka.key",),
        compare={"n": "int"},
        places={"n": "$.after.n"},
        format=format_of(point),
        keeps_tombstones=True,
    )
    events = [{"before": None, "after": {"n": 7}, "op": "c"}, {"before": {"n": 7}, "after": None, "op": "d"}]
    values: list[bytes | None] = [
        body(EVENT_SCHEMA, event) if name == "avro" else json.dumps(event).encode() for event in events
    ]
    records = batch(values)
    if "key" not in records.schema.names:
        records = records.append_column("key", pa.array([b"a", b"a"]))

    decoded = decode_values(records, shape)

    assert decoded.select("c:n", "is_tombstone").rows() == [("7", False), (None, True)]


def test_a_field_of_that_name_alone_deletes_nothing() -> None:
    shape = ValueShape(key=("$.id",), compare={"op": "string"}, format=format_of(point_of("json")))
    values: list[bytes | None] = [json.dumps({"id": f"{at}", "op": "d"}).encode() for at in range(3)]

    assert decode_values(batch(values), shape).select("c:op", "problem").rows() == [("d", None)] * 3


def test_types_of_debezium_in_avro_are_moments_days_and_times() -> None:
    named = {
        "a": ("int", "Date"),
        "b": ("long", "MicroTimestamp"),
        "c": ("long", "MicroTime"),
        "d": ("long", "Timestamp"),
    }
    fields = [
        {"name": name, "type": {"type": kind, "connect.version": 1, "connect.name": f"io.debezium.time.{of}"}}
        for name, (kind, of) in named.items()
    ]
    schema = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "string"}, *fields]}
    point = TopicPoint(
        name="orders", connection="log", topic="orders", key=("$.id",), value="avro",
        schema=ValueSchema(text=json.dumps(schema)),
    )  # fmt: skip
    compare = {"a": "date", "b": "timestamp", "c": "string", "d": "timestamp"}
    shape = ValueShape(key=("$.id",), compare=compare, format=format_of(point))
    row = {"id": "x", "a": 15_736, "b": 1_359_633_600_000_001, "c": 36_000_500_000, "d": 1_359_633_600_001}
    written = body(
        {**schema, "fields": [schema["fields"][0], *({"name": n, "type": k} for n, (k, _) in named.items())]}, row
    )

    decoded = decode_values(batch([written]), shape)

    assert decoded.select("c:a", "c:b", "c:c", "c:d").rows() == [
        ("2013-01-31", "1359633600000001", "10:00:00.5", "1359633600001000")
    ]
