"""Check that the loops over binary values read nothing outside of their bytes, whatever these are."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode.avro.program import compile_schema
from makewhole.compute.decode.avro.schema import parse_schema
from makewhole.compute.decode.protobuf.tables import compile_type
from makewhole.compute.decode.shapes.json_elements import divide_json
from makewhole.native import avro_scan, element_texts, json_elements, protobuf_scan
from tests.unit.compute.decode.avro.test_avro_values import ORDER, good
from tests.unit.compute.decode.protobuf import test_protobuf_values as protobuf
from tests.unit.native.bounds_checks import bounds_checked
from tests.world.examples import examples

pytestmark = pytest.mark.unit

PATHS = [("id",), ("state",), ("total",), ("note",), ("at",)]
AVRO = compile_schema(parse_schema(json.dumps(ORDER)), [*PATHS, ("to", "city")])
PROTOBUF = compile_type(protobuf.Order.DESCRIPTOR, [*PATHS, ("to", "sku"), ("limit",)])
LINES = [("id",), ("lines", "sku"), ("lines", "n")]
AVRO_LINES = compile_schema(parse_schema(json.dumps(ORDER)), LINES, ("lines",))
PROTOBUF_LINES = compile_type(protobuf.Order.DESCRIPTOR, LINES, ("lines",))
WITH_A_LINE = protobuf.order(7, lines=[protobuf.Line(sku="a", n=-1)])
WITH_A_LINE.big = 5
USUAL = [good(7)[5:], WITH_A_LINE.SerializeToString()]


@st.composite
def damaged(draw: Any) -> tuple[bytes, int]:
    """Draw bytes, and where the value ends in them: at their end, or before."""
    usual = draw(st.sampled_from([b"", *USUAL]))
    at = draw(st.integers(0, len(usual)))
    content = usual[:at] + draw(st.binary(max_size=12)) + usual[at + draw(st.integers(0, 3)) :]
    return content, draw(st.integers(0, len(content)))


@settings(max_examples=examples(300), deadline=None)
@given(damaged())
def test_nothing_is_read_outside_of_the_bytes(value: tuple[bytes, int]) -> None:
    content = np.frombuffer(value[0] or b"\0", dtype=np.uint8)
    starts = np.array([0, 0, value[1]], dtype=np.int32)
    lengths = np.array([value[1], len(value[0]), len(value[0]) - value[1]], dtype=np.int32)

    with bounds_checked(avro_scan), bounds_checked(protobuf_scan):
        avro_scan.scan(avro_scan.Bodies(content, starts, lengths), AVRO.steps, AVRO.columns)
        protobuf_scan.scan(protobuf_scan.Messages(content, starts, lengths), PROTOBUF.types, PROTOBUF.columns)


@settings(max_examples=examples(300), deadline=None)
@given(damaged())
def test_no_element_is_read_outside_of_the_bytes_or_written_outside_of_its_column(value: tuple[bytes, int]) -> None:
    content = np.frombuffer((value[0] or b"\0") + b"".join(USUAL), dtype=np.uint8)
    edges = np.cumsum([len(value[0] or b"\0"), *map(len, USUAL)])
    starts = np.array([0, 0, value[1], *edges[:-1]], dtype=np.int32)
    lengths = np.array([value[1], len(value[0]), len(value[0]) - value[1], *map(len, USUAL)], dtype=np.int32)

    with bounds_checked(avro_scan), bounds_checked(protobuf_scan):
        bodies = avro_scan.Bodies(content, starts, lengths)
        of_bodies = avro_scan.scan_elements(bodies, AVRO_LINES.steps, AVRO_LINES.columns)
        messages = protobuf_scan.Messages(content, starts, lengths)
        of_messages = protobuf_scan.scan_elements(messages, PROTOBUF_LINES.types, PROTOBUF_LINES.columns)
    assert of_bodies.counts[of_bodies.rows.tolist().index(3)] == 2
    assert of_messages.counts[of_messages.rows.tolist().index(4)] == 1


JSON = b' {"id" : "\\u00e9", "o": {"lines": [1.5e3, {"a": [true, null]}, "x"], "b": false}, "n": -0} '


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(0, len(JSON)), st.integers(0, len(JSON)), st.binary(max_size=2), st.sampled_from(b'"\\{}[],:-.eutfn0 ')
)
def test_no_record_is_divided_outside_of_its_bytes(first: int, past: int, more: bytes, sign: int) -> None:
    values = [JSON[:past], JSON[first:], JSON[:first] + bytes([sign]) + JSON[past:], more, JSON]
    with bounds_checked(json_elements), bounds_checked(element_texts):
        divided = divide_json(pa.array(values, pa.binary()), ("o", "lines"), ("id", "o"))
    assert divided.counts[-1] == 3
