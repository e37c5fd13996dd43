"""Divide JSON records into the elements of their arrays, typed: makewhole on one core, beside Spark's `explode`."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from bench.measuring.contender import Contender
from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.topics.decoding import MAKEWHOLE, Decode, Report, apart, duel, write_values

ELEMENTS = "elements"
EXPLODE = "explode"
LINES = 4
"""Elements of a record."""
_COLUMNS = {"sku": "string", "amount": "decimal(12,2)", "quantity": "bigint", "at": "timestamp", "is_gift": "boolean"}
_SCHEMA = (
    "id string, lines array<struct<no: bigint, sku: string, amount: decimal(12,2), quantity: bigint, at: timestamp, "
    "is_gift: boolean>>"
)


def measured(folder: Path, data: DataSet, rounds: int, report: Report) -> Iterator[Series]:
    """Measure both sides on as many elements as the data set has records, in a quarter as many records.

    Raises:
        RuntimeError: the sides do not have the same elements.
    """
    path = folder / "elements.parquet"
    write_values(path, map(_record, range(data.records // LINES)))
    with Contender(EXPLODE, folder / "explode") as theirs:
        _require(theirs.run(summed_by_spark, str(path))[0], data)
        sides: dict[str, Callable[[], Cost]] = {
            MAKEWHOLE: partial(apart, _decoder, path, ELEMENTS, data.records),
            EXPLODE: lambda: theirs.run(exploded_by_spark, str(path))[1],
        }
        yield from duel(sides, ELEMENTS, data, rounds, report)
    path.unlink()


def _elements(spark: Any, path: str) -> Any:
    from pyspark.sql.functions import col, explode, from_json

    records = spark.read.parquet(path).select(from_json(col("value").cast("string"), _SCHEMA).alias("record"))
    return records.select("record.id", explode("record.lines").alias("line")).select("id", "line.*")


def exploded_by_spark(spark: Any, path: str) -> None:
    """Make a row of each element, as a job by hand does, and throw it away."""
    _elements(spark, path).write.format("noop").mode("overwrite").save()


def summed_by_spark(spark: Any, path: str) -> tuple[int, str]:
    """Return how many elements there are, and the sum of their amounts."""
    [(count, total)] = _elements(spark, path).selectExpr("count(at)", "sum(amount)").collect()
    return count, str(total)


def _require(found: tuple[int, str], data: DataSet) -> None:
    amounts = (Decimal(_line(number)["amount"]) for number in range(data.records))
    expected = (data.records, str(sum(amounts)))
    if found != expected:
        raise RuntimeError(f"{EXPLODE} has {found} elements and cents, and there are {expected}")


def _decoder(_: str) -> Decode:
    """Return what divides a batch of records and decodes their elements to a key of two parts and five columns."""
    from makewhole.compute.decode.json_values import JSON
    from makewhole.compute.decode.record_values import ValueShape, decode_values
    from makewhole.compute.decode.shapes.elements import ElementFormat, Elements
    from makewhole.model.points import KeyType

    elements = Elements(path=("lines",), format=JSON)
    shape = ValueShape(
        key=("$.id", "$.lines.no"),
        key_layout=(KeyType.STRING, KeyType.BIGINT),
        compare=_COLUMNS,
        places={name: f"$.lines.{name}" for name in _COLUMNS},
        format=ElementFormat(),
        elements=elements,
    )

    def decode(batch: Any) -> int:
        frame = decode_values(elements.divided(batch, shape.fields), shape)
        return frame.drop_nulls(["key", *(f"c:{name}" for name in _COLUMNS)]).height

    return decode


def _record(number: int) -> bytes:
    lines = [_line(number * LINES + at) for at in range(LINES)]
    return json.dumps({"id": f"O{number}", "customer": f"C{number % 1000}", "lines": lines}).encode()


def _line(number: int) -> dict[str, Any]:
    minute, second = divmod(number, 60)
    return {
        "no": number % LINES,
        "sku": f"S{number % 977}",
        "amount": f"{number % 1_000_000 // 100}.{number % 100:02d}",
        "quantity": 1 + number % 9,
        "at": f"2026-01-{1 + minute // 1440 % 28:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:{second:02d}Z",
        "is_gift": number % 2 == 0,
    }
