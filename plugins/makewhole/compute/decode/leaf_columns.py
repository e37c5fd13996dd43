"""JSON objects of one layout, read side by side: where each leaf value stands in each of them.

An object follows a layout when its bytes are the layout's fixed text with a valid leaf value of the same kind in each
gap: then it is JSON, and has the same names in the same places.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.json_layout import JsonLayout
from makewhole.native import json_scan
from makewhole.native.arrays import ArrowArray, Bytes, Longs
from makewhole.native.byte_strings import Blobs, Content
from makewhole.native.json_scan import BOOLEAN, NULL, NUMBER, SIGNED_ZERO, TEXT

_INLINE = 12
_MOST_NUMBER_BYTES, _NO_LIMIT = 31, 1 << 62


@dataclass(frozen=True, kw_only=True)
class Values:
    """The values of a column by where they stand. Null is what is null, or does not stand in the content."""

    content: Content
    blobs: Blobs

    @classmethod
    def of(cls, column: ArrowArray) -> "Values":
        """Of a binary column, or of one of views."""
        if column.type == pa.binary():
            _, edges, content = column.buffers()
            edges = np.frombuffer(edges, dtype=np.int32)[column.offset :][: len(column) + 1]
            starts, lengths = edges[:-1], np.diff(edges)
        else:
            views = np.frombuffer(column.buffers()[1], dtype=np.int32).reshape(-1, 4)[column.offset :][: len(column)]
            content = column.buffers()[2] if len(column.buffers()) > 2 else None
            is_apart = (views[:, 0] > _INLINE) & (views[:, 2] == 0)
            starts, lengths = views[:, 3], np.where(is_apart, views[:, 0], np.int32(-1))
        if column.null_count:
            lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, np.int32(-1))
        return cls(content=Content(content or b""), blobs=Blobs(starts=starts, lengths=lengths))

    def __getitem__(self, row: int) -> bytes:
        start = int(self.blobs.starts[row])
        return self.content.bytes[start : start + max(int(self.blobs.lengths[row]), 0)].tobytes()


class Rule(NamedTuple):
    """What a leaf has to be: of one of these kinds, and so long."""

    kinds: int
    least_bytes: int = 0
    number_bytes: int = _MOST_NUMBER_BYTES
    fraction_digits: int = 0

    def and_also(self, other: "Rule") -> "Rule":
        """Both at once."""
        return Rule(
            self.kinds & other.kinds,
            max(self.least_bytes, other.least_bytes),
            min(self.number_bytes, other.number_bytes),
            min(self.fraction_digits, other.fraction_digits),
        )


_ANYTHING = Rule(TEXT | NUMBER | SIGNED_ZERO | BOOLEAN | NULL, 0, _NO_LIMIT, _NO_LIMIT)


class LeafColumn(NamedTuple):
    """A leaf of every value, null where it is JSON's `null`, and how many digits its fraction has."""

    blobs: Blobs
    fraction_digits: Bytes


@dataclass(frozen=True, kw_only=True)
class Alike:
    """Those of the values that follow a layout: their rows, ascending, and the leaves that there are rules for."""

    content: Content
    rows: Longs
    leaves: Mapping[int, LeafColumn]


def follow(layout: JsonLayout, values: Values, rows: Longs, rules: Mapping[int, Rule]) -> Alike:
    """Those of the rows that follow the layout, and whose leaves, by their number, are as the rules ask."""
    room = (len(rules), len(rows))
    found = json_scan.ScannedLeaves(
        rows=np.empty(len(rows), dtype=np.int64),
        starts=np.empty(room, dtype=np.int32),
        lengths=np.empty(room, dtype=np.int32),
        fraction_digits=np.empty(room, dtype=np.uint8),
    )
    places = json_scan.Places(values.content.bytes, values.blobs.starts[rows], values.blobs.lengths[rows])
    count = json_scan.scan(places, _pattern(layout, rules), found)
    leaves = {
        leaf: LeafColumn(Blobs(starts=starts[:count], lengths=lengths[:count]), digits[:count])
        for leaf, starts, lengths, digits in zip(rules, *found[1:], strict=True)
    }
    return Alike(content=values.content, rows=rows[found.rows[:count]], leaves=leaves)


def _pattern(layout: JsonLayout, rules: Mapping[int, Rule]) -> json_scan.Pattern:
    size = len(layout.leaves)
    columns = np.full(size, -1, dtype=np.int64)
    columns[list(rules)] = np.arange(len(rules))
    asked = np.array([rules.get(leaf, _ANYTHING) for leaf in range(size)], dtype=np.int64)
    kinds, least_bytes, number_bytes, fraction_digits = asked.reshape(size, len(_ANYTHING)).T.copy()
    return json_scan.Pattern(
        text=np.frombuffer(b"".join(layout.texts), dtype=np.uint8),
        edges=np.cumsum([0, *map(len, layout.texts)]),
        is_text=np.array([leaf.is_text for leaf in layout.leaves], dtype=np.bool_),
        columns=columns,
        kinds=kinds,
        least_bytes=least_bytes,
        number_bytes=number_bytes,
        fraction_digits=fraction_digits,
    )
