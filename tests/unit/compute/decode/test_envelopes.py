"""Test that a record in an envelope is not read as one whose fields are all null."""

import json
from typing import Any

import pyarrow as pa
import pytest

from makewhole.compute.column_values import parse_fields
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.row_filter import typed_term
from makewhole.model.errors import RefusedError

pytestmark = pytest.mark.unit

_SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "string", "optional": False},
        {"field": "note", "type": "string", "optional": True, "default": "none"},
    ],
}
CONNECT = {"schema": _SCHEMA, "payload": {"id": "k", "note": "none"}}
CHANGE = {"before": None, "after": {"id": "k", "note": None}, "source": {"lsn": 1}, "op": "c", "ts_ms": 1}
SETTINGS = {"connect": "`value.converter.schemas.enable=false`", "change": "`transforms=unwrap`"}


def batch(documents: list[Any], key: bytes = b"k") -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([key] * len(documents), pa.binary()),
            "value": pa.array([json.dumps(document).encode() for document in documents], pa.binary()),
            "headers": pa.array([[]] * len(documents), pa.list_(pa.struct([("key", pa.string())]))),
        }
    )


@pytest.mark.parametrize("key", ["$.id", "kafka.key"])
@pytest.mark.parametrize(
    ("envelope", "setting"), [(CONNECT, SETTINGS["connect"]), (CHANGE, SETTINGS["change"])], ids=["connect", "change"]
)
@pytest.mark.parametrize("count", [1, 300])
def test_a_compared_field_that_lies_deeper_makes_the_record_undecodable(
    key: str, envelope: dict[str, Any], setting: str, count: int
) -> None:
    shape = ValueShape(key=(key,), compare={"note": "string"})

    decoded = decode_values(batch([envelope] * count), shape)

    assert decoded["key"].null_count() == count
    (problem,) = decoded["problem"].unique()
    assert problem.startswith("value is ")
    assert " note; write " in problem
    assert setting in problem


@pytest.mark.parametrize("envelope", [CONNECT, CHANGE], ids=["connect", "change"])
def test_plain_records_beside_envelopes_are_read(envelope: dict[str, Any]) -> None:
    shape = ValueShape(key=("$.id",), compare={"note": "string"})
    documents = [{"id": f"k{n}", f"x{n % 9}": n, "note": "a"} for n in range(400)]
    documents[250] = envelope

    decoded = decode_values(batch(documents), shape)

    assert [at for at, key in enumerate(decoded["key"]) if key is None] == [250]
    assert decoded["c:note"].null_count() == 1


@pytest.mark.parametrize(
    ("key", "document"),
    [
        ("$.payload.id", CONNECT),
        ("$.after.id", CHANGE),
        ("$.id", {"id": "k", "schema": 1, "payload": "…", "note": "a"}),
        ("$.id", {"id": "k", "before": 1, "after": 2, "note": "a"}),
    ],
)
def test_what_is_read_where_it_lies_stays_readable(key: str, document: dict[str, Any]) -> None:
    """Keys alone of an envelope, and records that have such names among their own fields."""
    shape = ValueShape(key=(key,), compare={"note": "string"} if "note" in document else {})

    decoded = decode_values(batch([document] * 3), shape)

    assert decoded["key"].to_list() == ["k"] * 3


@pytest.mark.parametrize("compared", ["payload", "schema"])
def test_the_parts_of_an_envelope_can_be_compared_themselves(compared: str) -> None:
    decoded = decode_values(batch([CONNECT]), ValueShape(key=("$.payload.id",), compare={compared: "json"}))

    assert decoded["key"].to_list() == ["k"]
    assert decoded[f"c:{compared}"].null_count() == 0


def test_a_filter_and_a_version_are_fields_as_well() -> None:
    filtered = ValueShape(key=("kafka.key",), compare={}, filters={"a→b": (typed_term("note", "none"),)})
    versioned = ValueShape(key=("kafka.key",), compare={}, version="$.version")

    for shape, name in ((filtered, "note"), (versioned, "version")):
        (problem,) = decode_values(batch([CONNECT]), shape)["problem"]
        assert f"has no field {name}; write " in problem


def test_nothing_is_written_of_an_envelope() -> None:
    """A `write` column would be null, or the default of its schema."""
    value = json.dumps(CONNECT).encode()
    with pytest.raises(RefusedError, match=r"^unfit: the record's value is Kafka Connect's envelope .* no field note"):
        parse_fields(value, ["note"])
    assert parse_fields(value)["payload"] == {"id": "k", "note": "none"}
