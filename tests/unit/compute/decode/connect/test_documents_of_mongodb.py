"""Test that change events of MongoDB, whose rows are texts of extended JSON, have the fields of their documents."""

import json
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.extended_json import plain_document
from makewhole.compute.decode.record_values import ValueShape, decode_values
from tests.unit.compute.decode.avro.written import batch

pytestmark = pytest.mark.unit

SHAPE = ValueShape(
    key=("$._id",),
    compare={"amount": "decimal(8,2)", "at": "timestamp", "to.city": "string"},
    places={"amount": "$.amount", "at": "$.at", "to.city": "$.to.city"},
    format=ChangeEventFormat(),
    keeps_tombstones=True,
)


def event(op: str, before: Any, after: Any, *, has_schema: bool = False) -> bytes:
    payload = {
        "before": None if before is None else json.dumps(before),
        "after": None if after is None else json.dumps(after),
        "source": {"connector": "mongodb"},
        "op": op,
        "ts_ms": 1,
    }
    if not has_schema:
        return json.dumps(payload).encode()
    named = {"type": "string", "name": "io.debezium.data.Json", "optional": True}
    fields = [{**named, "field": name} for name in ("before", "after")] + [{"type": "string", "field": "op"}]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


DOCUMENT = {
    "_id": {"$oid": "596e275826f08b2730779e1f"},
    "amount": {"$numberDecimal": "7.50"},
    "at": {"$date": 1_740_823_200_123},
    "to": {"city": "Bonn"},
}


@pytest.mark.parametrize("has_schema", [True, False])
@pytest.mark.parametrize("number", [1, 200])
def test_a_document_is_the_row_of_its_event(has_schema: bool, number: int) -> None:
    values: list[bytes | None] = [event("c", None, DOCUMENT, has_schema=has_schema)] * number
    values.append(event("d", {"_id": {"$oid": "b"}, "amount": 1}, None, has_schema=has_schema))

    decoded = decode_values(batch(values), SHAPE)

    assert decoded["problem"].null_count() == number + 1
    rows = decoded.select("key", "c:amount", "c:at", "c:to.city", "is_tombstone").rows()
    key = "596e275826f08b2730779e1f"
    assert rows == [(key, "7.50", "1740823200123000", "Bonn", False)] * number + [("b", None, None, None, True)]


def test_a_text_that_is_no_document_is_no_row() -> None:
    wrong = json.dumps({"before": None, "after": "[1]", "source": {}, "op": "c"}).encode()

    assert decode_values(batch([wrong]), SHAPE)["problem"].to_list() == [
        "value is a change event without the row after the change"
    ]


@pytest.mark.parametrize(
    ("extended", "plain"),
    [
        ({"$oid": "5a"}, "5a"),
        ({"$numberLong": "9007199254740993"}, 9007199254740993),
        ({"$numberInt": "-7"}, -7),
        ({"$numberDouble": "0.5"}, Decimal("0.5")),
        ({"$numberDouble": "NaN"}, "NaN"),
        ({"$numberDecimal": "-Infinity"}, "-Infinity"),
        ({"$date": "2025-03-01T10:00:00.123Z"}, "2025-03-01T10:00:00.123Z"),
        ({"$date": {"$numberLong": "0"}}, "1970-01-01T00:00:00.000Z"),
        ({"$binary": {"base64": "AP8=", "subType": "00"}}, r"\x00ff"),
        ({"$binary": "AP8=", "$type": "00"}, r"\x00ff"),
        ({"$type": "80", "$binary": ""}, r"\x"),
        ({"$binary": "b5YZ/4uG0BG0LQDAT8lk/w==", "$type": "04"}, "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        ({"$binary": "b5YZ/4uG0BG0LQDAT8lk/w==", "$type": "03"}, r"\x6f9619ff8b86d011b42d00c04fc964ff"),
        ({"$binary": "AP8=", "$type": "04"}, r"\x00ff"),
        (
            {"$binary": {"base64": "b5YZ/4uG0BG0LQDAT8lk/w==", "subType": "04"}},
            "6f9619ff-8b86-d011-b42d-00c04fc964ff",
        ),
        ({"a": [{"$binary": "AP8=", "$type": "00"}]}, {"a": [r"\x00ff"]}),
        ({"$binary": "A", "$type": "00"}, {"$binary": "A", "$type": "00"}),
        ({"$binary": 7, "$type": "00"}, {"$binary": 7, "$type": "00"}),
        ({"$binary": "AP8=", "$type": 0}, {"$binary": "AP8=", "$type": 0}),
        ({"$binary": "AP8=", "b": "00"}, {"$binary": "AP8=", "b": "00"}),
        ({"$binary": "AP8=", "$type": "00", "b": 1}, {"$binary": "AP8=", "$type": "00", "b": 1}),
        ({"$uuid": "6f9619ff-8b86-d011-b42d-00c04fc964ff"}, "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        ({"a": [{"$oid": "5a"}, None, 1]}, {"a": ["5a", None, 1]}),
        ({"$numberLong": "1e9999999"}, {"$numberLong": "1e9999999"}),
        ({"$regularExpression": {"pattern": "x"}}, {"$regularExpression": {"pattern": "x"}}),
        ({"$date": []}, {"$date": []}),
        ({"$oid": "5a", "b": 1}, {"$oid": "5a", "b": 1}),
    ],
)
def test_extended_json_is_read_as_what_it_says(extended: Any, plain: Any) -> None:
    assert plain_document(extended) == plain
