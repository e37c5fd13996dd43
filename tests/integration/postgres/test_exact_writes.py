"""Test that a repair writes the value of the record, and not the text that it is compared by, or is refused."""

import pytest

from makewhole.compensation.freezing.row_to_write import missing_row
from makewhole.compute.column_values import ColumnValue, as_object, parse_fields
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.points import TopicPoint
from makewhole.postgres.connect import connect
from makewhole.postgres.table import describe_table
from makewhole.tables.new_row import new_row
from tests.integration.postgres.store import Store

pytestmark = pytest.mark.integration

TOPIC = TopicPoint(name="orders", connection="kafka", topic="orders", key=("$.id",))
REMEDIES = Remedies(missing=Remedy.UPSERT, duplicate=Remedy.REPORT, mismatched=Remedy.UPSERT)
DOCUMENT = '"{\\"b\\": 1.10, \\"a\\": 2}"'
REFUSED = "refused"


@pytest.mark.parametrize(
    ("declared", "column", "raw", "there"),
    [
        ("date", "timestamptz", '"2013-01-31T12:34:56Z"', "2013-01-31 12:34:56+00"),
        ("date", "timestamp", '"2013-01-31T12:34:56+02:00"', "2013-01-31 10:34:56"),
        ("timestamp(3)", "timestamptz", '"2013-01-31T12:34:56.123456+02:00"', "2013-01-31 10:34:56.123456+00"),
        ("date", "date", '"2013-01-31T12:34:56Z"', "2013-01-31"),
        ("date", "date", '"2013-01-31T23:30:00-05:00"', REFUSED),
        ("boolean", "text", '"Y"', "Y"),
        ("boolean", "boolean", '"Y"', "true"),
        ("boolean", "integer", "true", "1"),
        ("timestamp", "text", '"2013-01-31T12:34:56+02:00"', "2013-01-31T12:34:56+02:00"),
        ("decimal(6,1)", "text", '"7.04"', "7.04"),
        ("decimal(6,1)", "numeric", "7.04", "7.04"),
        ("real", "real", "0.10000000149011612", "0.1"),
        ("real", "text", "0.10000000149011612", "0.10000000149011612"),
        ("real", "real", "1e39", REFUSED),
        ("int", "money", "1234.50", "$1,234.50"),
        ("int", "money", '"$1,234.50"', "$1,234.50"),
        ("char", "text", '"a  "', "a  "),
        ("uuid", "text", '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
        ("inet", "text", '"10.0.0.1/32"', "10.0.0.1/32"),
        ("json", "text", DOCUMENT, '{"b": 1.10, "a": 2}'),
        ("json", "jsonb", DOCUMENT, '{"a": 2, "b": 1.1}'),
        ("json", "jsonb", '"a"', '"a"'),
        ("json", "jsonb", "5", "5"),
        ("json", "jsonb", '"5"', REFUSED),
        ("json", "jsonb", '"null"', REFUSED),
    ],
)
def test_a_column_gets_what_the_record_has(database: str, declared: str, column: str, raw: str, there: str) -> None:
    store = Store(database)
    store.sql(f"create table store (id text primary key, x {column})")
    with connect(store.connection) as session:
        table = describe_table(session, store.point)
    hop = Hop(source="orders", target="store", remedies=REMEDIES)
    field = parse_fields(f'{{"x": {raw}}}'.encode())["x"]
    values = {"x": ColumnValue.of_record(field, declared, table.base_types["x"])}
    try:
        row = missing_row(new_row(table, hop, TOPIC, store.point, {"x": declared}), values, hop.name, None)
    except ActionRefusedError:
        assert there == REFUSED
        return
    receipt = store.apply(store.missing(0, "k", as_object(values).decode(), row.columns, row.expected))
    assert (store.sql("select x::text from store") or [(REFUSED,)]) == [(there,)], receipt
