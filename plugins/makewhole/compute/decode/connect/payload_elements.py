"""Find the elements of many payloads of one schema as those of plain JSON: each is a payload of a schema of its own."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from makewhole.compute.decode.connect.logical_types import element_schema
from makewhole.compute.decode.envelopes import ENVELOPES
from makewhole.compute.decode.json_layout import Path
from makewhole.compute.decode.shapes.found_elements import ElementGroup, WantedLeaves
from makewhole.compute.decode.shapes.json_elements import divide_json
from makewhole.compute.decode.value_format import DecodedParts
from makewhole.native.arrays import ArrowArray, Int64s

DecodePayloads = Callable[[ArrowArray, Any, WantedLeaves], DecodedParts]


@dataclass(frozen=True, kw_only=True)
class PayloadDivision:
    """How payloads are divided: the array, the fields of a payload's top that are read, and what decodes payloads of a
    schema. `envelopes` as `divide_json` has them. `takes_empty`: a payload without elements needs no reading."""

    divided_at: Path
    wanted: Collection[str]
    decode: DecodePayloads
    envelopes: Collection[frozenset[str]] = ENVELOPES
    takes_empty: bool = True

    def elements(self, rows: Int64s, payloads: ArrowArray, schema: Any) -> ElementGroup | None:
        """Return the elements of the payloads of these rows, all of one schema; None: all are left."""
        try:
            own = element_schema(schema, self.divided_at)
        except ValueError:
            return None
        divided = divide_json(payloads, self.divided_at, self.wanted, self.envelopes, above=1)
        indices = np.flatnonzero(divided.counts >= (0 if self.takes_empty else 1))
        return ElementGroup(
            rows=rows[indices],
            counts=divided.counts[indices],
            decode=lambda leaves: self.decode(divided.elements, own, leaves),
        )
