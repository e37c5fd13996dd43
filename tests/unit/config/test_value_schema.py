"""Test what a topic point says of its values: their format, and the registry or the file that describes it."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makewhole.config.connections import from_airflow_fields, from_environment
from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.connection import RegistryConnection
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Remedy
from makewhole.model.points import VALUE_FORMATS, TopicPoint, ValueSchema
from makewhole.window.formats import FORMATS

pytestmark = pytest.mark.unit

ON_TOPIC = 'key: "$.flight_id"'
NEEDED = (
    "Write `registry: {connection: ID}` where each value begins with the number of its schema, or `schema: FILE` "
    "where none does"
)


def topic(write: Callable[..., Path], minimal: str, more: str) -> TopicPoint:
    point = load_pipeline(write(minimal.replace(ON_TOPIC, f"{ON_TOPIC}, {more}"))).points["flights"]
    assert isinstance(point, TopicPoint)
    return point


def test_every_format_that_a_file_may_name_can_be_made() -> None:
    assert set(FORMATS) == set(VALUE_FORMATS)


def test_a_registry_is_a_connection_of_the_point(write: Callable[..., Path], minimal: str) -> None:
    point = topic(write, minimal, "value: avro, registry: {connection: registry, subject: flights-v}")

    assert point.schema == ValueSchema(registry="registry", subject="flights-v")
    assert point.connections == ("kafka_main", "registry")


def test_a_schema_file_stands_beside_the_pipeline_file(write: Callable[..., Path], minimal: str) -> None:
    folder = write(minimal).parent
    (folder / "flight.avsc").write_text('{"type": "string"}')
    (folder / "flight.desc").write_bytes(b"\x00\xff")

    assert topic(write, minimal, "value: avro, schema: flight.avsc").schema == ValueSchema(text='{"type": "string"}')
    assert topic(write, minimal, "value: protobuf, schema: flight.desc, message: a.B").schema == ValueSchema(
        text=base64.b64encode(b"\x00\xff").decode(), message="a.B"
    )


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("value: avro", f"points.flights.registry (line 5): is not there, and no schema, for avro. {NEEDED}"),
        (
            "value: avro, registry: {connection: r}, schema: x.avsc",
            f"points.flights.schema (line 5): is there beside a registry, for avro. {NEEDED}",
        ),
        (
            "value: json, registry: {connection: r}",
            "points.flights.registry (line 5): says what describes values, and json needs no description. "
            "Take the line out",
        ),
        (
            "value: avro, registry: {connection: r}, message: a.B",
            "points.flights.message (line 5): names a message, and only protobuf has several in a schema. "
            "Take the line out",
        ),
        (
            "value: avro, registry: {}",
            "points.flights.registry.connection (line 5): is missing. Name the connection to the schema registry",
        ),
        (
            "value: avro, schema: none.avsc",
            "points.flights.schema (line 5): names none.avsc, which cannot be read (No such file or directory). "
            "Name a file beside the pipeline file",
        ),
    ],
)
def test_anything_else_is_refused_with_its_place(
    write: Callable[..., Path], minimal: str, more: str, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        topic(write, minimal, more)
    assert problem in [f"{wrong.path}: {wrong.found}. {wrong.remedy}" for wrong in caught.value.problems]


def test_nothing_is_produced_where_no_record_can_be_made(write: Callable[..., Path], minimal: str) -> None:
    events = minimal.replace(ON_TOPIC, f"{ON_TOPIC}, value: debezium")
    asked = events.replace("to: flights}", "to: flights, compensation: {missing: produce}}")

    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(asked))

    [problem] = caught.value.problems
    assert f"{problem.found}. {problem.remedy}" == (
        "'produce' is not possible for missing keys from a ledger to a topic whose values or record keys are of a "
        "format in which no record can be made. Allowed: report"
    )
    for form in ("avro", "protobuf"):
        known = asked.replace("value: debezium", f"value: {form}, registry: {{connection: r}}")
        assert load_pipeline(write(known)).hops[0].remedies.missing is Remedy.PRODUCE


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"conn_type": "http", "host": "h"}, "http://h"),
        ({"conn_type": "http", "host": "h", "port": 8081, "schema": "https"}, "https://h:8081"),
        ({"conn_type": "https", "host": "h"}, "https://h"),
        ({"conn_type": "http", "host": "https://h/", "port": 1}, "https://h:1"),
        ({"conn_type": "http", "host": "h", "extra": {"path": "/apis/ccompat/v7"}}, "http://h/apis/ccompat/v7"),
    ],
)
def test_the_address_of_a_registry_is_that_of_airflows_connections(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], url: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_R", json.dumps({**fields, "login": "me", "password": "s3cret"}))

    connection = from_environment("r")

    assert connection == RegistryConnection(id="r", url=url, login="me", password="s3cret")
    assert "s3cret" not in repr(connection)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "has no host"),
        ({"host": "me:s3cret@h"}, "is no address of a schema registry"),
        ({"host": "h", "schema": "ftp"}, "is no address of a schema registry"),
        ({"host": "h", "extra": {"verify": False}}, "has keys in its extra that are not used: verify"),
    ],
)
def test_a_wrong_registry_is_named_and_its_secret_is_not(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_airflow_fields("r", "http", **fields)

    assert str(caught.value).startswith(f"Airflow connection: r: {message}")
    assert "s3cret" not in str(caught.value)
