from collections.abc import Mapping

import pyarrow as pa
import pytest

from bench.plan import full
from bench.windows.order_records import AVRO_SCHEMA, OrderFormat, order_value
from bench.windows.orders import Orders
from makewhole.compute.decode.avro.avro_format import AvroFormat
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.record_values import ValueShape, decode_values
from makewhole.compute.decode.value_format import ValueFormat
from makewhole.window.known_schemas import FileSchema

FORMATS: Mapping[OrderFormat, ValueFormat] = {
    OrderFormat.JSON: JSON,
    OrderFormat.AVRO: AvroFormat(FileSchema(AVRO_SCHEMA)),
}
NUMBERS = (1, 2, 3, 127, 128, 999_999, 1_000_000, 9_999_999)


@pytest.mark.parametrize("form", OrderFormat)
def test_orders_have_the_same_key_and_columns_in_every_format(form: OrderFormat) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema = pa.schema([("value", pa.binary()), ("headers", headers)])
    values = [order_value(form, number) for number in NUMBERS]
    batch = pa.RecordBatch.from_pydict({"value": values, "headers": [[]] * len(values)}, schema=schema)
    shape = ValueShape(
        key=("$.order_id",), compare={"amount": "decimal(12,2)", "status": "string"}, format=FORMATS[form]
    )

    decoded = decode_values(batch, shape)

    states = ("NEW", "PAID", "SHIPPED", "DONE")
    assert decoded.select("key", "c:amount", "c:status").rows() == [
        (f"O{number:010d}", f"{number * 7919 % 1_000_000 / 100:.2f}", states[number % 4]) for number in NUMBERS
    ]


def test_a_pipeline_of_avro_records_names_the_schema_that_lies_beside_its_file() -> None:
    orders = Orders(number=1_000, stride=500, form=OrderFormat.AVRO)

    text = orders.pipeline_file("bench", kafka="log", postgres="db")

    assert 'key: "$.order_id", value: avro, schema: order.avsc}' in text
    assert orders.files == {"order.avsc": AVRO_SCHEMA}
    assert Orders(number=1_000, stride=500).files == {}


def test_ten_million_avro_records_are_measured_beside_the_job_by_hand() -> None:
    (duel,) = full().avro

    assert (duel.orders.number, duel.orders.title) == (10_000_000, "0.01%, Avro")
    assert duel.sides == ("makewhole", "by hand")
