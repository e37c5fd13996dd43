"""Parse Avro schemas, and give each simple value as the field of a JSON object would have it.

Source: https://avro.apache.org/docs/1.12.0/specification/. A logical type that a reader does not know, or that does not
fit its type, is left out, as the specification says.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np

from makewhole.compute.decode.schema_texts import SchemaText
from makewhole.compute.decode.shapes.counts import counted_day, counted_moment
from makewhole.compute.moments import day_text, moment_text, time_text
from makewhole.compute.numbers import MOST_DIGITS

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_EXACT = Context(prec=4 * MOST_DIGITS)
_MOST_DECIMAL_BYTES = 400
_UUID_BYTES = 16
_MOST_DEPTH = 100
MOST_EMPTY = 100_000
"""Most items without bytes of a value: no size of it says how many there are."""


class SchemaProblem(ValueError):  # noqa: N818 - the reason that a record is reported with
    """The reason why a schema cannot be used."""


@dataclass(eq=False, kw_only=True)
class AvroType:
    """A type of a schema. `kind`: one of `PRIMITIVES`, or record, enum, array, map, union, fixed.

    `inner`: the types of the fields of a record (by `names`), the branches of a union, or the type of items.
    `has_infinities`: some of its days or moments stand for PostgreSQL's infinities.
    """

    kind: str
    names: tuple[str, ...] = ()
    inner: tuple["AvroType", ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    has_infinities: bool = False

    @property
    def is_simple(self) -> bool:
        """Whether a value of it has no other values in it."""
        return self.kind in PRIMITIVES or self.kind in ("enum", "fixed")

    def branch_beside_null(self) -> "AvroType | None":
        """Return the only branch of a union that is not null, or the type itself where it is no union; None: there are
        several."""
        if self.kind != "union":
            return self
        others = [branch for branch in self.inner if branch.kind != "null"]
        return others[0] if len(others) == 1 else None

    def counted_type(self) -> "AvroType | None":
        """Return the type itself, or the only branch beside null, where its numbers are days, times or moments."""
        kind = self.branch_beside_null()
        return kind if kind is not None and kind.kind in _LOGICAL_OF and kind.logical is not None else None

    def has_bytes(self, within: tuple["AvroType", ...] = ()) -> bool:
        """Return whether each value has at least one byte. `within`: the records that it is a part of."""
        if self.kind == "record":
            return self in within or any(inner.has_bytes((*within, self)) for inner in self.inner)
        return self.kind != "null" and (self.kind != "fixed" or self.size > 0)

    def json_value(self, raw: Any) -> Any:
        """Return a simple value (int, float, bool, bytes, text or the number of a symbol) as a JSON field has it."""
        return _RENDERERS.get(self.logical or self.kind, _as_it_is)(self, raw)


def _decimal(kind: AvroType, raw: bytes) -> Decimal | str:
    if len(raw) > _MOST_DECIMAL_BYTES:
        return bytes_value(raw)
    return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale, _EXACT)


def float_value(number: Any) -> Decimal | str:
    """Return a floating-point number by its shortest text, as JSON has it; what is not finite as PostgreSQL writes
    it."""
    if np.isfinite(number):
        return Decimal(str(number))
    return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def bytes_value(raw: bytes) -> str:
    """Return bytes as PostgreSQL writes a `bytea`."""
    return "\\x" + raw.hex()


def _uuid(_: AvroType, raw: bytes) -> str:
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _as_it_is(_: AvroType, raw: Any) -> Any:
    return raw


def _day(kind: AvroType, raw: int) -> str:
    return counted_day(raw) if kind.has_infinities else day_text(raw)


def _moment(digits: int, zone: str, kind: AvroType, raw: int) -> str:
    return counted_moment(digits, raw) if kind.has_infinities else moment_text(raw, 10**digits, zone)


_RENDERERS: Mapping[str, Callable[[AvroType, Any], Any]] = {
    "null": lambda *_: None,
    "float": lambda _, raw: float_value(np.float32(raw)),
    "double": lambda _, raw: float_value(np.float64(raw)),
    "bytes": lambda _, raw: bytes_value(raw),
    "fixed": lambda _, raw: bytes_value(raw),
    "enum": lambda kind, raw: kind.symbols[raw],
    "decimal": _decimal,
    "uuid": _uuid,
    "date": _day,
    "time-millis": lambda _, raw: time_text(raw * 1_000),
    "time-micros": lambda _, raw: time_text(raw),
    "timestamp-millis": partial(_moment, 3, "Z"),
    "timestamp-micros": partial(_moment, 6, "Z"),
    "timestamp-nanos": partial(_moment, 9, "Z"),
    "local-timestamp-millis": partial(_moment, 3, ""),
    "local-timestamp-micros": partial(_moment, 6, ""),
    "local-timestamp-nanos": partial(_moment, 9, ""),
}
_LOGICAL_OF = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        *(f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos")),
    ),
}
_CONNECT_NAMES = {
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time-millis",
    "io.debezium.time.MicroTime": "time-micros",
    "io.debezium.time.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros",
    "io.debezium.time.NanoTimestamp": "timestamp-nanos",
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}
"""Types of Debezium and of Connect itself, as Kafka Connect's AvroConverter names them by `connect.name`, by the
logical types that are the same. Debezium has PostgreSQL's infinities in each day and moment of them."""


_CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_SCALE = re.compile("-?[0-9]{1,4}")


def parse_schema(text: str, references: Iterable[SchemaText] = ()) -> AvroType:
    """Parse the text of a schema, which may use the types of others.

    Raises:
        SchemaProblem: it is no Avro schema.
    """
    parser = _Parser()
    try:
        for reference in references:
            parser.parse_all(reference)
        return parser.parse(json.loads(text), "", 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = str(error) if isinstance(error, SchemaProblem) else "it does not have the form of one"
        raise SchemaProblem(reason) from None


@dataclass
class _Parser:
    """The named types of a schema, as far as it is parsed."""

    named: dict[str, AvroType] = field(default_factory=dict)

    def parse(self, schema: Any, namespace: str, depth: int) -> AvroType:
        if depth > _MOST_DEPTH:
            raise SchemaProblem("its types are nested too deep")
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return AvroType(kind="union", inner=tuple(self.parse(branch, namespace, depth + 1) for branch in schema))
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.parse(kind, namespace, depth + 1)
        if kind in ("record", "error"):
            return self._record(schema, namespace, depth)
        if kind == "enum":
            return self._name(AvroType(kind=kind, symbols=tuple(schema["symbols"])), schema, namespace)
        if kind == "fixed":
            return self._name(_logical(AvroType(kind=kind, size=int(schema["size"])), schema), schema, namespace)
        if kind in ("array", "map"):
            inner = self.parse(schema["items" if kind == "array" else "values"], namespace, depth + 1)
            return AvroType(kind=kind, inner=(inner,))
        return _logical(AvroType(kind=kind), schema) if kind in PRIMITIVES else self._by_name(kind, namespace)

    def parse_all(self, schema: SchemaText) -> None:
        """Parse a schema for the types in it, behind those that it uses itself."""
        for _, reference in schema.references:
            self.parse_all(reference)
        self.parse(json.loads(schema.text), "", 0)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(kind=name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        named_type = self.named.get(full) or self.named.get(name)
        if named_type is None:
            raise SchemaProblem(f"it has no type {name}")
        return named_type

    def _name(self, made: AvroType, schema: Mapping[str, Any], namespace: str) -> AvroType:
        name = schema["name"]
        full = name if "." in name else ".".join(filter(None, (schema.get("namespace", namespace), name)))
        self.named[full] = made
        return made

    def _record(self, schema: Mapping[str, Any], namespace: str, depth: int) -> AvroType:
        made = self._name(AvroType(kind="record"), schema, namespace)
        name = schema["name"]
        own = name.rpartition(".")[0] if "." in name else schema.get("namespace", namespace)
        made.names = tuple(part["name"] for part in schema["fields"])
        made.inner = tuple(self.parse(part["type"], own, depth + 1) for part in schema["fields"])
        if len(set(made.names)) != len(made.names):
            raise SchemaProblem("a record has a field twice")
        return made


def _logical(made: AvroType, schema: Mapping[str, Any]) -> AvroType:
    if schema.get("connect.name") == _CONNECT_DECIMAL and made.kind in ("bytes", "fixed"):
        _make_decimal_of_connect(made, schema)
    of_connect = _CONNECT_NAMES.get(str(schema.get("connect.name")))
    logical = schema.get("logicalType") or of_connect
    if logical == "decimal" and made.kind in ("bytes", "fixed"):
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= MOST_DIGITS:
            made.logical, made.precision, made.scale = logical, precision, scale
    elif (logical == "uuid" and made.size == _UUID_BYTES) or logical in _LOGICAL_OF.get(made.kind, ()):
        made.logical, made.has_infinities = logical, logical == of_connect
    return made


def _make_decimal_of_connect(made: AvroType, schema: Mapping[str, Any]) -> None:
    """Make a type a decimal as Connect has it: of any scale, whatever the precision that its converter wrote."""
    parameters = schema.get("connect.parameters")
    scale = schema.get("scale", parameters.get("scale") if isinstance(parameters, dict) else None)
    if isinstance(scale, int | str) and _SCALE.fullmatch(str(scale)) and abs(int(scale)) <= MOST_DIGITS:
        made.logical, made.precision, made.scale = "decimal", MOST_DIGITS, int(scale)
