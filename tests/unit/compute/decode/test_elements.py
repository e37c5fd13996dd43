"""Check that records are divided into the elements of an array, in every format, and what becomes of those without."""

import io
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.row_filter import filter_terms
from makewhole.window.known_schemas import FileSchema
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit

PATH = ("o", "lines")
COMPARE = {"sku": "string", "amount": "decimal(10,2)", "at": "timestamp"}
PLACES = {"sku": "$.o.lines.sku", "amount": "$.o.lines.n", "at": "$.at"}


def _shape(form: ValueFormat = JSON, **more: Any) -> ValueShape:
    return ValueShape(
        key=("$.id", "$.o.lines.no"),
        compare=COMPARE,
        places=PLACES,
        format=UnitFormat(ElementFormat(), {"$.at": "timestamp(ms)"}),
        elements=Elements(path=PATH, format=form),
        **more,
    )


def _divided(values: list[bytes | None], shape: ValueShape) -> pa.RecordBatch:
    assert shape.elements is not None
    return shape.elements.divided(batch(values), shape.fields).batch


def _record(lines: Any, **more: Any) -> dict[str, Any]:
    return {"id": "A", "at": 1000, "o": {"lines": lines, "other": 1}, "more": [1], **more}


LINES = [{"no": 1, "sku": "x", "n": 1.5}, {"no": 2, "sku": "y \U0001f680", "n": "2"}, {"no": 3, "sku": None}]


@pytest.mark.parametrize("form", ["json", "avro", "debezium"])
def test_each_element_is_a_copy_with_fields_of_its_own_and_of_its_record(form: str) -> None:
    record = _record(LINES)
    formats: Mapping[str, tuple[ValueFormat, bytes]] = {
        "json": (JSON, json.dumps(record).encode()),
        "avro": _avro(record),
        "debezium": (ChangeEventFormat(), json.dumps({"op": "c", "after": record, "before": None}).encode()),
    }
    shape = _shape(formats[form][0])
    frame = decode_values(_divided([formats[form][1]], shape), shape)
    assert frame["key"].to_list() == ["A\x1f1", "A\x1f2", "A\x1f3"] or frame["key"].null_count() == 0
    assert frame["c:sku"].to_list() == ["x", "y \U0001f680", None]
    assert frame["c:amount"].to_list() == ["1.50", "2.00", None]
    assert frame["c:at"].to_list() == ["1000000"] * 3
    assert frame["key"].n_unique() == 3


def _avro(record: Mapping[str, Any]) -> tuple[ValueFormat, bytes]:
    line = {
        "type": "record",
        "name": "line",
        "fields": [
            {"name": "no", "type": "int"},
            {"name": "sku", "type": ["null", "string"]},
            {"name": "n", "type": ["null", "double"], "default": None},
        ],
    }
    lines = {"type": "record", "name": "o", "fields": [{"name": "lines", "type": {"type": "array", "items": line}}]}
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": "long"}, {"name": "o", "type": lines}]
    schema = {"type": "record", "name": "r", "fields": fields}
    body = io.BytesIO()
    numbers = [{**element, "n": float(element["n"]) if "n" in element else None} for element in record["o"]["lines"]]
    fastavro.schemaless_writer(body, fastavro.parse_schema(dict(schema)), {**record, "o": {"lines": numbers}})
    return AvroFormat(FileSchema(json.dumps(schema))), body.getvalue()


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (_record([]), []),
        (_record(None), []),
        ({"id": "A", "o": None}, []),
        (_record([LINES[0]]), [None]),
        (_record(json.dumps(LINES[:1])), [None]),
        ({"id": "A", "o": {}}, ["value has no field $.o.lines"]),
        ({"id": "A"}, ["value has no field $.o"]),
        (_record("x"), ["value has no array at $.o.lines"]),
        (_record({"no": 1}), ["value has no array at $.o.lines"]),
        (_record(5), ["value has no array at $.o.lines"]),
        (_record("__debezium_unavailable_value"), ["value has no array at $.o.lines"]),
        ({"id": "A", "o": [1]}, ["value has no object at $.o"]),
        (_record([LINES[0], 5, None]), [None, "key $.o.lines.no is null", "key $.o.lines.no is null"]),
    ],
    ids=str,
)
def test_what_has_no_elements_is_nothing_or_undecodable(value: Any, problems: list[str | None]) -> None:
    shape = _shape()
    frame = decode_values(_divided([json.dumps(value).encode()], shape), shape)
    actual = frame["problem"].to_list()
    assert [problem is None for problem in actual] == [problem is None for problem in problems]
    if len(problems) == 1:
        assert actual == problems


HUGE = "1e99999999999999999999"
DEEP = "value is nested more than 200 deep"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (f'[{{"no": 1, "sku": "a", "x": {HUGE}}}]', "value is not JSON"),
        (f"[{HUGE}]", "value is not JSON"),
        ("[" * 150 + "]" * 150, "key is null"),
        ("[" * 400 + "]" * 400, DEEP),
        ("[" * 3_000 + "]" * 3_000, DEEP),
        ('{"a":' * 3_000, DEEP),
    ],
    ids=lambda value: str(value)[:20],
)
def test_no_text_in_place_of_the_elements_stops_the_reading(lines: str, problem: str | None) -> None:
    shape = _shape()
    values: list[bytes | None] = [json.dumps(_record(some)).encode() for some in (LINES[:1], lines)]

    assert decode_values(_divided(values, shape), shape)["problem"].to_list() == [None, problem]


class _Other:
    """A format whose values have what no JSON has."""

    has_deletions = needs_key = False

    def document(self, value: bytes | None, _: Any) -> Mapping[str, Any]:
        return {"id": "A", "at": 1, "o": {"lines": [{"no": value}]}}


def test_what_is_no_json_is_undecodable() -> None:
    shape = _shape(cast(ValueFormat, _Other()))

    assert decode_values(_divided([b"x"], shape), shape)["problem"].to_list() == ["value has elements that are no JSON"]


def test_a_record_is_as_deep_at_any_depth_of_calls() -> None:
    shape = _shape()
    deep = ["[" * depth + "]" * depth for depth in (150, 190, 210, 400)]
    values: list[bytes | None] = [json.dumps(_record(lines)).encode() for lines in deep]

    def called(depth: int) -> list[str | None]:
        if depth:
            return called(depth - 1)
        problems: list[str | None] = decode_values(_divided(values, shape), shape)["problem"].to_list()
        return problems

    assert called(0) == called(150)


def test_bad_records_keep_their_reasons_and_their_neighbours() -> None:
    shape = _shape()
    values = [json.dumps(_record(LINES)).encode(), b"{", None, b"[]", json.dumps(_record(LINES[:1])).encode()]
    frame = decode_values(_divided(values, shape), shape)
    assert frame["problem"].to_list() == [
        *[None] * 3,
        "value is not JSON",
        "value is null (a tombstone)",
        "value is not a JSON object",
        None,
    ]


def test_half_a_character_and_large_numbers_stay_what_they_are() -> None:
    shape = _shape()
    value = (
        b'{"id":"A","at":1,"o":{"lines":[{"no":1,"sku":"\\ud800x","n":12345678901234567890.12}]},"more":1e999999999}'
    )
    frame = decode_values(_divided([value], shape), shape)
    assert frame["c:sku"].to_list() == ["!'\\ud800x'"]
    assert frame["c:amount"].to_list() == ["12345678901234567890.12"]


ELEMENTS: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"no": st.integers(0, 3)}, optional={"sku": st.text(max_size=2), "n": st.integers(0, 9)}),
    st.sampled_from([None, 5, "x", [], {}]),
)
ARRAYS: st.SearchStrategy[Any] = st.one_of(st.lists(ELEMENTS, max_size=4), st.sampled_from([None, 5, "x", "[]", {}]))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.one_of(ARRAYS.map(_record), st.just({"id": "B"})), min_size=1, max_size=5))
def test_many_records_are_divided_as_each_alone(records: list[Any]) -> None:
    shape = _shape(filters={"a→b": filter_terms("sku = 'x'", {"sku": "string"})})
    values: list[bytes | None] = [json.dumps(record).encode() for record in records]
    alone = [
        row for value in values for row in record_values._decode_one_by_one(_divided([value], shape), shape).rows()
    ]
    assert decode_values(_divided(values, shape), shape).rows() == alone

    expected = Counter(
        (record["id"], element["no"])
        for record in records
        if isinstance(lines := record.get("o", {}).get("lines"), list)
        for element in lines
        if isinstance(element, dict) and "no" in element
    )
    assert sum(expected.values()) == sum(row[0] is not None for row in alone)
    assert len(expected) == len({row[0] for row in alone if row[0] is not None})
