"""Decode values of binary formats to typed columns: makewhole on one core, beside Spark's `from_avro`."""

import json
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.jars import avro_jar
from bench.measuring.contender import Contender
from bench.measuring.data_set import DataSet
from bench.measuring.meter import Cost
from bench.measuring.results import Series
from bench.topics.decoding import MAKEWHOLE, Decode, Report, apart, duel, write_values
from makewhole.compute.decode.schema_texts import SCHEMA_HEADER, SchemaText

FORMAT = "format "
FROM_AVRO = "from_avro"
FORMATS = ("avro", "protobuf")
PREFIX = b"\x00\x00\x00\x00\x07"
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


class OneSchema:
    """A registry with one schema."""

    are_named, header = True, SCHEMA_HEADER

    def __init__(self, text: str) -> None:
        self._text = SchemaText(text)

    def text(self, _: str) -> SchemaText:
        return self._text

    def newest(self) -> tuple[SchemaText, bytes]:
        return self._text, PREFIX


def measured(folder: Path, data: DataSet, rounds: int, report: Report) -> Iterator[Series]:
    """Measure both formats, Avro side by side with Spark, the one that begins changing from round to round."""
    paths = {form: folder / f"{form}.parquet" for form in FORMATS}
    for form, path in paths.items():
        encode = _avro_value if form == "avro" else _protobuf_values()
        write_values(path, map(encode, range(data.records)))
    ours: dict[str, Callable[[], Cost]] = {
        form: partial(apart, _decoder, path, form, data.records) for form, path in paths.items()
    }
    with Contender(FROM_AVRO, folder / "from-avro", [avro_jar()]) as theirs:
        sides: dict[str, Callable[[], Cost]] = {
            MAKEWHOLE: ours["avro"],
            FROM_AVRO: lambda: theirs.run(decode_by_spark, str(paths["avro"]))[1],
        }
        yield from duel(sides, f"{FORMAT}avro", data, rounds, report)
    yield from duel({MAKEWHOLE: ours["protobuf"]}, f"{FORMAT}protobuf", data, rounds, report)
    for path in paths.values():
        path.unlink()


def decode_by_spark(spark: Any, path: str) -> None:
    """Decode every field of every value, as a job by hand does, and throw it away."""
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    values = spark.read.parquet(path).select(from_avro(expr("substring(value, 6)"), _AVRO_SCHEMA).alias("order"))
    values.select("order.*").write.format("noop").mode("overwrite").save()


def _decoder(form: str) -> Decode:
    """Return what decodes a batch of values of a format to a key and seven columns."""
    from makewhole.compute.decode.record_values import ValueShape, decode_values
    from makewhole.model.points import KeyType

    shape = ValueShape(key=("$.id",), key_layout=(KeyType.BIGINT,), compare=_COLUMNS, format=_format(form))
    return lambda batch: len(batch) - decode_values(batch, shape)["key"].null_count()


def _format(form: str) -> Any:
    from makewhole.compute.decode.avro.avro_format import AvroFormat
    from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat

    return AvroFormat(OneSchema(_AVRO_SCHEMA)) if form == "avro" else ProtobufFormat(OneSchema(_protobuf_file()[0]))


def _avro_value(number: int) -> bytes:
    from makewhole.compute.decode.avro.encode import zigzag

    name, cents = b"order %d" % number, number % 1_000_000
    amount = cents.to_bytes(cents.bit_length() // 8 + 1, "big")
    note = zigzag(0) if number % 3 else zigzag(1) + zigzag(6) + b"a note"
    parts = [zigzag(number), zigzag(len(name)), name, zigzag(len(amount)), amount, zigzag(number % 4), note]
    parts += [zigzag(1_700_000_000_000_000 + number), struct.pack("<d", number / 8), bytes([number % 2])]
    return PREFIX + b"".join(parts)


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
        return bytes(PREFIX + b"\x00" + made.SerializeToString())

    return value
