"""Write Avro with a library of others, to hold our own reading of it to that; and draw schemas with values."""

import io
import json
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from makewhole.compute.decode.schema_texts import SCHEMA_HEADER, SchemaText
from makewhole.compute.keys import KeyProblem

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
USUAL_MOMENTS = st.integers(-(10**15), 2 * 10**15)
MOMENTS = st.one_of(st.integers(-(10**17), 10**17), LONGS)


class Schemas:
    """The schemas of a topic in memory."""

    def __init__(self, schemas: dict[str, Any], *, are_named: bool = True, header: str = SCHEMA_HEADER) -> None:
        self.are_named, self.header = are_named, header
        self._schemas = schemas

    def text(self, name: str) -> SchemaText:
        if name not in self._schemas:
            raise KeyProblem(f"schema {name} is not in the registry")
        return SchemaText(json.dumps(self._schemas[name]))

    def newest(self) -> tuple[SchemaText, bytes]:
        name = list(self._schemas)[-1]
        return self.text(name), b"" if not self.are_named else prefix(int(name.removeprefix("ids/")))


def prefix(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "big")


def without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without_logical_types(part) for name, part in schema.items() if name != "logicalType"}


def body(schema: Any, datum: Any) -> bytes:
    """Encode raw values (numbers and bytes, whatever their logical types say)."""
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(without_logical_types(schema)), datum)
    return buffer.getvalue()


def read_back(schema: Any, content: bytes) -> Any:
    """Decode to raw values."""
    return fastavro.schemaless_reader(io.BytesIO(content), fastavro.parse_schema(without_logical_types(schema)), None)


def batch(values: list[bytes | None], headers: list[list[dict[str, Any]]] | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers or [[]] * len(values), HEADERS),
        }
    )


class Drawn(NamedTuple):
    """A schema of a field, and what its raw values are drawn of."""

    schema: Any
    values: st.SearchStrategy[Any]


def _logical(kind: str, logical: str, values: st.SearchStrategy[Any], **more: Any) -> Drawn:
    return Drawn({"type": kind, "logicalType": logical, **more}, values)


def _decimals(scale: int, most: int = 10**20) -> Drawn:
    return _logical("bytes", "decimal", st.integers(-most, most).map(unscaled), precision=24, scale=scale)


def unscaled(number: int) -> bytes:
    """Return a number as the fewest bytes that hold it."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


SIMPLE = [
    Drawn("boolean", st.booleans()),
    Drawn("int", INTS),
    Drawn("long", LONGS),
    Drawn("double", st.floats(width=64)),
    Drawn("float", st.floats(width=32)),
    Drawn("string", st.one_of(TEXTS, st.sampled_from(["", "1", "7.00", "2013-01-31", "2013-01-31T12:00:00Z", "true"]))),
    Drawn("bytes", st.binary(max_size=4)),
    *map(_decimals, (0, 2, 9)),
    *(_decimals(scale, 10**7) for scale in (0, 2, 4, 9)),
    _logical("int", "date", st.integers(0, 30_000)),
    _logical("long", "timestamp-micros", USUAL_MOMENTS),
    _logical("long", "timestamp-millis", USUAL_MOMENTS.map(lambda moment: moment // 1_000)),
    Drawn("double", st.integers(-(10**6), 10**6).map(lambda number: number / 8)),
    Drawn("long", st.integers(-(10**6), 10**6)),
    Drawn("string", st.integers(-(10**6), 10**6).map(lambda number: str(number / 100))),
    _logical("int", "date", st.one_of(st.integers(-800_000, 3_000_000), INTS)),
    _logical("int", "time-millis", st.integers(0, 86_400_000)),
    _logical("long", "time-micros", st.integers(0, 86_400_000_000)),
    *(
        _logical("long", f"{local}timestamp-{unit}", MOMENTS)
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    ),
    _logical("string", "uuid", st.uuids().map(str)),
]


def _named(name: str) -> list[Drawn]:
    """Draw types that have a name, which a schema may define once."""
    return [
        Drawn(
            {"type": "enum", "name": f"E{name}", "symbols": ["NEW", "PAID", "LOST"]}, st.sampled_from(["NEW", "PAID"])
        ),
        Drawn({"type": "fixed", "name": f"F{name}", "size": 3}, st.binary(min_size=3, max_size=3)),
        _logical("fixed", "uuid", st.binary(min_size=16, max_size=16), name=f"U{name}", size=16),
    ]


@st.composite
def fields(draw: Any, name: str, depth: int = 2) -> Drawn:
    """Draw the type of a field: simple, or with others in it."""
    kind = draw(st.sampled_from(["simple", "simple", "named", "null", "record", "array", "map", "union"]))
    if kind == "simple" or depth == 0:
        drawn: Drawn = draw(st.sampled_from(SIMPLE))
        return drawn
    if kind == "named":
        named: Drawn = draw(st.sampled_from(_named(name)))
        return named
    inner: Drawn = draw(fields(f"{name}x", depth - 1))
    if kind == "record":
        return Drawn(
            {"type": "record", "name": f"R{name}", "fields": [{"name": "in", "type": inner.schema}]},
            inner.values.map(lambda value: {"in": value}),
        )
    if kind == "array":
        return Drawn({"type": "array", "items": inner.schema}, st.lists(inner.values, max_size=3))
    if kind == "map":
        return Drawn({"type": "map", "values": inner.schema}, st.dictionaries(TEXTS, inner.values, max_size=3))
    if isinstance(inner.schema, list):
        return inner
    branches = ["null", inner.schema] if kind == "null" else ["null", "boolean", {"type": "array", "items": "string"}]
    if draw(st.booleans()):
        branches.reverse()
    others = inner.values if kind == "null" else st.one_of(st.booleans(), st.lists(TEXTS, max_size=2))
    return Drawn(branches, st.one_of(st.none(), others))
