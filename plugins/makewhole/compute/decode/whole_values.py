"""Decode values that have no fields of their own: texts, any bytes, and JSON in a JSON string."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.json_document import parse_document, parse_json
from makewhole.compute.decode.record_keys import utf8_text
from makewhole.compute.decode.value_format import DecodedParts, Headers, WantedLeaf, with_decimals
from makewhole.compute.keys import KeyProblem

WHOLE = "value"
"""The one field of a value that is read as a whole."""


class _OneByOne:
    """Values that are decoded one by one, and are not made."""

    has_deletions = False
    needs_key = True

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:  # noqa: ARG002
        """Leave all of them."""
        return [], np.arange(batch.num_rows)

    def encode(self, payload: bytes) -> bytes:  # noqa: ARG002
        """Refuse: a row has fields, and these values have none."""
        raise KeyProblem("no record without fields is made of a row")


class TextFormat(_OneByOne):
    """Values that are a text each, of which an empty one is a text, too."""

    def __repr__(self) -> str:
        return "string"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:  # noqa: ARG002 - says nothing here
        """Return one value as the field `WHOLE`."""
        return {WHOLE: utf8_text(_present(value), "value")}

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return the field of one value."""
        return self.document(value, headers)


class BytesFormat(_OneByOne):
    """Values that are any bytes each."""

    def __repr__(self) -> str:
        return "bytes"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:  # noqa: ARG002
        r"""Return one value as the field `WHOLE`, as PostgreSQL writes a `bytea`: `\x0aff`."""
        return {WHOLE: rf"\x{_present(value).hex()}"}

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return the field of one value."""
        return self.document(value, headers)


class JsonInStringFormat(_OneByOne):
    """Values that are a JSON string with a JSON object in it each, as Debezium's outbox router writes `jsonb`."""

    def __repr__(self) -> str:
        return "json_in_string"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the fields of the object in one string."""
        text = parse_json(_present(value))
        if not isinstance(text, str):
            raise KeyProblem("value is no JSON string that holds an object: `value: json` is for one that stands alone")
        document: Mapping[str, Any] = parse_document(text.encode("utf-8", "surrogatepass"))
        return document

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return the fields of the object in one string with every number a Decimal."""
        return with_decimals(self.document(value, headers))

    def encode(self, payload: bytes) -> bytes:
        """Return a payload, which is JSON already, as a JSON string."""
        return json.dumps(payload.decode(), ensure_ascii=False).encode()


def _present(value: bytes | None) -> bytes:
    if value is None:
        raise KeyProblem("value is null (a tombstone)")
    return value
