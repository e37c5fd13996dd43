"""Check that numbers which count moments and days are read as these in every format, and are counted back."""

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.shapes.counts import counted, in_unit
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.decode.whole_values import JsonInStringFormat
from makewhole.compute.keys import KeyProblem
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import KeyType
from makewhole.model.value_types import UNITS
from makewhole.window.known_schemas import FileSchema
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit

Fields = Mapping[str, Any]
_PLACES = {"at": "$.at", "due": "$.o.due", "v": "$.v"}
_AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "at", "type": ["null", "long"]},
        {"name": "o", "type": {"type": "record", "name": "o", "fields": [{"name": "due", "type": ["null", "int"]}]}},
        {"name": "v", "type": ["null", "long"]},
    ],
}
_ROW_SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "string"},
        {"field": "at", "type": "int64", "optional": True},
        {"field": "o", "type": "struct", "fields": [{"field": "due", "type": "int32", "optional": True}]},
        {"field": "v", "type": "int64", "optional": True},
    ],
}


def _avro(fields: Fields) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(dict(_AVRO)), dict(fields))
    return body.getvalue()


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    kinds = descriptor_pb2.FieldDescriptorProto
    inner = descriptor_pb2.DescriptorProto(name="O")
    inner.field.add(name="due", number=1, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    outer = descriptor_pb2.DescriptorProto(name="R")
    outer.field.add(name="id", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    outer.field.add(name="at", number=2, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    outer.field.add(name="o", number=3, type=kinds.TYPE_MESSAGE, type_name=".O", label=kinds.LABEL_OPTIONAL)
    outer.field.add(name="v", number=4, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", syntax="proto2", message_type=[inner, outer])
    return descriptor_pb2.FileDescriptorSet(file=[file])


_SET = _descriptors()
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_SET.file[0])
_MESSAGE = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("R"))


def _protobuf(fields: Fields) -> bytes:
    given = {name: value for name, value in fields.items() if value is not None and name != "o"}
    message = _MESSAGE(**given)
    if fields["o"]["due"] is not None:
        message.o.due = fields["o"]["due"]
    encoded: bytes = message.SerializeToString()
    return encoded


def _json(fields: Fields) -> bytes:
    return json.dumps(fields).encode()


def _event(fields: Fields) -> bytes:
    return json.dumps({"before": None, "after": fields, "op": "c", "source": {}}).encode()


Make = Callable[[], ValueFormat]
FORMATS: Mapping[str, tuple[Make, Callable[[Fields], bytes]]] = {
    "json": (lambda: JSON, _json),
    "json in a string": (JsonInStringFormat, lambda fields: json.dumps(json.dumps(fields)).encode()),
    "avro": (lambda: AvroFormat(FileSchema(json.dumps(_AVRO))), _avro),
    "protobuf": (
        lambda: ProtobufFormat(FileSchema(base64.b64encode(_SET.SerializeToString()).decode()), "R"),
        _protobuf,
    ),
    "connect": (
        ConnectFormat,
        lambda fields: json.dumps({"schema": _ROW_SCHEMA, "payload": fields}, separators=(",", ":")).encode(),
    ),
    "debezium": (ChangeEventFormat, _event),
}


def _shape(form: ValueFormat, units: Mapping[str, str], compare: Mapping[str, str]) -> ValueShape:
    types = {"at": "timestamp", "due": "date"}
    return ValueShape(
        key=("$.id",),
        compare=compare,
        places=_PLACES,
        version="$.v",
        filters={"a→b": filter_terms("at >= '1970-01-02' and due is not null", types)},
        format=UnitFormat(form, units),
    )


def _alone(values: Sequence[bytes | None], shape: ValueShape) -> list[tuple[Any, ...]]:
    return [record_values._decode_one_by_one(batch([value]), shape).row(0) for value in values]


COUNTS = st.one_of(st.none(), st.integers(-(2**40), 2**41), st.integers(-(2**63), 2**63 - 1), st.just(0))
DAYS = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(0, 30_000))
TYPES = st.fixed_dictionaries(
    {
        "at": st.sampled_from(["timestamp", "timestamp(3)", "timestamp(0)", "date"]),
        "due": st.sampled_from(["date", "timestamp"]),
    }
)
MOMENTS = st.sampled_from([name for name in UNITS if name.startswith("timestamp")])


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(60), deadline=None)
@given(
    rows=st.lists(st.tuples(COUNTS, DAYS, COUNTS), min_size=1, max_size=8),
    unit=MOMENTS,
    of_version=MOMENTS,
    compare=TYPES,
)
def test_counts_are_read_alike_one_by_one_and_many_at_once(
    name: str, rows: list[tuple[int | None, ...]], unit: str, of_version: str, compare: Mapping[str, str]
) -> None:
    form, value_of = FORMATS[name]
    shape = _shape(form(), {"$.at": unit, "$.o.due": "date(days)", "$.v": of_version}, compare)
    fields = [{"id": f"k{n}", "at": at, "o": {"due": due}, "v": v} for n, (at, due, v) in enumerate(rows)]
    values: list[bytes | None] = [value_of(record) for record in fields]

    assert decode_values(batch(values), shape).rows() == _alone(values, shape)
    for record, row in zip(fields, _alone(values, shape), strict=True):
        of_json = _shape(JSON, {}, compare)
        written = {
            "id": record["id"],
            "at": in_unit(UNITS[unit], record["at"]),
            "o": {"due": in_unit(UNITS["date(days)"], record["o"]["due"])},  # type: ignore[index]
            "v": in_unit(UNITS[of_version], record["v"]),
        }
        assert row == _alone([json.dumps(written).encode()], of_json)[0]


ODD = [
    (1_700_000_000_123, "1700000000123000"),
    (-1, "-1000"),
    (0, "0"),
    (0.5, "500"),
    (1.0001, "1000"),
    (0.0005, "0"),
    (0.0015, "2"),
    ("1700000000123", "1700000000123000"),
    ("-1", "-1000"),
    ("0.5", "500"),
    (None, None),
    ("2023-11-14T22:13:20.123Z", "1700000000123000"),
    ("infinity", "!infinity"),
    (9_223_372_036_825_200, "!infinity"),
    (True, "!'true'"),
    ("n/a", "!'n/a'"),
    ("", "!''"),
    (" 1", "!' 1'"),
    ("1_000", "!'1_000'"),
    ({"a": 1}, "!'{\"a\": 1}'"),
    ([1], "!'[1]'"),
    (10**30, "!'1000000000000000000000000000000'"),
    ("1" * 30, f"!'{'1' * 30}'"),
    ("__debezium_unavailable_value", "!'__debezium_unavailable_value'"),
]


@pytest.mark.parametrize(("value", "text"), ODD, ids=str)
def test_what_is_no_count_equals_only_itself(value: Any, text: str | None) -> None:
    """Alone, and among usual records, which must not change it."""
    shape = ValueShape(
        key=("$.id",), compare={"at": "timestamp"}, format=UnitFormat(JSON, {"$.at": "timestamp(ms)"}), version="$.at"
    )
    values: list[bytes | None] = [_json({"id": "x", "at": value}), *(_json({"id": "a", "at": n}) for n in range(300))]

    decoded = decode_values(batch(values), shape)
    assert decoded["c:at"].to_list() == [text, *(str(n * 1000) for n in range(300))]
    assert decoded.rows() == _alone(values, shape)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "1970-01-01"), (-1, "1969-12-31"), (20_240_101, "57385-07-07"), ("19675", "2023-11-14"), (1.5, "!'1.5'")],
    ids=str,
)
def test_days_are_whole(value: Any, text: str) -> None:
    shape = ValueShape(key=("$.id",), compare={"due": "date"}, format=UnitFormat(JSON, {"$.due": "date(days)"}))
    assert decode_values(batch([_json({"id": "x", "due": value})]), shape)["c:due"].to_list() == [text]


@pytest.mark.parametrize(("kind", "at"), [("double", 0.5), ("string", "n/a"), ("string", "2013-01-01T05:00:00Z")])
def test_what_a_schema_has_beside_whole_numbers_is_read_one_by_one(kind: str, at: object) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}, {"name": "at", "type": kind}]}
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(dict(schema)), {"id": "a", "at": at})
    form = UnitFormat(AvroFormat(FileSchema(json.dumps(schema))), {"$.at": "timestamp(ms)"})
    shape = ValueShape(key=("$.id",), compare={"at": "timestamp"}, format=form)
    assert decode_values(batch([body.getvalue()]), shape).rows() == _alone([body.getvalue()], shape)


def test_usual_counts_go_many_at_once() -> None:
    shape = _shape(JSON, {"$.at": "timestamp(ms)", "$.v": "timestamp(s)"}, {"at": "timestamp", "due": "string"})
    values: list[bytes | None] = [_json({"id": "x", "at": n, "o": {"due": 1}, "v": n}) for n in range(300)]
    parts, left = shape.format.decode_together(batch(values), record_values._wanted(shape))
    assert (sum(len(rows) for rows, _ in parts), len(left)) == (300, 0)


def test_a_key_can_be_a_counted_moment() -> None:
    form = UnitFormat(JSON, {"$.at": "timestamp(s)"})
    shape = ValueShape(key=("$.at",), compare={}, key_layout=(KeyType.TIMESTAMP,), format=form)
    keys = decode_values(batch([b'{"at": 1700000000}', b'{"at":"2023-11-14 23:13:20+01"}']), shape)["key"].to_list()
    assert keys[0] == keys[1] is not None


@pytest.mark.parametrize(
    ("unit", "value", "count"),
    [
        ("timestamp(ms)", "2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("timestamp(ms)", "2023-11-14 22:13:20.123456+00", 1_700_000_000_123),
        ("timestamp(ms)", "2023-11-14T23:13:20.1235+01:00", 1_700_000_000_124),
        ("timestamp(s)", "1969-12-31T23:59:59Z", -1),
        ("timestamp(us)", "2023-11-14T22:13:20.123456", 1_700_000_000_123_456),
        ("timestamp(ns)", "2023-11-14T22:13:20.123456", 1_700_000_000_123_456_000),
        ("date(days)", "2023-11-14", 19_675),
        ("date(days)", "1969-12-31", -1),
        ("timestamp(ms)", 5, 5),
        ("timestamp(ms)", Decimal("0.5"), Decimal("0.5")),
        ("timestamp(ms)", None, None),
    ],
)
def test_a_moment_is_counted_back(unit: str, value: Any, count: Any) -> None:
    assert counted(UNITS[unit], value) == count
    assert count is None or in_unit(UNITS[unit], count) is not None


@pytest.mark.parametrize("name", ["json", "json in a string", "avro"])
def test_a_record_is_made_with_its_units(name: str) -> None:
    form = UnitFormat(FORMATS[name][0](), {"$.at": "timestamp(ms)", "$.o.due": "date(days)", "$.v": "timestamp(s)"})
    made = form.encode(b'{"id":"k","at":"2023-11-14T22:13:20.5Z","o":{"due":"2023-11-14"},"v":null}')

    plain = FORMATS[name][0]().document(made, ())
    assert plain == {"id": "k", "at": 1_700_000_000_500, "o": {"due": 19_675}, "v": None}
    assert form.template_value(made, ())["at"] == 1_700_000_000_500


def test_a_payload_in_its_units_is_sent_byte_for_byte() -> None:
    payload = b'{ "at":1700000000500, "n":1.50, "o":{} }'
    assert UnitFormat(JSON, {"$.at": "timestamp(ms)", "$.o.due": "date(days)"}).encode(payload) is payload


@pytest.mark.parametrize("value", ['"infinity"', '"n/a"', "true", "{}", "[1]"])
def test_what_cannot_be_counted_is_not_sent(value: str) -> None:
    with pytest.raises(KeyProblem, match=r"^the field o\.at has no moment or day that can be counted in its unit$"):
        UnitFormat(JSON, {"$.o.at": "timestamp(ms)"}).encode(f'{{"o":{{"at":{value}}}}}'.encode())


def test_the_row_of_a_deletion_has_its_moments() -> None:
    form = UnitFormat(ChangeEventFormat(), {"$.at": "timestamp(ms)"})
    shape = ValueShape(key=("$.at",), compare={}, format=form, keeps_tombstones=True)
    event = json.dumps({"before": {"at": 1000}, "after": None, "op": "d"}).encode()
    assert decode_values(pa.record_batch(batch([event])), shape)["key"].to_list() == ["1970-01-01T00:00:01.000Z"]
