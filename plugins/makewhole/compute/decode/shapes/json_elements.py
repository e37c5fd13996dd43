"""Divide JSON records into the elements of an array without building documents: an element's own text, with that of its
record around it.

Every byte is looked at, so that nothing is divided that `parse_document` refuses. What the two could see differently is
left to the reading of the whole document.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.envelopes import ENVELOPES
from makewhole.compute.decode.json_document import DEEPEST
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.leaf_columns import ValueColumn
from makewhole.native.arrays import ArrowArray, Int64s, UInt8s, read_only
from makewhole.native.byte_strings import are_utf8
from makewhole.native.element_texts import size_of_texts, write_texts
from makewhole.native.json_elements import LEFT, Division, JsonValues, find_elements

_MOST_NAMES = 60
_MOST_BYTES = 2**31 - 1
"""Most bytes that the values of a binary column may have in all."""


@dataclass(frozen=True, kw_only=True)
class DividedRecords:
    """How many elements each record has (`LEFT`: it is left), and the values of all elements, one behind the other."""

    counts: Int64s
    elements: ArrowArray

    def with_left(self, left: Sequence[int], parts: Sequence[Sequence[bytes | None]]) -> "DividedRecords":
        """Add the values of the elements of those that are left, by their numbers in order."""
        counts, is_left = self.counts.copy(), self.counts == LEFT
        counts[left] = [len(part) for part in parts]
        others = pa.array([value for part in parts for value in part], pa.binary())
        is_other = np.repeat(is_left, counts)
        at = np.empty(len(is_other), dtype=np.int64)
        at[~is_other] = np.arange(len(self.elements))
        at[is_other] = np.arange(len(self.elements), len(at))
        return DividedRecords(counts=counts, elements=pa.concat_arrays([self.elements, others]).take(pa.array(at)))


def divide_json(
    values: ArrowArray,
    path: Path,
    wanted: Collection[str],
    envelopes: Collection[frozenset[str]] = ENVELOPES,
    above: int = 0,
) -> DividedRecords:
    """Divide the records of a binary column that are usual.

    The value of an element is JSON with it in place of the array at the path, and with the `wanted` fields of its
    record's top. `envelopes`: names that a record which lacks a wanted field has not all of. `above`: how deep the
    values stand in others.
    """
    if path[0] not in wanted or len(wanted) > _MOST_NAMES:
        return nothing_divided(values, path, wanted)
    column, is_text = ValueColumn.of(values), are_utf8(values.cast(pa.binary()))
    lengths = np.where(is_text, column.blobs.lengths, np.int32(-1))
    spans = JsonValues(column.content.bytes, read_only(column.blobs.starts), read_only(lengths))
    places = find_elements(spans, _division(path, wanted, envelopes), DEEPEST - above)
    if size_of_texts(places) > _MOST_BYTES:
        return nothing_divided(values, path, wanted)
    texts, edges = write_texts(spans.content, places)
    buffers = [None, pa.py_buffer(edges.data), pa.py_buffer(texts.data)]
    return DividedRecords(counts=places.counts, elements=pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers))


def nothing_divided(values: ArrowArray, _path: Path, _wanted: Collection[str]) -> DividedRecords:
    """Leave every record, as `divide_json` leaves those that are unusual."""
    return DividedRecords(counts=np.full(len(values), LEFT, dtype=np.int64), elements=pa.array([], pa.binary()))


def _division(path: Path, wanted: Collection[str], envelopes: Collection[frozenset[str]]) -> Division:
    asked = [names for names in envelopes if not names.issuperset(wanted)]
    watched = sorted(frozenset().union(*asked))
    sets = [sum(1 << watched.index(name) for name in names) for names in asked]
    return Division(*_joined(path), *_joined(wanted), *_joined(watched), np.array(sets, dtype=np.int64))


def _joined(names: Collection[str]) -> tuple[UInt8s, Int64s]:
    """Return names, one behind the other, and their edges; one that is no Unicode text is found nowhere."""
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    return np.frombuffer(b"".join(texts), dtype=np.uint8), np.cumsum([0, *map(len, texts)], dtype=np.int64)
