"""Decode values of binary formats to typed columns: makewhole on one core, beside Spark's `from_avro`."""

import json
import multiprocessing
import os
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.jars import avro_jar
from bench.measuring.contender import Contender
from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from makewhole.compute.decode.schema_texts import SCHEMA_HEADER, SchemaText

FORMAT = "format "
MAKEWHOLE, FROM_AVRO = "makewhole", "from_avro"
FORMATS = ("avro", "protobuf")
_ROWS_OF_A_BATCH = 65_536
_PREFIX = b"\x00\x00\x00\x00\x07"
_STATES = ("NEW", "PAID", "SENT", "DONE")
_COLUMNS = {
    "name": "string",
    "amount": "decimal(12,2)",
    "state": "string",
    "note": "string",
    "at": "timestamp",
    "weight": "double",
    "is_gift": "boolean",
}
_AVRO_FIELDS: dict[str, Any] = {
    "id": "long",
    "name": "string",
    "amount": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "state": {"type": "enum", "name": "State", "symbols": _STATES},
    "note": ["null", "string"],
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "weight": "double",
    "is_gift": "boolean",
}
_AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind} for name, kind in _AVRO_FIELDS.items()],
    }
)


class _OneSchema:
    """A registry with one schema."""

    are_named, header = True, SCHEMA_HEADER

    def __init__(self, text: str) -> None:
        self._text = SchemaText(text)

    def text(self, _: str) -> SchemaText:
        return self._text

    def newest(self) -> tuple[SchemaText, bytes]:
        return self._text, _PREFIX


def measured(folder: Path, data: DataSet, rounds: int, report: Callable[[str], None]) -> Iterator[Series]:
    """Measure both formats, Avro side by side with Spark, the one that begins changing from round to round."""
    paths = {form: folder / f"{form}.parquet" for form in FORMATS}
    for form, path in paths.items():
        _write(path, form, data.records)
    with Contender(FROM_AVRO, folder / "from-avro", [avro_jar()]) as theirs:
        sides: dict[str, Callable[[], Cost]] = {
            MAKEWHOLE: lambda: _decode_apart(paths["avro"], "avro", data.records),
            FROM_AVRO: lambda: theirs.run(decode_by_spark, str(paths["avro"]))[1],
        }
        yield from _duel(sides, "avro", data, rounds, report)
    yield from _duel(
        {MAKEWHOLE: lambda: _decode_apart(paths["protobuf"], "protobuf", data.records)},
        "protobuf",
        data,
        rounds,
        report,
    )
    for path in paths.values():
        path.unlink()


def _duel(
    sides: dict[str, Callable[[], Cost]], form: str, data: DataSet, rounds: int, report: Callable[[str], None]
) -> Iterator[Series]:
    found = {name: Series(part=f"{FORMAT}{form}", side=name, data=data) for name in sides}
    for number in range(rounds + 1):
        for name in sides if number % 2 == 0 else reversed(sides):
            cost = sides[name]()
            report(f"{FORMAT}{form:9} {name:10} {cost.wall_seconds:6.2f} s, {cost.cpu_seconds:6.2f} s of cores")
            if number:  # the first warms up: not counted
                found[name].warm.append(cost)
    yield from found.values()


def decode_by_spark(spark: Any, path: str) -> None:
    """Decode every field of every value, as a job by hand does, and throw it away."""
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    values = spark.read.parquet(path).select(from_avro(expr("substring(value, 6)"), _AVRO_SCHEMA).alias("order"))
    values.select("order.*").write.format("noop").mode("overwrite").save()


def _decode_apart(path: Path, form: str, records: int) -> Cost:
    """Decode in a process of its own, on one core."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        rows, cost = pool.submit(_decode, str(path), form).result()
    if rows != records:
        raise RuntimeError(f"{form}: {rows} of {records} values have a key")
    return cost


def _decode(path: str, form: str) -> tuple[int, Cost]:
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import pyarrow.parquet as pq

    from makewhole.compute.decode.record_values import ValueShape, decode_values
    from makewhole.model.points import KeyType

    shape = ValueShape(key=("$.id",), key_layout=(KeyType.BIGINT,), compare=_COLUMNS, format=_format(form))
    batches = pq.ParquetFile(path).iter_batches(_ROWS_OF_A_BATCH)
    rows = len(decode_values(next(batches), shape))  # what is compiled is loaded
    wall, cpu, counted = time.perf_counter(), time.process_time(), 0
    for batch in batches:
        counted += len(batch) - decode_values(batch, shape)["key"].null_count()
    share = (rows + counted) / max(counted, 1)
    return rows + counted, Cost(
        wall_seconds=(time.perf_counter() - wall) * share,
        python_cpu_seconds=(time.process_time() - cpu) * share,
        jvm_cpu_seconds=0.0,
        python_bytes=0,
        jvm_bytes=0,
    )


def _format(form: str) -> Any:
    from makewhole.compute.decode.avro.avro_format import AvroFormat
    from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat

    return AvroFormat(_OneSchema(_AVRO_SCHEMA)) if form == "avro" else ProtobufFormat(_OneSchema(_protobuf_file()[0]))


def _write(path: Path, form: str, records: int) -> None:
    """Write so many values with their prefix into a Parquet file, without headers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    encode = _avro_value if form == "avro" else _protobuf_values()
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema = pa.schema([("value", pa.binary()), ("headers", headers)])
    with pq.ParquetWriter(path, schema) as file:
        for first in range(0, records, _ROWS_OF_A_BATCH):
            numbers = range(first, min(first + _ROWS_OF_A_BATCH, records))
            values = [encode(number) for number in numbers]
            file.write_batch(
                pa.RecordBatch.from_pydict({"value": values, "headers": [[]] * len(values)}, schema=schema)
            )


def _avro_value(number: int) -> bytes:
    from makewhole.compute.decode.avro.encode import zigzag

    name, cents = b"order %d" % number, number % 1_000_000
    amount = cents.to_bytes(cents.bit_length() // 8 + 1, "big")
    note = zigzag(0) if number % 3 else zigzag(1) + zigzag(6) + b"a note"
    parts = [zigzag(number), zigzag(len(name)), name, zigzag(len(amount)), amount, zigzag(number % 4), note]
    parts += [zigzag(1_700_000_000_000_000 + number), struct.pack("<d", number / 8), bytes([number % 2])]
    return _PREFIX + b"".join(parts)


def _protobuf_file() -> tuple[str, Any]:
    """Return the description of a file as a registry has it, and the class of its message."""
    import base64

    from google.protobuf import descriptor_pb2, message_factory

    from makewhole.compute.decode.protobuf.descriptors import message_at

    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="bench", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    state = file.enum_type.add(name="State")
    for number, symbol in enumerate(_STATES):
        state.value.add(name=symbol, number=number)
    message = file.message_type.add(name="Order")
    kinds = {"id": 3, "name": 9, "amount": 9, "state": 14, "note": 9, "at": 11, "weight": 1, "is_gift": 8}
    types = {"state": ".bench.State", "at": ".google.protobuf.Timestamp"}
    for number, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=1, type_name=types.get(name))
    text = base64.b64encode(file.SerializeToString()).decode()
    return text, message_factory.GetMessageClass(message_at(SchemaText(text), (0,)))


def _protobuf_values() -> Callable[[int], bytes]:
    _, message = _protobuf_file()

    def value(number: int) -> bytes:
        cents = number % 1_000_000
        made = message(id=number, name=f"order {number}", amount=f"{cents // 100}.{cents % 100:02d}", state=number % 4)
        made.note, made.weight, made.is_gift = "" if number % 3 else "a note", number / 8, bool(number % 2)
        made.at.seconds, made.at.nanos = divmod((1_700_000_000_000_000 + number) * 1_000, 10**9)
        return bytes(_PREFIX + b"\x00" + made.SerializeToString())

    return value
