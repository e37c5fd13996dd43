"""Test schemas in a registry of others: Apicurio's, by the API that speaks as Confluent's does."""

import base64
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.compute.keys import KeyProblem
from makewhole.lake.storage import Storage
from makewhole.model.connection import RegistryConnection
from makewhole.window.known_schemas import RegistrySchemas
from tests.unit.compute.decode.avro.written import batch, body, prefix
from tests.unit.compute.decode.protobuf.test_protobuf_values import FILE, FIRST, Order
from tests.world.apicurio import apicurio

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(600)]

LINE = {"type": "record", "name": "Line", "namespace": "shop", "fields": [{"name": "sku", "type": "string"}]}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The registry. It starts once, in some twenty seconds, and is fetched the first time (142 MB)."""
    with apicurio() as registry:
        yield registry


def register(url: str, subject: str, schema: str, **more: Any) -> int:
    answer = httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": schema, **more}, timeout=60)
    answer.raise_for_status()
    return int(answer.json()["id"])


def order(total: Any) -> dict[str, Any]:
    fields = [{"name": "id", "type": "long"}, {"name": "total", "type": total}]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}


def schemas(url: str, folder: Path, kind: str, form: str, subject: str) -> RegistrySchemas:
    return RegistrySchemas(RegistryConnection(id="r", url=url), Storage(root=str(folder)), kind, form, subject)


def decoded(form: ValueFormat, values: list[bytes | None], compare: dict[str, str]) -> list[tuple[Any, ...]]:
    frame = decode_values(batch(values), ValueShape(key=("$.id",), compare=compare, format=form))
    return frame.select("key", *(f"c:{name}" for name in compare), "problem").rows()


def test_avro_of_two_schemas_and_an_unknown_one(url: str, tmp_path: Path) -> None:
    older, newer = order("string"), order(["null", "double"])
    numbers = [register(url, "orders-value", json.dumps(schema)) for schema in (older, newer)]
    known = schemas(url, tmp_path, "AVRO", "", "orders-value")
    values: list[bytes | None] = [
        prefix(numbers[0]) + body(older, {"id": 1, "total": "7.0"}),
        prefix(numbers[1]) + body(newer, {"id": 2, "total": 7.0}),
        prefix(9_999) + body(newer, {"id": 3, "total": 7.0}),
    ]

    rows = decoded(AvroFormat(known), values, {"total": "decimal(8,2)"})

    unknown = "schema ids/9999 is not in the registry"
    assert rows == [("1", "7.00", None), ("2", "7.00", None), (None, None, unknown)]
    assert AvroFormat(known).encode(b'{"id": 2, "total": 7.0}') == values[1]


def test_a_schema_that_refers_to_another(url: str, tmp_path: Path) -> None:
    register(url, "line", json.dumps(LINE))
    whole = order({"type": "array", "items": "shop.Line"})
    reference = {"name": "shop.Line", "subject": "line", "version": 1}
    number = register(url, "with-lines", json.dumps(whole), references=[reference])
    written = order({"type": "array", "items": LINE})
    values: list[bytes | None] = [prefix(number) + body(written, {"id": 1, "total": [{"sku": "a"}]})]

    rows = decoded(AvroFormat(schemas(url, tmp_path, "AVRO", "", "x")), values, {"total": "json"})

    assert rows == [("1", '[{"sku": "a"}]', None)]


def test_protobuf_that_was_registered_as_confluents_serializer_does(url: str, tmp_path: Path) -> None:
    text = base64.b64encode(FILE.SerializeToString()).decode()
    number = register(url, "pb-value", text, schemaType="PROTOBUF")
    form = ProtobufFormat(schemas(url, tmp_path, "PROTOBUF", "serialized", "pb-value"))
    values: list[bytes | None] = [prefix(number) + FIRST + Order(id=1, total="7.5").SerializeToString()]

    assert decoded(form, values, {"total": "decimal(8,2)"}) == [("1", "7.50", None)]


def test_protobuf_that_is_there_as_text_alone_is_compiled_where_a_compiler_is(url: str, tmp_path: Path) -> None:
    text = 'syntax = "proto3"; message Order { int64 id = 1; }'
    number = register(url, "text-value", text, schemaType="PROTOBUF")
    form = ProtobufFormat(schemas(url, tmp_path, "PROTOBUF", "serialized", "text-value"))
    value = prefix(number) + FIRST + b"\x08\x01"

    if find_spec("grpc_tools"):
        assert form.document(value, ()) == {"id": 1}
    else:
        with pytest.raises(KeyProblem, match=r"the registry has it as \.proto text, and what compiles that is"):
            form.document(value, ())
