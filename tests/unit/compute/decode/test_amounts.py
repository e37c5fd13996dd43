"""Check that amounts which are added up are read exactly, in every format: together as each record alone."""

import base64
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from makewhole.compute.decode import raw_columns, record_values
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.judge.grouped.elements import IS_FLAWED, Totals, with_amounts
from makewhole.model.places.grouping import Grouping
from tests.unit.compute.decode.avro import written as avro
from tests.unit.compute.decode.protobuf import messages as protobuf
from tests.unit.compute.decode.test_record_values import batch
from tests.world.examples import examples

pytestmark = pytest.mark.unit

GROUPING = Grouping(sums=("amount",))
SCALE = 2
Values = Callable[[list[str | None]], list[bytes | None]]


def _avro_schema(amount: Any) -> dict[str, Any]:
    fields = [{"name": "id", "type": "string"}, {"name": "amount", "type": ["null", amount]}]
    return {"type": "record", "name": "r", "fields": fields}


_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 3}
_FILE = protobuf.new_file(
    R=[("id", protobuf.FIELD.TYPE_STRING), ("amount", protobuf.FIELD.TYPE_STRING, protobuf.OPTIONAL, "optional")]
)
_CONNECT = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "string"},
        {
            "field": "amount",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "3"},
        },
    ],
}


def _unscaled(text: str) -> bytes:
    number = int(Decimal(text).scaleb(3))
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _connect(text: str | None) -> bytes:
    raw = None if text is None else base64.b64encode(_unscaled(text)).decode()
    return json.dumps({"schema": _CONNECT, "payload": {"id": "A", "amount": raw}}).encode()


def _protobuf(text: str | None) -> bytes:
    message = protobuf.class_of(_FILE)(id="A")
    if text is not None:
        message.amount = text
    return avro.prefix(1) + b"\x00" + bytes(message.SerializeToString())


def _avro(schema: Mapping[str, Any], text: str | None, encode: Callable[[str], Any]) -> bytes:
    return avro.prefix(1) + avro.body(schema, {"id": "A", "amount": None if text is None else encode(text)})


TEXTS: Mapping[str, tuple[Any, Callable[[str | None], bytes]]] = {
    "json": (JSON, lambda text: json.dumps({"id": "A", "amount": text}).encode()),
    "avro": (
        AvroFormat(avro.Schemas({"ids/1": _avro_schema("string")})),
        lambda text: _avro(_avro_schema("string"), text, str),
    ),
    "protobuf": (ProtobufFormat(protobuf.Schemas({"ids/1": _FILE})), _protobuf),
}
NUMBERS: Mapping[str, tuple[Any, Callable[[str | None], bytes]]] = {
    "avro": (
        AvroFormat(avro.Schemas({"ids/1": _avro_schema(_DECIMAL)})),
        lambda text: _avro(_avro_schema(_DECIMAL), text, _unscaled),
    ),
    "connect": (ConnectFormat(), _connect),
}
_USUAL = st.decimals(-(10**9), 10**9, allow_nan=False, places=3).map(str)
_UNUSUAL = st.sampled_from(
    ["", "1.5.5", " 1", "1e3", "-0", "-0.00", "-0.50", "+1", "007", "1.", ".5", "NaN", "x", "1_0"]
)
_LONG = st.sampled_from(["9" * 40, "0." + "0" * 30 + "1", "0." + "1" * 950, "1" * 26 + ".00"])


def _shape(form: Any) -> ValueShape:
    return ValueShape(key=("$.id",), compare=GROUPING.columns_of_records, format=form)


def _held(values: list[bytes], form: Any) -> None:
    frame = decode_values(batch([*values]), _shape(form))
    assert frame.rows() == record_values._decode_one_by_one(batch([*values]), _shape(form)).rows()


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.one_of(st.none(), _USUAL, _USUAL, _UNUSUAL, _LONG), min_size=1, max_size=6))
@example(["1.50", "-0.50", "100"])
def test_amounts_in_texts_are_read_together_as_alone(name: str, texts: list[str | None]) -> None:
    form, encode = TEXTS[name]
    _held([encode(text) for text in texts], form)


@pytest.mark.parametrize("name", NUMBERS)
@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.one_of(st.none(), _USUAL), min_size=1, max_size=6))
def test_amounts_in_decimals_are_read_together_as_alone(name: str, texts: list[str | None]) -> None:
    form, encode = NUMBERS[name]
    _held([encode(text) for text in texts], form)


@pytest.mark.parametrize("name", ["json", "avro", "protobuf", "avro numbers", "connect numbers"])
def test_usual_amounts_are_not_read_one_by_one(name: str) -> None:
    form, encode = NUMBERS[name.split()[0]] if name.endswith("numbers") else TEXTS[name]
    values = [encode(text) for text in ("1.50", "-0.500", "100", "-20", None, "0")]
    with (
        mock.patch.object(record_values, "_decode_one_by_one", side_effect=AssertionError),
        mock.patch.object(raw_columns, "canonical_text", side_effect=AssertionError),
    ):
        frame = decode_values(batch([*values]), _shape(form))
    assert frame["c:amount"].to_list() == ["1.5", "-0.5", "100", "-20", None, "0"]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.one_of(st.none(), _USUAL, _UNUSUAL, _LONG), min_size=1, max_size=6))
def test_amounts_are_added_as_exact_numbers_are(texts: list[str | None]) -> None:
    values = [TEXTS["json"][1](text) for text in texts]
    amounts = decode_values(batch([*values]), _shape(JSON))["c:amount"]
    others = {"place": ["0:1"] * len(texts), "is_tombstone": [False] * len(texts), "excluded_by": [[""]] * len(texts)}
    read = with_amounts(pl.DataFrame(others).with_columns(amounts), _totals())
    for text, number, is_flawed in zip(amounts, read["u:amount"], read[IS_FLAWED], strict=True):
        expected = _exactly(text)
        assert is_flawed == (expected is None), text
        assert is_flawed or number == expected


def _totals() -> Totals:
    return Totals.of(GROUPING, {"amount": f"decimal(27,{SCALE})"})


def _exactly(text: str | None) -> int | None:
    """Return an amount in the last digit of its sum; None: it has more digits, or is none."""
    if text is None or text.startswith("!") or not Decimal(text).is_finite():
        return None
    number = Decimal(text).scaleb(SCALE) if len(text) < 60 else Decimal("0.1")
    return int(number) if number == number.to_integral_value() and abs(number) < 10**27 else None
