"""Test that the formats of a topic are read, and that a place which its records do not have is refused."""

from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Remedy
from makewhole.model.points import ValueSchema

pytestmark = pytest.mark.unit

PIPELINE = """
version: 2
pipeline: shop
points:
  outbox: {{kind: ledger, connection: db, table: outbox, key: id, time: at}}
  orders: {{kind: topic, connection: log, topic: orders, {orders}}}
  warehouse: {{kind: store, connection: db, table: warehouse, key: id, time: at}}
hops:
  - {{from: outbox, to: orders{hop}}}
  - {{from: orders, to: warehouse}}
"""


def write(folder: Path, orders: str, hop: str = "") -> Path:
    path = folder / "shop.yaml"
    path.write_text(PIPELINE.format(orders=orders, hop=hop), encoding="utf-8")
    return path


def problems(folder: Path, orders: str, hop: str = "") -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(write(folder, orders, hop))
    return [f"{problem.path.split(' (')[0]}: {problem.found}. {problem.remedy}" for problem in caught.value.problems]


@pytest.mark.parametrize("value", ["json", "json_schema", "json_in_string", "connect", "debezium"])
@pytest.mark.parametrize("record_key", ["json", "json_schema", "connect"])
def test_a_record_key_with_fields_is_named_by_its_field(tmp_path: Path, value: str, record_key: str) -> None:
    orders = f"value: {value}, record_key: {record_key}, key: kafka.key.order.id"

    point = load_pipeline(write(tmp_path, orders)).topic("orders")

    assert (point.key, point.value, point.record_key) == (("kafka.key.order.id",), value, record_key)


def test_the_version_of_a_row_may_be_a_field_of_its_event(tmp_path: Path) -> None:
    orders = 'value: debezium, key: "$.id", version: "event:source.lsn"'

    assert load_pipeline(write(tmp_path, orders)).topic("orders").version == "event:source.lsn"


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        (
            "key: kafka.key.id",
            "points.orders.key: kafka.key.id is a field of the record key, which is read as a text. Write 'record_key: "
            "json' (or json_schema, connect, avro, protobuf) at the point, or 'kafka.key' for the key as a whole",
        ),
        (
            "record_key: bytes, key: kafka.key.id",
            "points.orders.key: kafka.key.id is a field of the record key, which is read as a text. Write 'record_key: "
            "json' (or json_schema, connect, avro, protobuf) at the point, or 'kafka.key' for the key as a whole",
        ),
        (
            'key: "$.id", version: "event:ts_ms"',
            "points.orders.version: event:ts_ms is a field of a change event, and the values are json. Write 'value: "
            "debezium' at the point, or '$.' for a field of the value",
        ),
        (
            'value: string, key: "$.id"',
            "points.orders.key: $.id is no field of a value that is read as a whole. With 'value: string' the one "
            "field is '$.value'; a key is in 'kafka.key' or 'header:NAME'",
        ),
        (
            'value: debezium, key: "event:source.lsn"',
            "points.orders.key: 'event:source.lsn' is not a place in a record. Write '$.field' (with further '.field' "
            "inside it), 'kafka.key' or 'header:NAME'",
        ),
        (
            "record_key: debezium, key: kafka.key",
            "points.orders.record_key: 'debezium' is not a format of record keys. Allowed: avro, bytes, connect, json, "
            "json_schema, protobuf, string",
        ),
        (
            'value: Debezium, key: "$.id"',
            "points.orders.value: 'Debezium' is not a value format. Allowed: avro, bytes, connect, debezium, json, "
            "json_in_string, json_schema, protobuf, string. Did you mean 'debezium'?",
        ),
    ],
)
def test_a_place_that_no_record_has_is_refused(tmp_path: Path, orders: str, expected: str) -> None:
    assert problems(tmp_path, orders) == [expected]


@pytest.mark.parametrize(
    "formats", ["value: debezium", "value: string", "value: bytes", "value: json_schema", "record_key: json"]
)
def test_nothing_is_produced_in_a_format_in_which_no_record_can_be_made(tmp_path: Path, formats: str) -> None:
    produce = ", compensation: {missing: produce}"

    (problem,) = problems(tmp_path, f"{formats}, key: kafka.key", produce)

    assert problem.startswith("hops[0].compensation.missing: 'produce' is not possible for missing keys")
    assert "in which no record can be made" in problem
    assert load_pipeline(write(tmp_path, "value: json_in_string, key: kafka.key", produce)).hops[0].remedies is not None


def test_a_value_that_carries_its_schema_is_produced_of_a_column_with_the_whole_value_alone(tmp_path: Path) -> None:
    orders, produce = "value: connect, key: kafka.key", ", compensation: {missing: produce}"
    (problem,) = problems(tmp_path, orders, produce)
    assert problem == (
        "hops[0].compensation.missing: 'produce' is not possible for missing keys from a ledger to a topic whose "
        "values carry their schema, from a ledger without `payload`, a column with the whole value. Allowed: report"
    )
    path = write(tmp_path, orders, produce)
    path.write_text(
        path.read_text(encoding="utf-8").replace("time: at}\n  orders", "time: at, payload: record}\n  orders")
    )
    assert load_pipeline(path).hops[0].remedies.missing is Remedy.PRODUCE


def test_a_column_in_a_field_of_the_record_key_is_refused_where_keys_have_none(tmp_path: Path) -> None:
    message, *_ = problems(tmp_path, 'key: "$.id", columns: {amount: kafka.key.amount}')
    assert message == (
        "points.orders.columns.amount: kafka.key.amount is a field of the record key, which is read as a text. Write "
        "'record_key: json' (or json_schema, connect, avro, protobuf) at the point, or 'kafka.key' for the key as a "
        "whole"
    )


def test_an_avro_record_key_is_described_by_the_registry_of_the_values_or_by_its_own(tmp_path: Path) -> None:
    (tmp_path / "key.avsc").write_text('"string"')
    values = "value: avro, registry: {connection: registry}, key: kafka.key"

    of_values = load_pipeline(write(tmp_path, f"{values}, record_key: avro")).topic("orders")
    of_file = load_pipeline(write(tmp_path, f"{values}, record_key: {{format: avro, schema: key.avsc}}")).topic(
        "orders"
    )
    other = "{format: protobuf, registry: {connection: other}}"
    of_other = load_pipeline(write(tmp_path, f"{values}.id, record_key: {other}")).topic("orders")

    assert (of_values.record_key, of_values.key_schema, of_values.connections) == ("avro", None, ("log", "registry"))
    assert (of_file.record_key, of_file.key_schema) == ("avro", ValueSchema(text='"string"'))
    assert of_other.key_schema == ValueSchema(registry="other")
    assert of_other.connections == ("log", "registry", "other")
    assert not of_file.can_encode


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        (
            "key: kafka.key, record_key: avro",
            "points.orders.record_key: is avro, and no registry of the values has the schemas of the keys. Write "
            "'record_key: {format: avro, registry: {connection: ID}}' where each key begins with the number of its "
            "schema, or 'record_key: {format: avro, schema: FILE}' where none does",
        ),
        (
            "key: kafka.key, record_key: {format: avro}",
            "points.orders.record_key.registry: is not there, and no schema, for avro. Write `registry: {connection: "
            "ID}` where each key begins with the number of its schema, or `schema: FILE` where none does",
        ),
        (
            "key: kafka.key, record_key: {format: json, message: Key}",
            "points.orders.record_key.message: says what describes record keys, and json needs no description. Take "
            "the line out",
        ),
        (
            "key: kafka.key, record_key: {format: protobuf, registry: {connection: registry}}",
            "points.orders.key: kafka.key is a whole message, and a key is one of its fields. Write 'kafka.key.' and "
            "the field's name",
        ),
    ],
)
def test_a_record_key_without_what_describes_it_is_refused(tmp_path: Path, orders: str, expected: str) -> None:
    assert problems(tmp_path, orders) == [expected]
