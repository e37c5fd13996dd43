"""Decode the records of a batch, element by element where they are divided.

The elements that a format finds at once are columns already. A record with anything in it that is not usual, be it one
element of many, is divided alone, by the reference.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.record_values import ValueShape, decode_values, is_columnar
from makewhole.compute.decode.shapes.elements import ElementFormat, repeated
from makewhole.compute.decode.shapes.found_elements import DividingFormat, FoundElements
from makewhole.compute.decode.shapes.unit_values import UnitFormat
from makewhole.compute.decode.value_format import EVENT, DecodedParts, Headers, ValueFormat, WantedLeaf, path_of
from makewhole.compute.keys import KeyProblem
from makewhole.native.arrays import Int64s

_FIELD = "$."
_arrow: Any = pa  # as Any: the type stubs do not know a function of it


class DecodedRecords(NamedTuple):
    """The batch with a row for each copy (its `value` may be null: it is decoded), and the frame of `decode_values`."""

    batch: pa.RecordBatch
    frame: pl.DataFrame


class _FoundFormat(ElementFormat):
    """The values of elements that are found already: what is not usual in them is not read here."""

    def __init__(self, found_elements: FoundElements) -> None:
        self._found = found_elements

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, object]:  # noqa: ARG002
        """Refuse: the record is divided alone."""
        raise KeyProblem("value is divided alone")

    def decode_together(self, batch: pa.RecordBatch, wanted: Mapping[str, WantedLeaf]) -> DecodedParts:  # noqa: ARG002
        """Decode the elements, which are the rows of the batch."""
        return self._found.decode_together(wanted)


def decode_records(batch: pa.RecordBatch, shape: ValueShape) -> DecodedRecords:
    """Decode the records of a batch as `decode_values` does, those of a shape with elements one by one of these."""
    elements = shape.elements
    if elements is None:
        return DecodedRecords(batch, decode_values(batch, shape))
    if not isinstance(elements.format, DividingFormat) or not shape.key_paths or not is_columnar(shape):
        return _divided(batch, shape)
    found_elements = elements.format.find_elements(batch, elements.path, _places(shape))
    rows = np.repeat(np.arange(batch.num_rows), found_elements.counts)
    decoded = _decoded(repeated(batch, rows), shape, found_elements)
    is_left = ~found_elements.is_found
    is_left[rows[decoded.frame["key"].is_null().to_numpy()]] = True
    left = np.flatnonzero(is_left)
    return decoded if not len(left) else _with_left(batch, shape, (rows, decoded), left)


def _decoded(batch: pa.RecordBatch, shape: ValueShape, found_elements: FoundElements) -> DecodedRecords:
    """Decode elements that are found, which are the rows of the batch; those that are left have no key."""
    form: ValueFormat = _FoundFormat(found_elements)
    if isinstance(shape.format, UnitFormat):
        form = shape.format.around(form)
    return DecodedRecords(batch, decode_values(batch, replace(shape, format=form)))


def _with_left(
    batch: pa.RecordBatch, shape: ValueShape, decoded: tuple[Int64s, DecodedRecords], left: Int64s
) -> DecodedRecords:
    """Replace the elements of the records that are left by those of each record alone."""
    rows, (elements, frame) = decoded
    is_kept = ~np.isin(rows, left)
    counts, alone = _divided_with_counts(_with_copied_values(batch).take(pa.array(left, pa.int64())), shape)
    order = np.argsort(np.concatenate([rows[is_kept], np.repeat(left, counts)]), kind="stable")
    batches = _arrow.concat_batches([elements.filter(pa.array(is_kept)), alone.batch])
    frames = pl.concat([frame.filter(is_kept), alone.frame])
    return DecodedRecords(batches.take(pa.array(order, pa.int64())), frames[order])


def _with_copied_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index("value")
    return batch.set_column(at, "value", batch.column(at).cast(pa.binary()))


def _divided(batch: pa.RecordBatch, shape: ValueShape) -> DecodedRecords:
    return _divided_with_counts(batch, shape)[1]


def _divided_with_counts(batch: pa.RecordBatch, shape: ValueShape) -> tuple[Int64s, DecodedRecords]:
    assert shape.elements is not None
    counts, divided = shape.elements.divided(batch, {path[0] for path in _places(shape)})
    return counts, DecodedRecords(divided, decode_values(divided, shape))


def _places(shape: ValueShape) -> Collection[Path]:
    """Return the places in a value of all that is read."""
    return [path_of(place) for place in shape.read_places if place.startswith((_FIELD, EVENT))]
