"""Check that elements which a format finds many at once are what the reference makes of each record alone: the same
rows in the same order at the same places, bad ones included."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.found_elements import DividingFormat
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.decode.value_format import ValueFormat, path_of
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import KeyType
from tests.unit.compute.decode.avro import written as avro
from tests.unit.compute.decode.protobuf import messages as protobuf
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit

PATH = ("o", "lines")
LINES = "$.o.lines"
KINDS = [(KeyType.STRING, KeyType.BIGINT), (), (KeyType.STRING, KeyType.STRING)]


class _Alone:
    """A format that finds no elements together."""

    def __init__(self, form: ValueFormat) -> None:
        self.document = form.document


class Drawn(NamedTuple):
    """A format, and how values of it are drawn: a value, and whether anything in it is left to the reference."""

    form: Callable[[], Any]
    values: st.SearchStrategy[bytes]


def shape(form: Any, kinds: tuple[KeyType, ...] = KINDS[0], **more: Any) -> ValueShape:
    asked: dict[str, Any] = {
        "key": ("$.id", f"{LINES}.no"),
        "key_layout": kinds,
        "compare": {"sku": "string", "n": "decimal(10,2)", "at": "timestamp", "day": "timestamp", "none": "string"},
        "places": {"sku": f"{LINES}.sku", "n": f"{LINES}.n", "at": "$.at", "day": f"{LINES}.to.day", "none": "$.none"},
        "version": "$.v",
        "filters": {"a→b": filter_terms("sku = 'x'", {"sku": "string"})},
        "format": UnitFormat(ElementFormat(), {"$.at": "timestamp(ms)"}),
        "elements": Elements(path=PATH, format=form),
    }
    return ValueShape(**{**asked, **more})


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


# Avro


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": own, "type": kind} for own, kind in fields.items()]}


_MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
_LINE = _record("line", no="int", sku=["null", "string"], n=["null", _DECIMAL], to=_record("to", day=["null", _MOMENT]))
_HELD = _record("o", more="int", lines={"type": "array", "items": _LINE}, last="int")
_ORDER = _record("order", id="string", before_="string", o=_HELD, at="long", v=["null", "long"])
_NULLABLE = ["null", {"type": "array", "items": ["null", _LINE]}]
_HELD_OR_NULL = ["null", _record("o", lines=_NULLABLE, tags={"type": "map", "values": "int"})]
_NULLS = _record("order", v="long", o=_HELD_OR_NULL, at=["long", "null"], id=["null", "string"])
_TEXTS = _record("order", id="string", o=_record("o", lines="string"), at="long", v="long")
_OTHERS = _record(
    "order", id="string", o=_record("o", lines=["int", {"type": "array", "items": "int"}, "null"]), at="long"
)
_SCALARS = _record("order", id="string", o=_record("o", lines={"type": "array", "items": "int"}), at="long", v="int")
_AVRO = {f"ids/{number}": one for number, one in enumerate((_ORDER, _NULLS, _TEXTS, _OTHERS, _SCALARS), 1)}
_INTS, _TEXT = st.integers(-5, 10**6), st.sampled_from(["x", "y", "A", "", "A\x00", "ü", "[]", '[{"no":1}]'])
_LONGS = st.one_of(_INTS, avro.LONGS)
_AVRO_LINES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "no": st.integers(0, 4),
        "sku": st.one_of(st.none(), _TEXT),
        "n": st.one_of(st.none(), st.binary(max_size=5)),
        "to": st.fixed_dictionaries(
            {"day": st.one_of(st.none(), avro.USUAL_MOMENTS, avro.USUAL_MOMENTS, avro.MOMENTS)}
        ),
    }
)


@st.composite
def _avro_values(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(_AVRO_LINES, max_size=4))
    record = {"id": draw(_TEXT), "before_": "b", "at": draw(_LONGS), "v": draw(st.integers(0, 9))}
    name, schema = draw(st.sampled_from([*_AVRO.items(), ("ids/1", _ORDER)]))
    held: dict[str, Any] = {"more": 1, "last": 2, "lines": lines}
    if name == "ids/2":
        held = draw(st.sampled_from([None, {"lines": None, "tags": {}}, {"lines": [None, *lines], "tags": {"a": 1}}]))
    elif name == "ids/3":
        held = {"lines": draw(st.sampled_from(["[]", "x", '[{"no": 1, "sku": "x"}]', "null"]))}
    elif name in ("ids/4", "ids/5"):
        held = {"lines": draw(st.lists(_INTS, max_size=2))}
    return avro.prefix(int(name[4:])) + avro.body(schema, {**record, "o": held})


# Protobuf

_P = protobuf.FIELD
_FILE = protobuf.new_file(
    Order=[
        ("id", _P.TYPE_STRING), ("at", _P.TYPE_INT64), ("o", ".shop.Held"), ("v", _P.TYPE_UINT64),
        ("seen", ".google.protobuf.Timestamp"),
    ],
    Held=[("more", _P.TYPE_STRING), ("lines", ".shop.Line", protobuf.REPEATED)],
    Line=[
        ("no", _P.TYPE_INT32), ("sku", _P.TYPE_STRING, protobuf.OPTIONAL, "optional"), ("n", _P.TYPE_STRING),
        ("to", ".shop.To"), ("within", ".shop.Line"), ("tags", _P.TYPE_STRING, protobuf.REPEATED),
    ],
    To=[("day", ".google.protobuf.Timestamp")],
    Bare=[("id", _P.TYPE_STRING), ("o", ".shop.Texts"), ("at", _P.TYPE_INT64), ("v", _P.TYPE_INT64)],
    Texts=[("lines", _P.TYPE_INT32, protobuf.REPEATED)],
)  # fmt: skip
_ORDERS, _BARE = protobuf.class_of(_FILE, 0), protobuf.class_of(_FILE, 4)


@st.composite
def _protobuf_values(draw: st.DrawFn) -> bytes:
    if not draw(st.integers(0, 5)):
        made = _BARE(id=draw(_TEXT), at=1, v=2)
        made.o.lines.extend(draw(st.lists(st.integers(0, 300), max_size=3)))
        return bytes(avro.prefix(7) + b"\x02\x08" + made.SerializeToString())
    made = _ORDERS(id=draw(_TEXT), at=draw(_LONGS), v=draw(st.sampled_from([0, 1, 2**64 - 1, 7, 7, 7])))
    parts = [made.SerializeToString()]
    for line in draw(st.lists(_AVRO_LINES, max_size=4)):
        held = _ORDERS()
        own = held.o.lines.add(no=line["no"], n=draw(st.sampled_from(["", "1", "1.50", "x"])))
        if line["sku"] is not None:
            own.sku = line["sku"]
        if line["to"]["day"] is not None:
            own.to.day.seconds = max(-(10**12), min(10**12, line["to"]["day"] // 10**6))
            own.to.day.nanos = draw(st.sampled_from([0, *[1_000] * 9, 1, -1]))
        own.tags.append("t")
        if draw(st.booleans()):
            own.within.no = 9
        parts.append(held.SerializeToString())
    if draw(st.integers(0, 3)):  # one field `o`, as a writer makes it; otherwise a field twice, which is merged
        parts = [_ORDERS.FromString(b"".join(parts)).SerializeToString()]
    return avro.prefix(7) + b"\x00" + b"".join(parts)


# Kafka Connect and Debezium


def _field(name: str, kind: str, logical: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if logical is None else {"name": logical}
    return {"field": name, "type": kind, "optional": True, **named, **more}


_SCALE = {"parameters": {"scale": "2"}}
_CONNECT_LINE = [
    _field("no", "int32"),
    _field("sku", "string"),
    _field("n", "bytes", "org.apache.kafka.connect.data.Decimal", **_SCALE),
    _field("to", "struct", fields=[_field("day", "int64", "io.debezium.time.MicroTimestamp")]),
]
_ARRAYS = {
    "array": _field("lines", "array", items={"type": "struct", "fields": _CONNECT_LINE}),
    "text": _field("lines", "string", "io.debezium.data.Json"),
    "named": _field("lines", "array", "of.a.kind", items={"type": "int64", "name": "io.debezium.time.MicroTimestamp"}),
}


def _row_schema(lines: str) -> dict[str, Any]:
    held = _field("o", "struct", fields=[_ARRAYS[lines], _field("more", "int32")])
    return _field("after", "struct", fields=[_field("id", "string"), held, _field("at", "int64"), _field("v", "int64")])


_CONNECT_LINES: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries(
        {
            "no": st.one_of(st.integers(0, 4), st.integers(0, 4), st.none()),
            "sku": st.one_of(st.none(), _TEXT),
            "n": st.one_of(
                st.none(),
                st.binary(min_size=1, max_size=4).map(lambda raw: base64.b64encode(raw).decode()),
                st.just("!"),
            ),
            "to": st.fixed_dictionaries({"day": st.one_of(st.none(), _INTS, st.just("__debezium_unavailable_value"))}),
        }
    ),
    st.sampled_from([None, 5, "x", [], {}, {"no": "1"}]),
)


@st.composite
def _rows(draw: st.DrawFn, lines: str) -> Any:
    drawn: Any = draw(st.one_of(st.lists(_CONNECT_LINES, max_size=4), st.sampled_from([None, 5, "x"])))
    if lines == "text" and draw(st.integers(0, 4)):
        drawn = json.dumps(drawn, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    row = {"id": draw(st.one_of(_TEXT, st.none())), "o": {"lines": drawn, "more": 1}, "at": draw(_INTS), "v": 3}
    return {name: inner for name, inner in row.items() if name == "id" or draw(st.integers(0, 19))}


@st.composite
def _connect_values(draw: st.DrawFn) -> bytes:
    lines = draw(st.sampled_from(["array", "array", "text", "named"]))
    schema = draw(st.sampled_from([_row_schema(lines), None]))
    payload = draw(st.one_of(_rows(lines), _rows(lines), st.sampled_from([None, 1, "{}"])))
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


@st.composite
def _debezium_values(draw: st.DrawFn) -> bytes:
    lines = draw(st.sampled_from(["array", "array", "text", "named"]))
    op = draw(st.sampled_from(["c", "u", "r", "c", "d", "t", "m", None]))
    event = {"before": None, "after": draw(st.one_of(_rows(lines), _rows(lines), st.none())), "op": op}
    event |= {"source": {"lsn": draw(_INTS)}, "ts_ms": 5}
    schema = {"type": "struct", "fields": [_row_schema(lines), _field("op", "string")]}
    value = event if draw(st.booleans()) else {"schema": schema, "payload": event}
    return json.dumps(value, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))).encode()


DRAWN: Mapping[str, Drawn] = {
    "avro": Drawn(lambda: AvroFormat(avro.Schemas(_AVRO)), _avro_values()),
    "protobuf": Drawn(lambda: ProtobufFormat(protobuf.Schemas({"ids/7": _FILE})), _protobuf_values()),
    "connect": Drawn(ConnectFormat, _connect_values()),
    "debezium": Drawn(ChangeEventFormat, _debezium_values()),
}


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
    asked = shape(drawn.form(), data.draw(st.sampled_from(KINDS)), **more)
    assert isinstance(drawn.form(), DividingFormat)
    assert together(values, asked) == alone(values, asked)


# What is usual


def _usual_line(number: int) -> dict[str, Any]:
    return {"no": number, "sku": "x" if number % 2 else None, "n": b"\x01\x90", "to": {"day": 10**15 + number}}


def _usual_protobuf(lines: int) -> bytes:
    made = _ORDERS(id="A", at=5, v=3)
    for number in range(lines):
        line = made.o.lines.add(no=number, n="4.00")
        line.to.day.seconds, line.to.day.nanos = 10**9, number * 1_000
        if number % 2:
            line.sku = "x"
    return avro.prefix(7) + b"\x00" + bytes(made.SerializeToString())


def _usual_row(lines: int) -> dict[str, Any]:
    made = [{**_usual_line(number), "n": base64.b64encode(b"\x01\x90").decode()} for number in range(lines)]
    return {"id": "A", "o": {"lines": made, "more": 1}, "at": 5, "v": 3}


def _enveloped(fields: list[dict[str, Any]], payload: Any) -> bytes:
    schema = {"type": "struct", "fields": fields}
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


def _usual_avro(lines: int, number: int = 1) -> bytes:
    held = {"more": 1, "last": 2, "tags": {"a": 1}, "lines": [*map(_usual_line, range(lines))]}
    record = {"id": "A", "before_": "b", "at": 5, "v": 3, "o": held}
    return avro.prefix(number) + avro.body(_AVRO[f"ids/{number}"], record)


def _usual_event(lines: int) -> dict[str, Any]:
    return {"before": None, "after": _usual_row(lines), "op": "c", "source": {"lsn": 7}, "ts_ms": 5}


USUAL: Mapping[str, tuple[str, Callable[[int], bytes]]] = {
    "avro": ("avro", _usual_avro),
    "avro with nulls": ("avro", lambda lines: _usual_avro(lines, 2)),
    "protobuf": ("protobuf", _usual_protobuf),
    "connect": ("connect", lambda lines: _enveloped(_row_schema("array")["fields"], _usual_row(lines))),
    "debezium": (
        "debezium",
        lambda lines: _enveloped([_row_schema("array"), _field("op", "string")], _usual_event(lines)),
    ),
    "debezium without schema": (
        "debezium",
        lambda lines: json.dumps(_usual_event(lines)).replace("AZA=", "4.00").encode(),
    ),
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_elements_are_found_together_each_with_its_record(name: str) -> None:
    form, value_of = USUAL[name]
    asked = shape(DRAWN[form].form())
    values: list[bytes | None] = [value_of(3), b"\xff", value_of(0), value_of(1), None, value_of(2)]
    elements = asked.elements
    assert elements is not None
    assert isinstance(elements.format, DividingFormat)
    found = elements.format.find_elements(placed(values), PATH, [path_of(place) for place in asked.read_places])
    is_found = [True, False, not name.startswith("debezium"), True, False, True]
    assert found.is_found.tolist() == is_found
    assert found.counts.tolist() == [3, 0, 0, 1, 0, 2]
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
    payload = _usual_row(3)
    payload["o"]["lines"][1]["no"] = None
    values = [USUAL["connect"][1](2), _enveloped(_row_schema("array")["fields"], payload), USUAL["connect"][1](1)]
    rows = together([*values], asked)
    assert rows == alone([*values], asked)
    assert [offset for offset, _ in rows] == [0, 0, 1, 1, 1, 2]
    assert [row[1] for _, row in rows] == [None, None, None, "key is null", None, None]


def test_an_array_of_texts_has_elements_that_are_texts() -> None:
    schema = _record("r", id="string", tags={"type": "array", "items": "string"})
    file = protobuf.new_file(R=[("id", _P.TYPE_STRING), ("tags", _P.TYPE_STRING, protobuf.REPEATED)])
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
    schema = _record("r", id="string", lines={"type": "array", "items": "null"}, tail="string")
    form = AvroFormat(avro.Schemas({"ids/1": schema}))
    values = [avro.prefix(1) + b"\x02A" + b"\x04" * blocks + b"\x00\x14" + b"t" * 10 for blocks in (20, 5)]
    found = form.find_elements(placed([*values]), ("lines",), [("id",)])
    assert found.is_found.tolist() == [False, True]
    assert found.counts.tolist() == [0, 10]


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
    event = {**_usual_event(2), "op": None}
    asked = shape(ChangeEventFormat())
    whole = replace(asked, elements=None, key=("$.id", "$.v"), format=ChangeEventFormat())
    problem = "value is a change event of an unknown kind (its op is none of c, u, d, r, t, m)"
    for one in (asked, whole):
        frame = decode_records(placed([json.dumps(event).encode()] * 2), one).frame
        assert frame["problem"].to_list() == [problem] * 2
