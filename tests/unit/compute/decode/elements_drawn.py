"""Draw records of several elements in each format, usual ones, unusual ones and such that a format cannot divide."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st

from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import KeyType
from tests.unit.compute.decode.avro import written as avro
from tests.unit.compute.decode.protobuf import messages as protobuf

PATH = ("o", "lines")
LINES = "$.o.lines"
KINDS = [(KeyType.STRING, KeyType.BIGINT), (), (KeyType.STRING, KeyType.STRING)]


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


# Avro


def avro_record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": own, "type": kind} for own, kind in fields.items()]}


_MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
_LINE = avro_record(
    "line", no="int", sku=["null", "string"], n=["null", _DECIMAL], to=avro_record("to", day=["null", _MOMENT])
)
_HELD = avro_record("o", more="int", lines={"type": "array", "items": _LINE}, last="int")
_ORDER = avro_record("order", id="string", before_="string", o=_HELD, at="long", v=["null", "long"])
_NULLABLE = ["null", {"type": "array", "items": ["null", _LINE]}]
_HELD_OR_NULL = ["null", avro_record("o", lines=_NULLABLE, tags={"type": "map", "values": "int"})]
_NULLS = avro_record("order", v="long", o=_HELD_OR_NULL, at=["long", "null"], id=["null", "string"])
_TEXTS = avro_record("order", id="string", o=avro_record("o", lines="string"), at="long", v="long")
_OTHERS = avro_record(
    "order", id="string", o=avro_record("o", lines=["int", {"type": "array", "items": "int"}, "null"]), at="long"
)
_SCALARS = avro_record(
    "order", id="string", o=avro_record("o", lines={"type": "array", "items": "int"}), at="long", v="int"
)
_AVRO = {f"ids/{number}": schema for number, schema in enumerate((_ORDER, _NULLS, _TEXTS, _OTHERS, _SCALARS), 1)}
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

KIND = protobuf.FIELD
_FILE = protobuf.new_file(
    Order=[
        ("id", KIND.TYPE_STRING), ("at", KIND.TYPE_INT64), ("o", ".shop.Held"), ("v", KIND.TYPE_UINT64),
        ("seen", ".google.protobuf.Timestamp"),
    ],
    Held=[("more", KIND.TYPE_STRING), ("lines", ".shop.Line", protobuf.REPEATED)],
    Line=[
        ("no", KIND.TYPE_INT32), ("sku", KIND.TYPE_STRING, protobuf.OPTIONAL, "optional"), ("n", KIND.TYPE_STRING),
        ("to", ".shop.To"), ("within", ".shop.Line"), ("tags", KIND.TYPE_STRING, protobuf.REPEATED),
    ],
    To=[("day", ".google.protobuf.Timestamp")],
    Bare=[("id", KIND.TYPE_STRING), ("o", ".shop.Texts"), ("at", KIND.TYPE_INT64), ("v", KIND.TYPE_INT64)],
    Texts=[("lines", KIND.TYPE_INT32, protobuf.REPEATED)],
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


def row_schema(lines: str) -> dict[str, Any]:
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
    schema = draw(st.sampled_from([row_schema(lines), None]))
    payload = draw(st.one_of(_rows(lines), _rows(lines), st.sampled_from([None, 1, "{}"])))
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


@st.composite
def _debezium_values(draw: st.DrawFn) -> bytes:
    lines = draw(st.sampled_from(["array", "array", "text", "named"]))
    op = draw(st.sampled_from(["c", "u", "r", "c", "d", "t", "m", None]))
    event = {"before": None, "after": draw(st.one_of(_rows(lines), _rows(lines), st.none())), "op": op}
    event |= {"source": {"lsn": draw(_INTS)}, "ts_ms": 5}
    schema = {"type": "struct", "fields": [row_schema(lines), _field("op", "string")]}
    value = event if draw(st.booleans()) else {"schema": schema, "payload": event}
    return json.dumps(value, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))).encode()


DRAWN: Mapping[str, Drawn] = {
    "avro": Drawn(lambda: AvroFormat(avro.Schemas(_AVRO)), _avro_values()),
    "protobuf": Drawn(lambda: ProtobufFormat(protobuf.Schemas({"ids/7": _FILE})), _protobuf_values()),
    "connect": Drawn(ConnectFormat, _connect_values()),
    "debezium": Drawn(ChangeEventFormat, _debezium_values()),
}


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


def usual_row(lines: int) -> dict[str, Any]:
    made = [{**_usual_line(number), "n": base64.b64encode(b"\x01\x90").decode()} for number in range(lines)]
    return {"id": "A", "o": {"lines": made, "more": 1}, "at": 5, "v": 3}


def enveloped(fields: list[dict[str, Any]], payload: Any) -> bytes:
    schema = {"type": "struct", "fields": fields}
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


def _usual_avro(lines: int, number: int = 1) -> bytes:
    held = {"more": 1, "last": 2, "tags": {"a": 1}, "lines": [*map(_usual_line, range(lines))]}
    record = {"id": "A", "before_": "b", "at": 5, "v": 3, "o": held}
    return avro.prefix(number) + avro.body(_AVRO[f"ids/{number}"], record)


def usual_event(lines: int) -> dict[str, Any]:
    return {"before": None, "after": usual_row(lines), "op": "c", "source": {"lsn": 7}, "ts_ms": 5}


def _bare_event(lines: int) -> bytes:
    """Return an event whose numbers and moments are texts, which need no schema."""
    event = usual_event(lines)
    for line in event["after"]["o"]["lines"]:
        line.update(n="4.00", to={"day": "2001-09-09T01:46:40Z"})
    return json.dumps(event).encode()


USUAL: Mapping[str, tuple[str, Callable[[int], bytes]]] = {
    "avro": ("avro", _usual_avro),
    "avro with nulls": ("avro", lambda lines: _usual_avro(lines, 2)),
    "protobuf": ("protobuf", _usual_protobuf),
    "connect": ("connect", lambda lines: enveloped(row_schema("array")["fields"], usual_row(lines))),
    "debezium": (
        "debezium",
        lambda lines: enveloped([row_schema("array"), _field("op", "string")], usual_event(lines)),
    ),
    "debezium without schema": ("debezium", _bare_event),
}
