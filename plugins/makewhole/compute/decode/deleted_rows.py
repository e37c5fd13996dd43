"""Take the values by which Debezium deletes a row for deletions, in formats that read the fields of any value.

`ExtractNewRecordState` with `rewrite` writes the fields of the row before, and `__deleted`: `"true"` where it was
deleted, `"false"` in all others. A change event that is read through its envelope (`$.after.amount`) has `op: d`.
Source: https://debezium.io/documentation/reference/3.2/transformations/event-flattening.html
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.value_format import DecodedParts, Deletion, Headers, ValueFormat, WantedLeaf

DELETED = "__deleted"
_MARKS = {"c:mark of a deleted row": (DELETED, "true"), "c:op of a change event": ("op", "d")}
"""A column → the field that it is read of, and the text that a deletion has there, or may have."""
_EVENT_FIELDS = {"before", "after", "op"}


class DeletedRowsFormat:
    """The values of another format, of which one with a mark deletes its key."""

    def __init__(self, form: ValueFormat) -> None:
        self._form = form
        self.has_deletions, self.needs_key = form.has_deletions, form.needs_key

    def __repr__(self) -> str:
        return repr(self._form)

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Decode one value. Raises as `ValueFormat.document`, and `Deletion` where it has the mark."""
        document = self._form.document(value, headers)
        mark = document.get(DELETED)
        if mark is True or mark == "true":  # 1 equals True
            raise Deletion(f"value is of a deleted row ({DELETED})", document)
        if document.get("op") == "d" and document.keys() >= _EVENT_FIELDS:
            raise Deletion("value is a deletion (op d)", document)
        return document

    def template_value(self, value: bytes | None, headers: Headers) -> Any:
        """Return one value as templates see it, whether it has the mark or not."""
        return self._form.template_value(value, headers)

    def encode(self, payload: bytes) -> bytes:
        """Encode fields as the other format does."""
        return self._form.encode(payload)

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:
        """Decode many values as the other format does, and leave those with the mark."""
        with_marks = {column: WantedLeaf((name,), "string") for column, (name, _) in _MARKS.items()}
        parts, left = self._form.decode_together(batch, {**wanted, **with_marks})
        kept, lefts = [], [left]
        for rows, frame in parts:
            is_left = frame.select(pl.any_horizontal((pl.col(column) == text) for column, (_, text) in _MARKS.items()))
            lives = ~is_left.to_series().fill_null(False).to_numpy()
            kept.append((rows[lives], frame.filter(lives).drop(*_MARKS)))
            lefts.append(rows[~lives])
        return kept, np.concatenate(lefts)
