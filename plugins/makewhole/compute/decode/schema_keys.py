"""Read Kafka's own record key by a schema: many keys at once as if they were values, or one by one."""

from makewhole.compute.decode.avro.avro_format import WHOLE, AvroFormat
from makewhole.compute.decode.record_keys import RecordKeyFormat, RecordKeyReader, of_record_key
from makewhole.compute.decode.schema_texts import SchemaTexts
from makewhole.compute.decode.value_format import Headers, ValueFormat
from makewhole.compute.keys import KeyProblem


def avro_keys(schemas: SchemaTexts) -> RecordKeyFormat:
    """Return the format of keys that are Avro: a record, or a simple value."""
    form = AvroFormat(schemas, of_keys=True)
    return RecordKeyFormat(name="avro", read=_reader(form), fields=form, whole=WHOLE, is_described=True)


def protobuf_keys(schemas: SchemaTexts, message: str) -> RecordKeyFormat:
    """Return the format of keys that are Protobuf messages."""
    from makewhole.compute.decode.protobuf.protobuf_format import ProtobufFormat  # Google's library, for these alone

    form = ProtobufFormat(schemas, message)
    return RecordKeyFormat(name="protobuf", read=_reader(form), fields=form, is_described=True)


def _reader(form: ValueFormat) -> RecordKeyReader:
    def read(record_key: bytes, headers: Headers) -> object:
        try:
            document = form.document(record_key, headers)
        except KeyProblem as problem:
            raise of_record_key(problem) from None
        return document.get(WHOLE, document)

    return read
