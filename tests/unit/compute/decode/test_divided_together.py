"""Check that records which are divided and decoded many at once are what they are one by one, bad ones included."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.json_values import JSON, JsonFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.json_elements import divide_json
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import KeyType
from makewhole.native.json_elements import LEFT
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit

_PATHS = (("lines",), ("o", "lines"))
_AT = {("lines",): "$.lines", ("o", "lines"): "$.o.lines"}


def _shape(path: tuple[str, ...], kinds: tuple[KeyType, ...], form: JsonFormat) -> ValueShape:
    at = _AT[path]
    return ValueShape(
        key=("$.id", f"{at}.no"),
        key_layout=kinds,
        compare={"sku": "string", "n": "decimal(10,2)", "at": "timestamp"},
        places={"sku": f"{at}.sku", "n": f"{at}.n", "at": "$.at"},
        version="$.v",
        filters={"a→b": filter_terms("sku = 'x'", {"sku": "string"})},
        format=ElementFormat(),
        elements=Elements(path=path, format=form),
    )


def _rows(values: list[bytes | None], path: tuple[str, ...], kinds: tuple[KeyType, ...], *, together: bool) -> Any:
    """Return the decoded elements: together, or by the reference, which makes a document of each record alone."""
    shape = _shape(path, kinds, JSON if together else JsonFormat())
    assert shape.elements is not None
    if together:
        return decode_values(shape.elements.divided(batch(values), shape.fields).batch, shape).rows()
    divided = [shape.elements.divided(batch([value]), shape.fields).batch for value in values]
    return [row for part in divided for row in record_values._decode_one_by_one(part, shape).rows()]


_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.sampled_from([0.5, -0.0, 1e30, 1e-9, 12345678901.25]),
    st.text(max_size=3),
    st.sampled_from(["x", "1", "01", 'a"b', "\\", "\ud800", "\x7f", "{", "__debezium_unavailable_value", "2025-03-01"]),
)
_USUAL_LINES = st.fixed_dictionaries(
    {"no": st.integers(0, 9), "sku": st.sampled_from("xyz"), "n": st.integers(0, 9)}, optional={"more": _SCALARS}
)
_LINES: st.SearchStrategy[Any] = st.one_of(
    _USUAL_LINES,
    st.dictionaries(st.sampled_from(["no", "sku", "n", "lines", "id"]), _SCALARS, max_size=4),
    st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=2), max_leaves=3),
)
_ARRAYS: st.SearchStrategy[Any] = st.one_of(
    st.lists(_LINES, max_size=4), st.sampled_from([None, 5, "[]", '[{"no":1}]', {}])
)
_TOP = st.dictionaries(
    st.sampled_from(["id", "at", "v", "note", "payload", "schema", "before", "after", "source", "op", "o"]),
    st.one_of(_SCALARS, st.just({"lines": 1}), st.just([1, {"lines": []}])),
    max_size=6,
)


@st.composite
def _texts(draw: st.DrawFn, path: tuple[str, ...]) -> bytes | None:
    """Draw a record: usual, unusual, damaged, or none."""
    lines, fields = draw(_ARRAYS), list(draw(_TOP).items())
    if draw(st.integers(0, 3)):
        fields = [(name, inner) for name, inner in fields if name != "id"] + [("id", draw(st.sampled_from("AB")))]
    inner = lines if len(path) == 1 else {"other": 1, "lines": lines, "after": [2]}
    if draw(st.integers(0, 9)):
        fields.insert(draw(st.integers(0, len(fields))), (path[0], inner))
    spaces = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
    members = [f"{json.dumps(name)}{spaces[1]}{_dumped(value, draw, spaces)}" for name, value in fields]
    text = ("{" + spaces[0].join(members) + "}").encode("utf-8", "surrogatepass")
    damage = draw(st.sampled_from(["", "", "", "cut", "byte", "more", "none", "twice"]))
    if damage == "none":
        return None
    if damage == "twice":
        return text[:-1] + b"," + f"{json.dumps(path[0])}:[]".encode() + b"}"
    if damage == "more":
        return text + draw(st.sampled_from([b" ", b"{}", b"\x00", b"\n\t"]))
    at = draw(st.integers(0, len(text) - 1))
    if damage == "cut":
        return text[:at]
    byte = draw(st.sampled_from([b'"', b"\\", b"{", b"]", b",", b"e9", b"\xff", b"\x01", b"NaN", b" ", b"0", b"-"]))
    return text if not damage else text[:at] + byte + text[at + draw(st.integers(0, 1)) :]


def _dumped(value: Any, draw: st.DrawFn, spaces: tuple[str, str]) -> str:
    return json.dumps(value, ensure_ascii=draw(st.booleans()), separators=spaces)


@pytest.mark.parametrize("path", _PATHS, ids=".".join)
@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_records_are_divided_together_as_each_alone(path: tuple[str, ...], data: st.DataObject) -> None:
    kinds = data.draw(st.sampled_from([(KeyType.STRING, KeyType.BIGINT), (), (KeyType.STRING, KeyType.STRING)]))
    values = data.draw(st.lists(_texts(path), min_size=1, max_size=6))
    readings = [_rows(values, path, kinds, together=together) for together in (True, False)]
    assert readings[0] == readings[1]


@pytest.mark.parametrize(
    ("value", "is_left"),
    [
        (b'{"id":1,"lines":[{"a":1.50},{"a":"\\ud800"}],"more":{"lines":2}}', False),
        (b' { "lines" : [ ] , "id" : "x" } ', False),
        (b'{"lines":[1],"lines":[2]}', True),
        (b'{"lines":[1e999999999]}', True),
        (b'{"lines":[NaN]}', True),
        (b'{"lines":null}', True),
        (b'{"lines":[1,]}', True),
        (b'{"lines":[1]}x', True),
        (b'{"lines":[1],"note":"\x01"}', True),
        (b'{"lines":[1],"note":"\xff"}', True),
        (b"\xef\xbb\xbf" + b'{"lines":[1]}', True),
        (b'{"lines":[' + b"[" * 200 + b"]" * 200 + b"]}", True),
        (b'{"lines":[' + b",".join([b"{}"] * 300) + b"]}", False),
        (b'{"lines":[1],"schema":1,"payload":2}', True),
        (b'{"lines":[1],"before":1,"after":2,"source":3,"op":4}', True),
        (b'{"lines":[1],"before":1,"after":2,"op":4}', False),
        (b'{"lines":[1e5,-0.5E-3,1E+999]}', False),
        (b'{"lines":[1e1000]}', True),
        (b'{"lines":[' + b"1" * 41 + b"]}", True),
        (b'{"lines":[01]}', True),
        (b'{"lines":[1.]}', True),
        (b'{"lines":["\\u12G4"]}', True),
        (b'{"lines":["\\x"]}', True),
        (b'{"l\\u0069nes":[1],"lines":[]}', True),
        (b'{"other":{"\\u0069":1},"lines":[]}', False),
        (b'{"id":1,"id":2,"lines":[]}', True),
        (b"[1]", True),
        (b"", True),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_usual_is_not_left(value: bytes, is_left: bool) -> None:
    divided = divide_json(pa.array([value], pa.binary()), ("lines",), {"id", "lines", "more", "note"})
    assert (divided.counts.tolist() == [LEFT]) == is_left


def test_an_element_has_the_text_that_it_had() -> None:
    value = b'{"a": 1, "o": {"x": [0], "lines": [ {"n": 1.50} , "\\u00fc" ], "y": 2}, "b": {"lines": []}}'
    assert divide_json(pa.array([value], pa.binary()), ("o", "lines"), {"o", "b"}).elements.to_pylist() == [
        b'{"o": {"x": [0], "lines": {"n": 1.50}, "y": 2},"b": {"lines": []}}',
        b'{"o": {"x": [0], "lines": "\\u00fc", "y": 2},"b": {"lines": []}}',
    ]
