"""Divide records into the elements of an array: each element is a copy of a key of its own, at its record's position.

An element is decoded as a record is whose array is this one element. What has no such array is one copy without a key.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.envelopes import require_fields
from makewhole.compute.decode.json_document import DEEPEST, is_too_deep
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.json_values import JSON, JsonFormat
from makewhole.compute.decode.shapes.json_elements import divide_json, nothing_divided
from makewhole.compute.decode.value_format import Headers, ValueFormat
from makewhole.compute.keys import KeyProblem
from makewhole.compute.structures import json_value
from makewhole.config.template import exact_json
from makewhole.model.places.record_paths import written_path
from makewhole.native.arrays import Int64s
from makewhole.native.json_elements import LEFT

_UNDIVIDED = b"!"
"""Stands before the reason why a record has no elements, in place of its value: no JSON begins so."""
_TOO_DEEP = f"value is nested more than {DEEPEST} deep"


class ElementFormat(JsonFormat):
    """The values that `Elements` makes: JSON, or the reason why there is none."""

    def __repr__(self) -> str:
        return "elements"

    def document(self, value: bytes | None, headers: Headers) -> Mapping[str, Any]:
        """Parse one value. Raises as `ValueFormat.document`."""
        if value is not None and value.startswith(_UNDIVIDED):
            raise KeyProblem(value.removeprefix(_UNDIVIDED).decode("utf-8", "replace"))
        return JSON.document(value, headers)


class DividedBatch(NamedTuple):
    """How many elements each record has, and a batch with a row for each."""

    counts: Int64s
    batch: pa.RecordBatch


@dataclass(frozen=True, kw_only=True)
class Elements:
    """The array that records are divided by, and the format of the records. `takes_latest`: the latest version of a key
    counts, of which a record has one."""

    path: Path
    format: ValueFormat = field(repr=False)
    takes_latest: bool = False

    @property
    def contradiction(self) -> str:
        """The reason why elements of one key cannot be read."""
        return f"value has elements of one key at {_place(self.path)} that differ"

    def divided(self, batch: pa.RecordBatch, wanted: Collection[str]) -> DividedBatch:
        """Return a batch with a row for each element of its records, in order. `wanted`: the fields at the top of a
        value that are read."""
        values, headers = batch.column("value"), batch.column("headers")
        divide = divide_json if self.format is JSON else nothing_divided
        divided = divide(values, self.path, wanted)
        left = np.flatnonzero(divided.counts == LEFT).tolist()
        if left:
            parts = [self.values_of(values[row].as_py(), headers[row].as_py(), wanted) for row in left]
            divided = divided.with_left(left, parts)
        rows = np.repeat(np.arange(len(values)), divided.counts)
        at = batch.schema.get_field_index("value")
        return DividedBatch(divided.counts, repeated(batch, rows).set_column(at, "value", divided.elements))

    def values_of(
        self, value: bytes | None, headers: Headers, wanted: Collection[str] | None = None
    ) -> Sequence[bytes | None]:
        """Return the values of a record's elements. `wanted` None: with all fields."""
        if value is None:
            return [None]
        try:
            document = self.format.document(value, headers)
            require_fields(document, wanted or ())
            return list(self._elements(document, wanted))
        except KeyProblem as problem:
            return _undivided(str(problem))
        except RecursionError:
            return _undivided(_TOO_DEEP)
        except (ArithmeticError, TypeError):
            return _undivided("value has elements that are no JSON")

    def _elements(self, document: Mapping[str, Any], wanted: Collection[str] | None) -> Iterator[bytes]:
        kept = {name: inner for name, inner in document.items() if wanted is None or name in wanted}
        for element in self._array(document):
            text = exact_json.dumps(_with(kept, self.path, element))
            yield text.encode("utf-8", "backslashreplace")  # half a character, as JSON escapes it

    def _array(self, document: Mapping[str, Any]) -> Sequence[Any]:
        inner: Any = document
        for depth, name in enumerate(self.path):
            if inner is None:
                return []
            if not isinstance(inner, Mapping):
                raise KeyProblem(f"value has no object at {_place(self.path[:depth])}")
            if name not in inner:
                raise KeyProblem(f"value has no field {_place(self.path[: depth + 1])}")
            inner = inner[name]
        if isinstance(inner, str) and is_too_deep(inner, DEEPEST):
            raise KeyProblem(_TOO_DEEP)
        inner = json_value(inner)
        if not isinstance(inner, list | None):
            raise KeyProblem(f"value has no array at {_place(self.path)}")
        return inner or []


def repeated(batch: pa.RecordBatch, rows: Int64s) -> pa.RecordBatch:
    """Return rows of a batch without their values."""
    at = batch.schema.get_field_index("value")
    without = batch.set_column(at, "value", pa.nulls(batch.num_rows, pa.binary()))
    return without.take(pa.array(rows, pa.int64()))


def _undivided(reason: str) -> list[bytes | None]:
    return [_UNDIVIDED + reason.encode("utf-8", "replace")]


def _place(path: Path) -> str:
    return f"${written_path(path)}"


def _with(fields: Mapping[str, Any], path: Path, element: Any) -> Any:
    """Return fields with an element in place of its array."""
    name, *rest = path
    return {**fields, name: _with(fields[name], tuple(rest), element) if rest else element}
