"""Parse the envelope of Kafka Connect's JsonConverter, `{"schema": …, "payload": …}`.

All records of one schema begin with the same bytes, up to the payload: such an opening is parsed once.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from makewhole.compute.decode.connect.logical_types import Convert, conversion
from makewhole.compute.decode.json_document import parse_json
from makewhole.compute.keys import KeyProblem

NAMES = frozenset({"schema", "payload"})
_MOST_OPENINGS = 64
_SCHEMA, _PAYLOAD = re.compile(r'\s*\{\s*"schema"\s*:\s*'), re.compile(r'\s*,\s*"payload"\s*:\s*')
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The bytes before a payload, with the schema in them."""

    text: bytes
    schema: Any

    @cached_property
    def convert(self) -> Convert:
        """The converter of the payloads behind it."""
        return conversion(self.schema) or _unchanged

    @property
    def is_unconverted(self) -> bool:
        """Return whether payloads are right as they are."""
        return self.convert is _unchanged

    def envelope(self, payload: Any) -> "Envelope":
        """Return the envelope of a parsed payload."""
        name = self.schema.get("name") if isinstance(self.schema, dict) else None
        return Envelope(payload=self.convert(payload), logical_type=name if isinstance(name, str) else None)

    def begins(self, value: bytes) -> bool:
        """Return whether a value is an envelope with this opening, if what is left between is JSON."""
        return value.startswith(self.text) and value.endswith(b"}") and len(value) > len(self.text)

    def payload(self, value: bytes) -> bytes:
        """Return the payload of a value that it begins."""
        return value[len(self.text) : -1]


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A parsed envelope: its payload with numbers exact and logical types applied, and its payload's logical type."""

    payload: Any
    logical_type: str | None


@dataclass
class EnvelopeParser:
    """A parser of envelopes that remembers the openings it has seen."""

    _known: dict[bytes, Opening] = field(default_factory=dict)

    def parse(self, value: bytes) -> Envelope | None:
        """Parse a value; None: it is JSON, and no envelope.

        Raises:
            KeyProblem: it is not JSON.
        """
        opening = self.opening_of(value)
        if opening is not None:
            with suppress(KeyProblem):
                return opening.envelope(parse_json(opening.payload(value), above=1))
        document = parse_json(value)
        if not isinstance(document, dict) or set(document) != NAMES:
            return None
        return Opening(text=b"", schema=document["schema"]).envelope(document["payload"])

    def opening_of(self, value: bytes) -> Opening | None:
        """Return the opening of a value; None: it has none that others could share."""
        for opening in [*self._known.values()]:
            if opening.begins(value):
                return opening
        learned = _learn(value)
        if learned is not None:
            if len(self._known) >= _MOST_OPENINGS:
                self._known.pop(next(iter(self._known)), None)
            self._known[learned.text] = learned
        return learned


def _learn(value: bytes) -> Opening | None:
    """Return the opening of a value that is an envelope with its schema first, in JSON without a doubt."""
    text = value.decode("latin-1")  # one character a byte
    start = _SCHEMA.match(text)
    if start is None or not text.endswith("}"):
        return None
    try:
        _, end = _DECODER.raw_decode(text, start.end())
        between = _PAYLOAD.match(text, end)
        if between is None:
            return None
        schema = parse_json(value[start.end() : end], above=1)
        parse_json(value[between.end() : -1], above=1)
    except (ValueError, RecursionError):  # KeyProblem is among them
        return None
    return Opening(text=value[: between.end()], schema=schema)


def _unchanged(value: Any) -> Any:
    return value
