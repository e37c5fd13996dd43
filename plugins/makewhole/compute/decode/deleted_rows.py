"""Take a row that is marked as deleted for a deletion: Debezium's `ExtractNewRecordState` with `rewrite` writes such.

The value has the fields of the row before, and `__deleted`: `"true"` where it was deleted, `"false"` in all others.
Source: https://debezium.io/documentation/reference/3.2/transformations/event-flattening.html
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.value_format import DecodedParts, Deletion, Headers, ValueFormat, WantedLeaf

DELETED = "__deleted"
_MARK = "c:mark of a deleted row"


class DeletedRowsFormat:
    """The values of another format, of which one with the mark deletes its key. `has_names`: the bytes of a value have
    the names of its fields, so that values without the mark are known by one search."""

    def __init__(self, form: ValueFormat, *, has_names: bool) -> None:
        self._form, self._has_names = form, has_names
        self.has_deletions, self.needs_key = form.has_deletions, form.needs_key

    def __repr__(self) -> str:
        return repr(self._form)

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Decode one value. Raises as `ValueFormat.document`, and `Deletion` where it has the mark."""
        document = self._form.document(value, headers)
        if document.get(DELETED) in (True, "true"):
            raise Deletion(f"value is of a deleted row ({DELETED})", document)
        return document

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return one value as templates see it, whether it has the mark or not."""
        return self._form.template_value(value, headers)

    def encode(self, payload: bytes) -> bytes:
        """Encode fields as the other format does."""
        return self._form.encode(payload)

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode many values as the other format does, and leave those with the mark."""
        if self._has_names and not _holds(batch, DELETED.encode()):
            return self._form.decode_together(batch, wanted)
        parts, left = self._form.decode_together(batch, {**wanted, _MARK: WantedLeaf((DELETED,), "string")})
        kept, lefts = [], [left]
        for rows, frame in parts:
            lives = (frame[_MARK] != "true").fill_null(True).to_numpy()
            kept.append((rows[lives], frame.filter(lives).drop(_MARK)))
            lefts.append(rows[~lives])
        return kept, np.concatenate(lefts)


def _holds(batch: pa.RecordBatch, name: bytes) -> bool:
    values = pl.Series("value", pl.from_arrow(batch.column("value")))
    return bool(values.bin.contains(name).any())
