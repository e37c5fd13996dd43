"""Read Kafka's own record key by its format: as a text, or as a value that has fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from makewhole.compute.decode.connect.envelope_parser import EnvelopeParser
from makewhole.compute.decode.json_document import parse_json
from makewhole.compute.keys import KeyProblem

RecordKeyReader = Callable[[bytes], Any]
"""Return the value of a record key, numbers exact; raises KeyProblem with the reason why it has none."""
_ENVELOPES = EnvelopeParser()


def utf8_text(raw: bytes, what: str) -> str:
    """Return a text; `what` names it.

    Raises:
        KeyProblem: it is none.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise KeyProblem(f"{what} is not valid UTF-8") from None


def read_text(record_key: bytes) -> str:
    """Return a key that is a text."""
    return utf8_text(record_key, "record key")


def read_json(record_key: bytes) -> Any:
    """Return a key that is JSON: a text in quotation marks, a number, an object."""
    return _parsed(parse_json, record_key)


def read_connect(record_key: bytes) -> Any:
    """Return the payload of a key that is in the envelope of Kafka Connect's JsonConverter."""
    envelope = _parsed(_ENVELOPES.parse, record_key)
    if envelope is None:
        raise KeyProblem("record key is no envelope of schema and payload")
    return envelope.payload


def read_bytes(record_key: bytes) -> str:
    r"""Return a key of any bytes as PostgreSQL writes a `bytea`: `\x0aff`."""
    return rf"\x{record_key.hex()}"


def _parsed(parse: RecordKeyReader, record_key: bytes) -> Any:
    try:
        return parse(record_key)
    except KeyProblem as problem:
        raise KeyProblem(f"record key {str(problem).removeprefix('value ')}") from None


@dataclass(frozen=True, kw_only=True)
class RecordKeyFormat:
    """A format of record keys, by the word of the pipeline file."""

    name: str
    read: RecordKeyReader = field(repr=False)


TEXT_KEYS = RecordKeyFormat(name="string", read=read_text)
RECORD_KEY_FORMATS: Mapping[str, RecordKeyFormat] = {
    own.name: own
    for own in (
        TEXT_KEYS,
        RecordKeyFormat(name="json", read=read_json),
        RecordKeyFormat(name="connect", read=read_connect),
        RecordKeyFormat(name="bytes", read=read_bytes),
    )
}
