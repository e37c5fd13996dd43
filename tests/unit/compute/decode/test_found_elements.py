"""Check that elements which a format finds many at once are what the reference makes of each record alone: the same
rows in the same order at the same places, bad ones included."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.found_elements import DividingFormat
from makewhole.compute.decode.value_format import ValueFormat, path_of
from makewhole.compute.row_filter import filter_terms
from tests.unit.compute.decode.avro import written as avro
from tests.unit.compute.decode.elements_drawn import (
    DRAWN,
    KIND,
    KINDS,
    PATH,
    USUAL,
    avro_record,
    enveloped,
    row_schema,
    shape,
    usual_event,
    usual_row,
)
from tests.unit.compute.decode.protobuf import messages as protobuf
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit


class _Alone:
    """A format that finds no elements together."""

    def __init__(self, form: ValueFormat) -> None:
        self.document = form.document


def placed(values: list[bytes | None]) -> pa.RecordBatch:
    return batch(values).append_column("offset", pa.array(range(len(values)), pa.int64()))


def together(values: list[bytes | None], asked: ValueShape) -> list[Any]:
    decoded = decode_records(placed(values), asked)
    offsets = decoded.batch.column("offset").to_pylist()
    return list(zip(offsets, decoded.frame.rows(), strict=True))


def alone(values: list[bytes | None], asked: ValueShape) -> list[Any]:
    """Return the same by the reference, which makes a document of each record alone."""
    assert asked.elements is not None
    elements = Elements(path=asked.elements.path, format=_Alone(asked.elements.format))  # type: ignore[arg-type]
    places = [path_of(place)[0] for place in asked.read_places if place]
    rows = []
    for offset, value in enumerate(values):
        divided = elements.divided(batch([value]), places).batch
        rows += [(offset, row) for row in record_values._decode_one_by_one(divided, asked).rows()]
    return rows


@st.composite
def _damaged(draw: st.DrawFn, values: st.SearchStrategy[bytes]) -> bytes | None:
    value = draw(values)
    at = draw(st.integers(0, len(value)))
    match draw(st.sampled_from(["", "", "", "", "", "cut", "byte", "more", "none"])):
        case "cut":
            return value[:at]
        case "byte":
            return value[:at] + bytes([draw(st.integers(0, 255))]) + value[at + draw(st.integers(0, 1)) :]
        case "more":
            return value + draw(st.binary(min_size=1, max_size=2))
        case "none":
            return None
    return value


@pytest.mark.parametrize("name", DRAWN)
@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_elements_are_found_together_as_each_record_has_them(name: str, data: st.DataObject) -> None:
    drawn = DRAWN[name]
    values = data.draw(st.lists(_damaged(drawn.values), min_size=1, max_size=6))
    more: dict[str, Any] = {"version": "event:source.lsn"} if name == "debezium" and data.draw(st.booleans()) else {}
    where = data.draw(st.sampled_from(["sku = 'x'", "n > 0.5", "n = 4", "n != 0 and sku = 'x'"]))
    more["filters"] = {"a→b": filter_terms(where, {"sku": "string", "n": "decimal(10,1)"})}
    asked = shape(drawn.form(), data.draw(st.sampled_from(KINDS)), **more)
    assert isinstance(drawn.form(), DividingFormat)
    assert together(values, asked) == alone(values, asked)


@pytest.mark.parametrize("name", USUAL)
def test_usual_elements_are_found_together_each_with_its_record(name: str) -> None:
    form, value_of = USUAL[name]
    asked = shape(DRAWN[form].form())
    values: list[bytes | None] = [value_of(3), b"\xff", value_of(0), value_of(1), None, value_of(2)]
    elements = asked.elements
    assert elements is not None
    assert isinstance(elements.format, DividingFormat)
    answer = elements.format.find_elements(placed(values), PATH, [path_of(place) for place in asked.read_places])
    is_found = [True, False, not name.startswith("debezium"), True, False, True]
    assert answer.is_found.tolist() == is_found
    assert answer.counts.tolist() == [3, 0, 0, 1, 0, 2]
    rows = together(values, asked)
    assert rows == alone(values, asked)
    assert [offset for offset, _ in rows] == [0, 0, 0, 1, 3, 4, 5, 5]
    usual = [row for offset, row in rows if offset in (0, 3, 5)]
    assert [row[0] for row in usual] == [f'["A","{number}"]' for number in (0, 1, 2, 0, 0, 1)]
    assert [row[2] for row in usual] == [None, "x", None, None, None, "x"]
    assert {row[3] for row in usual} == {"4.00"}
    assert [row[-2] for row in usual] == [["a→b"], [], ["a→b"], ["a→b"], ["a→b"], []]


@pytest.mark.parametrize("name", USUAL)
def test_usual_elements_are_not_divided_alone(name: str) -> None:
    form, value_of = USUAL[name]
    with mock.patch.object(Elements, "divided", side_effect=AssertionError):
        rows = together([value_of(lines) for lines in (2, 1, 4)], shape(DRAWN[form].form()))
    assert [offset for offset, _ in rows] == [0, 0, 1, 2, 2, 2, 2]


def test_one_element_that_is_not_usual_leaves_its_record_alone() -> None:
    asked = shape(DRAWN["connect"].form())
    payload = usual_row(3)
    payload["o"]["lines"][1]["no"] = None
    values = [USUAL["connect"][1](2), enveloped(row_schema("array")["fields"], payload), USUAL["connect"][1](1)]
    rows = together([*values], asked)
    assert rows == alone([*values], asked)
    assert [offset for offset, _ in rows] == [0, 0, 1, 1, 1, 2]
    assert [row[1] for _, row in rows] == [None, None, None, "key is null", None, None]


def test_an_array_of_texts_has_elements_that_are_texts() -> None:
    schema = avro_record("r", id="string", tags={"type": "array", "items": "string"})
    file = protobuf.new_file(R=[("id", KIND.TYPE_STRING), ("tags", KIND.TYPE_STRING, protobuf.REPEATED)])
    bodies: dict[Any, bytes] = {
        AvroFormat(avro.Schemas({"ids/1": schema})): avro.prefix(1)
        + avro.body(schema, {"id": "A", "tags": ["x", "y"]}),
        ProtobufFormat(protobuf.Schemas({"ids/1": file})): avro.prefix(1)
        + b"\x00"
        + protobuf.class_of(file)(id="A", tags=["x", "y"]).SerializeToString(),
    }
    for form, value in bodies.items():
        asked = shape(
            form, (), key=("$.id", "$.tags"), compare={"tag": "string"}, places={"tag": "$.tags"}, version=None,
            filters={}, elements=Elements(path=("tags",), format=form), format=ElementFormat(),
        )  # fmt: skip
        assert form.find_elements(placed([value]), ("tags",), [("id",), ("tags",)]).counts.tolist() == [2]
        rows = together([value], asked)
        assert rows == alone([value], asked)
        assert [row[0] for _, row in rows] == ['["A","x"]', '["A","y"]']


def test_more_elements_than_a_body_has_bytes_are_left() -> None:
    schema = avro_record("r", id="string", lines={"type": "array", "items": "null"}, tail="string")
    form = AvroFormat(avro.Schemas({"ids/1": schema}))
    values = [avro.prefix(1) + b"\x02A" + b"\x04" * blocks + b"\x00\x14" + b"t" * 10 for blocks in (20, 5)]
    answer = form.find_elements(placed([*values]), ("lines",), [("id",)])
    assert answer.is_found.tolist() == [False, True]
    assert answer.counts.tolist() == [0, 10]


@pytest.mark.parametrize("name", ["debezium", "debezium without schema"])
@pytest.mark.parametrize("lines", [[2], [1, None]], ids=["found", "alone"])
def test_elements_have_what_their_event_says_of_itself(name: str, lines: list[int | None]) -> None:
    asked = shape(ChangeEventFormat(), version="event:source.lsn")
    values = [USUAL[name][1](2 if count is None else count) for count in lines]
    if None in lines:
        values = [value.replace(b'"no":1', b'"no":null').replace(b'"no": 1', b'"no": null') for value in values]
    frame = decode_records(placed([*values]), asked).frame
    assert frame["version"].to_list() == [Decimal(7)] * frame.height
    assert frame.height == (2 if lines == [2] else 3)


def test_events_of_no_known_kind_are_no_elements_and_no_copies_of_keys_of_several_parts() -> None:
    event = {**usual_event(2), "op": None}
    asked = shape(ChangeEventFormat())
    whole = replace(asked, elements=None, key=("$.id", "$.v"), format=ChangeEventFormat())
    problem = "value is a change event of an unknown kind (its op is none of c, u, d, r, t, m)"
    for read_shape in (asked, whole):
        frame = decode_records(placed([json.dumps(event).encode()] * 2), read_shape).frame
        assert frame["problem"].to_list() == [problem] * 2


@pytest.mark.parametrize("name", USUAL)
def test_elements_are_found_in_values_that_are_views(name: str) -> None:
    form, value_of = USUAL[name]
    asked = shape(DRAWN[form].form())
    values: list[bytes | None] = [value_of(3), b"\xff", value_of(0), None, value_of(2)]
    copied = placed(values)
    at = copied.schema.get_field_index("value")
    decoded = decode_records(copied.set_column(at, "value", copied.column("value").cast(pa.binary_view())), asked)
    assert [*zip(decoded.batch.column("offset").to_pylist(), decoded.frame.rows(), strict=True)] == alone(values, asked)
