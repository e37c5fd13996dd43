"""Plan records that are made: of rows of a ledger, and as reversals, in formats that a schema describes.

`K0`–`K3` are produced of the ledger's rows; of `K7` there is one row too many in the store, of `K8` there are two, and
each is taken back by an event with a key of its own.
"""

import base64
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from makewhole.model.hops import Hop, Remedies, Remedy, Reverse
from makewhole.model.points import PointKind, TablePoint, TopicPoint, ValueSchema
from makewhole.model.verdict import Verdict
from tests.crash.plan.case_settings import CaseSettings, Writes

PRODUCED = [("K0", 0), ("K1", 1), ("K2", 2), ("K3", 3)]
"""(id, delay) of the records of the ledger's rows."""
REVERSED = [("R-K7", -7), ("R-K8", -8), ("R-K8", -8)]
"""The same of the reversals."""
LEDGER_TABLE = "create table dw.outbox (id text, delay int, payload text, at timestamptz default '2013-01-02')"
_LEDGER, _STORE = "outbox→flights", "flights→warehouse"

_AVRO: Any = {
    "type": "record",
    "name": "Departure",
    "fields": [{"name": "id", "type": "string"}, {"name": "delay", "type": "int"}],
}
_CONNECT = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "string", "optional": False},
        {"field": "delay", "type": "int32", "optional": False},
    ],
}


def _descriptors() -> descriptor_pb2.FileDescriptorSet:
    kinds = descriptor_pb2.FieldDescriptorProto
    message = descriptor_pb2.DescriptorProto(name="Departure")
    for number, (name, kind) in enumerate((("id", kinds.TYPE_STRING), ("delay", kinds.TYPE_INT32)), start=1):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    file = descriptor_pb2.FileDescriptorProto(name="departure.proto", syntax="proto3", message_type=[message])
    return descriptor_pb2.FileDescriptorSet(file=[file])


def _of_avro(value: bytes) -> Mapping[str, Any]:
    read: Any = fastavro.schemaless_reader(io.BytesIO(value), _AVRO, None)
    return dict(read)


def _of_protobuf(value: bytes) -> Mapping[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    for file in _descriptors().file:
        pool.Add(file)
    message: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("Departure"))()
    message.ParseFromString(value)
    return {"id": message.id, "delay": message.delay}


def _of_connect(value: bytes) -> Mapping[str, Any]:
    document = json.loads(value)
    assert document["schema"] == _CONNECT
    payload: Mapping[str, Any] = document["payload"]
    return payload


@dataclass(frozen=True, kw_only=True)
class _Format:
    """A format: its name in a pipeline file, its schema, how others read it, and what is around the fields."""

    name: str
    read: Callable[[bytes], Mapping[str, Any]]
    schema: ValueSchema | None = None
    around: Mapping[str, Any] = field(default_factory=dict)

    def whole(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.around, "payload": fields} if self.around else fields


_FORMATS: Mapping[str, _Format] = {
    Writes.AVRO: _Format(name="avro", read=_of_avro, schema=ValueSchema(text=json.dumps(_AVRO))),
    Writes.PROTOBUF: _Format(
        name="protobuf",
        read=_of_protobuf,
        schema=ValueSchema(text=base64.b64encode(_descriptors().SerializeToString()).decode()),
    ),
    Writes.CONNECT: _Format(name="connect", read=_of_connect, around={"schema": _CONNECT}),
}


def read_value(settings: CaseSettings, value: bytes) -> str:
    """Return the value of a record as a JSON object, as another library reads it."""
    return json.dumps(_FORMATS[settings.writes].read(value), sort_keys=True)


def ledger_rows(settings: CaseSettings) -> list[tuple[str, int, str]]:
    """Return the rows of the ledger: id, delay, and the value of the record."""
    whole = _FORMATS[settings.writes].whole
    return [(key, delay, json.dumps(whole({"id": key, "delay": delay}))) for key, delay in PRODUCED]


def points(settings: CaseSettings) -> Mapping[str, TablePoint | TopicPoint]:
    """Return the ledger, and the topic."""
    form = _FORMATS[settings.writes]
    return {
        "outbox": TablePoint(
            name="outbox",
            kind=PointKind.LEDGER,
            connection="pg",
            table="dw.outbox",
            key=("id",),
            time="at",
            payload="payload",
        ),
        "flights": TopicPoint(
            name="flights",
            connection="kafka",
            topic=settings.topic,
            key=("$.id",),
            value=form.name,
            schema=form.schema,
        ),
    }


def hops(settings: CaseSettings) -> tuple[Hop, ...]:
    """Return the hop that is produced over, and the one whose rows are taken back."""
    value = _FORMATS[settings.writes].whole({"id": "R-{{ key }}", "delay": "{{ -row.delay }}"})
    report = Remedy.REPORT
    return (
        Hop(
            source="outbox",
            target="flights",
            remedies=Remedies(missing=Remedy.PRODUCE, duplicate=report, mismatched=report),
        ),
        Hop(
            source="flights",
            target="warehouse",
            remedies=Remedies(missing=report, duplicate=Remedy.REVERSE, mismatched=report),
            reverse=Reverse(to="flights", key="R-{{ key }}", value=value),
        ),
    )


def found() -> Iterable[tuple[str, Verdict, Iterable[int]]]:
    """Return what is wrong: hop, verdict, numbers of the keys."""
    return [(_LEDGER, Verdict.MISSING, range(len(PRODUCED))), (_STORE, Verdict.DUPLICATE, [7, 8])]
