"""Test that the values of logical types are those that PostgreSQL had in its columns."""

import base64
from decimal import Decimal
from typing import Any

import pytest

from makewhole.compute.canonical import canonical_text, column_text
from makewhole.compute.decode.connect.change_events import ChangeEventFormat
from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.connect.logical_types import conversion
from makewhole.compute.placeholders import is_placeholder
from tests.unit.compute.decode.connect.samples import ROWS, value_of

pytestmark = pytest.mark.unit

DECLARED = {
    "id": "bigint",
    "small": "int",
    "int4": "int",
    "amount": "decimal(12,2)",
    "free": "decimal(30,4)",
    "whole": "decimal(30,0)",
    "f4": "double",
    "f8": "double",
    "money": "decimal(12,2)",
    "flag": "boolean",
    "name": "string",
    "code": "char",
    "raw": "string",
    "bits": "string",
    "day": "date",
    "t": "string",
    "t3": "string",
    "ts": "timestamp",
    "ts3": "timestamp(3)",
    "tstz": "timestamp",
    "u": "uuid",
    "j": "json",
    "jb": "json",
    "m": "string",
    "addr": "inet",
    "net": "inet",
    "mac": "string",
    "ints": "int[]",
    "texts": "string[]",
    "nums": "decimal(6,2)[]",
    "stamps": "timestamp[]",
    "days": "date[]",
    "uuids": "uuid[]",
    "rng": "string",
    "big": "string",
    "bigbytes": "string",
    "bigjson": "json",
    "bigints": "int[]",
    "bigtexts": "string[]",
}
"""The columns whose values can be compared, as a window reads them."""
ENDS_EARLY = {"t", "ts"}
"""Those whose microseconds Connect's own types do not have."""


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("insert", "2"),
        ("infinite", "5"),
        ("ancient", "6"),
        ("far", "7"),
        ("unwrapped insert", "2"),
        ("unwrapped infinite", "5"),
        ("unwrapped ancient", "6"),
        ("unwrapped far", "7"),
    ],
)
def test_every_column_that_debezium_sends_equals_the_column_of_its_table(name: str, id: str) -> None:  # noqa: A002
    form = ConnectFormat() if name.startswith("unwrapped") else ChangeEventFormat()
    later = {"int4"}  # the row was updated afterwards
    lost = {"free"} if id == "5" else set()  # of NaN Debezium sends null, and says so in its log

    row = form.document(value_of(name), None)

    differing = {}
    for column, declared in DECLARED.items():
        of_record, of_table = canonical_text(row[column], declared), column_text_of(ROWS[id][column], declared)
        if of_record != of_table:
            differing[column] = (of_record, of_table)
    expected = lost | (later if id == "2" else set())
    expected |= {column for column in ENDS_EARLY if name == "unwrapped insert"}
    assert set(differing) == expected, differing


def column_text_of(text: str | None, declared: str) -> str | None:
    """Return the canonical text of what a column shows."""
    if text is not None and declared in ("string", "char", "inet"):
        return canonical_text(text, declared)
    return column_text(None if text is None else f"!{text}", declared)


def test_a_value_that_did_not_change_and_was_not_sent_stays_a_placeholder_in_every_type() -> None:
    row = ChangeEventFormat().document(value_of("unchanged"), None)

    unsent = {column for column, value in row.items() if is_placeholder(value)}

    assert unsent == {"big", "bigbytes", "bigjson", "bigints", "bigtexts"}
    assert row["raw"] == r"\x00ff10"


def named(name: str, kind: str = "int64", **parameters: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "version": 1, "parameters": parameters}


def decimal(scale: str) -> dict[str, Any]:
    return named("org.apache.kafka.connect.data.Decimal", "bytes", scale=scale)


def of_bytes(unscaled: bytes) -> str:
    return base64.b64encode(unscaled).decode()


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (decimal("2"), of_bytes(b"\x01\xf4"), Decimal("5.00")),
        (decimal("2"), of_bytes(b"\xff"), Decimal("-0.01")),
        (decimal("-2"), of_bytes(b"\x05"), Decimal("500")),
        (decimal("0"), of_bytes(b"\x00" * 3 + b"\x80"), Decimal(128)),
        (decimal("40"), of_bytes(b"\x01" * 17), Decimal(f"{int('01' * 17, 16)}E-40")),
        (decimal("2"), Decimal("5.10"), Decimal("5.10")),  # decimal.format=NUMERIC
        (named("io.debezium.time.NanoTimestamp"), 1, "1970-01-01T00:00:00.000000001Z"),
        (named("io.debezium.time.NanoTime"), 86_400_000_000_000, "24:00:00"),
        (named("io.debezium.time.Timestamp"), -1, "1969-12-31T23:59:59.999Z"),
        (named("io.debezium.time.IsoTime", "string"), "10:15:30Z", "10:15:30"),
        (named("io.debezium.time.ZonedTime", "string"), "10:15:30.5Z", "10:15:30.5+00"),
        (named("io.debezium.data.Bits", "bytes", length="10"), of_bytes(b"\x05\x02"), "1000000101"),
        ({"type": "bytes"}, "", r"\x"),
        ({"type": "map", "keys": {"type": "string"}, "values": decimal("0")}, {"a": "AQ=="}, {"a": Decimal(1)}),
        ({"type": "map", "keys": {"type": "int32"}, "values": decimal("0")}, [[1, "AQ=="]], [[1, Decimal(1)]]),
        ({"type": "array", "items": {"type": "bytes"}}, ["AP8=", None], [r"\x00ff", None]),
    ],
)
def test_a_value_gets_the_meaning_of_its_logical_type(schema: dict[str, Any], value: Any, expected: Any) -> None:
    convert = conversion(schema)

    assert convert is not None
    assert convert(value) == expected


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (decimal("2"), "no base64!"),
        (decimal("2"), ""),
        (decimal("many"), "AQ=="),
        (named("org.apache.kafka.connect.data.Decimal", "bytes"), "AQ=="),
        (decimal("2"), True),
        (named("io.debezium.time.Date", "int32"), "2013-01-31"),
        (named("io.debezium.time.Date", "int32"), Decimal("1.5")),
        (named("io.debezium.time.Date", "int32"), Decimal("1e30")),
        (named("io.debezium.time.MicroTime"), -1),
        (named("io.debezium.time.MicroTime"), True),
        (named("io.debezium.time.ZonedTime", "string"), 5),
        (named("io.debezium.data.Bits", "bytes", length="99999999999"), "AQ=="),
        (named("io.debezium.data.VariableScaleDecimal", "struct"), {"scale": 2}),
        ({"type": "struct", "fields": [{"field": "a", **decimal("2")}]}, "a text"),
        ({"type": "map", "values": {"type": "bytes"}}, [[1], 2]),
        ({"type": "bytes"}, "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="),
        (named("io.debezium.time.Date", "int32"), None),
    ],
)
def test_what_is_no_value_of_its_type_stays_as_it_is(schema: dict[str, Any], value: Any) -> None:
    convert = conversion(schema)

    assert convert is None or convert(value) is value


@pytest.mark.parametrize("schema", [None, "string", [], {}, {"type": 5}, {"type": "int64"}, {"type": "struct"}])
def test_a_schema_without_logical_types_changes_nothing(schema: Any) -> None:
    assert conversion(schema) is None
