"""Decode the values of Kafka Connect's JsonConverter with schemas: the fields of a payload, by their logical types."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.connect.envelope_parser import EnvelopeParser
from makewhole.compute.decode.connect.logical_types import JSON_TEXT
from makewhole.compute.decode.connect.payload_columns import decode_payloads, payloads_by_opening
from makewhole.compute.decode.connect.payload_elements import PayloadDivision
from makewhole.compute.decode.json_document import parse_document
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.shapes.found_elements import FoundElements
from makewhole.compute.decode.value_format import DecodedParts, Deletion, Headers, WantedLeaf, with_decimals
from makewhole.compute.keys import KeyProblem


class ConnectFormat:
    """Values that are an envelope of schema and payload each. A payload of null deletes, as a tombstone does."""

    has_deletions = True
    needs_key = False

    def __init__(self) -> None:
        self._parser = EnvelopeParser()

    def __repr__(self) -> str:
        return "connect"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:  # noqa: ARG002 - says nothing here
        """Return the fields of one payload."""
        if value is None:
            raise KeyProblem("value is null (a tombstone)")
        envelope = self._parser.parse(value)
        if envelope is None:
            raise KeyProblem(
                "value is no envelope of schema and payload; write `value: json` at the point if its connector has "
                "`value.converter.schemas.enable=false`"
            )
        fields = envelope.payload
        if fields is None:
            raise Deletion("value has a payload of null (a tombstone)")
        if isinstance(fields, str) and envelope.logical_type == JSON_TEXT:
            fields = parse_document(fields.encode("utf-8", "surrogatepass"))
        if not isinstance(fields, dict):
            raise KeyProblem("value has a payload that is not an object")
        return fields

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return the fields of one payload with every number a Decimal."""
        return with_decimals(self.document(value, headers))

    def encode(self, payload: bytes) -> bytes:
        """Return a whole value as it is: a schema cannot be made of a row."""
        self.document(payload, ())
        return payload

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the payloads schema by schema."""
        groups, left = payloads_by_opening(batch.column("value"), self._parser)
        parts, lefts = [], [left]
        for rows, payloads, opening in groups:
            own, own_left = decode_payloads(payloads, opening.schema, wanted)
            parts += [(rows[at], frame) for at, frame in own]
            lefts.append(rows[own_left])
        return parts, np.concatenate(lefts)

    def find_elements(self, batch: pa.RecordBatch, divided_at: Path, places: Collection[Path]) -> FoundElements:
        """Find the elements of the payloads schema by schema. See `DividingFormat.find_elements`."""
        payload_groups, _ = payloads_by_opening(batch.column("value"), self._parser)
        division = PayloadDivision(divided_at=divided_at, wanted={path[0] for path in places}, decode=decode_payloads)
        groups = (division.elements(rows, payloads, opening.schema) for rows, payloads, opening in payload_groups)
        return FoundElements(records=batch.num_rows, groups=[group for group in groups if group is not None])
