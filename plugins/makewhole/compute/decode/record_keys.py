"""Read Kafka's own record key by its format: as a text, or as a value that has fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.compute.decode.connect.connect_values import ConnectFormat
from makewhole.compute.decode.connect.envelope_parser import EnvelopeParser
from makewhole.compute.decode.json_document import parse_json
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.schema_texts import KEY_SCHEMA_HEADER
from makewhole.compute.decode.shapes.prefixed_json import PrefixedJsonFormat
from makewhole.compute.decode.value_format import Headers, ValueFormat
from makewhole.compute.keys import KeyProblem

RecordKeyReader = Callable[[bytes, Headers], Any]
"""Return the value of a record key, numbers exact; raises KeyProblem with the reason why it has none. The headers are
those of its record, which may name its schema."""
_ENVELOPES = EnvelopeParser()
BEHIND_PREFIX = PrefixedJsonFormat(KEY_SCHEMA_HEADER)


def utf8_text(raw: bytes, what: str) -> str:
    """Return a text; `what` names it.

    Raises:
        KeyProblem: it is none.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise KeyProblem(f"{what} is not valid UTF-8") from None


def read_text(record_key: bytes, headers: Headers = None) -> str:  # noqa: ARG001 - its bytes say all
    """Return a key that is a text."""
    return utf8_text(record_key, "record key")


def read_json(record_key: bytes, headers: Headers = None) -> Any:  # noqa: ARG001 - its bytes say all
    """Return a key that is JSON: a text in quotation marks, a number, an object."""
    return _parsed(parse_json, record_key)


def read_json_schema(record_key: bytes, headers: Headers) -> Any:
    """Return a key that is JSON behind the prefix of a schema registry."""
    return _parsed(lambda key: parse_json(BEHIND_PREFIX.text(key, headers)), record_key)


def read_connect(record_key: bytes, headers: Headers = None) -> Any:  # noqa: ARG001 - its bytes say all
    """Return the payload of a key that is in the envelope of Kafka Connect's JsonConverter."""
    envelope = _parsed(_ENVELOPES.parse, record_key)
    if envelope is None:
        raise KeyProblem("record key is no envelope of schema and payload")
    return envelope.payload


def read_bytes(record_key: bytes, headers: Headers = None) -> str:  # noqa: ARG001 - its bytes say all
    r"""Return a key of any bytes as PostgreSQL writes a `bytea`: `\x0aff`."""
    return rf"\x{record_key.hex()}"


def _parsed(parse: Callable[[bytes], Any], record_key: bytes) -> Any:
    try:
        return parse(record_key)
    except KeyProblem as problem:
        raise of_record_key(problem) from None


def of_record_key(problem: KeyProblem) -> KeyProblem:
    """Return the reason of a value as that of a record key."""
    text = str(problem)
    return KeyProblem(
        f"record key {text.removeprefix('value ')}" if text.startswith("value ") else f"record key: {text}"
    )


@dataclass(frozen=True, kw_only=True)
class RecordKeyFormat:
    """A format of record keys, by the word of the pipeline file. `fields` decodes many keys at once, as if they were
    values; None: their keys have no fields. `whole`: the name by which it has a key that is no record; None: none.
    `is_described`: a schema says what a key is, so that one which cannot be read may be any.
    """

    name: str
    read: RecordKeyReader = field(repr=False)
    fields: ValueFormat | None = field(default=None, repr=False)
    whole: str | None = None
    is_described: bool = False


TEXT_KEYS = RecordKeyFormat(name="string", read=read_text)
RECORD_KEY_FORMATS: Mapping[str, RecordKeyFormat] = {
    own.name: own
    for own in (
        TEXT_KEYS,
        RecordKeyFormat(name="json", read=read_json, fields=JSON),
        RecordKeyFormat(name="json_schema", read=read_json_schema, fields=BEHIND_PREFIX),
        RecordKeyFormat(name="connect", read=read_connect, fields=ConnectFormat()),
        RecordKeyFormat(name="bytes", read=read_bytes),
    )
}
