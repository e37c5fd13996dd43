"""Decode JSON behind the prefix of a schema registry, as Confluent's serializers of JSON Schema write it.

JSON is read without its schema, so that the number is not looked up. A header in place of the prefix leaves the JSON
alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.json_values import JSON
from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.compute.decode.schema_texts import PREFIX_BYTES, SCHEMA_HEADER, named_body, rows_without_header
from makewhole.compute.decode.shapes.found_elements import ElementGroup, FoundElements
from makewhole.compute.decode.shapes.json_elements import divide_json
from makewhole.compute.decode.value_format import DecodedParts, Headers, WantedLeaf
from makewhole.compute.keys import KeyProblem
from makewhole.native.arrays import ArrowArray, Int64s
from makewhole.native.byte_strings import Blobs


@dataclass(frozen=True)
class _Named:
    """How a record names its schema."""

    header: str
    are_named: bool = True


class PrefixedJsonFormat:
    """Values that are a JSON object each behind a zero byte and the number of a schema, or that a header names the
    schema of."""

    has_deletions = False
    needs_key = False

    def __init__(self, header: str = SCHEMA_HEADER) -> None:
        self._named = _Named(header)

    def __repr__(self) -> str:
        return "json_schema"

    def text(self, value: bytes | None, headers: Headers) -> bytes:
        """Return the JSON of one value.

        Raises:
            KeyProblem: it names no schema.
        """
        start = named_body(value, headers, self._named).start
        return (value or b"")[start:]

    def texts(self, batch: pa.RecordBatch) -> tuple[Int64s, ArrowArray]:
        """Return the JSON of those values that have the prefix, uncopied, with their rows."""
        values, rows = ValueColumn.of(batch.column("value")), rows_without_header(batch, self._named)
        rows = rows[values.blobs.lengths[rows] >= PREFIX_BYTES]
        rows = rows[values.content.bytes[values.blobs.starts[rows]] == 0]
        size = np.int32(PREFIX_BYTES)
        blobs = Blobs(starts=values.blobs.starts[rows] + size, lengths=values.blobs.lengths[rows] - size)
        return rows, blobs.views(values.content)

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Parse the JSON of one value. Raises as `ValueFormat.document`."""
        return JSON.document(self.text(value, headers), headers)

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Parse the JSON of one value, every number a Decimal."""
        return JSON.template_value(self.text(value, headers), headers)

    def encode(self, payload: bytes) -> bytes:  # noqa: ARG002
        """Refuse: whether a record fits its JSON Schema is not known here."""
        raise KeyProblem("no record of a JSON Schema is made of a row")

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode the values with the prefix as plain JSON."""
        rows, texts = self.texts(batch)
        decoded, _ = JSON.decode_together(pa.record_batch({"value": texts}), wanted)
        parts = [(rows[at], frame) for at, frame in decoded]
        done = [at for at, _ in parts]
        return parts, np.setdiff1d(np.arange(batch.num_rows), np.concatenate(done) if done else [], assume_unique=True)

    def find_elements(self, batch: pa.RecordBatch, divided_at: Path, places: Collection[Path]) -> FoundElements:
        """Find the elements of the values with the prefix. See `DividingFormat.find_elements`."""
        rows, texts = self.texts(batch)
        divided = divide_json(texts, divided_at, {path[0] for path in places})
        indices = np.flatnonzero(divided.counts >= 0)
        elements = pa.record_batch({"value": divided.elements})
        group = ElementGroup(
            rows=rows[indices],
            counts=divided.counts[indices],
            decode=lambda leaves: JSON.decode_together(elements, leaves),
        )
        return FoundElements(records=batch.num_rows, groups=[group])
