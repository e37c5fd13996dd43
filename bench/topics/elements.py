"""Divide records into the elements of their arrays, typed: makewhole on one core, beside Spark's `explode`."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from bench.jars import avro_jar
from bench.measuring.contender import Contender
from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.topics.decoding import MAKEWHOLE, Decode, Report, apart, duel, write_values
from bench.topics.element_values import LINES, VALUES, format_of, line

ELEMENTS = "elements "
"""Stands before the format in the name of a part."""
EXPLODE = "explode"
_COLUMNS = {"sku": "string", "amount": "decimal(12,2)", "quantity": "bigint", "at": "timestamp", "is_gift": "boolean"}
_LINE = "no: bigint, sku: string, amount: decimal(12,2), quantity: bigint, at: {at}, is_gift: boolean"
_RECORD = "id string, lines array<struct<" + _LINE + ">>"
_ENVELOPED = f"payload struct<{_RECORD.format(at='bigint')}>"
_EVENT = f"payload struct<after: struct<{_RECORD.format(at='bigint')}>>"
_IN_MILLIS = "id, line.no, line.sku, line.amount, line.quantity, timestamp_millis(line.at) as at, line.is_gift"
_TYPED = "id, line.*"


def measured(folder: Path, data: DataSet, rounds: int, report: Report) -> Iterator[Series]:
    """Measure both sides on as many elements as the data set has records, in a quarter as many records, format by
    format; of Protobuf makewhole's side alone.

    Raises:
        RuntimeError: the sides do not have the same elements.
    """
    with Contender(EXPLODE, folder / "explode", [avro_jar()]) as theirs:
        for form, value in VALUES.items():
            path = folder / f"elements-{form}.parquet"
            write_values(path, map(value(), range(data.records // LINES)))
            sides: dict[str, Callable[[], Cost]] = {MAKEWHOLE: partial(apart, _decoder, path, form, data.records)}
            if form in _SPARK:
                _require(theirs.run(summed_by_spark, str(path), form)[0], data)
                sides[EXPLODE] = partial(_exploded, theirs, path, form)
            yield from duel(sides, f"{ELEMENTS}{form}", data, rounds, report)
            path.unlink()


def _exploded(theirs: Contender, path: Path, form: str) -> Cost:
    return theirs.run(exploded_by_spark, str(path), form)[1]


def _of_json(schema: str, place: str) -> Callable[[Any], Any]:
    """Return what parses the values of a column, and takes their records from a place."""

    def parse(values: Any) -> Any:
        from pyspark.sql.functions import col, from_json

        document = from_json(col("value").cast("string"), schema)
        return values.select(document.alias("document")).selectExpr(f"{place} as record")

    return parse


def _of_avro(values: Any) -> Any:
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    from bench.topics.element_values import AVRO_SCHEMA

    return values.select(from_avro(expr("substring(value, 6)"), AVRO_SCHEMA).alias("record"))


_SPARK: dict[str, tuple[Callable[[Any], Any], str]] = {
    "json": (_of_json(_RECORD.format(at="timestamp"), "document"), _TYPED),
    "avro": (_of_avro, _TYPED),
    "connect": (_of_json(_ENVELOPED, "document.payload"), _IN_MILLIS),
    "debezium": (_of_json(_EVENT, "document.payload.after"), _IN_MILLIS),
}
"""How a job by hand parses the values of a format, and what it selects of each line."""


def _elements(spark: Any, path: str, form: str) -> Any:
    parse, selected = _SPARK[form]
    lines = parse(spark.read.parquet(path)).selectExpr("record.id", "explode(record.lines) as line")
    return lines.selectExpr(*selected.split(", "))


def exploded_by_spark(spark: Any, path: str, form: str) -> None:
    """Make a row of each element, as a job by hand does, and throw it away."""
    _elements(spark, path, form).write.format("noop").mode("overwrite").save()


def summed_by_spark(spark: Any, path: str, form: str) -> tuple[int, str]:
    """Return how many elements there are, and the sum of their amounts."""
    [(count, total)] = _elements(spark, path, form).selectExpr("count(at)", "sum(amount)").collect()
    return count, str(total)


def _require(totals: tuple[int, str], data: DataSet) -> None:
    amounts = (Decimal(line(number)["amount"]) for number in range(data.records))
    expected = (data.records, str(sum(amounts)))
    if totals != expected:
        raise RuntimeError(f"{EXPLODE} has {totals} elements and cents, and there are {expected}")


def _decoder(form: str) -> Decode:
    """Return what divides a batch of records and decodes their elements to a key of two parts and five columns."""
    from makewhole.compute.decode.record_values import ValueShape
    from makewhole.compute.decode.shapes.divided_records import decode_records
    from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
    from makewhole.model.points import KeyType

    shape = ValueShape(
        key=("$.id", "$.lines.no"),
        key_layout=(KeyType.STRING, KeyType.BIGINT),
        compare=_COLUMNS,
        places={name: f"$.lines.{name}" for name in _COLUMNS},
        format=ElementFormat(),
        elements=Elements(path=("lines",), format=format_of(form)),
    )

    def decode(batch: Any) -> int:
        frame = decode_records(batch, shape).frame
        return frame.drop_nulls(["key", *(f"c:{name}" for name in _COLUMNS)]).height

    return decode
