"""Fuzz the decoders of record values and keys: many records at once give what each alone gives, and nothing is let
out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import polars as pl
import pyarrow as pa

from makewhole.compute.decode import record_values
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.record_keys import RECORD_KEY_FORMATS
from makewhole.compute.decode.record_values import ValueShape
from makewhole.compute.decode.shapes.divided_records import decode_records
from makewhole.compute.decode.shapes.prefixed_json import PrefixedJsonFormat
from makewhole.compute.decode.whole_values import BytesFormat, JsonInStringFormat, TextFormat
from makewhole.compute.keys import KeyProblem
from makewhole.compute.row_filter import filter_terms
from makewhole.model.points import KeyType
from tests.fuzz.mutations import mutated, packed, unpacked
from tests.unit.compute.decode import elements_drawn as drawn
from tests.unit.compute.decode.avro import test_avro_values as avro
from tests.unit.compute.decode.protobuf import test_protobuf_values as protobuf
from tests.unit.compute.decode.test_elements import LINES, _record, _shape
from tests.unit.compute.decode.test_record_values import batch
from tests.world.envelopes import (
    bare_change_event,
    behind_prefix,
    change_event,
    compact,
    connect_key,
    connect_value,
    enveloped,
    json_in_string,
)
from tests.world.orders import orders

_MOST_RECORDS = 12
_COMPARE = {"amount": "decimal(8,2)", "at": "timestamp", "region": "string", "number": "int"}
_DEEP = {"state": "string", "total": "decimal(12,2)", "note": "string", "at": "timestamp"}
_ORDERS = orders(range(4))
_TEXTS = [compact(order) for order in _ORDERS]
_ODD_JSON = [
    *(b"null", b"[]", b'""', b"{}", b"1e400", b"-0", b"1" * 400, b'"\\ud800"', b"NaN", b"\xef\xbb\xbf{}", b"[" * 300),
    *(b'{"id":1,"id":2}', b'{"id":{"a":[1]}}', b'{"id":"a\\u0000"}', b'{"id":1e2}', b'{"id":true}', b"\x00"),
]
_ODD_KINDS: list[dict[str, object]] = [
    {"field": "amount", **kind}
    for kind in (
        {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "9" * 5000}},
        {"type": ["bytes"], "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "9999"}},
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "-3"}},
        {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "999999999"}},
        {"type": {"a": 1}, "name": ["x"]},
        {"type": "struct", "fields": [None]},
    )
]
_KEYS = [b"O1", b'"O1"', behind_prefix(b'"O1"'), b"7", b'{"id":"O1"}', connect_key("O1"), b"\xff"]


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A shape, and values that fit it or are nearly so; those of `keys` stand in Kafka's own."""

    shape: ValueShape
    values: Sequence[bytes]
    keys: Sequence[bytes] = field(default=(b"O1",))


def _json(**more: object) -> ValueShape:
    return ValueShape(key=("$.id",), compare=_COMPARE, **more)  # type: ignore[arg-type]


def _kinds() -> Mapping[str, list[_Kind]]:
    filters = {"a→b": filter_terms("region = 'EU' and number > 1", {"region": "string", "number": "int"})}
    nested = [compact({"id": number, "to": {"city": "ü", "n": [1, {"a": None}]}}) for number in range(3)]
    events = [change_event(op, order, 5) for op in "curd" for order in _ORDERS[:2]]
    bare = [bare_change_event(op, order, 5) for op in "curd" for order in _ORDERS[:2]]
    deletions = {"key": ("$.id",), "compare": {"region": "string"}, "version": "event:source.lsn"}
    connect = [*map(connect_value, (*_ORDERS, None))]
    connect += [enveloped({"type": "struct", "fields": [kind]}, {"id": 1, "amount": "AfQ="}) for kind in _ODD_KINDS]
    strings = [*map(json_in_string, _ORDERS)]
    lines = [compact(_record(LINES)), compact(_record([])), compact(_record(LINES[:1]))]
    whole = {"key": ("kafka.key",), "compare": {"text": "string"}, "places": {"text": "$.value"}}
    return {
        "json": [
            _Kind(shape=_json(filters=filters, version="$.number"), values=[*_TEXTS, *_ODD_JSON]),
            _Kind(shape=_json(key_layout=(KeyType.BIGINT,)), values=[*_TEXTS, *_ODD_JSON, *nested]),
            _Kind(
                shape=ValueShape(
                    key=("$.id", "$.to.city"),
                    compare={"n": "json", "id": "double"},
                    places={"n": "$.to.n"},
                    key_layout=(KeyType.DECIMAL, KeyType.STRING),
                ),
                values=[*nested, *_ODD_JSON],
            ),
        ],
        "record_keys": [
            _Kind(
                shape=ValueShape(key=(place,), compare=_COMPARE, record_key=form, tombstones_erase=True),
                values=_TEXTS,
                keys=[*_KEYS, *_ODD_JSON],
            )
            for form in RECORD_KEY_FORMATS.values()
            for place in ("kafka.key", "kafka.key.id")
        ],
        "debezium": [
            _Kind(
                shape=ValueShape(**deletions, format=ChangeEventFormat(), keeps_tombstones=True),  # type: ignore[arg-type]
                values=[*events, *bare],
            ),
            _Kind(shape=_json(format=ChangeEventFormat(), filters=filters), values=[*events, *bare, *_ODD_JSON]),
        ],
        "connect": [_Kind(shape=_json(format=ConnectFormat()), values=[*connect, *_ODD_JSON])],
        "json_schema": [
            _Kind(shape=_json(format=PrefixedJsonFormat()), values=[*map(behind_prefix, _TEXTS)]),
        ],
        "json_in_string": [_Kind(shape=_json(format=JsonInStringFormat()), values=[*strings, *_ODD_JSON])],
        "texts": [
            _Kind(shape=ValueShape(**whole, format=form), values=[*_TEXTS, b"", b"\xff"], keys=_KEYS)  # type: ignore[arg-type]
            for form in (TextFormat(), BytesFormat())
        ],
        "avro": [
            _Kind(
                shape=avro.shape_of(avro.SCHEMAS, _DEEP | {"to.day": "date", "lines": "json"}),
                values=[avro.good(number) for number in (1, 2**62, -5)],
            )
        ],
        "protobuf": [
            _Kind(
                shape=protobuf.shape_of(
                    protobuf.SCHEMAS, _DEEP | {"to.n": "int", "lines": "json", "limit": "int", "big": "bigint"}
                ),
                values=[
                    *(protobuf.good(number) for number in (1, 2**62, -5)),
                    protobuf.good(9, lines=[protobuf.Line(sku="a", n=-1)], note="x"),
                ],
            )
        ],
        "elements": [
            _Kind(shape=_shape(), values=[*lines, *_ODD_JSON]),
            *(
                _Kind(
                    shape=drawn.shape(drawn.DRAWN[form].form()),
                    values=[value_of(lines) for lines in range(4)],
                )
                for form, value_of in drawn.USUAL.values()
            ),
        ],
    }


class Decoders:
    """Batches of records of which some are damaged. The first byte says of which shape."""

    def __init__(self, name: str) -> None:
        self._kinds = _kinds()[name]

    def draw(self, random: Random) -> bytes:
        """Return a shape's number, and a value and a key by record."""
        number = random.randrange(len(self._kinds))
        kind = self._kinds[number]
        pieces: list[bytes | None] = []
        for _ in range(random.randrange(1, _MOST_RECORDS)):
            value, key = random.choice(kind.values), random.choice(kind.keys)
            match random.randrange(6):
                case 0 | 1 | 2:
                    value = mutated(value, random, kind.values)
                case 3:
                    key = mutated(key, random, kind.keys)
            pieces += [None if not random.randrange(30) else value, None if not random.randrange(30) else key]
        return bytes([number]) + packed(pieces)

    def check(self, content: bytes) -> None:
        """Hold the records that are decoded together to each alone."""
        shape = self._kinds[content[0] % len(self._kinds)].shape
        pieces = unpacked(content[1:])
        records = batch(pieces[::2], [*pieces[1::2], None][: len(pieces[::2])])
        alone = [_divided(records.slice(row, 1), shape) for row in range(records.num_rows)]
        expected = pl.concat([record_values._decode_one_by_one(record, shape) for record in alone])
        decoded = decode_records(records, shape).frame
        assert decoded.equals(expected), _difference(decoded, expected)
        assert (decoded["key"].is_null() == decoded["problem"].is_not_null()).all()
        for value in records.column("value").to_pylist():
            _as_template(shape, value)


def _divided(records: pa.RecordBatch, shape: ValueShape) -> pa.RecordBatch:
    """Divide records into elements by the reference where it is another one than of those together."""
    return records if shape.elements is None else shape.elements.divided(records, shape.fields).batch


def _difference(decoded: pl.DataFrame, expected: pl.DataFrame) -> str:
    rows = [rows for rows in zip(decoded.rows(), expected.rows(), strict=False) if rows[0] != rows[1]]
    return f"together {decoded.height} rows, alone {expected.height}; the first that differ: {rows[:1]}"


def _as_template(shape: ValueShape, value: bytes | None) -> None:
    """Read a value as templates see it: it can be had, or there is a reason that can be printed."""
    try:
        json.dumps(shape.format.template_value(value, None), default=str)
    except KeyProblem as problem:
        str(problem).encode()


def decoders() -> Mapping[str, Callable[[], Decoders]]:
    """Return a target for each format."""
    return {f"decode_{name}": partial(Decoders, name) for name in _kinds()}
