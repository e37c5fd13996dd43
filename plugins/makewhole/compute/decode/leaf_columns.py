"""Match many JSON objects with one layout, and find the leaf values of those that match.

An object matches a layout when its bytes are the layout's fixed text with a valid leaf value of the same kind in each
gap: then it is JSON, and has the same names in the same order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from makewhole.compute.decode.json_layout import JsonLayout
from makewhole.native import json_scan
from makewhole.native.arrays import ArrowArray, Int64s, UInt8s
from makewhole.native.byte_strings import Blobs, Content
from makewhole.native.json_scan import BOOLEAN, NULL, NUMBER, SIGNED_ZERO, TEXT

_INLINE = 12
_MOST_NUMBER_BYTES, _NO_LIMIT = 31, 1 << 62


@dataclass(frozen=True, kw_only=True)
class ValueColumn:
    """The values of a binary column by their place in one content. Null: is null, or is not in the content."""

    content: Content
    blobs: Blobs

    @classmethod
    def of(cls, column: ArrowArray) -> "ValueColumn":
        """Take them from a binary column, copied or of views."""
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


class LeafRule(NamedTuple):
    """The kinds and the lengths that a leaf may have. That of a string which may be no text is what is in its quotation
    marks."""

    kinds: int
    least_bytes: int = 0
    number_bytes: int = _MOST_NUMBER_BYTES
    fraction_digits: int = 0

    def combined(self, other: "LeafRule") -> "LeafRule":
        """Return the rule that asks for both."""
        return LeafRule(
            self.kinds & other.kinds,
            max(self.least_bytes, other.least_bytes),
            min(self.number_bytes, other.number_bytes),
            min(self.fraction_digits, other.fraction_digits),
        )


_ANYTHING = LeafRule(TEXT | NUMBER | SIGNED_ZERO | BOOLEAN | NULL, 0, _NO_LIMIT, _NO_LIMIT)


class LeafColumn(NamedTuple):
    """One leaf of every value, null where it is JSON's `null`, and the number of digits of its fraction."""

    blobs: Blobs
    fraction_digits: UInt8s


@dataclass(frozen=True, kw_only=True)
class MatchingRows:
    """The values that match a layout: their rows, ascending, and the leaves that there are rules for, by number."""

    content: Content
    rows: Int64s
    leaves: Mapping[int, LeafColumn]


def match_layout(layout: JsonLayout, values: ValueColumn, rows: Int64s, rules: Mapping[int, LeafRule]) -> MatchingRows:
    """Find the rows that match the layout and whose leaves obey the rules, which are by leaf number."""
    room = (len(rules), len(rows))
    scanned = json_scan.ScannedLeaves(
        rows=np.empty(len(rows), dtype=np.int64),
        starts=np.empty(room, dtype=np.int32),
        lengths=np.empty(room, dtype=np.int32),
        fraction_digits=np.empty(room, dtype=np.uint8),
    )
    spans = json_scan.ValueSpans(values.content.bytes, values.blobs.starts[rows], values.blobs.lengths[rows])
    count = json_scan.scan(spans, _pattern(layout, rules), scanned)
    leaves = {
        leaf: LeafColumn(Blobs(starts=starts[:count], lengths=lengths[:count]), digits[:count])
        for leaf, starts, lengths, digits in zip(rules, *scanned[1:], strict=True)
    }
    return MatchingRows(content=values.content, rows=rows[scanned.rows[:count]], leaves=leaves)


def _pattern(layout: JsonLayout, rules: Mapping[int, LeafRule]) -> json_scan.Pattern:
    size = len(layout.leaves)
    columns = np.full(size, -1, dtype=np.int64)
    columns[list(rules)] = np.arange(len(rules))
    asked = np.array([rules.get(leaf, _ANYTHING) for leaf in range(size)], dtype=np.int64)
    kinds, least_bytes, number_bytes, fraction_digits = asked.reshape(size, len(_ANYTHING)).T.copy()
    return json_scan.Pattern(
        text=np.frombuffer(b"".join(layout.texts), dtype=np.uint8),
        edges=np.cumsum([0, *map(len, layout.texts)]),
        is_text=np.array([leaf.is_text for leaf in layout.leaves], dtype=np.bool_) & (kinds & TEXT != 0),
        columns=columns,
        kinds=kinds,
        least_bytes=least_bytes,
        number_bytes=number_bytes,
        fraction_digits=fraction_digits,
    )
