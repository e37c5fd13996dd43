"""Check that records with values at the edges of their types, whole and damaged, are decoded together as each alone: in
every format, as columns, in filters, as versions, as keys and in units."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import KeyType
from tests.unit.compute.decode.avro import written as avro
from tests.unit.compute.decode.protobuf import messages as protobuf
from tests.world.examples import examples

pytestmark = pytest.mark.unit

_TYPES = ["string", "int", "bigint", "double", "boolean", "decimal(10,2)", "decimal(38,9)", "decimal(10,0)"]
_TYPES += ["timestamp", "timestamp(3)", "date", "json", "char", "uuid", "inet"]
_WHERE = ["a = 0", "a != 0", "a > 0", "a <= 0.0000001", "a in (5, 50)", "a not in (5, 50)", "a is null"]
_WHERE += ["a = '5'", "a > '2001-01-01'", "a = '2001-01-01'", "a != 'x'", "a is not null"]
_UNITS = ["timestamp(s)", "timestamp(ms)", "timestamp(us)", "timestamp(ns)", "date(days)"]
_TEXTS = ["", " ", "x", "ü", "€", "🙂", "a\x00", "0", "-0", "-0.00", "5", "+5", " 5", "5 ", "05", "5_0", "1e3", "1e999"]
_TEXTS += ["1.5", ".5", "5.", "0.0000001", "-9223372036854775808", "9223372036854775808", "NaN", "-Infinity", "１"]
_TEXTS += ["$5.00", "\xa05", f"1.{'0' * 600}", f"0.{'0' * 450}1", "1" * 40, f"5.{'0' * 50}", "true", "t", "null", "[]"]
_TEXTS += ["2001-01-01", "1969-12-31T23:59:59.9999995Z", "2001-01-01T00:00:00+05:30", "0001-01-01 BC", "infinity"]
_TEXTS += ["__debezium_unavailable_value", "AQ==", "gA==", "//////////8=", "\u2028", "::1/128", "0" * 32]
_LONGS = [0, 1, -1, 5, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 10**15, -1_500, 253_402_300_800_000_000]
_LONGS += [-62_135_596_800_000_000, -62_135_596_800_000_001, 9_223_372_036_825_200_000, -1]
_INTS = [number for number in _LONGS if -(2**31) <= number < 2**31] + [-719_162, -719_163, 2_932_896, 2_932_897]
_FLOATS = [0.0, -0.0, 0.5, 1e-7, 5e-324, 1e15, 1e16, 1e308, float("nan"), float("inf"), float("-inf"), 0.1, 5.0]
_BYTES = [b"", b"\x00", b"\x05", b"\xff", b"\x80", b"\x7f" * 8, b"\x80" + b"\x00" * 7, b"\x7f" * 9, b"\x01" * 20]
_LITERALS = [json.dumps(text, ensure_ascii=escaped) for text in _TEXTS for escaped in (True, False)]
_LITERALS += [*map(str, _LONGS), "-0", "-0.0", "1.50", "1e3", "1E-7", "1e308", "1e999", "0.0000001", "1.5", "5.0"]
_LITERALS += ["1" * 40, f"1.{'0' * 600}", "true", "false", "null", '{"a":5}', "[5]", '"\\ud800"', "01", "NaN", "5."]


class _Topic(NamedTuple):
    """A format, and how a record with an identity is drawn: with a value of its column `a`, or without one."""

    form: Callable[[], Any]
    values: st.SearchStrategy[bytes]


_NAMES = st.sampled_from([b'"a"'] * 8 + [b'"\\u0061"', b'"b"', b'"id"'])
_SPACES = st.sampled_from([b"", b"", b"", b" ", b"\n"])


@st.composite
def _objects(draw: st.DrawFn) -> bytes:
    members = [b'"id":' + json.dumps(draw(st.sampled_from(["A", "B", "ü", "7"]))).encode()]
    for _ in range(draw(st.sampled_from([1, 1, 1, 1, 0, 2]))):
        name, space, literal = draw(_NAMES), draw(_SPACES), draw(st.sampled_from(_LITERALS))
        members.append(name + b":" + space + literal.encode("utf-8", "surrogatepass"))
    return b"{" + b",".join(members) + b"}"


def _named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"field": "a", "type": kind, "optional": True, "name": name, **more}


_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_CONNECT_TYPES: list[dict[str, Any]] = [
    _named("int64", "io.debezium.time.MicroTimestamp"),
    _named("int64", "org.apache.kafka.connect.data.Timestamp"),
    _named("int64", "io.debezium.time.NanoTimestamp"),
    _named("int32", "io.debezium.time.Date"),
    _named("int32", "io.debezium.time.Time"),
    _named("string", "io.debezium.time.ZonedTimestamp"),
    *(_named("bytes", _DECIMAL, parameters={"scale": scale}) for scale in ("0", "2", "9", "900", "x")),
    {"field": "a", "type": "bytes"},
    {"field": "a", "type": "string"},
    {"field": "a", "type": "int64"},
]


def _fields(kinds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"field": "id", "type": "string"}, *kinds]


_SCHEMAS = st.lists(st.sampled_from(_CONNECT_TYPES), min_size=1, max_size=1) | st.just(_CONNECT_TYPES[-1:-3:-1])


def _enveloped(fields: list[dict[str, Any]], payload: bytes) -> bytes:
    return b'{"schema":' + json.dumps({"type": "struct", "fields": fields}).encode() + b',"payload":' + payload + b"}"


def _event(row: bytes, op: str) -> bytes:
    return b'{"before":null,"after":' + row + b',"source":{"lsn":7},"op":"' + op.encode() + b'"}'


_OPS = st.sampled_from(["c", "u", "r", "c", "d", "t"])
_CONNECT = st.builds(lambda kinds, row: _enveloped(_fields(kinds), row), _SCHEMAS, _objects())
_EVENTS = st.builds(_event, _objects(), _OPS)
_ENVELOPED_EVENTS = st.builds(
    lambda kinds, event: _enveloped([{"field": "after", "type": "struct", "fields": _fields(kinds)}], event),
    _SCHEMAS,
    _EVENTS,
)


def _avro_type(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


_AVRO_TYPES: list[tuple[Any, Sequence[Any]]] = [
    ("string", _TEXTS),
    ("long", _LONGS),
    ("int", _INTS),
    ("double", _FLOATS),
    ("float", [number for number in _FLOATS if number != 1e308]),
    ("boolean", [True, False]),
    ("bytes", _BYTES),
    *((_avro_type("bytes", "decimal", precision=60, scale=scale), _BYTES) for scale in (0, 2, 9, 30, 50)),
    (_avro_type("fixed", "decimal", name="D", size=9, precision=20, scale=2), [b"\xff" * 9, b"\x00" * 8 + b"\x05"]),
    (_avro_type("fixed", "uuid", name="U", size=16), [bytes(range(16)), b"\xff" * 16]),
    ({"type": "enum", "name": "E", "symbols": ["x", "true", "NEW"]}, ["x", "true", "NEW"]),
    (_avro_type("int", "date"), _INTS),
    (_avro_type("int", "time-millis"), [0, 86_399_999]),
    *(
        (_avro_type("long", f"{local}timestamp-{unit}"), _LONGS)
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ),
    ({"type": "record", "name": "I", "fields": [{"name": "a", "type": "int"}]}, [{"a": 5}]),
    (["null", "int", "string"], [None, 5, "5"]),
    ({"type": "map", "values": "int"}, [{}, {"a": 5}]),
    ({"type": "array", "items": "int"}, [[], [5]]),
]
_AVRO: Mapping[str, Any] = {
    f"ids/{number}": {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": kind}, {"name": "id", "type": "string"}],
    }
    for number, (kind, _) in enumerate(
        [
            *_AVRO_TYPES,
            *((["null", kind], values) for kind, values in _AVRO_TYPES if not isinstance(kind, list)),
        ]
    )
}


@st.composite
def _avro_values(draw: st.DrawFn) -> bytes:
    number = draw(st.integers(0, len(_AVRO) - 1))
    has_null = number >= len(_AVRO_TYPES)
    others = [(kind, values) for kind, values in _AVRO_TYPES if not isinstance(kind, list)]
    _, values = others[number - len(_AVRO_TYPES)] if has_null else _AVRO_TYPES[number]
    value = draw(st.sampled_from([*values, *([None] if has_null else [])]))
    return avro.prefix(number) + avro.body(_AVRO[f"ids/{number}"], {"a": value, "id": "A"})


_KIND = protobuf.FIELD
_PROTOBUF_VALUES: dict[int, Sequence[Any]] = {
    _KIND.TYPE_STRING: _TEXTS,
    _KIND.TYPE_INT64: _LONGS,
    _KIND.TYPE_SINT64: _LONGS,
    _KIND.TYPE_SFIXED64: _LONGS,
    _KIND.TYPE_UINT64: [0, 5, 2**63 - 1, 2**63, 2**64 - 1],
    _KIND.TYPE_INT32: [0, -1, 5, 2**31 - 1, -(2**31)],
    _KIND.TYPE_FIXED32: [0, 5, 2**32 - 1],
    _KIND.TYPE_DOUBLE: _FLOATS,
    _KIND.TYPE_FLOAT: [number for number in _FLOATS if number != 1e308],
    _KIND.TYPE_BOOL: [True, False],
    _KIND.TYPE_BYTES: _BYTES,
}
_PROTOBUF = {
    f"ids/{number}": protobuf.new_file(
        R=[("a", kind, protobuf.OPTIONAL, *presence), ("id", _KIND.TYPE_STRING), ("last", _KIND.TYPE_STRING)]
    )
    for number, (kind, presence) in enumerate((kind, how) for kind in _PROTOBUF_VALUES for how in ((), ("optional",)))
}
_MESSAGES = {name: protobuf.class_of(file) for name, file in _PROTOBUF.items()}


@st.composite
def _protobuf_values(draw: st.DrawFn) -> bytes:
    number = draw(st.integers(0, len(_PROTOBUF) - 1))
    made = _MESSAGES[f"ids/{number}"](id="A")
    if draw(st.integers(0, 4)):
        made.a = draw(st.sampled_from([*_PROTOBUF_VALUES.values()][number // 2]))
    index = draw(st.sampled_from([b"\x00"] * 4 + [b"\x02\x00", b"\x01\x01"]))
    return avro.prefix(number) + index + bytes(made.SerializeToString())


TOPICS: Mapping[str, _Topic] = {
    "json": _Topic(lambda: JSON, _objects()),
    "avro": _Topic(lambda: AvroFormat(avro.Schemas(dict(_AVRO))), _avro_values()),
    "protobuf": _Topic(lambda: ProtobufFormat(protobuf.Schemas(_PROTOBUF)), _protobuf_values()),
    "connect": _Topic(ConnectFormat, _CONNECT),
    "debezium": _Topic(ChangeEventFormat, _EVENTS | _ENVELOPED_EVENTS),
}


@st.composite
def _shapes(draw: st.DrawFn, form: Any) -> ValueShape:
    columns = {f"c{number}": draw(st.sampled_from(_TYPES)) for number in range(draw(st.integers(0, 2)))}
    places = {**dict.fromkeys(columns, "$.a"), "a": "$.a"}
    if draw(st.booleans()):
        columns["a"] = draw(st.sampled_from(_TYPES))
    known = draw(st.sampled_from([None, *_TYPES]))
    where = draw(st.none() | st.sampled_from(_WHERE))
    key = draw(st.sampled_from(["$.id", "$.id", "$.a", "kafka.key"]))
    if draw(st.integers(0, 3)) == 0:
        form = UnitFormat(form, {"$.a": draw(st.sampled_from(_UNITS))})
    return ValueShape(
        key=(key,),
        key_layout=(draw(st.sampled_from(KeyType)),),
        compare=columns,
        places=places,
        version=draw(st.sampled_from([None, None, "$.a"])),
        filters={"a→b": filter_terms(where, {} if known is None else {"a": known})},
        format=form,
    )


@st.composite
def _damaged(draw: st.DrawFn, values: st.SearchStrategy[bytes]) -> bytes | None:
    value = draw(values)
    at = draw(st.integers(0, len(value)))
    match draw(st.sampled_from([""] * 9 + ["cut", "byte", "more", "none"])):
        case "cut":
            return value[:at]
        case "byte":
            return value[:at] + bytes([draw(st.integers(0, 255))]) + value[at + 1 :]
        case "more":
            return value + draw(st.sampled_from([b"\x00", b" ", b"\n", b"}", b"{}", b"\xff"]))
        case "none":
            return None
    return value


def batch(values: Sequence[bytes | None]) -> pa.RecordBatch:
    made = avro.batch([*values])
    keys = pa.array([f"K{number}".encode() for number in range(len(values))], pa.binary())
    return made.set_column(made.schema.get_field_index("key"), "key", keys)


def held(values: Sequence[bytes | None], shape: ValueShape) -> list[tuple[Any, ...]]:
    """Decode records together, hold them to each alone, and return them."""
    alone = record_values._decode_one_by_one(batch(values), shape)
    together = decode_values(batch(values), shape)
    assert together.schema == alone.schema
    assert together.rows() == alone.rows()
    return together.rows()


@pytest.mark.parametrize("name", TOPICS)
@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_hard_values_are_decoded_together_as_each_alone(name: str, data: st.DataObject) -> None:
    topic = TOPICS[name]
    drawn = data.draw(st.lists(_damaged(topic.values), min_size=1, max_size=3))
    usual = data.draw(st.lists(topic.values, max_size=2))
    held([*usual, *drawn] * data.draw(st.sampled_from([1, 2])), data.draw(_shapes(topic.form())))


# Differences that there were


def _avro_of(kind: Any, *values: Any) -> tuple[Any, list[bytes | None]]:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}, {"name": "a", "type": kind}]}
    form = AvroFormat(avro.Schemas({"ids/1": schema}))
    return form, [avro.prefix(1) + avro.body(schema, {"id": "A", "a": value}) for value in values]


_FINE = _avro_type("bytes", "decimal", precision=12, scale=9)


@pytest.mark.parametrize("compare", [{}, {"a": "decimal(10,2)"}, {"a": "bigint"}], ids=str)
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", [1e-7, 1.0, 1.004]),
        ("string", ["0.0000001", "1.00", "1.004"]),
        (_FINE, [b"\x64", b"\x3b\x9a\xca\x00"]),
    ],
)
def test_a_filter_sees_the_digits_that_the_compared_type_does_not_have(
    kind: Any, values: list[Any], compare: dict[str, str]
) -> None:
    """A number that is rounded to two digits is 0 and 1 where it was neither."""
    form, records = _avro_of(kind, *values)
    for where, right in (("a > 0", []), ("a = 0", ["a→b"]), ("a = 1", ["a→b"]), ("a >= 1.004", ["a→b"])):
        shape = ValueShape(
            key=("$.id",), compare=compare, format=form, filters={"a→b": filter_terms(where, {"a": "decimal(10,2)"})}
        )
        assert held(records, shape)[0][-2] == right
        assert len(held(records, shape)) == len(records)


@pytest.mark.parametrize("name", ["json", "avro"])
def test_the_lowest_integer_of_64_bits_is_no_version_however_it_is_read(name: str) -> None:
    form, values = _avro_of("long", -(2**63), 5) if name == "avro" else (JSON, [])
    for text in (b"%d", b'"%d"') if name == "json" else ():
        values += [
            b'{"id":"%s","a":%s}' % (key, text % number) for key in (b"A", b"\\u0041") for number in (-(2**63), 5)
        ]
    rows = held(values, ValueShape(key=("$.id",), compare={}, version="$.a", format=form))
    unreadable, number = rows[0][2], rows[1][2]
    assert number == 5 < unreadable
    assert [row[2] for row in rows] == [unreadable, 5] * (len(values) // 2)


@pytest.mark.parametrize("text", ["1e3", " 5", "5_0", "$5.00", "１", f"5.{'0' * 50}"])
def test_a_text_that_is_no_count_is_no_moment(text: str) -> None:
    form, values = _avro_of("string", text, "5")
    shape = ValueShape(
        key=("$.id",), compare={"a": "timestamp"}, format=UnitFormat(form, {"$.a": "timestamp(ms)"}), version="$.a"
    )
    none, moment = held(values, shape)
    assert (none[2], moment[2]) == (f"!{text!a}", "5000")


@pytest.mark.parametrize("literal", ["1.5", '"5"', "1.0", "-0", "1e3", "null", "true"])
def test_what_is_no_integer_is_no_moment_of_connect_and_stops_nothing(literal: str) -> None:
    fields = _fields([_named("int64", "io.debezium.time.MicroTimestamp")])
    values = [_enveloped(fields, b'{"id":"A","a":%s}' % text.encode()) for text in ("7", literal, literal)]
    for more in ({"compare": {"a": "timestamp"}}, {"compare": {}, "version": "$.a"}):
        held([*values], ValueShape(key=("$.id",), format=ConnectFormat(), **more))


@pytest.mark.parametrize("declared", ["bigint", "decimal(60,50)", "string"])
def test_decimals_with_more_digits_than_128_bits_hold_are_read_alone(declared: str) -> None:
    form, values = _avro_of(_avro_type("bytes", "decimal", precision=60, scale=50), b"\x05", b"\xff")
    held(values, ValueShape(key=("$.id",), compare={"a": declared}, format=form))
    fields = _fields([_named("bytes", _DECIMAL, parameters={"scale": "900"})])
    held(
        [_enveloped(fields, b'{"id":"A","a":"BQ=="}')] * 2,
        ValueShape(key=("$.id",), compare={"a": declared}, format=ConnectFormat()),
    )


@pytest.mark.parametrize("depth", [197, 198, 199, 200])
@pytest.mark.parametrize("escaped", [b"A", b"\\u0041"], ids=["layout", "arrow"])
def test_a_payload_is_as_deep_as_it_is_in_its_envelope(depth: int, escaped: bytes) -> None:
    row = b'{"id":"%s","x":%%s}' % escaped
    deep = [row % b"1", row % (b"[" * depth + b"]" * depth), row % (b"[" * depth + b"]" * depth)]
    fields = _fields([{"field": "a", "type": "string"}])
    values = [_enveloped(fields, value) for value in deep]
    held([*values, *values], ValueShape(key=("$.id",), compare={"a": "string"}, format=ConnectFormat()))
    events = [_event(value, "c") for value in deep]
    held([*events, *events], ValueShape(key=("$.id",), compare={"a": "string"}, format=ChangeEventFormat()))


def test_an_envelope_is_one_however_its_names_are_written() -> None:
    shape = ValueShape(key=("kafka.key",), compare={"a": "string"})
    values = [b'{"sch\\u0065ma":{},"payload":{"a":1}}', b'{"schema":{},"payload":{"a":"\\u0065"}}'] * 2
    assert all(problem.startswith("value is Kafka Connect's") for _, problem, *_ in held([*values], shape))


def test_a_field_that_a_schema_has_twice_is_read_as_alone() -> None:
    twice = [{"field": "a", "type": "string"}, _named("string", "io.debezium.time.IsoTime")]
    value = _enveloped(_fields(twice), b'{"id":"A","a":"12:00:00Z"}')
    held([value] * 2, ValueShape(key=("$.id",), compare={"a": "string"}, format=ConnectFormat()))


def test_fields_of_messages_that_come_with_protobuf_are_read_where_they_are_fields() -> None:
    file = protobuf.new_file(
        R=[("id", _KIND.TYPE_STRING), ("any", ".google.protobuf.Any"), ("at", ".google.protobuf.Timestamp")]
    )
    file.dependency.append("google/protobuf/any.proto")
    message = protobuf.class_of(file)(id="A")
    message.any.type_url = "shop/x"
    message.at.seconds = 5
    shape = ValueShape(
        key=("$.id",),
        compare={"url": "string", "seconds": "int"},
        places={"url": "$.any.type_url", "seconds": "$.at.seconds"},
        format=ProtobufFormat(protobuf.Schemas({"ids/1": file})),
    )
    assert held([avro.prefix(1) + b"\x00" + message.SerializeToString()], shape)[0][2:4] == ("shop/x", None)


def test_usual_numbers_of_filters_are_not_read_one_by_one() -> None:
    form, values = _avro_of("double", 0.5, 1e-7, 20.0)
    shape = ValueShape(
        key=("$.id",),
        compare={"a": "decimal(10,2)"},
        format=form,
        filters={"a→b": filter_terms("a > 1", {"a": "double"})},
    )
    for own, records in ((form, values), (JSON, [b'{"id":"A","a":%s}' % text for text in (b"0.5", b"0.07", b"20")])):
        _, left = record_values._decode_together(batch(records), ValueShape(**{**vars(shape), "format": own}))
        assert not len(left)
